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
	"strings"
	"syscall"
	"time"
)

// Replica is one running `better-compute serve`.
type Replica struct {
	program, home, ready, log string
	conninfoFile              string
	cmd                       *exec.Cmd
	exited                    chan error
	API, Gateway              string
	Key                       string
}

func (r *Replica) Start() error {
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	r.cmd = exec.Command(r.program, "serve", "--home", r.home, "--database-file", r.conninfoFile, "--listen", "127.0.0.1:0",
		"--gateway-listen", "127.0.0.1:0", "--ready-file", r.ready)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		return err
	}
	r.exited = make(chan error, 1)
	go func(c *exec.Cmd, exited chan error) { exited <- c.Wait() }(r.cmd, r.exited)
	return within(soon, func() error {
		text, err := os.ReadFile(r.ready)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, r.Log())
		}
		var ready struct {
			API, Gateway string
			PID          int
		}
		if err := json.Unmarshal(text, &ready); err != nil || ready.PID != r.cmd.Process.Pid {
			return fmt.Errorf("not ready: %s", text)
		}
		r.API, r.Gateway = ready.API, ready.Gateway
		return nil
	})
}

// Stop ends it by a signal and gives its exit status.
func (r *Replica) Stop(signal syscall.Signal) error {
	r.cmd.Process.Signal(signal)
	select {
	case err := <-r.exited:
		r.exited <- err
		if signal == syscall.SIGKILL {
			return nil
		}
		return err
	case <-time.After(soon):
		r.cmd.Process.Kill()
		return fmt.Errorf("it did not end within %v\n%s", soon, r.Log())
	}
}

func (r *Replica) Log() string {
	text, _ := os.ReadFile(r.log)
	return string(text)
}

type object = map[string]any

// Call asks the API; an answer that isn't 200 is an error that holds its body.
func (r *Replica) Call(method, path string, body any) (object, error) {
	var data io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		data = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, r.API+path, data)
	if err != nil {
		return nil, err
	}
	request.Close = true
	request.Header.Set("Authorization", "Bearer "+r.Key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != 200 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	var answer object
	return answer, json.Unmarshal(text, &answer)
}

// World is two replicas on one new database, and a pool to join.
type World struct {
	env          *Env
	dir          string
	database     string
	A, B         *Replica
	Pins         Pins
	Tenant, Pool string
}

// Pins is what `pki show -o json` says.
type Pins struct {
	CAPins, EncryptionPins, SigningPins string
	EncryptionJwk                       json.RawMessage
}

var worlds int

func NewWorld(env *Env) (*World, error) {
	worlds++
	w := &World{env: env, database: fmt.Sprintf("replicas_%d_%d", os.Getpid(), worlds)}
	var err error
	if w.dir, err = os.MkdirTemp("", "bc-replicas-"); err != nil {
		return nil, err
	}
	if _, err := env.postgres.SQL("postgres", "CREATE DATABASE "+w.database); err != nil {
		return nil, err
	}
	if err := w.setUp(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *World) Close() {
	for _, r := range []*Replica{w.A, w.B} {
		if r != nil && r.cmd != nil {
			r.Stop(syscall.SIGKILL)
		}
	}
	w.env.postgres.SQL("postgres", "DROP DATABASE IF EXISTS "+w.database+" WITH (FORCE)")
	os.RemoveAll(w.dir)
}

func (w *World) setUp() error {
	conninfo, keyFile, home := filepath.Join(w.dir, "database"), filepath.Join(w.dir, "admin.key"), filepath.Join(w.dir, "a")
	if err := os.WriteFile(conninfo, []byte(w.env.postgres.Conninfo(w.database)+"\n"), 0o600); err != nil {
		return err
	}
	out, err := exec.Command(w.env.program, "serve", "--init", "--home", home, "--database-file", conninfo, "--key-out", keyFile).CombinedOutput()
	if err != nil {
		return fmt.Errorf("serve --init: %v: %s", err, out)
	}
	// Replicas share the PKI's content.
	if out, err := exec.Command("cp", "-a", home, filepath.Join(w.dir, "b")).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %v: %s", err, out)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	shown, err := exec.Command(w.env.program, "pki", "show", "--home", home, "-o", "json").Output()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(shown, &w.Pins); err != nil {
		return err
	}
	for _, name := range []string{"a", "b"} {
		r := &Replica{program: w.env.program, home: filepath.Join(w.dir, name), conninfoFile: conninfo, ready: filepath.Join(w.dir, name+".ready"),
			log: filepath.Join(w.dir, name+".log"), Key: strings.TrimSpace(string(key))}
		if err := r.Start(); err != nil {
			return err
		}
		if name == "a" {
			w.A = r
		} else {
			w.B = r
		}
	}
	return w.makePool()
}

func (w *World) makePool() error {
	tenant, err := w.A.Call("POST", "/v1/tenants", object{"name": "acme"})
	if err != nil {
		return err
	}
	w.Tenant = tenant["id"].(string)
	site, err := w.A.Call("POST", "/v1/sites", object{"tenantId": w.Tenant, "name": "home", "kind": "custom"})
	if err != nil {
		return err
	}
	pool, err := w.A.Call("POST", "/v1/pools", object{"tenantId": w.Tenant, "siteId": site["id"], "name": "h100", "class": "metal-host",
		"gpuModel": "H100", "policy": object{}})
	if err != nil {
		return err
	}
	w.Pool = pool["id"].(string)
	return nil
}

// Token mints a join token; with its record.
func (w *World) Token(uses int) (token, id string, err error) {
	made, err := w.A.Call("POST", "/v1/join-tokens", object{"poolId": w.Pool, "maxUses": uses, "ttl": "1h"})
	if err != nil {
		return "", "", err
	}
	return made["token"].(string), made["id"].(string), nil
}

// soon is within what everything comes that must come and that no requirement bounds, on a machine that is busy too.
const soon = 60 * time.Second

// within tries until f succeeds, and gives its last error.
func within(limit time.Duration, f func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
