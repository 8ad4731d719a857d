package deviceplugin

import (
	"fmt"
	"os"
	"strings"
)

// Layout is how the eight simulated GPUs of the table are cut. GPUs 0 to 3 are on NUMA node 0, 4 to 7 on node 1; GPU N is
// /dev/nvidiaN.
type Layout int

const (
	Whole Layout = iota // eight whole GPUs
	MIG                 // 6 and 7 are cut: three of 1g.10gb and one of 3g.40gb each, which has the largest numbers there are
	Slots               // 4 and 5 offer four slots each, beside themselves
)

// GPUUUID is the UUID of GPU n, as NVIDIA writes it.
func GPUUUID(n int) string { return fmt.Sprintf("GPU-5ca1ab1e-0000-4000-8000-%012x", n) }

// Simulate replaces the description of the simulated GPUs; bcd sees the change by itself.
func (p *Product) Simulate(l Layout) error {
	var b strings.Builder
	b.WriteString("version = 1\ndriver = \"580.95.05\"\n")
	for n := range 8 {
		fmt.Fprintf(&b, "\n[[gpus]]\nuuid = %q\nmodel = \"H100\"\nmemory_mib = 81559\npci = \"0000:%02x:00.0\"\nnuma = %d\nminor = %d\n",
			GPUUUID(n), 0x10+n, n/4, n)
		if l == MIG && n >= 6 {
			b.WriteString("mig = [\n")
			for i := range 3 {
				fmt.Fprintf(&b, "  { profile = \"1g.10gb\", start = %d, size = 1, gi = %d, ci = 0, uuid = \"MIG-0000000%d-0000-4000-8000-%012x\" },\n", i, i+7, n, i)
			}
			fmt.Fprintf(&b, "  { profile = \"3g.40gb\", start = 4, size = 4, gi = 14, ci = 7, uuid = \"MIG-0000000%d-0000-4000-8000-%012x\" },\n]\n", n, 9)
		}
		if l == Slots && (n == 4 || n == 5) {
			b.WriteString("slots = 4\n")
		}
	}
	temp := p.SimFile() + ".new"
	if err := os.WriteFile(temp, []byte(b.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, p.SimFile())
}
