package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

// What the reaper promises, and how late a busy machine may be.
const (
	reapHold  = 30 * time.Second
	reapGrace = 10 * time.Second
	reapForce = 60 * time.Second
	reapLate  = 8 * time.Second
)

// clinger is a pod that keeps its GPU after the release.
type clinger struct {
	name       string // of the pod, or what the name begins with
	start      func() error
	clean      func() error
	ends, late time.Duration // when it lets go after its release; ends 0: only when somebody ends it
	stays      string        // what bcd status says of one that nobody but a person ends; "" of others
	allocation string
	freed      time.Duration // when pod-resources had it no more
	released   time.Duration // when the node had said so
}

func reaperCases(c *cluster, p *dp.Product) []dp.Case {
	return dp.Cases(c, p, []dp.Row{
		{Name: "e2e/reaper", Proves: "proves: REL-21 REL-22 REL-23 REL-24 REL-25 REL-44 REL-50 REL-56", Steps: append(bookings(7),
			dp.Step{Say: "what clings is ended, what is booked is not touched", Do: func(w *dp.World) error {
				return c.withIdentity(p, func() error { return c.clingers(w, c.everyKind(p), "bystander") })
			}})},
		{Name: "e2e/reaper-completed", Proves: "proves: REL-25", Steps: append(bookings(1),
			dp.Step{Say: "a pod that is over holds nothing", Do: func(w *dp.World) error {
				return c.withIdentity(p, func() error {
					return c.withGate("KubeletPodResourcesListUseActivePods", func() error { return c.completed(w) })
				})
			}})},
	})
}

func bookings(n int) (steps []dp.Step) {
	for i := range n {
		steps = append(steps, dp.Reserve(fmt.Sprint("r", i), dp.GPUs(1)))
	}
	return steps
}

// withIdentity lets bcd be the kubelet for the API server while body runs.
func (c *cluster) withIdentity(p *dp.Product, body func() error) error {
	text, err := os.ReadFile(filepath.Join(c.run, "pki/kubelet.kubeconfig"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.Kubeconfig, text, 0o600); err != nil {
		return err
	}
	defer os.Remove(p.Kubeconfig)
	return body()
}

// withGate turns a gate of the kubelet off while body runs.
func (c *cluster) withGate(gate string, body func() error) error {
	file := filepath.Join(c.run, "kubelet.yaml")
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	restart := func(text string) error {
		return errors.Join(os.WriteFile(file, []byte(text), 0o600), c.Start())
	}
	if err := restart(string(before) + "featureGates: {" + gate + ": false}\n"); err != nil {
		return err
	}
	err = body()
	return errors.Join(err, restart(string(before)))
}

func (c *cluster) create(path string, what object) func() error {
	return func() error { return c.api.call("POST", path, what, nil) }
}

// everyKind are the pods that hold on to a GPU, each in its own way.
func (c *cluster) everyKind(p *dp.Product) []*clinger {
	pod := func(name string, change func(spec, metadata object)) object {
		o := podObject(dp.PodSpec{Name: name, Resource: "bcd.dev/gpu", Count: 1, Stubborn: name == "stubborn"})
		if change != nil {
			change(o["spec"].(object), o["metadata"].(object))
		}
		return o
	}
	remove := func(name string) func() error { return func() error { return c.remove(name) } }
	manifest := filepath.Join(c.run, "manifests/static.json")
	labels := object{"app": "set"}
	set := object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": object{"name": "set"}, "spec": object{
		"selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels}, "spec": pod("", nil)["spec"]}}}
	set["spec"].(object)["template"].(object)["spec"].(object)["restartPolicy"] = "Always"
	const sets = "/apis/apps/v1/namespaces/default/daemonsets"
	return []*clinger{
		{name: "plain", start: c.create(podsPath, pod("plain", nil)), clean: remove("plain"), ends: reapHold, late: reapLate},
		{name: "stubborn", start: c.create(podsPath, pod("stubborn", nil)), clean: remove("stubborn"), ends: reapHold + reapGrace, late: reapLate},
		{name: "set-", start: c.create(sets, set), clean: func() error { return c.api.call("DELETE", sets+"/set", nil, nil) }, ends: reapHold, late: reapLate},
		{name: "finalizer", start: c.create(podsPath, pod("finalizer", func(_, m object) { m["finalizers"] = []string{"example.com/keep"} })),
			clean: func() error {
				return errors.Join(c.patch(podsPath+"/finalizer", object{"metadata": object{"finalizers": nil}}), c.remove("finalizer"))
			}, ends: reapHold, late: reapLate},
		{name: "creating", start: c.create(podsPath, pod("creating", func(spec, _ object) {
			spec["volumes"] = []object{{"name": "v", "secret": object{"secretName": "there-is-none"}}}
			spec["containers"].([]object)[0]["volumeMounts"] = []object{{"name": "v", "mountPath": "/v"}}
		})), clean: remove("creating"), ends: reapHold, late: reapLate},
		{name: "static-", start: func() error {
			text, err := json.Marshal(pod("static", nil))
			return errors.Join(err, os.WriteFile(manifest, text, 0o600))
		}, clean: func() error { return os.Remove(manifest) }, stays: "static: only removing its manifest ends it (" + manifest + ")"},
	}
}

// holders maps each pod that holds a GPU to the allocation it is of.
func (c *cluster) holders() (map[string]string, error) {
	held, err := dp.ListHeld(c)
	of := map[string]string{}
	for _, h := range held {
		if _, allocation, ok := strings.Cut(h.ID, "@"); ok {
			of[h.Pod] = allocation
		}
	}
	return of, err
}

func (k *clinger) holds(of map[string]string) bool {
	for pod, allocation := range of {
		if strings.HasPrefix(pod, k.name) && (k.allocation == "" || allocation == k.allocation) {
			return true
		}
	}
	return false
}

// take starts a pod and waits until it has a device.
func (c *cluster) take(k *clinger) error {
	if err := k.start(); err != nil {
		return fmt.Errorf("start %s: %w", k.name, err)
	}
	// The scheduler may still be on its way back from a case that killed the API server.
	return dp.Eventually(dp.Soon, func() error {
		of, err := c.holders()
		if err != nil {
			return err
		}
		for pod, allocation := range of {
			if strings.HasPrefix(pod, k.name) {
				k.allocation = allocation
				return nil
			}
		}
		return fmt.Errorf("pod %s holds nothing", k.name)
	})
}

// clingers gives each a GPU, releases them all but the bystander's, and follows what becomes of them.
func (c *cluster) clingers(w *dp.World, all []*clinger, bystander string) (err error) {
	if err := c.StartPod(dp.PodSpec{Name: bystander, Resource: "bcd.dev/gpu", Count: 1}); err != nil {
		return err
	}
	stays := &clinger{name: bystander, start: func() error { return nil }, clean: func() error { return c.remove(bystander) }}
	for _, k := range append(all, stays) {
		defer func() { err = errors.Join(err, k.tidy()) }()
		if err := c.take(k); err != nil {
			return err
		}
	}
	for _, name := range []string{"plain", "stubborn", "finalizer", "static-" + nodeName} {
		if err := dp.Eventually(dp.Soon, func() error { return c.running(name) }); err != nil {
			return err
		}
	}
	start := time.Now()
	reservations := map[string]string{} // of allocations
	for i := range len(all) + 1 {
		name := fmt.Sprint("r", i)
		r, err := w.Reservation(name)
		if err != nil {
			return err
		}
		reservations[r.Allocations[0].ID] = name
		if r.Allocations[0].ID == stays.allocation {
			continue
		}
		if err := w.P.Release(r.ID); err != nil {
			return err
		}
	}
	if err := c.follow(w, all, reservations, start); err != nil {
		return err
	}
	for _, k := range all {
		if k.stays == "" {
			continue
		}
		if err := c.stay(w, k, reservations[k.allocation], start); err != nil {
			return err
		}
	}
	c.tabulate(all)
	return errors.Join(c.running(bystander), c.told("stubborn"))
}

// tabulate prints when each let go of its GPU, and when that was reported; those of the cases before too.
func (c *cluster) tabulate(all []*clinger) {
	c.departed = append(c.departed, all...)
	fmt.Printf("     %-12s %8s %9s   after the release\n", "pod", "let go", "reported")
	for _, k := range c.departed {
		fmt.Printf("     %-12s %6.1f s %7.1f s   %s\n", strings.Trim(k.name, "-"), k.freed.Seconds(), k.released.Seconds(), k.stays)
	}
}

func (k *clinger) tidy() error {
	if k.clean == nil {
		return nil
	}
	clean := k.clean
	k.clean = nil
	if err := clean(); err != nil && !errors.Is(err, errNotFound) {
		return fmt.Errorf("clean up %s: %w", k.name, err)
	}
	return nil
}

// look notes who has let go and what was reported; a report before the holder is gone is an error.
func (c *cluster) look(w *dp.World, all []*clinger, reservations map[string]string, start time.Time) error {
	reported := map[*clinger]bool{}
	for _, k := range all {
		r, err := w.Reservation(reservations[k.allocation])
		if err != nil {
			return err
		}
		reported[k] = r.Allocations[0].State == "released"
	}
	of, err := c.holders()
	if err != nil {
		return err
	}
	at := time.Since(start) // of all that one look sees: it may take its time
	for _, k := range all {
		if reported[k] && k.holds(of) {
			return fmt.Errorf("%s still holds what is reported as released after %v", k.name, at)
		}
		if !k.holds(of) && k.freed == 0 {
			k.freed = at
		}
		if reported[k] && k.released == 0 {
			k.released = at
		}
	}
	return nil
}

// follow waits for the end of all that end by themselves, and holds them to their times.
func (c *cluster) follow(w *dp.World, all []*clinger, reservations map[string]string, start time.Time) error {
	for time.Since(start) < reapHold+reapGrace+reapLate+10*time.Second {
		if err := c.look(w, all, reservations, start); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	var errs []error
	for _, k := range all {
		if k.ends == 0 {
			if k.freed > 0 || k.released > 0 {
				errs = append(errs, fmt.Errorf("%s let go after %v", k.name, k.freed))
			}
		} else if k.freed < k.ends-time.Second || k.freed > k.ends+k.late || (k.released < k.freed-time.Second) != (k.stays != "") {
			errs = append(errs, fmt.Errorf("%s let go after %v, expected %v and up to %v more; reported after %v", k.name, k.freed, k.ends, k.late, k.released))
		}
	}
	return errors.Join(errs...)
}

// stay expects a pod to be forced in vain, to be named so, and its GPU to be released once a person has ended it.
func (c *cluster) stay(w *dp.World, k *clinger, reservation string, start time.Time) error {
	err := dp.Eventually(reapHold+reapForce+dp.Soon-time.Since(start), func() error {
		out, err := w.P.Status()
		if err == nil && !strings.Contains(out, k.stays) {
			err = fmt.Errorf("bcd status doesn't say why %s stays:\n%s", k.name, out)
		}
		return err
	})
	if err != nil {
		return err
	}
	if since := time.Since(start); since < reapHold+reapForce {
		return fmt.Errorf("%s was forced after %v", k.name, since)
	}
	if err := c.look(w, []*clinger{k}, map[string]string{k.allocation: reservation}, start); err != nil {
		return err
	}
	if k.freed > 0 || k.released > 0 {
		return fmt.Errorf("%s let go after %v, reported after %v, and nobody has ended it", k.name, k.freed, k.released)
	}
	if err := k.tidy(); err != nil {
		return err
	}
	return dp.Eventually(dp.Soon, func() error {
		err := c.look(w, []*clinger{k}, map[string]string{k.allocation: reservation}, start)
		return errors.Join(err, dp.Expect("the report of "+k.name, k.released > 0, true))
	})
}

// told expects the Event that says why a pod was deleted.
func (c *cluster) told(pod string) error {
	var list struct {
		Items []struct {
			Reason, Message string
			InvolvedObject  struct{ Name string }
			Source          struct{ Component, Host string }
		}
	}
	return dp.Eventually(dp.Soon, func() error {
		if err := c.api.call("GET", "/api/v1/namespaces/default/events", nil, &list); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.InvolvedObject.Name == pod && e.Reason == "DeviceReleased" && strings.Contains(e.Message, "@alc_") {
				return nil
			}
		}
		return fmt.Errorf("no Event says why %s was deleted", pod)
	})
}

// completed: even a kubelet that lists pods that are over says that they have no devices any more.
func (c *cluster) completed(w *dp.World) (err error) {
	pod := podObject(dp.PodSpec{Name: "over", Resource: "bcd.dev/gpu", Count: 1})
	pod["spec"].(object)["restartPolicy"] = "Never"
	pod["spec"].(object)["containers"].([]object)[0]["command"] = []string{"true"}
	defer func() { err = errors.Join(err, c.remove("over")) }()
	isOver := func() error {
		p, err := c.Pod("over")
		if err == nil && (p == nil || p.Phase != "Succeeded" || p.Deleting) {
			err = fmt.Errorf("the pod is %+v", p)
		}
		return err
	}
	if err := errors.Join(dp.Offered("bcd.dev/gpu", 1).Do(w), c.create(podsPath, pod)(), dp.Eventually(dp.Soon, isOver)); err != nil {
		return err
	}
	r, err := w.Reservation("r0")
	if err != nil {
		return err
	}
	start, k := time.Now(), &clinger{name: "over", allocation: r.Allocations[0].ID, stays: "completed, and its pod is still there"}
	err = errors.Join(dp.Release("r0").Do(w), dp.Eventually(dp.Soon, func() error {
		err := c.look(w, []*clinger{k}, map[string]string{k.allocation: "r0"}, start)
		return errors.Join(err, dp.Expect("reported", k.released > 0, true))
	}), isOver())
	c.tabulate([]*clinger{k})
	return err
}
