package deviceplugin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// StandIn is kubelet-standin as a child of this program.
type StandIn struct {
	Binary, Dir, CDI string

	process *Process
	earlier map[string][]time.Time // Register calls of stand-ins that were killed
}

func (s *StandIn) Name() string { return "kubelet-standin" }
func (s *StandIn) Root() string { return filepath.Join(s.Dir, "kubelet") }

func (s *StandIn) Start() (err error) {
	was := time.Now()
	if s.process, err = startProcess(filepath.Join(s.Dir, "kubelet.log"), nil, s.Binary, "--root", s.Root(), "--cdi", s.CDI); err != nil {
		return err
	}
	return Eventually(Soon, func() error {
		if s.process.Ended() {
			return fmt.Errorf("the stand-in ended: %s", tail(s.process.Log))
		}
		if err := MadeSocket(s, was); err != nil {
			return err
		}
		_, err := s.node() // its own socket comes after the kubelet's
		return err
	})
}

func (s *StandIn) Revive() error {
	if !s.process.Ended() {
		return nil
	}
	return s.Start()
}

func (s *StandIn) Kill() error {
	if s.process == nil || s.process.Ended() {
		return nil
	}
	node, err := s.node()
	if err != nil {
		return err
	}
	if s.earlier == nil {
		s.earlier = map[string][]time.Time{}
	}
	for _, r := range node.Registrations {
		s.earlier[r.Resource] = append(s.earlier[r.Resource], r.time())
	}
	return s.process.End(syscall.SIGKILL)
}

// ask is one request on the stand-in's socket; the answer's "ok" is looked at, the rest goes into out.
func (s *StandIn) ask(request map[string]any, out any) error {
	path, done, err := short(filepath.Join(s.Root(), "standin.sock"))
	if err != nil {
		return err
	}
	defer done()
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		return err
	}
	var answer struct {
		OK          bool
		Code, Error string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if !answer.OK {
		return fmt.Errorf("%v: %s: %s", request["verb"], answer.Code, answer.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(line, out)
}

type standInCall struct {
	Resource string
	AtMs     int64
}

func (c standInCall) time() time.Time { return time.UnixMilli(c.AtMs) }

type standInNode struct {
	Resources     map[string]Counts
	Registrations []standInCall
}

func (s *StandIn) node() (*standInNode, error) {
	var a struct{ Node standInNode }
	err := s.ask(map[string]any{"verb": "node"}, &a)
	return &a.Node, err
}

func (s *StandIn) Counts(resource string) (Counts, error) {
	n, err := s.node()
	return n.Resources[resource], err
}

func (s *StandIn) Registrations(resource string) ([]time.Time, error) {
	n, err := s.node()
	if err != nil {
		return nil, err
	}
	times := s.earlier[resource]
	for _, r := range n.Registrations {
		if r.Resource == resource {
			times = append(times, r.time())
		}
	}
	return times, nil
}

func (s *StandIn) StartPod(p PodSpec) error {
	request := map[string]any{"verb": "run-pod", "name": p.Name, "container": "c", "bound": p.Bound, "stubborn": p.Stubborn}
	if p.Resource != "" {
		request["resource"], request["count"] = p.Resource, p.Count
	}
	return s.ask(request, nil)
}

type standInPod struct {
	Name, Phase, Reason, Message string
	Deleting                     bool
	Seen                         *struct {
		Env, Annotations map[string]string
		DeviceNodes      []struct{ Path, HostPath string }
	}
}

func (s *StandIn) pod(name string) (*standInPod, error) {
	var list struct{ Pods []standInPod }
	if err := s.ask(map[string]any{"verb": "list"}, &list); err != nil {
		return nil, err
	}
	for _, p := range list.Pods {
		if p.Name == name {
			return &p, nil
		}
	}
	return nil, nil
}

func (s *StandIn) Pod(name string) (*Pod, error) {
	p, err := s.pod(name)
	if err != nil || p == nil {
		return nil, err
	}
	return &Pod{Phase: p.Phase, Ready: p.Phase == "Running", Reason: p.Reason, Message: p.Message, Deleting: p.Deleting}, nil
}

// Restarts of a pod can't be: nothing is started.
func (s *StandIn) Restarts(string) (int, error) { return 0, nil }

func (s *StandIn) DeletePod(name string, grace time.Duration) error {
	err := s.ask(map[string]any{"verb": "delete-pod", "name": name, "graceSeconds": int(grace.Seconds())}, nil)
	if err != nil && strings.Contains(err.Error(), "NOT_FOUND") {
		return nil
	}
	return err
}

// Inside is what the container would see: each device node with the number that its path has on this machine.
func (s *StandIn) Inside(name string) (*Inside, error) {
	p, err := s.pod(name)
	if err != nil {
		return nil, err
	}
	if p == nil || p.Seen == nil {
		return nil, fmt.Errorf("pod %s has no container", name)
	}
	in := &Inside{Env: p.Seen.Env, Annotations: p.Seen.Annotations, Devices: map[string]Device{}}
	for _, d := range p.Seen.DeviceNodes {
		host := d.HostPath
		if host == "" {
			host = d.Path
		}
		var stat syscall.Stat_t
		if err := syscall.Stat(host, &stat); err == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFCHR {
			in.Devices[d.Path] = Device{uint32(stat.Rdev >> 8 & 0xfff), uint32(stat.Rdev & 0xff)}
		} else {
			in.Devices[d.Path] = Device{}
		}
	}
	return in, nil
}

// Show prints what there is to see after a failed case.
func (s *StandIn) Show() { fmt.Printf("---- kubelet.log\n%s", tail(s.process.Log)) }

// Remove ends the stand-in and removes its folder.
func (s *StandIn) Remove() error {
	return errors.Join(s.process.End(syscall.SIGTERM), os.RemoveAll(s.Root()))
}
