package deviceplugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SmokeCases prove a kubelet with the Go plugin, before bcd is tried on it. offerCDI makes CDI devices of the kind for the ids, whose
// device nodes are /dev/nvidia0, 1 … ; nil where containers are not real.
func SmokeCases(k Kubelet, kind string, offerCDI func(ids []string) error) []Case {
	const resource = "example.com/dev"
	// with runs body beside a plugin with n devices, the first half on NUMA node 0 and the second on node 1.
	with := func(name func(int) string, n int, body func(*Plugin) error) func() error {
		return func() (err error) {
			var devices []PluginDevice
			var ids []string
			for i := range n {
				ids = append(ids, name(i))
				devices = append(devices, PluginDevice{ID: name(i), NUMA: int64(i * 2 / n)})
			}
			if offerCDI != nil {
				if err := offerCDI(ids); err != nil {
					return err
				}
			}
			p := StartPlugin(k, resource, kind, devices)
			defer func() { // a later case must not see what the node published of this one
				p.Stop()
				err = errors.Join(err, Eventually(Soon, func() error {
					n, err := k.Counts(resource)
					return errors.Join(err, Expect("allocatable without the plugin", n.Allocatable, 0))
				}))
			}()
			if err := Eventually(Soon, func() error { return counts(k, resource, Counts{n, n}) }); err != nil {
				return err
			}
			return body(p)
		}
	}
	plain := func(i int) string { return fmt.Sprintf("dev%d", i) }
	long := func(i int) string { return fmt.Sprintf("%s%02d", strings.Repeat("d", 98), i) }

	return []Case{
		{Name: "smoke/devices-reach-a-pod", Proves: "the harness", Run: with(plain, 8, func(p *Plugin) error {
			return withPod(k, PodSpec{Name: "smoke", Resource: resource, Count: 2}, func() error {
				in, err := k.Inside("smoke")
				if err != nil {
					return err
				}
				if err := errors.Join(Expect("TEST_DEVICES", in.Env["TEST_DEVICES"], "2"),
					Expect("the annotation", in.Annotations["bcd.dev/test"], "from Allocate")); err != nil {
					return err
				}
				asked := p.Asked()
				if offerCDI == nil {
					return Expect("number of Allocate calls", len(asked), 1)
				}
				for _, id := range asked[0] {
					n := uint32(id[3] - '0')
					if err := Expect("device "+id, in.Devices["/dev/nvidia"+id[3:]], Device{4, 20 + n}); err != nil {
						return err
					}
				}
				return Expect("number of device nodes", len(in.Devices), 2)
			})
		})},
		{Name: "smoke/ids-of-100-characters", Proves: "the harness", Run: with(long, 8, func(p *Plugin) error {
			return withPod(k, PodSpec{Name: "long", Resource: resource, Count: 3}, func() error {
				before, err := heldBy(k, "long", resource)
				if err != nil {
					return err
				}
				asked := p.Asked()[0]
				slices.Sort(asked)
				if err := Expect("what pod-resources lists", fmt.Sprint(before), fmt.Sprint(asked)); err != nil {
					return err
				}
				calls, err := k.Registrations(resource)
				if err != nil {
					return err
				}
				if err := errors.Join(k.Kill(), k.Start()); err != nil {
					return err
				}
				// Until then the node publishes what it did before.
				if err := registersAnew(k, resource, len(calls)); err != nil {
					return err
				}
				// Right after its start a kubelet lists no pods at all: it has not heard of them yet.
				err = Eventually(Soon, func() error {
					after, err := heldBy(k, "long", resource)
					return errors.Join(err, Expect("what pod-resources lists after the restart", fmt.Sprint(after), fmt.Sprint(before)))
				})
				if err != nil {
					return err
				}
				if err := Eventually(Soon, func() error { return counts(k, resource, Counts{8, 8}) }); err != nil {
					return err
				}
				// The checkpoint must keep the held ones from others: five are left, not six.
				return withPod(k, PodSpec{Name: "rest", Resource: resource, Count: 5}, func() error {
					rest, err := heldBy(k, "rest", resource)
					if err != nil {
						return err
					}
					for _, id := range rest {
						if slices.Contains(before, id) {
							return fmt.Errorf("%s is in two pods", id)
						}
					}
					return Expect("restarts", restarts(k, "long"), 0)
				})
			})
		})},
		{Name: "smoke/hints-of-numa-nodes", Proves: "the harness", Run: with(plain, 8, func(*Plugin) error {
			offered, err := ListOffered(k)
			if err != nil {
				return err
			}
			seen := 0
			for _, d := range offered {
				if d.Resource != resource {
					continue
				}
				seen++
				if err := Expect("NUMA nodes of "+d.ID, fmt.Sprint(d.NUMA), fmt.Sprint([]int64{int64(d.ID[3]-'0') * 2 / 8})); err != nil {
					return err
				}
			}
			return Expect("devices offered", seen, 8)
		})},
		{Name: "smoke/a-plugin-registers-again", Proves: "the harness", Run: with(plain, 2, func(*Plugin) error {
			before, err := k.Registrations(resource)
			if err != nil {
				return err
			}
			if err := errors.Join(k.Kill(), k.Start()); err != nil {
				return err
			}
			return registersAnew(k, resource, len(before))
		})},
	}
}

// registersAnew waits until the kubelet got more Register calls for the resource than there were.
func registersAnew(k Kubelet, resource string, before int) error {
	return Eventually(Soon, func() error {
		calls, err := k.Registrations(resource)
		if err == nil && len(calls) <= before {
			err = fmt.Errorf("%d Register calls for %s, as before", len(calls), resource)
		}
		return err
	})
}

func counts(k Kubelet, resource string, want Counts) error {
	got, err := k.Counts(resource)
	if err != nil {
		return err
	}
	return Expect("count of "+resource, got, want)
}

// withPod starts a pod, waits until it runs, runs body and waits until the pod is gone.
func withPod(k Kubelet, spec PodSpec, body func() error) (err error) {
	if err := k.StartPod(spec); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removePod(k, spec.Name)) }()
	if err := Eventually(Soon, func() error { return running(k, spec.Name) }); err != nil {
		return err
	}
	return body()
}

func removePod(k Kubelet, name string) error {
	if err := k.DeletePod(name, time.Second); err != nil {
		return err
	}
	return Eventually(Soon, func() error { return gone(k, name) })
}

func running(k Kubelet, name string) error {
	p, err := k.Pod(name)
	if err != nil {
		return err
	}
	if p == nil {
		return fmt.Errorf("pod %s is not there", name)
	}
	if p.Phase != "Running" || !p.Ready {
		return fmt.Errorf("pod %s is %s (ready: %v) %s %s", name, p.Phase, p.Ready, p.Reason, p.Message)
	}
	return nil
}

func gone(k Kubelet, name string) error {
	p, err := k.Pod(name)
	if err == nil && p != nil {
		err = fmt.Errorf("pod %s is still there, %s", name, p.Phase)
	}
	return err
}

// heldBy are the ids of a resource in the pod's hands, sorted.
func heldBy(k Kubelet, pod, resource string) ([]string, error) {
	held, err := ListHeld(k)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, h := range held {
		if h.Pod == pod && h.Resource == resource {
			ids = append(ids, h.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func restarts(k Kubelet, pod string) int {
	n, err := k.Restarts(pod)
	if err != nil {
		return -1
	}
	return n
}
