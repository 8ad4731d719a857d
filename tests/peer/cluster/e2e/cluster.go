package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

// cluster is the real kubelet of the running harness, with the rest of Kubernetes around it.
type cluster struct {
	scripts string // tests/peer/cluster
	run     string
	version string
	api     *api

	departed []*clinger // of the reaper's cases so far
}

const (
	nodeName = "node0"
	nodeIP   = "10.88.0.1"
	podsPath = "/api/v1/namespaces/default/pods"
)

func newCluster(scripts, run string) (*cluster, error) {
	a, err := newAPI(filepath.Join(run, "pki"))
	if err != nil {
		return nil, err
	}
	var v struct{ GitVersion string }
	if err := a.call("GET", "/version", nil, &v); err != nil {
		return nil, fmt.Errorf("no API server: %w (this program runs inside: tests/peer/cluster/run)", err)
	}
	return &cluster{scripts: scripts, run: run, version: v.GitVersion, api: a}, nil
}

func (c *cluster) Name() string { return "kubelet " + c.version }
func (c *cluster) Root() string { return "/var/lib/kubelet" }

func (c *cluster) Counts(resource string) (dp.Counts, error) {
	var node struct {
		Status struct{ Capacity, Allocatable map[string]string }
	}
	if err := c.api.call("GET", "/api/v1/nodes/"+nodeName, nil, &node); err != nil {
		return dp.Counts{}, err
	}
	number := func(m map[string]string) int { n, _ := strconv.Atoi(m[resource]); return n }
	return dp.Counts{Capacity: number(node.Status.Capacity), Allocatable: number(node.Status.Allocatable)}, nil
}

func (c *cluster) StartPod(p dp.PodSpec) error {
	return c.api.call("POST", podsPath, podObject(p), nil)
}

type object = map[string]any

func podObject(p dp.PodSpec) object {
	script := "trap 'exit 0' TERM; sleep 86400 & wait"
	if p.Stubborn {
		script = "trap '' TERM; sleep 86400 & wait"
	}
	container := object{"name": "c", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
		"command": []string{"sh", "-c", script}}
	if p.Resource != "" {
		container["resources"] = object{"limits": object{p.Resource: strconv.Itoa(p.Count)}}
	}
	spec := object{"containers": []object{container}, "terminationGracePeriodSeconds": 30,
		"restartPolicy": "Always", "dnsPolicy": "Default", "automountServiceAccountToken": false, "enableServiceLinks": false}
	if p.Bound {
		spec["nodeName"] = nodeName
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": p.Name}, "spec": spec}
}

type podStatus struct {
	Metadata struct {
		UID               string
		DeletionTimestamp *string
	}
	Status struct {
		Phase, Reason, Message string
		Conditions             []struct{ Type, Status, Reason, Message string }
		ContainerStatuses      []struct {
			RestartCount int
			ContainerID  string
		}
	}
}

func (c *cluster) pod(name string) (*podStatus, error) {
	var p podStatus
	err := c.api.call("GET", podsPath+"/"+name, nil, &p)
	return &p, err
}

func (c *cluster) Pod(name string) (*dp.Pod, error) {
	p, err := c.pod(name)
	if errors.Is(err, errNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	pod := dp.Pod{Phase: p.Status.Phase, Reason: p.Status.Reason, Message: p.Status.Message,
		Deleting: p.Metadata.DeletionTimestamp != nil}
	for _, cond := range p.Status.Conditions {
		if cond.Type == "Ready" {
			pod.Ready = cond.Status == "True"
		}
		if cond.Type == "PodScheduled" && cond.Status == "False" {
			pod.Reason, pod.Message = cond.Reason, cond.Message
		}
	}
	return &pod, nil
}

func (c *cluster) Restarts(name string) (int, error) {
	p, err := c.pod(name)
	if err != nil {
		return 0, err
	}
	if len(p.Status.ContainerStatuses) == 0 {
		return 0, nil
	}
	return p.Status.ContainerStatuses[0].RestartCount, nil
}

func (c *cluster) DeletePod(name string, grace time.Duration) error {
	err := c.api.call("DELETE", podsPath+"/"+name, object{"gracePeriodSeconds": int(grace.Seconds())}, nil)
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}

// exec runs a shell line in the pod's container.
func (c *cluster) exec(pod, line string) (string, error) {
	out, err := exec.Command("kubectl", "exec", pod, "--", "sh", "-c", line).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("in pod %s: %w: %s", pod, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Inside reads environment and devices from within the container, and opens each device; the annotations are those
// that the container runtime was given.
func (c *cluster) Inside(name string) (*dp.Inside, error) {
	p, err := c.pod(name)
	if err != nil {
		return nil, err
	}
	if len(p.Status.ContainerStatuses) == 0 {
		return nil, fmt.Errorf("pod %s has no container yet", name)
	}
	in := &dp.Inside{Env: map[string]string{}, Devices: map[string]dp.Device{}}
	out, err := c.exec(name, `env; for d in /dev/nvidia*; do [ -c $d ] || continue; dd if=$d count=0 2>/dev/null || exit 9; stat -c 'DEVICE %n %t %T' $d; done`)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(out, "\n") {
		if f := strings.Fields(line); len(f) == 4 && f[0] == "DEVICE" {
			major, _ := strconv.ParseUint(f[2], 16, 32)
			minor, _ := strconv.ParseUint(f[3], 16, 32)
			in.Devices[f[1]] = dp.Device{Major: uint32(major), Minor: uint32(minor)}
		} else if k, v, ok := strings.Cut(line, "="); ok {
			in.Env[k] = v
		}
	}
	id := strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://")
	bundle, err := os.ReadFile(filepath.Join(c.run, "containerd/state/io.containerd.runtime.v2.task/k8s.io", id, "config.json"))
	if err != nil {
		return nil, err
	}
	var spec struct{ Annotations map[string]string }
	err = json.Unmarshal(bundle, &spec)
	in.Annotations = spec.Annotations
	return in, err
}

func (c *cluster) script(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.scripts, name), args...)
	cmd.Env = append(os.Environ(), "RUN="+c.run)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (c *cluster) Kill() error { return c.script("kill", "kubelet") }

func (c *cluster) Start() error {
	was := time.Now()
	if err := c.script("restart", "kubelet"); err != nil {
		return err
	}
	return dp.Eventually(dp.Soon, func() error { return dp.MadeSocket(c, was) })
}

var registration = regexp.MustCompile(`^I(\d{4} \d\d:\d\d:\d\d\.\d{6}) .*"Got registration request from device plugin with resource" resourceName="([^"]+)"`)

// Registrations are read from the kubelet's log, whose times have no year.
func (c *cluster) Registrations(resource string) ([]time.Time, error) {
	f, err := os.Open(filepath.Join(c.run, "log/kubelet.log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var times []time.Time
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		m := registration.FindStringSubmatch(lines.Text())
		if m == nil || m[2] != resource {
			continue
		}
		t, err := time.ParseInLocation("2006 0102 15:04:05.000000", strconv.Itoa(time.Now().Year())+" "+m[1], time.Local)
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	return times, lines.Err()
}

// pidOf is the process of a container, as containerd's shim keeps it.
func (c *cluster) pidOf(container string) (int, error) {
	id := strings.TrimPrefix(container, "containerd://")
	text, err := os.ReadFile(filepath.Join(c.run, "containerd/state/io.containerd.runtime.v2.task/k8s.io", id, "init.pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// processOf is the first process of a pod's container.
func (c *cluster) processOf(name string) (int, error) {
	pod, err := c.pod(name)
	if err != nil {
		return 0, err
	}
	return c.pidOf(pod.Status.ContainerStatuses[0].ContainerID)
}
