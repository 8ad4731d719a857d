// bench compares bcd with a device plugin on grpc-go and with a bare socket, interleaved, and measures what bcd takes
// and how soon it acts. It prints the results as Markdown.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	betterCompute = flag.String("better-compute", "", "the program")
	goPlugin      = flag.String("goplugin", "", "the yardstick")
	echo          = flag.String("echo", "", "the bare socket")
	rounds        = flag.Int("rounds", 12, "interleaved rounds")
	calls         = flag.Int("calls", 400, "calls of each kind in a round")
	repeats       = flag.Int("repeats", 15, "bookings and kubelet restarts")
)

// contender is one server under load.
type contender struct {
	name    string
	pid     int
	call    func(devices int) error
	latency map[int][]time.Duration // by devices a call
	cpu     map[int]time.Duration
}

// cpuTime is what all threads of a process have run so far.
func cpuTime(pid int) time.Duration {
	var sum int64
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			sum += n
		}
	}
	return time.Duration(sum)
}

func (c *contender) round(devices, calls int) error {
	before := cpuTime(c.pid)
	for range calls {
		start := time.Now()
		if err := c.call(devices); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.latency[devices] = append(c.latency[devices], time.Since(start))
	}
	c.cpu[devices] += cpuTime(c.pid) - before
	return nil
}

func percentile(all []time.Duration, p float64) time.Duration {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*p))]
}

// memory reads KiB from smaps_rollup.
func memory(pid int) (rss, pss, private int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.Atoi(fields[1])
		switch fields[0] {
		case "Rss:":
			rss = n
		case "Pss:":
			pss = n
		case "Private_Clean:", "Private_Dirty:":
			private += n
		}
	}
	return
}

func start(args ...string) (*exec.Cmd, error) {
	c := exec.Command(args[0], args[1:]...)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c, c.Start()
}

// startEcho gives a call that sends as many bytes as an Allocate of so many devices and waits for them.
func startEcho(dir string) (*contender, func(), error) {
	socket := filepath.Join(dir, "echo.sock")
	process, err := start(*echo, socket)
	if err != nil {
		return nil, nil, err
	}
	var conn net.Conn
	for range 100 {
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return nil, nil, err
	}
	data := make([]byte, 4096)
	call := func(devices int) error {
		if _, err := conn.Write(data[:100*devices]); err != nil {
			return err
		}
		for got := 0; got < 100*devices; {
			n, err := conn.Read(data)
			if err != nil {
				return err
			}
			got += n
		}
		return nil
	}
	stop := func() { conn.Close(); process.Process.Kill(); process.Wait() }
	return newContender("bare socket echo", process.Process.Pid, call), stop, nil
}

func newContender(name string, pid int, call func(int) error) *contender {
	return &contender{name, pid, call, map[int][]time.Duration{}, map[int]time.Duration{}}
}

// bookings measures how soon a booked GPU is in the kubelet's list.
func bookings(p *product, watched *plugin) (fromCall, fromSpec []time.Duration, err error) {
	for range *repeats {
		answered, spec, r, err := bookOne(p)
		if err != nil {
			return nil, nil, err
		}
		l, err := watched.awaitDevices(1)
		if err != nil {
			return nil, nil, err
		}
		fromCall = append(fromCall, l.at.Sub(answered))
		fromSpec = append(fromSpec, l.at.Sub(spec))
		if err := p.release(r); err != nil {
			return nil, nil, err
		}
		if _, err := watched.awaitDevices(0); err != nil {
			return nil, nil, err
		}
	}
	return fromCall, fromSpec, nil
}

// bookOne reserves a GPU and tells when the API answered and when the CDI spec was there.
func bookOne(p *product) (answered, spec time.Time, r *reservation, err error) {
	if r, err = p.reserve(1); err != nil {
		return
	}
	answered = time.Now()
	for deadline := answered.Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		specs, _ := filepath.Glob(filepath.Join(p.cdi(), "bcd.dev-*.json"))
		if len(specs) == 1 {
			var info os.FileInfo
			if info, err = os.Stat(specs[0]); err == nil {
				spec = info.ModTime()
			}
			return
		}
	}
	err = fmt.Errorf("no CDI spec within 20 s")
	return
}

// restarts measures how soon bcd registers at a new kubelet. The last plugin is watched in the end.
func restarts(k *kubelet, resource string) (took []time.Duration, watched *plugin, err error) {
	for range *repeats {
		k.stop()
		if watched != nil {
			watched.conn.Close()
		}
		time.Sleep(400 * time.Millisecond)
		for len(k.registered) > 0 {
			<-k.registered
		}
		at, err := k.start()
		if err != nil {
			return nil, nil, err
		}
		r, err := k.await(resource)
		if err != nil {
			return nil, nil, err
		}
		took = append(took, r.at.Sub(at))
		if watched, err = dial(r.socket); err != nil {
			return nil, nil, err
		}
		if _, err = watched.awaitDevices(8); err != nil {
			return nil, nil, err
		}
	}
	return took, watched, nil
}

func us(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Microsecond)) }
func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// verdict marks a number that passes its limit.
func verdict(within bool) string {
	if within {
		return "within"
	}
	return "**over**"
}

func printCalls(all []*contender) {
	fmt.Println("| Allocate, sequential calls of the kubelet's client | bcd | grpc-go plugin | bare socket echo | bcd / grpc-go | limit | |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, devices := range []int{1, 8} {
		row := func(what string, limit float64, of func(*contender) time.Duration) {
			ratio := float64(of(all[0])) / float64(of(all[1]))
			fmt.Printf("| %d of 8 devices: %s, us | %s | %s | %s | %.2f | %.2f | %s |\n", devices, what,
				us(of(all[0])), us(of(all[1])), us(of(all[2])), ratio, limit, verdict(ratio <= limit))
		}
		row("p50", 1.00, func(c *contender) time.Duration { return percentile(c.latency[devices], 0.50) })
		row("p99", 1.00, func(c *contender) time.Duration { return percentile(c.latency[devices], 0.99) })
		row("server CPU a call", 1.00, func(c *contender) time.Duration {
			return c.cpu[devices] / time.Duration(len(c.latency[devices]))
		})
	}
	worst := max(percentile(all[0].latency[1], 0.99), percentile(all[0].latency[8], 0.99))
	fmt.Printf("\nbcd's worst p99 is %s ms; the limit is 5 ms: %s.\n\n", ms(worst), verdict(worst <= 5*time.Millisecond))
}

func printMemory(name string, pid int, when string, rssLimit, privateLimit int) {
	rss, pss, private := memory(pid)
	mib := func(kib int) float64 { return float64(kib) / 1024 }
	limits := "- | -"
	if rssLimit > 0 {
		limits = fmt.Sprintf("%d / %d | %s", rssLimit, privateLimit, verdict(rss <= rssLimit<<10 && private <= privateLimit<<10))
	}
	fmt.Printf("| %s, %s | %.1f | %.1f | %.1f | %s |\n", name, when, mib(rss), mib(pss), mib(private), limits)
}

func printTimes(what string, took []time.Duration, limit time.Duration) {
	p50, most := percentile(took, 0.5), slices.Max(took)
	fmt.Printf("| %s | %s | %s | %s | %s |\n", what, ms(p50), ms(most), ms(limit), verdict(p50 <= limit))
}

// yardstick starts the plugin on grpc-go with the same devices.
func yardstick(k *kubelet, ids []string) (*contender, func(), error) {
	process, err := start(append([]string{*goPlugin, filepath.Join(k.root, "device-plugins"), "bench.example/gpu"}, ids...)...)
	if err != nil {
		return nil, nil, err
	}
	r, err := k.await("bench.example/gpu")
	if err != nil {
		return nil, nil, err
	}
	p, err := dial(r.socket)
	if err != nil {
		return nil, nil, err
	}
	call := func(devices int) error { return p.allocate(ids[:devices]) }
	stop := func() { p.conn.Close(); process.Process.Kill(); process.Wait() }
	return newContender("grpc-go plugin", process.Process.Pid, call), stop, nil
}

func compare(all []*contender) error {
	for _, c := range all { // warm up
		if err := c.call(1); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for round := range *rounds {
		for i := range all {
			c := all[(round+i)%len(all)]
			for _, devices := range []int{1, 8} {
				if err := c.round(devices, *calls); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func run(dir string) error {
	const resource = "bcd.dev/gpu"
	k, err := newKubelet(filepath.Join(dir, "kubelet"))
	if err != nil {
		return err
	}
	if _, err := k.start(); err != nil {
		return err
	}
	defer k.stop()
	p, err := startProduct(*betterCompute, dir, k.root)
	if err != nil {
		return err
	}
	defer p.stop()

	// The first booking makes bcd register.
	first, err := p.reserve(1)
	if err != nil {
		return err
	}
	r, err := k.await(resource)
	if err != nil {
		return err
	}
	watched, err := dial(r.socket)
	if err != nil {
		return err
	}
	if _, err := watched.awaitDevices(1); err != nil {
		return err
	}
	if err := p.release(first); err != nil {
		return err
	}
	if _, err := watched.awaitDevices(0); err != nil {
		return err
	}
	fromCall, fromSpec, err := bookings(p, watched)
	if err != nil {
		return err
	}

	if _, err := p.reserve(8); err != nil {
		return err
	}
	l, err := watched.awaitDevices(8)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	fmt.Println("| Memory, MiB | resident | proportional | private | limit resident / private | |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	printMemory("bcd", p.bcd, "8 GPUs bound, idle", 16, 4)
	mine := newContender("bcd", p.bcd, func(devices int) error { return watched.allocate(l.ids[:devices]) })
	theirs, stopTheirs, err := yardstick(k, l.ids)
	if err != nil {
		return err
	}
	defer stopTheirs()
	floor, stopFloor, err := startEcho(dir)
	if err != nil {
		return err
	}
	defer stopFloor()
	printMemory("grpc-go plugin", theirs.pid, "the same 8, idle", 0, 0)
	all := []*contender{mine, theirs, floor}
	if err := compare(all); err != nil {
		return err
	}
	printMemory("bcd", p.bcd, fmt.Sprintf("after %d calls", len(mine.latency[1])*2), 16, 4)
	printMemory("grpc-go plugin", theirs.pid, fmt.Sprintf("after %d calls", len(theirs.latency[1])*2), 0, 0)
	fmt.Println()
	printCalls(all)
	stopTheirs()
	watched.conn.Close()
	again, last, err := restarts(k, resource)
	if err != nil {
		return err
	}
	last.conn.Close()
	fmt.Println("| How soon, ms | p50 | longest | limit of p50 | |")
	fmt.Println("| --- | --- | --- | --- | --- |")
	printTimes("kubelet.sock there to Register", again, 100*time.Millisecond)
	printTimes("CDI spec on disk to ListAndWatch", fromSpec, 100*time.Millisecond)
	printTimes("reservation answered to ListAndWatch", fromCall, time.Second)
	return nil
}

func main() {
	flag.Parse()
	dir, err := os.MkdirTemp("", "bench")
	if err == nil {
		err = run(dir)
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
