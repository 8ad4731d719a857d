package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// product is `better-compute up` with eight simulated GPUs and the bench's kubelet.
type product struct {
	up  *exec.Cmd
	dir string
	api struct{ API, Key, Tenant, Pool string }
	bcd int // its pid
}

func startProduct(betterCompute, dir, kubeletRoot string) (*product, error) {
	p := &product{dir: dir}
	log, err := os.Create(filepath.Join(dir, "up.log"))
	if err != nil {
		return nil, err
	}
	p.up = exec.Command(betterCompute, "up", "--state", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0",
		"--gpus", "sim:8xH100", "--kubelet", kubeletRoot, "--cdi", p.cdi())
	p.up.Stdout, p.up.Stderr = log, log
	p.up.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := p.up.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if p.ready() {
			return p, nil
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("up was not ready within 30 s:\n%s", text)
		}
	}
}

func (p *product) cdi() string { return filepath.Join(p.dir, "cdi") }

func (p *product) ready() bool {
	text, err := os.ReadFile(filepath.Join(p.dir, "state", "context.json"))
	if err != nil || json.Unmarshal(text, &p.api) != nil {
		return false
	}
	p.bcd = childNamed(p.up.Process.Pid, "bcd")
	var nodes struct{ Items []struct{ State string } }
	return p.bcd != 0 && p.call("GET", "/v1/nodes", nil, &nodes) == nil && len(nodes.Items) == 1 && nodes.Items[0].State == "ready"
}

// childNamed finds a child that runs a program of this name with the argument "node".
func childNamed(parent int, name string) int {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	for _, field := range strings.Fields(string(children)) {
		line, _ := os.ReadFile("/proc/" + field + "/cmdline")
		args := strings.Split(string(line), "\x00")
		for _, arg := range args[1:] {
			if arg == "node" && filepath.Base(args[0]) == name {
				pid, _ := strconv.Atoi(field)
				return pid
			}
		}
	}
	return 0
}

func (p *product) call(method, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		text = nil
	}
	request, err := http.NewRequest(method, p.api.API+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+p.api.Key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != 200 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, content)
	}
	return json.Unmarshal(content, out)
}

type reservation struct {
	ID, State   string
	Allocations []struct{ ID, State string }
}

func (p *product) reserve(gpus int) (*reservation, error) {
	var r reservation
	err := p.call("POST", "/v1/reservations", map[string]any{
		"tenantId": p.api.Tenant, "poolId": p.api.Pool, "duration": "1h", "binding": "kubernetes",
		"devices": []any{map[string]any{"class": "gpu", "count": gpus}}}, &r)
	return &r, err
}

// release ends a booking and waits until the node has given the GPUs back.
func (p *product) release(r *reservation) error {
	if err := p.call("POST", "/v1/reservations/"+r.ID+"/release", nil, r); err != nil {
		return err
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err := p.call("GET", "/v1/reservations/"+r.ID, nil, r); err != nil {
			return err
		}
		over := true
		for _, a := range r.Allocations {
			over = over && a.State == "released"
		}
		if over {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s was not given back within 60 s", r.ID)
		}
	}
}

func (p *product) stop() {
	p.up.Process.Signal(syscall.SIGTERM)
	p.up.Wait()
}
