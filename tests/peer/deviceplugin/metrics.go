package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// Metrics is what Prometheus would read of bcd.
func (p *Product) Metrics() (string, error) {
	folder := p.Paths["run"]
	if folder == "" {
		folder = "/run/bcd"
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, "metrics.sock"))
		}}}
	answer, err := client.Get("http://bcd/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), errors.Join(err, Expect("HTTP status", answer.StatusCode, 200))
}

// Measured expects n devices at which the metrics name the pod and the reservation, in any state.
func Measured(pod, reservation string, n int) Step {
	return Step{fmt.Sprintf("metrics name pod %s at %d devices", pod, n), func(w *World) error {
		return Eventually(Soon, func() error {
			text, err := w.P.Metrics()
			if err != nil {
				return err
			}
			found := 0
			for _, line := range strings.Split(text, "\n") {
				if !strings.HasPrefix(line, "bcd_device_info{") || !strings.Contains(line, fmt.Sprintf(",pod=%q,container=", pod)) {
					continue
				}
				found++
				if !strings.Contains(line, fmt.Sprintf("allocation=%q", w.reservations[reservation].Allocations[0].ID)) {
					return fmt.Errorf("the pod stands at another allocation's device: %s", line)
				}
			}
			return Expect("devices at which the pod stands", found, n)
		})
	}}
}
