package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	dp "better-compute/deviceplugin"
)

// One round: eight GPUs are held by pods of one reservation each, and booked next by eight more. All eight are released
// together, each pod lets go in its own way, and meanwhile programs are killed at random moments. What was booked next is bound as the
// GPUs come free, gets pods of its own at once, and is what the next round releases.
//
// What is seen from outside is held against what bcd and the control plane say, at every look: see check.
const (
	roundGPUs  = 8
	roundLimit = 150 * time.Second
	settled    = 20 * time.Second // after the last kill: whoever is in the way is known by name
)

// way is how a pod lets go of its GPU after the release.
type way struct {
	name  string
	deaf  bool                                        // to SIGTERM
	keeps bool                                        // has a finalizer
	opens bool                                        // has the device open, which bcd sees of its processes
	once  bool                                        // isn't started again
	act   func(c *cluster, r *round, l *lodger) error // what happens to it at a random moment; nil: only the reaper comes
}

func deleted(grace time.Duration) func(*cluster, *round, *lodger) error {
	return func(c *cluster, _ *round, l *lodger) error { return c.DeletePod(l.name, grace) }
}

// ways is one less than there are GPUs: one release finds nobody.
var ways = []way{
	{name: "plain", opens: true},
	{name: "deaf", deaf: true, opens: true},
	{name: "deaf-unused", deaf: true},
	{name: "finalizer", keeps: true},
	{name: "leaves", opens: true, act: deleted(5 * time.Second)},
	// The API server and a restarted kubelet forget it, and no open device tells of it: bcd remembers that its pod had one.
	{name: "forced", deaf: true, act: deleted(0)},
	{name: "crashes", once: true, opens: true, act: crash},
}

// lodger is a pod of the rounds.
type lodger struct {
	way
	name, uid string
	acts      time.Duration // after the round's begin
	acted     bool
}

// round is what goes on now.
type round struct {
	w        *dp.World
	watch    *tenants
	rand     *rand.Rand
	number   int
	start    time.Time
	old, new []*dp.Reservation
	asked    map[string]time.Duration // when each is to be released
	lodgers  []*lodger                // of old
	next     []*lodger                // of new
	made     int                      // pods, for their names
	refused  int                      // of them, for bcd or the kubelet was away
	admitted time.Time                // the last of them
	released map[string]time.Time     // allocations, when the API said so
	quiet    time.Time                // when everything ran again
	booked   time.Time                // before the first of old was asked for
	inquired time.Time                // bcd, for its status
	last     *sight                   // while the control plane was there
}

func (c *cluster) killCases(p *dp.Product, rounds int, seed uint64) []dp.Case {
	step := dp.Step{Say: "eight releases while programs are killed", Do: func(w *dp.World) error {
		return c.withIdentity(p, func() error { return c.rounds(w, rounds, seed) })
	}}
	return dp.Cases(c, p, []dp.Row{{Name: "e2e/kills", Proves: "proves: REL-2 REL-3 REL-4 REL-43 REL-45 RES-18 RES-21 RES-22", Steps: []dp.Step{step}}})
}

func (c *cluster) rounds(w *dp.World, rounds int, seed uint64) (err error) {
	fmt.Printf("     seed %d\n", seed)
	r := &round{w: w, watch: newTenants(), rand: rand.New(rand.NewPCG(seed, 0)), released: map[string]time.Time{}}
	defer func() {
		for _, l := range append(r.lodgers, r.next...) {
			err = errors.Join(err, c.evict(l))
		}
	}()
	r.booked = time.Now()
	if r.new, err = r.book(); err != nil {
		return err
	}
	if err := dp.Eventually(dp.Soon, func() error { return c.step(r) }); err != nil {
		return err
	}
	for r.number = 1; r.number <= rounds; r.number++ {
		if err := c.round(r); err != nil {
			return fmt.Errorf("seed %d, round %d, after %.1f s: %w", seed, r.number, time.Since(r.start).Seconds(), err)
		}
	}
	return nil
}

// book asks for all GPUs, one a reservation.
func (r *round) book() (all []*dp.Reservation, err error) {
	for i := range roundGPUs {
		one, err := r.w.Book(fmt.Sprint("r", r.number, "-", i), dp.GPUs(1))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (c *cluster) round(r *round) (err error) {
	r.old, r.lodgers, r.next = r.new, r.next, nil
	since := time.Now()
	if r.new, err = r.book(); err != nil {
		return err
	}
	for _, l := range r.lodgers {
		l.acts = within(r.rand, 25*time.Second)
	}
	r.asked = map[string]time.Duration{}
	for _, one := range r.old {
		r.asked[one.ID] = within(r.rand, 2*time.Second)
	}
	programs := c.programs(r.w.P)
	all := strikes(r.rand, len(programs))
	fmt.Printf("     round %d: %s\n", r.number, describe(all, programs))
	r.start, r.quiet, r.refused = time.Now(), time.Time{}, 0
	striker := strikeAll(all, programs)
	defer func() { err = errors.Join(err, striker.wait()) }()
	for {
		over, err := striker.over()
		if err != nil {
			return err
		}
		if over && r.quiet.IsZero() {
			r.quiet = time.Now()
		}
		unfinished := c.step(r)
		var wrong *violation
		if errors.As(unfinished, &wrong) {
			return wrong
		}
		if over && unfinished == nil {
			break
		}
		if time.Since(r.start) > roundLimit {
			out, _ := r.w.P.Status()
			return fmt.Errorf("not over: %w\n%s", unfinished, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, l := range r.lodgers {
		err = errors.Join(err, c.evict(l))
	}
	err = errors.Join(err, r.judge())
	r.lodgers, r.booked = nil, since
	return err
}

// violation is what must never be seen; every other error of a step says what is yet to come.
type violation struct{ what string }

func (v *violation) Error() string { return v.what }

func wrong(format string, args ...any) error { return &violation{fmt.Sprintf(format, args...)} }

// step does what is due, looks, and says what is yet to come, nil for nothing.
func (c *cluster) step(r *round) error {
	for _, one := range r.old {
		if due, waits := r.asked[one.ID]; waits && time.Since(r.start) >= due && r.w.P.Release(one.ID) == nil {
			delete(r.asked, one.ID)
		}
	}
	for _, l := range r.lodgers {
		if l.act != nil && !l.acted && time.Since(r.start) >= l.acts {
			if err := l.act(c, r, l); err != nil {
				return err
			}
			l.acted = true
		}
	}
	s, err := c.see(r)
	if err == nil {
		err = r.check(s)
	}
	if err != nil {
		return err
	}
	return errors.Join(c.lodge(r, s), r.missing(s))
}

// sight is all that one look sees. Whatever says "free" was read before the processes were looked at.
type sight struct {
	allocations map[string]*allocation // by id, of old and new; nil while the control plane is away
	holds       map[string]int         // GPUs of allocations, by the container runtime's CDI files
	living      []tenant
	status      *nodeStatus // nil while bcd is away
}

type allocation struct {
	id, state   string
	gpu         int
	reservation *dp.Reservation
}

type nodeStatus struct {
	Releases []struct {
		Allocation, Step string
		Holders          []struct{ Name string }
	}
}

func (c *cluster) see(r *round) (*sight, error) {
	s := &sight{}
	var err error
	if s.holds, err = readHolds("/etc/cdi"); err != nil {
		return nil, wrong("%v", err)
	}
	if time.Since(r.inquired) > time.Second {
		r.inquired = time.Now()
		if out, err := r.w.P.Status("-o", "json"); err == nil {
			s.status = &nodeStatus{}
			if err := json.Unmarshal([]byte(out), s.status); err != nil {
				return nil, err
			}
		}
	}
	if list, err := r.w.P.Reservations(r.booked); err == nil {
		s.allocations = map[string]*allocation{}
		for _, one := range list {
			for _, a := range one.Allocations {
				s.allocations[a.ID] = &allocation{a.ID, a.State, gpuNumber(a.Devices[0].GPU), &one}
			}
		}
		r.last = s
	}
	if s.living, err = r.watch.look(); err != nil {
		return nil, wrong("%v", err)
	}
	return s, nil
}

// check holds what was seen against what was promised.
func (r *round) check(s *sight) error {
	owner := map[int]tenant{} // of GPUs
	for _, t := range s.living {
		if o, taken := owner[t.gpu]; taken && (o.pod != t.pod || o.allocation != t.allocation) {
			return wrong("GPU %d is given twice: %+v and %+v", t.gpu, o, t)
		}
		owner[t.gpu] = t
		if a := s.allocations[t.allocation]; a != nil && (a.state == "released" || a.state == "failed") {
			return wrong("allocation %s is %s, and %+v has its GPU", a.id, a.state, t)
		}
	}
	booked := map[int]string{}
	for id, gpu := range s.holds {
		if other, taken := booked[gpu]; taken {
			return wrong("GPU %d is bound twice: %s and %s", gpu, other, id)
		}
		booked[gpu] = id
		if o, taken := owner[gpu]; taken && o.allocation != id {
			return wrong("GPU %d is bound by %s while %+v has it", gpu, id, o)
		}
	}
	for _, a := range s.allocations {
		if o, taken := owner[a.gpu]; a.state == "bound" && taken && o.allocation != a.id {
			return wrong("GPU %d is %s's while %+v has it", a.gpu, a.id, o)
		}
		if a.reservation.State == "released" && a.state != "released" && !a.reservation.Has("DevicesHeld") {
			return wrong("allocation %s is %s and no condition of its reservation says what it waits for: %v", a.id, a.state, a.reservation.Conditions)
		}
		if _, known := r.released[a.id]; a.state == "released" && !known {
			r.released[a.id] = time.Now()
			if err := checkReleased(a); err != nil {
				return err
			}
		}
	}
	return r.checkNamed(s, owner)
}

// checkNamed expects bcd to name each pod that is in the way, once nobody was killed for a while.
func (r *round) checkNamed(s *sight, owner map[int]tenant) error {
	if s.status == nil || r.quiet.IsZero() || time.Since(r.quiet) < settled {
		return nil
	}
	for _, release := range s.status.Releases {
		for _, t := range owner {
			if t.allocation != release.Allocation {
				continue
			}
			for _, l := range r.lodgers {
				if l.uid == t.pod && !strings.Contains(fmt.Sprint(release.Holders), l.name) {
					return wrong("pod %s is in the way of %s, and bcd status names %v", l.name, t.allocation, release.Holders)
				}
			}
		}
	}
	return nil
}

// checkReleased looks at what an allocation that was just reported could still be held by.
func checkReleased(a *allocation) error {
	holds, err := readHolds("/etc/cdi")
	if _, bound := holds[a.id]; err != nil || bound {
		return wrong("allocation %s is released and has a CDI file (%v)", a.id, err)
	}
	text, err := os.ReadFile("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
	if err != nil {
		return nil // none yet
	}
	var checkpoint struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID    string
				DeviceIDs map[string][]string
			}
		}
	}
	if err := json.Unmarshal(text, &checkpoint); err != nil {
		return nil // being written
	}
	for _, entry := range checkpoint.Data.PodDeviceEntries {
		if _, err := os.Stat("/var/lib/kubelet/pods/" + entry.PodUID); err != nil {
			continue // a pod that the kubelet has forgotten
		}
		if strings.Contains(fmt.Sprint(entry.DeviceIDs), "@"+a.id) {
			return wrong("allocation %s is released, and the kubelet's checkpoint gives it to pod %s, which it still knows", a.id, entry.PodUID)
		}
	}
	return nil
}

// missing says what a round still waits for.
func (r *round) missing(s *sight) error {
	if s.allocations == nil {
		return errors.New("the control plane is away")
	}
	for _, a := range s.allocations {
		if now := a.reservation; now.State != "released" && now.State != "active" {
			return fmt.Errorf("reservation %s is %s %v", now.ID, now.State, now.Reasons)
		} else if now.State == "released" && a.state != "released" {
			return fmt.Errorf("allocation %s is %s: %v", a.id, a.state, now.Conditions)
		}
	}
	if len(s.allocations) < len(r.old)+len(r.new) || len(r.asked) > 0 {
		return errors.New("not all is released and placed")
	}
	for _, l := range r.next {
		if !slices.ContainsFunc(s.living, func(t tenant) bool { return t.pod == l.uid }) {
			return fmt.Errorf("pod %s has no GPU yet", l.name)
		}
	}
	return dp.Expect("pods of what was booked next", len(r.next), len(ways))
}

// lodge starts a pod for each GPU that is bound anew, and another one for one that was refused, one at a time.
func (c *cluster) lodge(r *round, s *sight) error {
	if time.Since(r.admitted) < 500*time.Millisecond {
		return nil
	}
	var list struct{ Items []podStatus }
	if err := c.api.call("GET", podsPath, nil, &list); err != nil {
		return err
	}
	for i, l := range r.next {
		if slices.ContainsFunc(list.Items, func(p podStatus) bool { return p.Metadata.UID == l.uid && p.Status.Phase == "Failed" }) {
			r.refused++
			if err := c.evict(l); err != nil {
				return err
			}
			r.next[i] = r.newLodger(l.way)
			return c.admit(r, r.next[i])
		}
	}
	bound := 0
	for _, a := range s.allocations {
		if a.state == "bound" && slices.ContainsFunc(r.new, func(one *dp.Reservation) bool { return one.ID == a.reservation.ID }) {
			bound++
		}
	}
	if len(r.next) < min(bound, len(ways)) {
		l := r.newLodger(ways[len(r.next)])
		r.next = append(r.next, l)
		return c.admit(r, l)
	}
	return nil
}

func (r *round) newLodger(w way) *lodger {
	r.made++
	return &lodger{way: w, name: fmt.Sprint(w.name, "-", r.made)}
}

// admit makes the pod, past the scheduler, which counts the GPUs of those that cling.
func (c *cluster) admit(r *round, l *lodger) error {
	r.admitted = time.Now()
	o := podObject(dp.PodSpec{Name: l.name, Resource: "bcd.dev/gpu", Count: 1, Bound: true})
	spec := o["spec"].(object)
	use := "for d in /dev/nvidia[0-9]; do sleep 86400 & done"
	if l.opens {
		use = "for d in /dev/nvidia[0-9]; do sleep 86400 < $d & done"
	}
	script := "trap 'exit 0' TERM; " + use + "; wait"
	if l.deaf {
		script = "trap '' TERM; " + use + "; wait"
	}
	spec["containers"].([]object)[0]["command"] = []string{"sh", "-c", script}
	if l.once {
		spec["restartPolicy"] = "Never"
	}
	if l.keeps {
		o["metadata"].(object)["finalizers"] = []string{"example.com/keep"}
	}
	var made podStatus
	err := c.api.call("POST", podsPath, o, &made)
	l.uid = made.Metadata.UID
	return err
}

// evict removes what is left of a pod.
func (c *cluster) evict(l *lodger) error {
	if l.keeps {
		if err := c.patch(podsPath+"/"+l.name, object{"metadata": object{"finalizers": nil}}); err != nil && !errors.Is(err, errNotFound) {
			return err
		}
	}
	return c.DeletePod(l.name, 0)
}

// crash ends the pod's processes as an out-of-memory killer would.
func crash(_ *cluster, r *round, l *lodger) error {
	living, err := r.watch.look()
	for _, t := range living {
		if t.pod == l.uid {
			var pid int
			fmt.Sscan(t.pid, &pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return err
}

// readHolds gives the GPU of each allocation that has a CDI file.
func readHolds(folder string) (map[string]int, error) {
	files, err := filepath.Glob(filepath.Join(folder, "bcd.dev-*.json"))
	holds := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "bcd.dev-"), ".json")
		for n := range roundGPUs {
			if strings.Contains(string(text), strings.TrimPrefix(dp.GPUUUID(n), "GPU-")) {
				holds[id] = n
			}
		}
	}
	return holds, err
}

func gpuNumber(gpu string) int {
	for n := range roundGPUs {
		if strings.Contains(dp.GPUUUID(n), strings.TrimPrefix(gpu, "GPU-")) {
			return n
		}
	}
	return -1
}

// reports reads in bcd's logs when it decided that an allocation is released.
func reports(logs []string) (map[string]time.Time, error) {
	first := map[string]time.Time{}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return nil, err
		}
		for _, one := range strings.Split(string(text), "\n") {
			var line struct {
				Time              time.Time
				Event, Allocation string
			}
			if json.Unmarshal([]byte(one), &line) != nil || line.Event != "release.done" {
				continue // also a line that a kill cut short
			}
			if at, known := first[line.Allocation]; !known || line.Time.Before(at) {
				first[line.Allocation] = line.Time
			}
		}
	}
	return first, nil
}

// woken is how late this process may hear of another's end on a busy machine, and the log's resolution.
const woken = 20 * time.Millisecond

// judge compares to the moment: bcd's decision comes after the end of every process that had the GPU.
func (r *round) judge() error {
	decided, err := reports(r.w.P.NodeLogs())
	if err != nil {
		return err
	}
	for _, a := range r.last.allocations {
		if a.state != "released" {
			continue
		}
		at, known := decided[a.id]
		if !known {
			return wrong("allocation %s is released, and bcd never said so", a.id)
		}
		line := fmt.Sprintf("bcd's decision %5.1f s, seen in the API %5.1f s", at.Sub(r.start).Seconds(), r.released[a.id].Sub(r.start).Seconds())
		for _, t := range r.watch.of(a.id) {
			if t.gone.IsZero() || t.gone.After(at.Add(woken)) {
				return wrong("bcd decided at %v that %s is released; %+v", at, a.id, t)
			}
			for _, l := range r.lodgers {
				if l.uid == t.pod {
					line += fmt.Sprintf(", %s ended %5.1f s", l.name, t.gone.Sub(r.start).Seconds())
				}
			}
		}
		fmt.Printf("     GPU %d: %s\n", a.gpu, line)
	}
	fmt.Printf("     round %d: %.1f s, %d pods of the next were refused while something was away\n", r.number, time.Since(r.start).Seconds(), r.refused)
	return nil
}
