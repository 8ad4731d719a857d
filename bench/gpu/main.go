// gpu measures what bcd and NVIDIA's device plugin take on a machine of many GPUs, both on the same made-up driver and behind the same
// stand-in for a kubelet. It runs in a mount namespace whose /var/lib is empty: NVIDIA's plugin knows one kubelet folder only.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	dp "better-compute/deviceplugin"
)

const machine = 16 // GPUs

// layout is one way to cut the machine.
type layout struct {
	name string
	mig  bool
	ask  dp.Ask
	// resources as bcd and NVIDIA's plugin name them; "" it is not measured.
	ours, theirs string
}

type bench struct {
	standin, driver, plugin, work string
	like                          dp.Product
	settle, watch                 time.Duration
}

func main() {
	var b bench
	flag.StringVar(&b.like.BCD, "bcd", "", "the bcd binary")
	flag.StringVar(&b.like.BetterCompute, "better-compute", "", "the better-compute binary")
	flag.StringVar(&b.standin, "standin", "", "the kubelet-standin binary")
	flag.StringVar(&b.driver, "driver", "", "the folder of the made-up driver, as built")
	flag.StringVar(&b.plugin, "plugin", "", "NVIDIA's plugin")
	flag.StringVar(&b.work, "work", "", "an empty folder")
	flag.DurationVar(&b.settle, "settle", 15*time.Second, "how long each program runs before it is watched")
	flag.DurationVar(&b.watch, "watch", 60*time.Second, "how long it is watched")
	flag.Parse()
	fmt.Println("| | devices | resident MiB | proportional MiB | private MiB | CPU, % of a core | processes |\n| --- | --- | --- | --- | --- | --- | --- |")
	for _, l := range []layout{
		{"16 whole GPUs", false, dp.GPUs(machine), "bcd.dev/gpu", "nvidia.com/gpu"},
		{"16 GPUs in 112 MIG instances", true, dp.MIGs("1g.10gb", machine*7), "bcd.dev/gpu.mig", ""},
	} {
		if err := b.measure(l); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}
}

func (b *bench) measure(l layout) error {
	dir := filepath.Join(b.work, strings.ReplaceAll(l.name, " ", "-"))
	driver := &dp.Driver{Dir: filepath.Join(dir, "driver"), Build: b.driver}
	for n := range machine {
		driver.GPUs = append(driver.GPUs, gpu(n, l.mig))
	}
	if err := errors.Join(os.MkdirAll(driver.Dir, 0o755), os.MkdirAll(filepath.Join(dir, "cdi"), 0o755), driver.Write()); err != nil {
		return err
	}
	k := &dp.StandIn{Binary: b.standin, Dir: "/var/lib", CDI: filepath.Join(dir, "cdi")}
	if err := k.Start(); err != nil {
		return err
	}
	defer k.Remove()
	if err := b.ours(l, k, driver, dir); err != nil || l.theirs == "" {
		return err
	}
	return b.theirs(l, k, driver)
}

func (b *bench) ours(l layout, k *dp.StandIn, driver *dp.Driver, dir string) error {
	p := b.like
	p.Kubelet, p.Dir, p.GPUs, p.Env = k, filepath.Join(dir, "product"), driver.Config(), driver.Env()
	p.Paths = map[string]string{"data": filepath.Join(dir, "data"), "run": filepath.Join(dir, "run"), "kubelet": k.Root(), "cdi": k.CDI,
		"run_cdi": filepath.Join(dir, "run-cdi")}
	defer p.Stop()
	if err := p.Setup(); err != nil {
		return fmt.Errorf("%w\n%s", err, p.Logs())
	}
	if _, err := p.Reserve(l.ask); err != nil {
		return err
	}
	if err := counted(k, l.ours, l.ask.Count); err != nil {
		return fmt.Errorf("%w\n%s", err, p.Logs())
	}
	return b.watched(l.name+": bcd and its NVML child", l.ask.Count, p.NodePID())
}

func (b *bench) theirs(l layout, k *dp.StandIn, driver *dp.Driver) error {
	cmd := exec.Command(b.plugin, "--mig-strategy=none")
	cmd.Env = append(os.Environ(), append(driver.Env(), "LD_LIBRARY_PATH="+b.driver)...)
	log, err := os.Create(filepath.Join(driver.Dir, "plugin.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := counted(k, l.theirs, l.ask.Count); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, said)
	}
	return b.watched(l.name+": NVIDIA's plugin", l.ask.Count, cmd.Process.Pid)
}

func counted(k *dp.StandIn, resource string, want int) error {
	return dp.Eventually(30*time.Second, func() error {
		n, err := k.Counts(resource)
		return errors.Join(err, dp.Expect(resource, n, dp.Counts{Capacity: want, Allocatable: want}))
	})
}

// gpu is a whole H100, or one cut into seven.
func gpu(n int, mig bool) map[string]any {
	g := dp.DriverGPU(n)
	g["compute_major"], g["compute_minor"] = 9, 0
	if mig {
		var parts []map[string]any
		for i := range 7 {
			parts = append(parts, map[string]any{"uuid": fmt.Sprintf("MIG-%08x-0000-4000-8000-%012x", n, i), "gi": 7 + i, "ci": 0,
				"profile": "1g.10gb", "start": i, "size": 1, "memory_bytes": 10468982784})
		}
		g["mig_mode"], g["mig"] = 1, parts
	}
	return g
}

// watched prints a row on a process and its children.
func (b *bench) watched(name string, devices, pid int) error {
	time.Sleep(b.settle)
	before, processes, err := ticks(pid)
	if err != nil {
		return err
	}
	time.Sleep(b.watch)
	after, _, err := ticks(pid)
	if err != nil {
		return err
	}
	sum := map[string]int{}
	for _, p := range processes {
		if err := memory(p, sum); err != nil {
			return err
		}
	}
	mib := func(kib int) float64 { return float64(kib) / 1024 }
	const ticksPerSecond = 100 // USER_HZ
	fmt.Printf("| %s | %d | %.1f | %.1f | %.1f | %.2f | %d |\n", name, devices, mib(sum["Rss"]), mib(sum["Pss"]),
		mib(sum["Private_Clean"]+sum["Private_Dirty"]), float64(after-before)/ticksPerSecond/b.watch.Seconds()*100, len(processes))
	return nil
}

// ticks of CPU that a process and its children took, and who they are.
func ticks(pid int) (total int, processes []int, err error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, nil, err
	}
	for _, entry := range entries {
		b, err := os.ReadFile(entry)
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		if fields[1] != strconv.Itoa(pid) && id != pid {
			continue
		}
		for _, i := range []int{11, 12} { // utime, stime
			n, err := strconv.Atoi(fields[i])
			if err != nil {
				return 0, nil, err
			}
			total += n
		}
		processes = append(processes, id)
	}
	return total, processes, nil
}

func memory(pid int, sum map[string]int) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(b), "\n") {
		if name, rest, ok := strings.Cut(line, ":"); ok {
			if n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB")); err == nil {
				sum[name] += n
			}
		}
	}
	return nil
}
