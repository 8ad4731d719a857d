package main

import (
	"fmt"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

// The reaper of a bcd that is a pod itself: what it ends, and what it asks of the API server for that.

func (h *hosted) knowClings() error {
	pod, err := h.c.pod("clings")
	if err == nil {
		h.clings, h.clung = pod.Metadata.UID, time.Now()
	}
	return err
}

// reaped: a pod that ignores its end keeps its GPU until the reaper of bcd's pod has it ended, and no longer.
func (h *hosted) reaped(w *dp.World) error {
	if err := h.releasedAfterUser(w, "s", reapHold+reapGrace+2*reapLate); err != nil {
		return err
	}
	if since := time.Since(h.clung); since < reapHold+reapGrace-time.Second {
		return fmt.Errorf("released after %v", since)
	}
	return h.c.told("clings")
}

// auditedReaper: of all pods one was deleted, the one that clung and no newcomer of its name, with the grace of a first
// request, and an Event on it says so.
func (h *hosted) auditedReaper() error {
	all, err := h.c.requests(hostedAgent)
	if err != nil {
		return err
	}
	listed, deleted, told := 0, 0, 0
	for _, one := range all[h.earlier:] {
		path, _, _ := strings.Cut(one.RequestURI, "?")
		asked := one.RequestObject
		switch one.Verb {
		case "list":
			listed++
		case "delete":
			deleted++
			if path != podsPath+"/clings" || one.ResponseStatus.Code != 200 || asked.Preconditions.UID != h.clings ||
				asked.GracePeriodSeconds == nil || *asked.GracePeriodSeconds != int(reapGrace.Seconds()) {
				return fmt.Errorf("delete %s of UID %s, answered %d: %+v", path, h.clings, one.ResponseStatus.Code, asked)
			}
		case "create":
			told++
			if on := asked.InvolvedObject; one.ResponseStatus.Code != 201 || asked.Reason != "DeviceReleased" || on.Kind != "Pod" || on.Namespace != "default" ||
				on.Name != "clings" || on.UID != h.clings {
				return fmt.Errorf("create %s, answered %d: %+v", path, one.ResponseStatus.Code, asked)
			}
		}
	}
	fmt.Printf("the reaper's requests: %d lists, %d deletions, %d Events\n", listed, deleted, told)
	if listed == 0 || deleted != 1 || told != 1 {
		return fmt.Errorf("%d lists, %d deletions, %d Events; expected some, one and one", listed, deleted, told)
	}
	return nil
}
