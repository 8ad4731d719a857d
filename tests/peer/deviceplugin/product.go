package deviceplugin

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Product is better-compute serve and bcd node on this machine, with bcd behind the kubelet's device plugins.
type Product struct {
	Kubelet       Kubelet
	Dir           string // all of its files
	BCD           string // binaries
	BetterCompute string
	// Paths are bcd's [paths], where they differ from the defaults.
	Paths map[string]string
	// Kubeconfig is whom bcd is for the API server; "" for the default.
	Kubeconfig string
	// GPUs are the lines of bcd's [gpu]; "" for the simulated ones of SimFile. Env is what bcd's environment has beside this program's.
	GPUs string
	Env  []string
	// Away is how long the control plane is away in the case of that name; 0 for Away.
	Away time.Duration
	// Host is the address that the control plane listens on, with TLS: the certificate and key of TLS, and whom clients trust for it. ""
	// for a loopback address and plain HTTP.
	Host string
	TLS  struct{ Cert, Key, CA string }
	// PodLogs are those of a bcd in a pod; nil: it is a child of this program.
	PodLogs func() string

	client          *http.Client
	listen, gateway string
	key, tenant     string
	Pool            string
	pools           int
	serve, node     *Process
}

// Process is a child of this program.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	Log  string
}

func startProcess(log string, env []string, args ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &Process{exec.Command(args[0], args[1:]...), make(chan struct{}), log}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// PID of the child.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended tells whether it is over, or was never started.
func (p *Process) Ended() bool {
	if p == nil {
		return true
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// End sends a signal and waits; a child that takes over 30 s is killed, which is an error.
func (p *Process) End(signal syscall.Signal) error {
	if p == nil || p.Ended() {
		return nil
	}
	p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
		return nil
	case <-time.After(30 * time.Second): // serve drains for up to 13 s
		p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end within 30 s of %v", filepath.Base(p.cmd.Path), signal)
	}
}

// Reservation, as the API shows it.
type Reservation struct {
	ID, State   string
	Allocations []struct {
		ID, NodeID, State string
		Devices           []struct{ Atom, Class, GPU, VisibleDevice string }
	}
	Conditions []Condition
	Reasons    []struct {
		Reason string
		Nodes  int
	}
}

// Condition of a reservation or a node.
type Condition struct{ Type, Reason, Message string }

// Has tells whether the reservation shows the condition.
func (r *Reservation) Has(condition string) bool {
	for _, c := range r.Conditions {
		if c.Type == condition {
			return true
		}
	}
	return false
}

// Ask is one line of what a reservation asks for.
type Ask struct {
	Class   string `json:"class"`
	Profile string `json:"profile,omitempty"`
	Count   int    `json:"count"`
}

// APIError is an answer that refuses.
type APIError struct {
	Status                 int
	Code, Message, Request string
}

func (e *APIError) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// Call is one call of the HTTP API.
func (p *Product) Call(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, p.URL()+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		var e struct {
			Error struct{ Code, Message string }
		}
		json.Unmarshal(b, &e)
		return fmt.Errorf("%s %s: %w", method, path, &APIError{resp.StatusCode, e.Error.Code, e.Error.Message, resp.Header.Get("X-Request-Id")})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s %s: %w in %s", method, path, err, b)
	}
	return nil
}

// CLI runs better-compute and gives its standard output.
func (p *Product) CLI(args ...string) (string, error) { return command(p.BetterCompute, args...) }

func command(path string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// URL is where the HTTP API is, Gateway where nodes connect.
func (p *Product) URL() string {
	if p.Host != "" {
		return "https://" + p.listen
	}
	return "http://" + p.listen
}
func (p *Product) Gateway() string { return p.gateway }

// ownAddress is one that stays this run's own while nobody listens on it: the host or a loopback address that no other program thinks
// of, and a port below those that the kernel gives to whoever asks for any.
func ownAddress(host string) (address string, err error) {
	for range 20 {
		if host == "" {
			host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
		}
		address = fmt.Sprintf("%s:%d", host, 10000+rand.IntN(20000))
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}

func (p *Product) home() string { return filepath.Join(p.Dir, "serve") }

// PKIFolder is where serve has the control plane's keys.
func (p *Product) PKIFolder() string { return filepath.Join(p.home(), "pki") }
func (p *Product) config() string    { return filepath.Join(p.Dir, "config.toml") }

// SimFile describes the simulated GPUs; bcd watches it.
func (p *Product) SimFile() string { return filepath.Join(p.Dir, "gpus.toml") }

// SetupServe makes a control plane and starts it.
func (p *Product) SetupServe() (err error) {
	if p.listen, err = ownAddress(p.Host); err != nil {
		return err
	}
	if p.gateway, err = ownAddress(p.Host); err != nil {
		return err
	}
	if p.client, err = p.newClient(); err != nil {
		return err
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	out, err := p.CLI("serve", "--init", "--home", p.home())
	if err != nil {
		return err
	}
	if p.key = regexp.MustCompile(`bck_[A-Za-z0-9_-]+`).FindString(out); p.key == "" {
		return fmt.Errorf("serve --init printed no key: %s", out)
	}
	return p.StartServe()
}

// Setup makes a control plane with a tenant and a pool, joins this machine's bcd and starts it.
func (p *Product) Setup() error {
	if err := p.SetupServe(); err != nil {
		return err
	}
	tenant, err := p.MakeTenant()
	if err != nil {
		return err
	}
	if err := p.MakePool(tenant, "custom", map[string]any{}); err != nil {
		return err
	}
	if err := p.Simulate(Whole); err != nil {
		return err
	}
	if err := p.join(); err != nil {
		return err
	}
	if err := p.StartNode(); err != nil {
		return err
	}
	return Eventually(Soon, func() error {
		n, err := p.Node()
		if err == nil && n.State != "ready" {
			err = fmt.Errorf("the node is %s", n.State)
		}
		return err
	})
}

func (p *Product) newClient() (*http.Client, error) {
	transport := &http.Transport{}
	if p.Host != "" {
		ca, err := os.ReadFile(p.TLS.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: transport}, nil
}

// Key is the operator's, Tenant whose Pool is.
func (p *Product) Key() string    { return p.key }
func (p *Product) Tenant() string { return p.tenant }

// MakeTenant makes one and gives its id.
func (p *Product) MakeTenant() (string, error) {
	var made struct{ ID string }
	err := p.Call("POST", "/v1/tenants", map[string]any{"name": "test"}, &made)
	return made.ID, err
}

// MakePool makes a tenant's site of this kind and a pool there, which is from now on Pool.
func (p *Product) MakePool(tenant, kind string, policy map[string]any) error {
	var made struct{ ID string }
	p.tenant = tenant
	p.pools++
	if err := p.Call("POST", "/v1/sites", map[string]any{"tenantId": p.tenant, "name": fmt.Sprint("site", p.pools), "kind": kind}, &made); err != nil {
		return err
	}
	err := p.Call("POST", "/v1/pools", map[string]any{"tenantId": p.tenant, "siteId": made.ID, "name": fmt.Sprint("h100-", p.pools),
		"class": "metal-host", "gpuModel": "H100", "policy": policy}, &made)
	p.Pool = made.ID
	return err
}

// Pins are what a node must know of the control plane.
type Pins struct {
	CAPins, EncryptionPins, SigningPins string
	EncryptionJwk                       json.RawMessage
}

// PKI is what `pki show` tells.
func (p *Product) PKI() (*Pins, error) {
	out, err := p.CLI("pki", "show", "--home", p.home(), "-o", "json")
	if err != nil {
		return nil, err
	}
	var pins Pins
	if err := json.Unmarshal([]byte(out), &pins); err != nil {
		return nil, fmt.Errorf("pki show: %w in %s", err, out)
	}
	return &pins, nil
}

func (p *Product) join() error {
	pki, err := p.PKI()
	if err != nil {
		return err
	}
	var jwk bytes.Buffer
	if err := json.Compact(&jwk, pki.EncryptionJwk); err != nil {
		return err
	}
	var token struct{ Token string }
	if err := p.Call("POST", "/v1/join-tokens", map[string]any{"poolId": p.Pool}, &token); err != nil {
		return err
	}
	tokenFile := filepath.Join(p.Dir, "token")
	if err := os.WriteFile(tokenFile, []byte(token.Token+"\n"), 0o600); err != nil {
		return err
	}
	var c strings.Builder
	fmt.Fprintln(&c, "[paths]")
	for k, v := range p.Paths {
		fmt.Fprintf(&c, "%s = %q\n", k, v)
	}
	fmt.Fprintf(&c, "[gateway]\naddresses = [%q]\nserver_name = \"gateway.better-compute.internal\"\nca_pins = %q\n", p.gateway, pki.CAPins)
	fmt.Fprintf(&c, "[join]\nencryption_jwk = %q\nencryption_pins = %q\nsigning_pins = %q\n", jwk.String(), pki.EncryptionPins, pki.SigningPins)
	gpus, confine := p.GPUs, false // the fake driver is stuck in the kernel by being traced, which bcd refuses what it starts
	if gpus == "" {
		confine = true
		gpus = fmt.Sprintf("source = \"sim\"\nsim_file = %q\n", p.SimFile())
	}
	fmt.Fprintf(&c, "[host]\nunits = false\nconfine = %t\n[gpu]\n%s", confine, gpus)
	fmt.Fprintf(&c, "[kubernetes]\nnode_name = \"node0\"\n")
	if p.Kubeconfig != "" {
		fmt.Fprintf(&c, "kubeconfig = %q\n", p.Kubeconfig)
	}
	if err := os.WriteFile(p.config(), []byte(c.String()), 0o600); err != nil {
		return err
	}
	_, err = command(p.BCD, "--config", p.config(), "join", "--token-file", tokenFile)
	return err
}

// cdiFolders are where bcd may write for the container runtime.
func (p *Product) cdiFolders() []string {
	folders := []string{"/etc/cdi", "/var/run/cdi"}
	for i, name := range []string{"cdi", "run_cdi"} {
		if p.Paths[name] != "" {
			folders[i] = p.Paths[name]
		}
	}
	return folders
}

// StartServe starts the control plane and waits until it answers.
func (p *Product) StartServe() (err error) {
	command := []string{p.BetterCompute, "serve", "--home", p.home(), "--listen", p.listen, "--gateway-listen", p.gateway, "--gateway-address", p.gateway}
	if p.Host != "" {
		command = append(command, "--tls-cert", p.TLS.Cert, "--tls-key", p.TLS.Key)
	}
	p.serve, err = startProcess(filepath.Join(p.Dir, "serve.log"), nil, command...)
	if err != nil {
		return err
	}
	return Eventually(Soon, func() error {
		if p.serve.Ended() {
			return fmt.Errorf("serve ended: %s", tail(p.serve.Log))
		}
		return p.Call("GET", "/readyz", nil, nil)
	})
}

// StartNode starts bcd node; it does not wait.
func (p *Product) StartNode() (err error) {
	p.node, err = p.AnotherNode("bcd.log")
	return err
}

// AnotherNode starts a bcd node of the same configuration and data folder.
func (p *Product) AnotherNode(log string) (*Process, error) {
	return startProcess(filepath.Join(p.Dir, log), append([]string{"NODE_NAME=node0"}, p.Env...), p.BCD, "--config", p.config(), "node")
}

// KillServe ends the control plane at once, KillNode bcd.
func (p *Product) KillServe() error { return p.serve.End(syscall.SIGKILL) }
func (p *Product) KillNode() error  { return p.node.End(syscall.SIGKILL) }

// NodeEnded and ServeEnded tell whether they are over.
func (p *Product) NodeEnded() bool  { return p.node.Ended() }
func (p *Product) ServeEnded() bool { return p.serve.Ended() }

// NodeLogs are bcd's: one that waited for another's end writes its own.
func (p *Product) NodeLogs() []string {
	logs, _ := filepath.Glob(filepath.Join(p.Dir, "*.log"))
	return slices.DeleteFunc(logs, func(log string) bool { return filepath.Base(log) == "serve.log" })
}

// NodePID is bcd's process.
func (p *Product) NodePID() int { return p.node.PID() }

// Stop ends both politely.
func (p *Product) Stop() error {
	return errors.Join(p.node.End(syscall.SIGTERM), p.serve.End(syscall.SIGTERM))
}

// NodeView is the node as the API shows it.
type NodeView struct {
	ID, State, Trust   string
	KubernetesNodeName string
	Connected          bool
	GPUs               []struct{ UUID string }
	Devices            []struct{ Atom, Class, GPU string }
	Conditions         []Condition
}

// Node is the only node there is.
func (p *Product) Node() (*NodeView, error) {
	var list struct{ Items []NodeView }
	if err := p.Call("GET", "/v1/nodes", nil, &list); err != nil {
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(n NodeView) bool { return n.State == "retired" || n.State == "lost" })
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%d nodes, expected 1", len(list.Items))
	}
	var n NodeView
	err := p.Call("GET", "/v1/nodes/"+list.Items[0].ID, nil, &n)
	return &n, err
}

// Reserve books for an hour.
func (p *Product) Reserve(asks ...Ask) (*Reservation, error) {
	var r Reservation
	err := p.Call("POST", "/v1/reservations", map[string]any{"tenantId": p.tenant, "poolId": p.Pool, "devices": asks,
		"duration": "1h", "binding": "kubernetes"}, &r)
	return &r, err
}

// Reservation reads one again.
func (p *Product) Reservation(id string) (*Reservation, error) {
	var r Reservation
	err := p.Call("GET", "/v1/reservations/"+id, nil, &r)
	return &r, err
}

// Reservations are those that were made since, up to 200.
func (p *Product) Reservations(since time.Time) ([]Reservation, error) {
	var list struct{ Items []Reservation }
	err := p.Call("GET", "/v1/reservations?limit=200&from="+since.UTC().Format(time.RFC3339), nil, &list)
	return list.Items, err
}

// Release gives one back.
func (p *Product) Release(id string) error {
	return p.Call("POST", "/v1/reservations/"+id+"/release", nil, nil)
}

// Status is what `bcd status` says.
func (p *Product) Status(args ...string) (string, error) {
	return command(p.BCD, append([]string{"--config", p.config(), "status"}, args...)...)
}

// SimSet changes a simulated GPU, as `bcd sim set`.
func (p *Product) SimSet(gpu, assignment string) error {
	_, err := command(p.BCD, "--config", p.config(), "sim", "set", gpu, assignment)
	return err
}

func tail(file string) string {
	b, _ := os.ReadFile(file)
	if len(b) > 3000 {
		b = b[len(b)-3000:]
	}
	return string(b)
}

// Logs are the ends of the logs, for a failed case.
func (p *Product) Logs() string {
	logs := "---- serve.log\n" + tail(filepath.Join(p.Dir, "serve.log"))
	if node, err := p.Node(); err == nil {
		logs += fmt.Sprintf("\n---- the node's conditions\n%+v", node.Conditions)
	}
	if p.PodLogs != nil {
		return logs + "\n---- bcd\n" + p.PodLogs()
	}
	return logs + "\n---- bcd.log\n" + tail(filepath.Join(p.Dir, "bcd.log"))
}
