package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

// productCases are the table on the real kubelet, and what only a whole cluster can show.
func productCases(c *cluster, p *dp.Product) []dp.Case {
	only := []dp.Row{
		{Name: "e2e/kill-containerd", Proves: "proves: DP-33 HOST-1 HOST-2", Steps: []dp.Step{
			dp.Reserve("r", dp.GPUs(3)),
			dp.StartPod("running", "bcd.dev/gpu", 2),
			dp.Runs("running"),
			dp.Given("running", 2, "r"),
			c.cgroupIsKubelets("running"),
			c.killPart("containerd"), c.restartPart("containerd"),
			dp.GoesOn("running"),
			dp.StartPod("next", "bcd.dev/gpu", 1),
			dp.Runs("next"),
			dp.Given("next", 1, "r"),
			dp.Apart("running", "next"),
			dp.DeletePod("running"), dp.DeletePod("next"),
			c.killPart("containerd"), c.restartPart("containerd"),
			dp.StartPod("after", "bcd.dev/gpu", 3),
			dp.Runs("after"),
			dp.Given("after", 3, "r"),
		}},
		{Name: "e2e/kubelet-starts-without-an-api-server", Proves: "proves: REL-14 REL-16", Steps: []dp.Step{
			dp.Reserve("r", dp.GPUs(1)),
			dp.StartPod("holder", "bcd.dev/gpu", 1),
			dp.Runs("holder"),
			dp.Given("holder", 1, "r"),
			dp.Release("r"),
			dp.StaysHeld("r", 2*time.Second),
			c.killPart("kube-apiserver"),
			dp.KillKubelet(), dp.StartKubelet(), // its pod-resources lists nothing until the API server is back
			dp.StaysHeld("r", 20*time.Second),
			c.restartPart("kube-apiserver"),
			c.answers(),
			dp.GoesOn("holder"),
			dp.StaysHeld("r", 2*time.Second),
			dp.DeletePod("holder"),
			dp.Released("r"),
		}},
	}
	cases := append(dp.Cases(c, p, dp.Table), dp.Cases(c, p, only)...)
	return append(cases, dp.Case{Name: "e2e/half-a-device", Proves: "proves: DP-39", Run: func() error {
		half := podObject(dp.PodSpec{Name: "half"})
		half["spec"].(object)["containers"].([]object)[0]["resources"] = object{"limits": object{"bcd.dev/gpu": "0.5"}}
		err := c.api.call("POST", podsPath, half, nil)
		if err == nil {
			return errors.Join(errors.New("a pod that asks for half a GPU was taken"), c.remove("half"))
		}
		if !strings.Contains(err.Error(), "must be an integer") {
			return err
		}
		return nil
	}}, dp.Case{Name: "e2e/host-network-reaches-serve", Proves: "the harness", Run: func() error { return c.hostNetwork(p) }},
		dp.Case{Name: "numa/booked-devices", Proves: "proves: DP-9", Run: func() error {
			row := dp.Row{Steps: []dp.Step{
				dp.Reserve("all", dp.GPUs(8)),
				{Say: "the topology manager honours the hints", Do: func(*dp.World) error { return singleNUMANode(c, "bcd.dev/gpu") }},
			}}
			return dp.Cases(c, p, []dp.Row{row})[0].Run()
		}})
}

// Revive starts again what a case left dead.
func (c *cluster) Revive() error {
	for _, part := range []string{"kube-apiserver", "containerd", "kubelet"} {
		if c.script("kill", part, "0") == nil {
			continue
		}
		if err := c.restart(part); err != nil {
			return err
		}
	}
	return c.answers().Do(nil)
}

// cgroupIsKubelets: the pod lives where the kubelet put it, and bcd has no part in that.
func (c *cluster) cgroupIsKubelets(name string) dp.Step {
	return dp.Step{Say: "pod " + name + " is in the kubelet's cgroups, bcd has none", Do: func(*dp.World) error {
		pod, err := c.pod(name)
		if err != nil {
			return err
		}
		pid, err := c.pidOf(pod.Status.ContainerStatuses[0].ContainerID)
		if err != nil {
			return err
		}
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil {
			return err
		}
		for _, line := range strings.Split(strings.TrimSpace(string(groups)), "\n") {
			path := strings.SplitN(line, ":", 3)[2]
			if path != "/" && !strings.Contains(path, "kubepods") {
				return fmt.Errorf("%s isn't the kubelet's", line)
			}
		}
		if !strings.Contains(string(groups), "kubepods") {
			return fmt.Errorf("in no cgroup of the kubelet: %s", groups)
		}
		in, err := c.Inside(name)
		if err != nil {
			return err
		}
		text := fmt.Sprint(in.Env, in.Annotations)
		specs, err := filepath.Glob("/etc/cdi/bcd.dev-*.json")
		if err != nil || len(specs) == 0 {
			return errors.Join(err, errors.New("there is no CDI spec of bcd"))
		}
		for _, spec := range specs {
			one, err := os.ReadFile(spec)
			if err != nil {
				return err
			}
			text += string(one)
		}
		if strings.Contains(strings.ToLower(text), "cgroup") {
			return fmt.Errorf("a cgroup is named: %s", text)
		}
		return filepath.WalkDir("/sys/fs/cgroup", func(path string, _ os.DirEntry, _ error) error {
			if strings.Contains(path, "bcd-alloc") {
				return fmt.Errorf("%s is a cgroup of bcd's", path)
			}
			return nil
		})
	}}
}

func (c *cluster) killPart(name string) dp.Step {
	return dp.Step{Say: "kill -9 " + name, Do: func(*dp.World) error { return c.script("kill", name) }}
}

// restart starts a part again, and after an API server those that would take a minute or two to look for it once more.
func (c *cluster) restart(part string) error {
	err := c.script("restart", part)
	if part == "kube-apiserver" {
		err = errors.Join(err, c.answers().Do(nil))
		for _, client := range []string{"kube-scheduler", "kube-controller-manager"} {
			err = errors.Join(err, c.script("restart", client))
		}
	}
	return err
}

func (c *cluster) restartPart(name string) dp.Step {
	return dp.Step{Say: "start " + name, Do: func(*dp.World) error { return c.restart(name) }}
}

func (c *cluster) answers() dp.Step {
	return dp.Step{Say: "the API server answers", Do: func(*dp.World) error {
		return dp.Eventually(dp.Soon, func() error { return c.api.call("GET", "/readyz", nil, nil) })
	}}
}
