package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

// harnessCases prove the cluster itself.
func harnessCases(c *cluster) []dp.Case {
	pod := func(name string, body func() error) error {
		if err := c.StartPod(dp.PodSpec{Name: name}); err != nil {
			return err
		}
		return errors.Join(dp.Eventually(dp.Soon, func() error { return c.running(name) }), bodyThenRemove(c, name, body))
	}
	return []dp.Case{
		{Name: "harness/plain-pod", Proves: "the harness", Run: func() error {
			return pod("plain", func() error {
				out, err := c.exec("plain", "ip -4 addr show eth0; nc -w 2 10.96.0.1 443 </dev/null && echo api-reached; ls /dev/nvidia0 2>&1; exit 0")
				if err != nil {
					return err
				}
				for _, want := range []string{"inet 10.88.", "api-reached", "No such file"} {
					if !strings.Contains(out, want) {
						return fmt.Errorf("%q is not in what the pod said: %s", want, out)
					}
				}
				return nil
			})
		}},
		{Name: "harness/pod-survives-containerd-and-kubelet", Proves: "the harness", Run: func() error {
			return pod("survivor", func() error {
				for _, part := range []string{"containerd", "kubelet"} {
					if err := errors.Join(c.script("kill", part), c.script("restart", part)); err != nil {
						return err
					}
				}
				err := dp.Eventually(dp.Soon, func() error {
					_, err := c.exec("survivor", "true")
					return err
				})
				n, nerr := c.Restarts("survivor")
				return errors.Join(err, nerr, dp.Expect("restarts", n, 0), pod("after", func() error { return nil }))
			})
		}},
		{Name: "harness/dra", Proves: "the harness", Run: c.dra},
		{Name: "numa/kubelet-honours-hints", Proves: "the harness", Run: func() error {
			var ids []string
			var devices []dp.PluginDevice
			for i := range 8 {
				ids = append(ids, fmt.Sprintf("dev%d", i))
				devices = append(devices, dp.PluginDevice{ID: ids[i], NUMA: int64(i / 4)})
			}
			if err := dp.OfferCDI("/etc/cdi", ids); err != nil {
				return err
			}
			p := dp.StartPlugin(c, "example.com/dev", "example.com/dev", devices)
			defer p.Stop()
			return singleNUMANode(c, "example.com/dev")
		}},
	}
}

// singleNUMANode expects eight devices of the resource, four on each of two nodes, and a kubelet that gives a pod devices of one node only.
func singleNUMANode(c *cluster, resource string) error {
	err := dp.Eventually(dp.Soon, func() error {
		n, err := c.Counts(resource)
		return errors.Join(err, dp.Expect("counts", n, dp.Counts{Capacity: 8, Allocatable: 8}))
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"four-a", "four-b"} {
		if err := c.StartPod(dp.PodSpec{Name: name, Resource: resource, Count: 3}); err != nil {
			return err
		}
		defer c.remove(name)
		if err := dp.Eventually(dp.Soon, func() error { return c.running(name) }); err != nil {
			return err
		}
	}
	held, err := dp.ListHeld(c)
	if err != nil {
		return err
	}
	nodes := map[string]map[int64]bool{"four-a": {}, "four-b": {}}
	for _, h := range held {
		if h.Resource == resource {
			for _, n := range h.NUMA {
				nodes[h.Pod][n] = true
			}
		}
	}
	if len(nodes["four-a"]) != 1 || len(nodes["four-b"]) != 1 {
		return fmt.Errorf("pods got devices of NUMA nodes %v, expected one node each", nodes)
	}
	// One is left on each node: two can be had, but not from one node.
	if err := c.StartPod(dp.PodSpec{Name: "across", Resource: resource, Count: 2}); err != nil {
		return err
	}
	defer c.remove("across")
	return dp.Eventually(dp.Soon, func() error {
		p, err := c.Pod("across")
		if err != nil {
			return err
		}
		return errors.Join(dp.Expect("phase of a pod across nodes", p.Phase, "Failed"), dp.Expect("its reason", p.Reason, "TopologyAffinityError"))
	})
}

func (c *cluster) running(name string) error {
	p, err := c.Pod(name)
	if err != nil {
		return err
	}
	if p == nil || p.Phase != "Running" || !p.Ready {
		return fmt.Errorf("pod %s does not run: %+v", name, p)
	}
	return nil
}

func (c *cluster) remove(name string) error {
	if err := c.DeletePod(name, time.Second); err != nil {
		return err
	}
	return dp.Eventually(dp.Soon, func() error {
		p, err := c.Pod(name)
		if err == nil && p != nil {
			err = fmt.Errorf("pod %s is still there", name)
		}
		return err
	})
}

func bodyThenRemove(c *cluster, name string, body func() error) error {
	err := body()
	return errors.Join(err, c.remove(name))
}
