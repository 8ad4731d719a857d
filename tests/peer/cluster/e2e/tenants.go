package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	dp "better-compute/deviceplugin"
)

// tenant is a process of a pod that can reach a GPU, by what the kernel says alone: its cgroup, its environment, its root
// folder's devices and, to the moment, its end. Neither the kubelet nor bcd is asked.
type tenant struct {
	pid        string
	pod        string // UID
	gpu        int
	allocation string
	gone       time.Time // zero while it lives
}

// tenants keeps all that were ever seen.
type tenants struct {
	cgroup string
	mutex  sync.Mutex
	seen   map[string]*tenant // by process id and start
}

func newTenants() *tenants {
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.procs"); err != nil {
		root += "/pids" // version 1: each hierarchy has all processes
	}
	return &tenants{cgroup: root + "/better-compute-cluster", seen: map[string]*tenant{}}
}

// look gives those that live now. A process that came and went between two looks is missed.
func (t *tenants) look() ([]tenant, error) {
	err := filepath.WalkDir(t.cgroup, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return nil // a folder that went meanwhile
		}
		m := podFolder.FindStringSubmatch(path)
		if m == nil {
			return nil
		}
		pids, _ := os.ReadFile(path)
		for _, pid := range strings.Fields(string(pids)) {
			if err := t.meet(pid, m[1]); err != nil {
				return err
			}
		}
		return nil
	})
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var living []tenant
	for _, one := range t.seen {
		if one.gone.IsZero() {
			living = append(living, *one)
		}
	}
	return living, err
}

var (
	podFolder = regexp.MustCompile(`/pod([0-9a-f-]{36})/`)
	deviceEnv = regexp.MustCompile(`^BCD_DEVICE_GPU_([0-9A-F_]+)=(alc_[0-9a-z]+)$`)
)

// meet remembers a process that has a GPU. One of the runtime's own, before the container's program, has no such environment yet.
func (t *tenants) meet(pid, pod string) error {
	key := pid + " " + startTime(pid)
	t.mutex.Lock()
	_, known := t.seen[key]
	t.mutex.Unlock()
	if known {
		return nil
	}
	env, _ := os.ReadFile("/proc/" + pid + "/environ")
	for _, variable := range strings.Split(string(env), "\x00") {
		m := deviceEnv.FindStringSubmatch(variable)
		if m == nil {
			continue
		}
		one := &tenant{pid: pid, pod: pod, gpu: -1, allocation: m[2]}
		for n := range 8 {
			if strings.EqualFold(strings.ReplaceAll(m[1], "_", "-"), strings.TrimPrefix(dp.GPUUUID(n), "GPU-")) {
				one.gpu = n
			}
		}
		if !t.follow(one, key) {
			return nil // over already
		}
		devices, _ := filepath.Glob("/proc/" + pid + "/root/dev/nvidia[0-9]")
		if len(devices) != 1 || filepath.Base(devices[0]) != fmt.Sprint("nvidia", one.gpu) {
			if startTime(pid) == "" {
				return nil
			}
			return fmt.Errorf("process %s of pod %s was given GPU %d and can reach %v", pid, pod, one.gpu, devices)
		}
	}
	return nil
}

// follow notes the moment of the process' end, unless it is over.
func (t *tenants) follow(one *tenant, key string) bool {
	var pid int
	fmt.Sscan(one.pid, &pid)
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	if !strings.HasSuffix(key, " "+startTime(one.pid)) { // the number is another's by now
		unix.Close(fd)
		return false
	}
	t.mutex.Lock()
	t.seen[key] = one
	t.mutex.Unlock()
	go func() {
		defer unix.Close(fd)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n == 1 || (err != nil && err != unix.EINTR) {
				break
			}
		}
		t.mutex.Lock()
		one.gone = time.Now()
		t.mutex.Unlock()
	}()
	return true
}

// of gives all tenants of an allocation that were ever seen.
func (t *tenants) of(allocation string) (all []tenant) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, one := range t.seen {
		if one.allocation == allocation {
			all = append(all, *one)
		}
	}
	return all
}

// startTime of a process in clock ticks since boot; "" of one that is over.
func startTime(pid string) string {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}
