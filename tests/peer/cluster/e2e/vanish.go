package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	dp "better-compute/deviceplugin"
)

// vanisher is a pod that is ended after its GPU's release, in a way that may make kubelet and API server forget it while it runs.
type vanisher struct {
	name            string // of the pod
	start, end      func() error
	early           time.Duration // its process is there for so long, after the call that ends it
	by              time.Duration // and by then its end is reported
	process         int
	reservation     string
	ended, reported time.Duration // after that call
}

const (
	vanishGrace  = 25 * time.Second // of pods that are deaf to SIGTERM
	vanishMargin = 10 * time.Second // what is added to it when a pod had no last word
	vanishLate   = 12 * time.Second
	vanishHeard  = 8 * time.Second // and for one that had
)

// vanishers: one that ends as it should, one that is deleted by force, and a static one whose manifest is removed.
func (h *hosted) vanishers() []*vanisher {
	pod := func(name string, deaf bool) object {
		o := podObject(dp.PodSpec{Name: name, Resource: "bcd.dev/gpu", Count: 1, Stubborn: deaf})
		o["spec"].(object)["terminationGracePeriodSeconds"] = int(vanishGrace.Seconds())
		return o
	}
	manifest := filepath.Join(h.c.run, "manifests/vanish.json")
	return []*vanisher{
		// It has no volumes that would keep the API server's last word of it there for longer than 0.2 s: only who hears it as it comes has it.
		{name: "goes", start: h.c.create(podsPath, pod("goes", false)), end: func() error { return h.c.DeletePod("goes", vanishGrace) },
			by: vanishHeard},
		{name: "forced", start: h.c.create(podsPath, pod("forced", true)), end: func() error {
			_, err := h.kubectl("delete", "pod", "forced", "--force", "--grace-period=0")
			return err
		}, by: vanishGrace + vanishMargin + vanishLate}, // the kubelet may kill it sooner, or not
		{name: "vanish-" + nodeName, start: func() error {
			text, err := json.Marshal(pod("vanish", true))
			return errors.Join(err, os.WriteFile(manifest, text, 0o600))
		}, end: func() error { return os.Remove(manifest) }, early: vanishGrace - 2*time.Second, by: vanishGrace + vanishMargin + vanishLate},
	}
}

// vanish gives each a GPU, releases them, ends them, and holds what is reported to when the kernel says that they ended.
func (h *hosted) vanish(w *dp.World) (err error) {
	all := h.vanishers()
	byAllocation := map[string]string{}
	for i := range all {
		r, err := w.Reservation(fmt.Sprint("r", i))
		if err != nil {
			return err
		}
		byAllocation[r.Allocations[0].ID] = fmt.Sprint("r", i)
	}
	for _, v := range all {
		k := &clinger{name: v.name, start: v.start}
		if err := h.c.take(k); err != nil {
			return err
		}
		v.reservation = byAllocation[k.allocation]
		if err := dp.Eventually(60*time.Second, func() error { return h.c.running(v.name) }); err != nil {
			return err
		}
		if v.process, err = h.c.processOf(v.name); err != nil {
			return err
		}
	}
	time.Sleep(6 * time.Second) // what bcd looks at each 5 s
	for i := range all {
		if err := dp.Release(fmt.Sprint("r", i)).Do(w); err != nil {
			return err
		}
	}
	start := time.Now()
	for _, v := range all {
		if err := v.end(); err != nil {
			return fmt.Errorf("end %s: %w", v.name, err)
		}
	}
	var early error
	err = dp.Eventually(vanishGrace+vanishMargin+2*vanishLate, func() error {
		var waits error
		for _, v := range all {
			_, gone := os.Stat(fmt.Sprintf("/proc/%d", v.process)) // before the answer
			r, err := w.Reservation(v.reservation)
			if err != nil {
				return err
			}
			if gone != nil && v.ended == 0 {
				v.ended = time.Since(start)
			}
			if r.Allocations[0].State == "released" && v.reported == 0 {
				if v.reported = time.Since(start); v.ended == 0 {
					early = errors.Join(early, fmt.Errorf("%s is reported after %v, and its process is there", v.name, v.reported))
				}
			}
			if v.ended == 0 || v.reported == 0 {
				waits = errors.Join(waits, fmt.Errorf("%s: process %d ended after %v, reported after %v", v.name, v.process, v.ended, v.reported))
			}
		}
		return waits
	})
	for _, v := range all {
		fmt.Printf("     %-20s ended %6.1f s, reported %6.1f s\n", v.name, v.ended.Seconds(), v.reported.Seconds())
		if v.ended < v.early || v.reported > v.by {
			err = errors.Join(err, fmt.Errorf("%s ended after %v and was reported after %v", v.name, v.ended, v.reported))
		}
	}
	return errors.Join(err, early)
}
