package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

// What must be so of a bcd that is a pod: its mounts, the labels it keeps, a rollout, its requests.

func (h *hosted) joined(trust string) error {
	return dp.Eventually(dp.Soon, func() error {
		node, err := h.p.Node()
		if err != nil {
			return err
		}
		if node.State != "ready" || node.Trust != trust || node.KubernetesNodeName != nodeName || len(node.Devices) != 8 {
			return fmt.Errorf("the node is %s, %s, called %q, with %d devices", node.State, node.Trust, node.KubernetesNodeName, len(node.Devices))
		}
		return nil
	})
}

// mounts: the kernel's list of bcd's container has what the pod asks for and nothing else of the host.
func (h *hosted) mounts() error {
	pod, err := h.pod()
	if err != nil {
		return err
	}
	if pod.Spec.HostPID || pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		return errors.New("the pod has the host's processes or a service account's token")
	}
	want := map[string]bool{} // path to read-only
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		want[mount.MountPath] = mount.ReadOnly
	}
	pid, err := h.c.pidOf(pod.Status.ContainerStatuses[0].ContainerID)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		fields := strings.Fields(line)
		path := fields[4]
		if got[path] = slices.Contains(strings.Split(fields[5], ","), "ro"); path == "/" && !got[path] {
			return errors.New("the root filesystem can be written")
		}
	}
	for path, readOnly := range want {
		if is, there := got[path]; !there || is != readOnly {
			return fmt.Errorf("%s: mounted %v, read-only %v, expected %v", path, there, is, readOnly)
		}
	}
	for path := range got {
		if _, asked := want[path]; !asked && !h.everybodys(path) {
			return fmt.Errorf("%s is mounted, and the manifest doesn't say so", path)
		}
	}
	return nil
}

// everybodys: what each container has, and what NVIDIA's runtime adds.
func (h *hosted) everybodys(path string) bool {
	for _, own := range []string{"/proc", "/sys", "/dev", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf",
		"/usr/bin/nvidia-smi", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", filepath.Join(h.c.run, "driver")} {
		if path == own || strings.HasPrefix(path, own+"/") {
			return true
		}
	}
	return path == "/"
}

// watchGap looks for a plugin that answers until the function it gives is called; that tells how long before the latest
// registration the last of the earlier ones had answered.
func (c *cluster) watchGap(resource string) func() (time.Duration, error) {
	began, end, ended := time.Now(), make(chan struct{}), make(chan struct{})
	lives := map[string]time.Time{} // socket to when it last answered
	go func() {
		defer close(ended)
		for {
			sockets, _ := filepath.Glob("/var/lib/kubelet/device-plugins/bcd-gpu-*.sock")
			for _, socket := range sockets {
				if conn, err := net.Dial("unix", socket); err == nil {
					conn.Close()
					lives[socket] = time.Now()
				}
			}
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() (time.Duration, error) {
		close(end)
		<-ended
		times, err := c.Registrations(resource)
		times = slices.DeleteFunc(times, func(t time.Time) bool { return t.Before(began) })
		if err != nil || len(times) != 1 || len(lives) != 2 {
			return 0, errors.Join(err, fmt.Errorf("%d registrations of %d sockets, expected one of a second", len(times), len(lives)))
		}
		var last []time.Time
		for _, t := range lives {
			last = append(last, t)
		}
		slices.SortFunc(last, time.Time.Compare)
		return max(times[0].Sub(last[0]), 0), nil
	}
}

func (h *hosted) labels() error {
	return dp.Eventually(dp.Soon, func() error {
		var node struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := h.c.api.call("GET", "/api/v1/nodes/"+nodeName, nil, &node); err != nil {
			return err
		}
		labels := node.Metadata.Labels
		if labels["bcd.dev/gpu.count"] != "8" || !strings.HasPrefix(labels["bcd.dev/node-id"], "node_") || labels["bcd.dev/gpu.product"] == "" ||
			labels["bcd.dev/gpu.driver"] == "" {
			return fmt.Errorf("labels %v", labels)
		}
		return nil
	})
}

// rollout: a newer digest beside the old one; how long the kubelet had no plugin is in its log.
func (h *hosted) rollout() error {
	old, err := h.pod()
	if err != nil {
		return err
	}
	gap := h.c.watchGap("bcd.dev/gpu")
	if err := h.render(h.images[1]); err != nil {
		return err
	}
	if err := h.apply(false); err != nil {
		return err
	}
	err = dp.Eventually(2*hostedReady, func() error {
		now, err := h.pod()
		if err != nil {
			return err
		}
		if now.Metadata.UID == old.Metadata.UID || now.Spec.Containers[0].Image != h.images[1] {
			return fmt.Errorf("pod %s runs %s", now.Metadata.Name, now.Spec.Containers[0].Image)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, errors.New(h.logs()))
	}
	if err := h.running(); err != nil {
		return err
	}
	longest, err := gap()
	if err != nil {
		return err
	}
	fmt.Printf("rollout: the kubelet was without bcd for %.2f s\n", longest.Seconds())
	if longest > hostedGap {
		return fmt.Errorf("the kubelet was without bcd for %v", longest)
	}
	return nil
}

func (h *hosted) addsNothing() error {
	var answer struct{ Fits bool }
	err := h.p.Call("POST", "/v1/capacity/preview", object{"tenantId": h.p.Tenant(), "poolId": h.p.Pool, "binding": "kubernetes", "duration": "1h",
		"devices": []object{{"class": "gpu", "count": 1}}}, &answer)
	return errors.Join(err, dp.Expect("one GPU fits", answer.Fits, false))
}

// may is HOSTED-11, by verb and the beginning of the path.
func may(verb, uri string) bool {
	path, query, _ := strings.Cut(uri, "?")
	node := "/api/v1/nodes/" + nodeName
	switch verb {
	case "get", "patch":
		return path == node
	case "list", "watch": // this node's pods and nobody else's
		return path == "/api/v1/pods" && strings.HasPrefix(query, "fieldSelector=spec.nodeName%3D"+nodeName+"&")
	case "delete":
		return strings.Contains(path, "/pods/") && !strings.HasSuffix(path, "/status")
	case "create":
		return strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/eviction") && strings.Contains(query, "dryRun=All")
	}
	return false
}

func (h *hosted) audited() error {
	all, err := h.c.requests(hostedAgent)
	if err != nil {
		return err
	}
	seen := map[string]int{}
	for _, one := range all[h.earlier:] {
		path, _, _ := strings.Cut(one.RequestURI, "?")
		seen[one.Verb+" "+path]++
		if !may(one.Verb, one.RequestURI) {
			return fmt.Errorf("bcd asked for %s %s", one.Verb, one.RequestURI)
		}
		if one.ResponseStatus.Code == 401 || one.ResponseStatus.Code == 403 {
			return fmt.Errorf("%s %s was refused with %d", one.Verb, one.RequestURI, one.ResponseStatus.Code)
		}
	}
	if seen["patch /api/v1/nodes/"+nodeName] == 0 {
		return fmt.Errorf("the Node was not patched: %v", seen)
	}
	fmt.Printf("bcd's requests: %v\n", seen)
	return nil
}
