package deviceplugin

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"
)

// Step is one line of a case of the table.
type Step struct {
	Say string
	Do  func(*World) error
}

// World is what the steps of one case act on.
type World struct {
	K Kubelet
	P *Product

	reservations map[string]*Reservation
	pods         []string
	given        map[string]*Inside // of each pod, when it was first looked at
	event        time.Time          // the last moment from which the kubelet could be registered with again
	sockets      []string           // bcd's, before that
	registered   map[string]int     // Register calls before that
	second       *Process
	left         *Left
	cut          bool // the simulated GPUs are not the default ones
}

// Row is one case of the table.
type Row struct {
	Name, Proves string
	Steps        []Step
}

// Cases makes runnable cases of rows.
func Cases(k Kubelet, p *Product, rows []Row) []Case {
	var cases []Case
	for _, row := range rows {
		cases = append(cases, Case{Name: row.Name, Proves: row.Proves, Run: func() error { return row.run(k, p) }})
	}
	return cases
}

func (row Row) run(k Kubelet, p *Product) error {
	w := &World{K: k, P: p, reservations: map[string]*Reservation{}, given: map[string]*Inside{}, registered: map[string]int{}}
	err := w.do(row.Steps)
	if err != nil {
		err = errors.Join(err, errors.New(p.Logs()))
	}
	if unclean := w.clean(); unclean != nil {
		err = errors.Join(err, unclean, errors.New(p.Logs()))
	}
	return err
}

func (w *World) do(steps []Step) error {
	for i, s := range steps {
		start := time.Now()
		if err := s.Do(w); err != nil {
			return fmt.Errorf("step %d, %s, after %.1f s: %w", i+1, s.Say, time.Since(start).Seconds(), err)
		}
	}
	return nil
}

// clean leaves nothing of a case: everything runs, no pods, nothing booked, nothing offered.
func (w *World) clean() error {
	var errs []error
	fail := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("cleaning up, %s: %w", what, err))
		}
	}
	if w.second != nil {
		fail("the second bcd", w.second.End(syscall.SIGKILL))
	}
	if w.left != nil {
		fail("the process", w.left.end())
	}
	fail("the kubelet", w.K.Revive())
	if w.P.serve.Ended() {
		fail("serve", w.P.StartServe())
	}
	if w.P.PodLogs == nil {
		if w.P.node.Ended() {
			fail("bcd", w.P.StartNode())
		}
		fail("the node", NodeIsBack().Do(w))
	}
	for _, pod := range w.pods {
		fail("pod "+pod, w.K.DeletePod(pod, time.Second))
	}
	for _, pod := range w.pods {
		fail("pod "+pod, Eventually(Soon, func() error { return gone(w.K, pod) }))
	}
	for name, r := range w.reservations {
		fail("reservation "+name, Eventually(Soon, func() error { return w.P.Release(r.ID) }))
	}
	for name := range w.reservations {
		fail("reservation "+name, Released(name).Do(w))
	}
	for _, resource := range []string{"bcd.dev/gpu", "bcd.dev/gpu.mig", "bcd.dev/gpu.slot"} {
		fail("the node", Offered(resource, 0).Do(w))
	}
	if w.cut {
		fail("the simulated GPUs", Simulate(Whole).Do(w))
	}
	return errors.Join(errs...)
}

// --- bookings

func GPUs(n int) Ask                 { return Ask{Class: "gpu", Count: n} }
func MIGs(profile string, n int) Ask { return Ask{Class: "gpu.mig", Profile: profile, Count: n} }
func SlotsOf(n int) Ask              { return Ask{Class: "gpu.slot", Count: n} }

// Book makes a reservation of this case's and waits for nothing.
func (w *World) Book(name string, asks ...Ask) (*Reservation, error) {
	r, err := w.P.Reserve(asks...)
	if err == nil {
		w.reservations[name] = r
	}
	return r, err
}

// Reserve books and waits until the node has bound it all.
func Reserve(name string, asks ...Ask) Step {
	return Step{fmt.Sprintf("reserve %s %v", name, asks), func(w *World) error {
		r, err := w.Book(name, asks...)
		if err != nil {
			return err
		}
		return Eventually(Soon, func() error {
			r, err := w.P.Reservation(r.ID)
			if err != nil {
				return err
			}
			w.reservations[name] = r
			if r.State != "active" {
				return fmt.Errorf("reservation is %s %v %v", r.State, r.Reasons, r.Conditions)
			}
			return nil
		})
	}}
}

// Forget leaves a reservation out of the cleaning up: it is over, and no node says so.
func (w *World) Forget(name string) { delete(w.reservations, name) }

// Reservation is one of this case's, as the API shows it now.
func (w *World) Reservation(name string) (*Reservation, error) {
	r, err := w.P.Reservation(w.reservations[name].ID)
	if err == nil {
		w.reservations[name] = r
	}
	return r, err
}

// NotPlaced expects a booking to find no place for as long as pods hold what was released, and cancels it.
func NotPlaced(asks ...Ask) Step {
	return Step{fmt.Sprintf("%v finds no place", asks), func(w *World) error {
		r, err := w.P.Reserve(asks...)
		if err != nil {
			return err
		}
		err = Always(2*time.Second, func() error {
			now, err := w.P.Reservation(r.ID)
			if err == nil && now.State != "pending" {
				err = fmt.Errorf("reservation is %s", now.State)
			}
			return err
		})
		return errors.Join(err, w.P.Call("POST", "/v1/reservations/"+r.ID+"/cancel", nil, nil))
	}}
}

// Release asks for a release; nothing is waited for.
func Release(name string) Step {
	return Step{"release " + name, func(w *World) error { return w.P.Release(w.reservations[name].ID) }}
}

// StaysHeld expects a released reservation to say for a while that pods hold its devices.
func StaysHeld(name string, during time.Duration) Step {
	check := func(w *World) func() error {
		return func() error {
			r, err := w.P.Reservation(w.reservations[name].ID)
			if err != nil {
				return err
			}
			held := slices.IndexFunc(r.Conditions, func(c Condition) bool { return c.Type == "DevicesHeld" })
			if r.State != "released" || held < 0 {
				return fmt.Errorf("reservation is %s with conditions %v, expected released with DevicesHeld", r.State, r.Conditions)
			}
			if c := r.Conditions[held]; c.Reason != "PodsHoldDevices" || !strings.Contains(c.Message, r.Allocations[0].NodeID) {
				return fmt.Errorf("condition is %+v, expected reason PodsHoldDevices and node %s", c, r.Allocations[0].NodeID)
			}
			for _, a := range r.Allocations {
				if a.State == "released" {
					return fmt.Errorf("allocation %s is released while a pod holds its devices", a.ID)
				}
			}
			return nil
		}
	}
	return Step{"devices of " + name + " are shown as held", func(w *World) error {
		return errors.Join(Eventually(Soon, check(w)), Always(during, check(w)))
	}}
}

// Released expects that the node said so, and DevicesHeld to be gone.
func Released(name string) Step {
	return Step{name + " is released on the node", func(w *World) error {
		within := Soon
		if w.P.PodLogs != nil { // in a pod, where bcd waits for the grace, and 10 s, of one whose last word it missed
			within += 40 * time.Second
		}
		return Eventually(within, func() error {
			r, err := w.P.Reservation(w.reservations[name].ID)
			if err != nil {
				return err
			}
			for _, a := range r.Allocations {
				if a.State != "released" && a.State != "failed" {
					return fmt.Errorf("allocation %s is %s", a.ID, a.State)
				}
			}
			if r.State != "released" || r.Has("DevicesHeld") {
				return fmt.Errorf("reservation is %s with conditions %v", r.State, r.Conditions)
			}
			return nil
		})
	}}
}

// --- what the node offers

func Offered(resource string, n int) Step {
	return Step{fmt.Sprintf("allocatable %s is %d", resource, n), func(w *World) error {
		return Eventually(Soon, func() error {
			c, err := w.K.Counts(resource)
			return errors.Join(err, Expect("allocatable "+resource, c.Allocatable, n))
		})
	}}
}

func Counted(resource string, capacity, allocatable int) Step {
	return Step{fmt.Sprintf("capacity and allocatable of %s are %d and %d", resource, capacity, allocatable), func(w *World) error {
		return Eventually(Soon, func() error { return counts(w.K, resource, Counts{capacity, allocatable}) })
	}}
}

// Hinted expects every offered device to name the NUMA node of its GPU.
func Hinted(resource string) Step {
	return Step{"each " + resource + " names its NUMA node", func(w *World) error {
		return Eventually(Soon, func() error {
			list, err := ListOffered(w.K)
			if err != nil {
				return err
			}
			seen := 0
			for _, d := range list {
				if d.Resource != resource || !w.booked(d.ID) {
					continue
				}
				n := gpuOf(d.ID)
				if n < 0 {
					return fmt.Errorf("%s is of no simulated GPU", d.ID)
				}
				seen++
				if err := Expect("NUMA nodes of "+d.ID, fmt.Sprint(d.NUMA), fmt.Sprint([]int{n / 4})); err != nil {
					return err
				}
			}
			return Expect("devices offered", seen, len(w.ids(w.all()...)))
		})
	}}
}

func gpuOf(id string) int {
	for n := range 8 {
		if strings.Contains(id, strings.TrimPrefix(GPUUUID(n), "GPU-")) {
			return n
		}
	}
	return -1
}

func (w *World) all() []string {
	var names []string
	for name := range w.reservations {
		names = append(names, name)
	}
	return names
}

// ids are the kubelet's device ids of the reservations.
func (w *World) ids(names ...string) []string {
	var ids []string
	for _, name := range names {
		for _, a := range w.reservations[name].Allocations {
			for _, d := range a.Devices {
				ids = append(ids, strings.ReplaceAll(d.Atom, "/", "_")+"@"+a.ID)
			}
		}
	}
	sort.Strings(ids)
	return ids
}

func (w *World) booked(id string) bool { return slices.Contains(w.ids(w.all()...), id) }

// Simulate cuts the simulated GPUs anew and waits until the control plane knows.
func Simulate(l Layout) Step {
	return Step{fmt.Sprintf("simulate layout %d", l), func(w *World) error {
		w.cut = l != Whole
		if err := w.P.Simulate(l); err != nil {
			return err
		}
		class := map[Layout]string{MIG: "gpu.mig", Slots: "gpu.slot"}[l]
		return Eventually(Soon, func() error {
			n, err := w.P.Node()
			if err != nil {
				return err
			}
			parts := 0
			for _, d := range n.Devices {
				if d.Class != "gpu" {
					parts++
					if class != d.Class {
						return fmt.Errorf("the node still has %s", d.Atom)
					}
				}
			}
			return Expect("parts of GPUs", parts, map[Layout]int{Whole: 0, MIG: 8, Slots: 8}[l])
		})
	}}
}

// SimSet changes the GPU of the first device of a reservation.
func SimSet(name, assignment string) Step {
	return Step{"set " + assignment + " on a GPU of " + name, func(w *World) error {
		return w.P.SimSet(w.reservations[name].Allocations[0].Devices[0].GPU, assignment)
	}}
}

// --- pods

func StartPod(name, resource string, n int) Step {
	return Step{fmt.Sprintf("pod %s asks for %d %s", name, n, resource), func(w *World) error {
		return w.start(PodSpec{Name: name, Resource: resource, Count: n})
	}}
}

// StartStubbornPod starts one that doesn't end when it is asked to.
func StartStubbornPod(name, resource string, n int) Step {
	return Step{fmt.Sprintf("pod %s, which ignores SIGTERM, asks for %d %s", name, n, resource), func(w *World) error {
		return w.start(PodSpec{Name: name, Resource: resource, Count: n, Stubborn: true})
	}}
}

func StartBoundPod(name, resource string, n int) Step {
	return Step{fmt.Sprintf("pod %s, past the scheduler, asks for %d %s", name, n, resource), func(w *World) error {
		return w.start(PodSpec{Name: name, Resource: resource, Count: n, Bound: true})
	}}
}

func (w *World) start(spec PodSpec) error {
	w.pods = append(w.pods, spec.Name)
	return w.K.StartPod(spec)
}

func Runs(name string) Step {
	return Step{"pod " + name + " runs", func(w *World) error {
		return Eventually(Soon, func() error { return running(w.K, name) })
	}}
}

func StaysPending(name string, during time.Duration) Step {
	return Step{"pod " + name + " stays Pending", func(w *World) error {
		check := func() error {
			p, err := w.K.Pod(name)
			if err != nil {
				return err
			}
			if p == nil {
				return fmt.Errorf("pod %s is gone", name)
			}
			return Expect("phase of "+name, p.Phase, "Pending")
		}
		return errors.Join(check(), Always(during, check))
	}}
}

func IsRefused(name string, reasons ...string) Step {
	return Step{"pod " + name + " is refused", func(w *World) error {
		return Eventually(Soon, func() error {
			p, err := w.K.Pod(name)
			if err != nil {
				return err
			}
			if p == nil || p.Phase != "Failed" || !slices.Contains(reasons, p.Reason) {
				return fmt.Errorf("pod is %+v, expected Failed with one of %v", p, reasons)
			}
			return nil
		})
	}}
}

func DeletePod(name string) Step {
	return Step{"delete pod " + name, func(w *World) error { return removePod(w.K, name) }}
}

// Given expects in the pod exactly n devices of the reservations, and all that tells of them: environment, annotation, device
// nodes, pod-resources.
func Given(name string, n int, from ...string) Step {
	return Step{fmt.Sprintf("pod %s has %d devices of %v", name, n, from), func(w *World) error {
		in, err := w.K.Inside(name)
		if err != nil {
			return err
		}
		w.given[name] = in
		_, resource, err := w.podDevices(name)
		if err != nil {
			return err
		}
		ids, err := heldBy(w.K, name, resource)
		if err != nil {
			return err
		}
		if err := Expect("number of devices in pod-resources", len(ids), n); err != nil {
			return err
		}
		var visible, allocations []string
		nodes := map[string]bool{}
		for _, id := range ids {
			if !slices.Contains(w.ids(from...), id) {
				return fmt.Errorf("the pod holds %s, which is not one of %v", id, w.ids(from...))
			}
			atom, allocation, _ := strings.Cut(id, "@")
			allocations = append(allocations, allocation)
			visible = append(visible, w.visible(atom, allocation))
			nodes[fmt.Sprintf("/dev/nvidia%d", gpuOf(id))] = true
		}
		if err := errors.Join(
			Expect("NVIDIA_VISIBLE_DEVICES", set(in.Env["NVIDIA_VISIBLE_DEVICES"]), set(strings.Join(visible, ","))),
			Expect("BCD_ALLOCATION_IDS", set(in.Env["BCD_ALLOCATION_IDS"]), set(strings.Join(allocations, ","))),
			Expect("annotation bcd.dev/allocation-ids", in.Annotations["bcd.dev/allocation-ids"], in.Env["BCD_ALLOCATION_IDS"]),
		); err != nil {
			return err
		}
		return expectNodes(in, nodes)
	}}
}

// expectNodes expects the GPUs' own device nodes and no other GPU's, each with the number of its minor.
func expectNodes(in *Inside, want map[string]bool) error {
	for path := range want {
		n := path[len("/dev/nvidia"):]
		device, ok := in.Devices[path]
		if !ok {
			return fmt.Errorf("%s is not in the container: %v", path, in.Devices)
		}
		if device != (Device{}) { // unknown to a stand-in
			if err := Expect(path, device, Device{4, 20 + uint32(n[0]-'0')}); err != nil {
				return err
			}
		}
	}
	for path := range in.Devices {
		if n := path[len("/dev/nvidia"):]; len(n) == 1 && !want[path] {
			return fmt.Errorf("%s is in the container and was not booked for it", path)
		}
	}
	for _, path := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm"} {
		if _, ok := in.Devices[path]; !ok {
			return fmt.Errorf("%s is not in the container", path)
		}
	}
	return nil
}

// podDevices are all ids that a pod holds, with their one resource.
func (w *World) podDevices(name string) ([]string, string, error) {
	list, err := ListHeld(w.K)
	if err != nil {
		return nil, "", err
	}
	var ids []string
	resource := ""
	for _, h := range list {
		if h.Pod == name {
			ids, resource = append(ids, h.ID), h.Resource
		}
	}
	sort.Strings(ids)
	return ids, resource, nil
}

func (w *World) visible(atom, allocation string) string {
	for _, r := range w.reservations {
		for _, a := range r.Allocations {
			for _, d := range a.Devices {
				if a.ID == allocation && strings.ReplaceAll(d.Atom, "/", "_") == atom {
					return d.VisibleDevice
				}
			}
		}
	}
	return "?"
}

// set makes lists comparable: sorted, each once.
func set(list string) string {
	items := strings.Split(list, ",")
	sort.Strings(items)
	return strings.Join(slices.Compact(items), ",")
}

// GoesOn expects a pod to be what it was when `given` looked: same devices, never restarted, still listed.
func GoesOn(name string) Step {
	return Step{"pod " + name + " goes on with the same devices", func(w *World) error {
		return Eventually(Soon, func() error {
			if err := running(w.K, name); err != nil {
				return err
			}
			in, err := w.K.Inside(name)
			if err != nil {
				return err
			}
			ids, _, err := w.podDevices(name)
			if err != nil {
				return err
			}
			was := w.given[name].Env
			return errors.Join(Expect("restarts of "+name, restarts(w.K, name), 0),
				Expect("NVIDIA_VISIBLE_DEVICES", in.Env["NVIDIA_VISIBLE_DEVICES"], was["NVIDIA_VISIBLE_DEVICES"]),
				Expect("listed in pod-resources", len(ids) > 0, true))
		})
	}}
}

// Apart expects no device in two pods.
func Apart(names ...string) Step {
	return Step{fmt.Sprintf("pods %v share no device", names), func(w *World) error {
		owner := map[string]string{}
		for _, name := range names {
			ids, _, err := w.podDevices(name)
			if err != nil {
				return err
			}
			for _, id := range ids {
				atom, _, _ := strings.Cut(id, "@")
				if owner[atom] != "" {
					return fmt.Errorf("%s is in %s and in %s", atom, owner[atom], name)
				}
				owner[atom] = name
			}
		}
		return nil
	}}
}
