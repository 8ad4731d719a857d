package deviceplugin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// NothingChanges expects the node to stay as it is for a while: what it offers and has given, bcd's registrations and sockets, the
// files that say it to the container runtime, the pods and what is in them.
func NothingChanges(during time.Duration) Step {
	return Step{fmt.Sprintf("nothing changes on the node for %v", during), func(w *World) error {
		was, err := w.picture()
		if err != nil {
			return err
		}
		return Always(during, func() error {
			time.Sleep(time.Second) // in a cluster, each look into a pod starts a program
			now, err := w.picture()
			return errors.Join(err, difference(was, now))
		})
	}}
}

// Away is how long the control plane is away in the case of that name, if the product says nothing else: minutes, and longer than any
// period of bcd's or the kubelet's after which something is given up.
const Away = 130 * time.Second

// NothingChangesWhileAway is the same for as long as the control plane is away.
func NothingChangesWhileAway() Step {
	return Step{"nothing changes on the node without a control plane", func(w *World) error {
		during := w.P.Away
		if during == 0 {
			during = Away
		}
		return NothingChanges(during).Do(w)
	}}
}

func difference(was, now []string) error {
	var errs []error
	for _, line := range was {
		if !slices.Contains(now, line) {
			errs = append(errs, errors.New("no longer so: "+line))
		}
	}
	for _, line := range now {
		if !slices.Contains(was, line) {
			errs = append(errs, errors.New("new: "+line))
		}
	}
	return errors.Join(errs...)
}

// picture is all that can be seen of the product's doing on the node, a line for each fact. A look that fails is tried again.
func (w *World) picture() (lines []string, err error) {
	err = Eventually(Soon, func() error {
		lines = nil
		return errors.Join(w.seeResources(&lines), w.seeDevices(&lines), w.seeFiles(&lines), w.seePods(&lines))
	})
	return lines, err
}

func (w *World) seeResources(lines *[]string) error {
	for _, resource := range []string{gpuResource, migResource, slotResource} {
		counts, err := w.K.Counts(resource)
		if err != nil {
			return err
		}
		calls, err := w.K.Registrations(resource)
		if err != nil {
			return err
		}
		*lines = append(*lines, fmt.Sprintf("%s: %+v, registered %d times", resource, counts, len(calls)))
	}
	sockets, err := Sockets(w.K, "bcd-")
	*lines = append(*lines, fmt.Sprint("bcd's sockets: ", sockets))
	return err
}

func (w *World) seeDevices(lines *[]string) error {
	offered, err := ListOffered(w.K)
	if err != nil {
		return err
	}
	held, err := ListHeld(w.K)
	for _, d := range append(offered, held...) {
		if strings.HasPrefix(d.Resource, "bcd.dev/") {
			*lines = append(*lines, fmt.Sprintf("device %+v", d))
		}
	}
	return err
}

func (w *World) seeFiles(lines *[]string) error {
	for _, dir := range w.P.cdiFolders() {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			*lines = append(*lines, fmt.Sprintf("file %s of %v: %d bytes, %x", path, info.ModTime(), len(text), sha256.Sum256(text)))
		}
	}
	return nil
}

func (w *World) seePods(lines *[]string) error {
	for _, name := range w.pods {
		pod, err := w.K.Pod(name)
		if err != nil {
			return err
		}
		if pod == nil {
			*lines = append(*lines, "pod "+name+" is gone")
			continue
		}
		in, err := w.K.Inside(name)
		if err != nil {
			return err
		}
		*lines = append(*lines, fmt.Sprintf("pod %s: %+v, %d restarts, has %+v", name, *pod, restarts(w.K, name), *in))
	}
	return nil
}
