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

// A pod's process that runs on while bcd, the kubelet or the control plane knows nothing of it any more.

func (h *hosted) userRuns() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", h.user))
	return err == nil
}

// listsNobody: what makes this case one. The kubelet hasn't heard of its pods.
func (c *cluster) listsNobody() error {
	return dp.Eventually(dp.Soon, func() error {
		of, err := c.holders()
		if err == nil && len(of) > 0 {
			err = fmt.Errorf("the kubelet lists %v", of)
		}
		return err
	})
}

// namesNobody: nothing tells a bcd that comes anew without a record how long a pod may run that only the kubelet's checkpoint names:
// it would wait an hour. The one that is here has the checkpoint written anew each few seconds.
func (c *cluster) namesNobody() error {
	return dp.Eventually(dp.Soon, func() error {
		text, err := os.ReadFile(filepath.Join(c.Root(), "device-plugins/kubelet_internal_checkpoint"))
		if errors.Is(err, os.ErrNotExist) { // no plugin has sent a list yet
			return nil
		}
		var checkpoint struct {
			Data struct {
				PodDeviceEntries []struct{ PodUID, ResourceName string }
			}
		}
		if err = errors.Join(err, json.Unmarshal(text, &checkpoint)); err != nil {
			return err
		}
		for _, entry := range checkpoint.Data.PodDeviceEntries {
			if strings.HasPrefix(entry.ResourceName, "bcd.dev/") {
				return fmt.Errorf("the kubelet's checkpoint names pod %s", entry.PodUID)
			}
		}
		return nil
	})
}

func (h *hosted) saysWhoIsUnlisted() error {
	node, err := h.p.Node()
	if err != nil {
		return err
	}
	for _, condition := range node.Conditions {
		if strings.Contains(condition.Message, "only the kubelet's checkpoint names it, and the API server can't be asked whether it is there") {
			return nil
		}
	}
	return fmt.Errorf("the node's conditions are %v", node.Conditions)
}

// releasedAfterUser: at no moment is the release told while the pod's process is there.
func (h *hosted) releasedAfterUser(w *dp.World, reservation string, within time.Duration) error {
	var early error
	var ended time.Duration
	start := time.Now()
	err := dp.Eventually(within, func() error {
		runs := h.userRuns() // before the answer: bcd hears of its end from the kubelet, later
		if !runs && ended == 0 {
			ended = time.Since(start)
		}
		r, err := w.Reservation(reservation)
		if err != nil {
			return err
		}
		if r.Allocations[0].State != "released" {
			return fmt.Errorf("allocation is %s", r.Allocations[0].State)
		}
		if runs {
			early = errors.New("released while the pod's process was there")
		}
		return nil
	})
	fmt.Printf("     its process ended %6.1f s, reported %6.1f s\n", ended.Seconds(), time.Since(start).Seconds())
	return errors.Join(err, early)
}

// losesState: the guide's last steps on a machine whose pod runs on, and a word that isn't true.
func (h *hosted) losesState(w *dp.World) error {
	node, err := h.p.Node()
	if err != nil {
		return err
	}
	if _, err := h.kubectl("delete", "-f", h.file("bcd.json")); err != nil {
		return err
	}
	err = dp.Eventually(hostedReady, func() error {
		pods, err := h.pods()
		if err == nil && len(pods) > 0 {
			err = errors.New("bcd's pod is left")
		}
		return err
	})
	if err != nil {
		return err
	}
	specs, _ := filepath.Glob("/etc/cdi/bcd.dev-*.json")
	for _, spec := range specs {
		err = errors.Join(err, os.Remove(spec))
	}
	err = errors.Join(err, h.forgetIdentity(), h.p.Call("POST", "/v1/nodes/"+node.ID+"/retire", object{"lost": true}, nil),
		dp.Expect("the pod's process is there", h.userRuns(), true))
	r, gone := w.Reservation("old")
	w.Forget("old")
	return errors.Join(err, gone, dp.Expect("its reservation is", r.State, "failed"))
}

// boundAfterUser: at no moment is anything bound on the pod's GPUs while its process is there, and it is said who has them.
func (h *hosted) boundAfterUser(w *dp.World) error {
	if _, err := w.Book("r", dp.GPUs(8)); err != nil {
		return err
	}
	var early error
	named, start := false, time.Now()
	err := dp.Eventually(150*time.Second, func() error {
		runs := h.userRuns() // before the answers: bcd hears of its end from the kubelet, later
		r, err := w.Reservation("r")
		if err != nil {
			return err
		}
		if r.State == "active" {
			if runs {
				early = errors.New("bound while the pod's process was there")
			}
			return nil
		}
		node, err := h.p.Node()
		for _, condition := range node.Conditions {
			named = named || condition.Type == "KubernetesReleasePending" && strings.Contains(condition.Message, "by default/user (c)")
		}
		return errors.Join(err, fmt.Errorf("the reservation is %s %v, the node says %v", r.State, r.Reasons, node.Conditions))
	})
	fmt.Printf("bound %.0f s after it was booked\n", time.Since(start).Seconds())
	return errors.Join(err, early, dp.Expect("the node's conditions named the pod", named, true))
}
