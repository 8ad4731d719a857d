package deviceplugin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Left is a process in a pod's cgroup that no kubelet knows of.
type Left struct {
	process *exec.Cmd
	cgroups []string // made for it, the deepest first
}

const leftUID = "0b6ed7a0-52a5-4c3b-9e5c-3a8a6b2f0c11"

// cgroupRoot is a hierarchy that processes may be put into: version 2, or one of version 1.
func cgroupRoot() string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err == nil {
		return "/sys/fs/cgroup"
	}
	return "/sys/fs/cgroup/pids"
}

// leave starts a process that has the device open, in the cgroup of a pod.
func leave(device string) (*Left, error) {
	file, err := os.OpenFile(device, os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	l := &Left{process: exec.Command("sleep", "600")}
	l.process.ExtraFiles = []*os.File{file}
	if err := l.process.Start(); err != nil {
		return nil, err
	}
	pid := l.process.Process.Pid
	dir := cgroupRoot()
	for _, name := range []string{fmt.Sprintf("bcd-test-%d", pid), "kubepods", "besteffort", "pod" + leftUID} {
		dir = filepath.Join(dir, name)
		if err = os.Mkdir(dir, 0o755); err != nil {
			break
		}
		l.cgroups = append([]string{dir}, l.cgroups...)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
	}
	if err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

func (l *Left) end() error {
	l.process.Process.Kill()
	l.process.Wait()
	var errs []error
	for _, dir := range l.cgroups {
		errs = append(errs, os.Remove(dir))
	}
	return errors.Join(errs...)
}

// LeaveProcess starts a process that has the first GPU of a reservation open, as one that outlived its pod.
func LeaveProcess(name string) Step {
	return Step{"a process of a pod that is gone has a GPU of " + name + " open", func(w *World) (err error) {
		gpu := w.reservations[name].Allocations[0].Devices[0].GPU
		for n := range 8 {
			if GPUUUID(n) == "GPU-"+gpu || GPUUUID(n) == gpu {
				w.left, err = leave(fmt.Sprintf("/dev/tty%d", 20+n))
				return err
			}
		}
		return fmt.Errorf("GPU %s is none of this machine", gpu)
	}}
}

// ProcessEnds ends it.
func ProcessEnds() Step {
	return Step{"the process ends", func(w *World) error {
		l := w.left
		w.left = nil
		return l.end()
	}}
}

// LoseCheckpoint removes what the kubelet knows of devices that it gave; the kubelet must be away.
func LoseCheckpoint() Step {
	return Step{"the kubelet's checkpoint is lost", func(w *World) error {
		return os.Remove(filepath.Join(w.K.Root(), "device-plugins", "kubelet_internal_checkpoint"))
	}}
}
