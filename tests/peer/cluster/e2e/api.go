package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// api speaks to the API server: JSON over HTTPS, as the cluster's admin.
type api struct {
	base   string
	client *http.Client
}

var errNotFound = errors.New("not found")

func newAPI(pki string) (*api, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &api{"https://" + nodeIP, &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool}}}}, nil
}

// call sends in, if not nil, and reads the answer into out, if not nil.
func (a *api) call(method, path string, in, out any) error {
	return a.send(method, path, "application/json", in, out)
}

func (a *api) send(method, path, kind string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, a.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", kind)
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNotFound {
		return errNotFound
	}
	if resp.StatusCode >= 300 {
		var status struct{ Message string }
		json.Unmarshal(b, &status)
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, status.Message)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// patch merges a change into an object.
func (c *cluster) patch(path string, change any) error {
	return c.api.send("PATCH", path, "application/merge-patch+json", change, nil)
}
