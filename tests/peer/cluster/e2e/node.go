package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	dp "better-compute/deviceplugin"
)

// nodeCases prove what the harness's node has besides a kubelet: what a hosted bcd finds on a node with GPUs.
func nodeCases(c *cluster, build string) []dp.Case {
	return []dp.Case{
		{Name: "harness/gpu-node", Proves: "the harness", Run: func() error { return c.gpuNode(build) }},
		{Name: "harness/audit-log", Proves: "the harness", Run: c.audit},
		{Name: "harness/image-by-digest", Proves: "the harness", Run: c.imageByDigest},
	}
}

// installDriver puts the made-up driver where the node's runtime class nvidia takes it from.
func (c *cluster) installDriver(build string) (*dp.Driver, error) {
	d := &dp.Driver{Dir: filepath.Join(c.run, "driver"), Build: build}
	for _, name := range []string{"libnvidia-ml.so.1", "nvidia-smi"} {
		text, err := os.ReadFile(filepath.Join(build, name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(d.Dir, name), text, 0o755); err != nil {
			return nil, err
		}
	}
	for n := range 8 {
		d.GPUs = append(d.GPUs, dp.DriverGPU(n))
	}
	return d, d.Write()
}

// runPod starts a pod that change has changed, and runs body once it is running.
func (c *cluster) runPod(name string, change func(spec, container object), body func() error) error {
	o := podObject(dp.PodSpec{Name: name})
	spec := o["spec"].(object)
	change(spec, spec["containers"].([]object)[0])
	if err := c.create(podsPath, o)(); err != nil {
		return err
	}
	err := dp.Eventually(dp.Soon, func() error { return c.running(name) })
	if err == nil {
		err = body()
	}
	return errors.Join(err, c.remove(name))
}

// gpuNode: every folder that a hosted bcd mounts is there, and runtime class nvidia gives the driver to privileged pods only.
func (c *cluster) gpuNode(build string) error {
	for _, path := range []string{"/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/pki/kubelet-client-current.pem", "/etc/containerd/config.toml",
		"/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml", "/etc/nvidia-container-runtime/config.toml",
		"/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/pod-resources/kubelet.sock", "/etc/cdi", "/var/run/cdi", "/var/lib/bcd"} {
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	driver, err := c.installDriver(build)
	if err != nil {
		return err
	}
	as := func(privileged bool) func(spec, container object) {
		return func(spec, container object) {
			spec["runtimeClassName"] = "nvidia"
			spec["nodeSelector"] = object{"nvidia.com/gpu.present": "true"}
			container["env"] = []object{{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"}}
			container["securityContext"] = object{"privileged": privileged}
		}
	}
	// What is run by exec has the environment of the pod's spec, not the runtime's.
	const see = `driver=$(tr '\0' '\n' < /proc/1/environ | sed -n 's/^FAKE_DRIVER=//p')
		ls /usr/bin/nvidia-smi /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /dev/nvidia7 ${driver:-/none} 2>/dev/null; exit 0`
	sees := func(name string, want ...string) func() error {
		return func() error {
			out, err := c.exec(name, see)
			return errors.Join(err, dp.Expect("what pod "+name+" sees", strings.Join(strings.Fields(out), " "), strings.Join(want, " ")))
		}
	}
	return errors.Join(
		c.runPod("driver", as(true), sees("driver", "/dev/nvidia7", driver.Scenario(), "/usr/bin/nvidia-smi", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")),
		c.runPod("no-driver", as(false), sees("no-driver")))
}

// hostNetwork: a pod with the node's network reaches the control plane.
func (c *cluster) hostNetwork(p *dp.Product) error {
	return c.runPod("reaches", func(spec, _ object) { spec["hostNetwork"] = true }, func() error {
		for _, address := range []string{strings.TrimPrefix(p.URL(), "https://"), p.Gateway()} {
			host, port, _ := net.SplitHostPort(address)
			if _, err := c.exec("reaches", "nc -w 2 "+host+" "+port+" </dev/null"); err != nil {
				return err
			}
		}
		return nil
	})
}

// request is one line of the API server's audit log.
type request struct {
	Verb, RequestURI, UserAgent string
	User                        struct{ Username string }
	ResponseStatus              struct{ Code int }
	RequestObject               struct { // of what is deleted, and of Events
		Preconditions      struct{ UID string }
		GracePeriodSeconds *int
		Reason             string
		InvolvedObject     struct{ Kind, Namespace, Name, UID string }
	}
}

// requests are those that nodes made, by whose user agent begins with a name.
func (c *cluster) requests(agent string) ([]request, error) {
	text, err := os.ReadFile(filepath.Join(c.run, "log/audit.log"))
	if err != nil {
		return nil, err
	}
	var all []request
	lines := strings.Split(string(text), "\n")
	for _, line := range lines[:len(lines)-1] { // the last one is empty, or not written in full yet
		var one request
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return nil, fmt.Errorf("audit log: %w in %s", err, line)
		}
		if strings.HasPrefix(one.UserAgent, agent) {
			all = append(all, one)
		}
	}
	return all, nil
}

// audit: the kubelet's calls are on record, and nobody else's.
func (c *cluster) audit() error {
	all, err := c.requests("")
	if err != nil {
		return err
	}
	read := false
	for _, one := range all {
		if one.User.Username != "system:node:"+nodeName {
			return fmt.Errorf("%s %s is of %s", one.Verb, one.RequestURI, one.User.Username)
		}
		read = read || (one.Verb == "get" && strings.HasPrefix(one.RequestURI, "/api/v1/nodes/"+nodeName))
	}
	return dp.Expect("the kubelet's look at its Node is on record", read, true)
}

// imageByDigest: an OCI archive becomes an image that pods name by its digest.
func (c *cluster) imageByDigest() error {
	archive := filepath.Join(c.run, "private/image.tar")
	if out, err := exec.Command("ctr", "images", "export", "--local", archive, "localhost/busybox:1").CombinedOutput(); err != nil {
		return fmt.Errorf("ctr images export: %w: %s", err, out)
	}
	load := exec.Command(filepath.Join(c.scripts, "load"), archive, "localhost/loaded")
	load.Env, load.Stderr = append(os.Environ(), "RUN="+c.run), os.Stderr
	out, err := load.Output()
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	name := strings.TrimSpace(string(out))
	if !strings.HasPrefix(name, "localhost/loaded@sha256:") {
		return fmt.Errorf("load says %q", name)
	}
	return c.runPod("loaded", func(_, container object) { container["image"] = name }, func() error {
		_, err := c.exec("loaded", "true")
		return err
	})
}
