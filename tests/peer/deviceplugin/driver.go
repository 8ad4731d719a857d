package deviceplugin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Driver is NVIDIA's driver made up by tests/fakedriver: what the machine's GPUs are stands in one file, and the kernel's log is another.
type Driver struct {
	Dir   string // its files; the folder must be there
	Build string // where the fake was built: BUILD/tests/fakedriver
	GPUs  []map[string]any
	// More are further members of the scenario, such as "hang".
	More map[string]any
}

// DriverGPU is a whole GPU of that number, with the UUID, the bus and the NUMA-less rest of a simulated one.
func DriverGPU(n int) map[string]any {
	return map[string]any{
		"uuid": GPUUUID(n), "pci": fmt.Sprintf("00000000:%02X:00.0", 0x10+n), "minor": n, "name": "NVIDIA H100 80GB HBM3",
		"memory_total_bytes": 85520809984, "memory_used_bytes": 0, "mig_mode": 0, "ecc_mode": 1,
		"ecc_corrected_volatile": 0, "ecc_uncorrected_volatile": 0, "ecc_corrected_aggregate": 0, "ecc_uncorrected_aggregate": 0,
		"remapped_correctable_rows": 0, "remapped_uncorrectable_rows": 0, "remap_pending": 0, "remap_failure": 0,
		"gpu_util_percent": 0, "memory_util_percent": 0, "temperature_c": 31, "power_mw": 71230, "sm_clock_mhz": 345, "memory_clock_mhz": 2619,
	}
}

// Scenario is the file that the fake reads, KernelLog what bcd reads instead of /dev/kmsg.
func (d *Driver) Scenario() string  { return filepath.Join(d.Dir, "driver.json") }
func (d *Driver) KernelLog() string { return filepath.Join(d.Dir, "kmsg") }

// Config are the lines of [gpu], Env what bcd's environment must have.
func (d *Driver) Config() string {
	return fmt.Sprintf("nvml_library = %q\nnvidia_smi = %q\nkernel_log = %q\n", filepath.Join(d.Build, "libnvidia-ml.so.1"),
		filepath.Join(d.Build, "nvidia-smi"), d.KernelLog())
}
func (d *Driver) Env() []string { return []string{"FAKE_DRIVER=" + d.Scenario()} }

// Write makes the machine what GPUs and More say, at once, and sees to a log that can be followed.
func (d *Driver) Write() error {
	scenario := map[string]any{"driver": "580.95.05", "cuda": "13.0", "gpus": d.GPUs}
	for k, v := range d.More {
		scenario[k] = v
	}
	b, err := json.Marshal(scenario)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(d.KernelLog(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	log.Close()
	if err := os.WriteFile(d.Scenario()+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(d.Scenario()+".new", d.Scenario())
}

// Log appends one record of the kernel's, as /dev/kmsg has them, and tells when that was.
func (d *Driver) Log(text string) (time.Time, error) {
	f, err := os.OpenFile(d.KernelLog(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	at := time.Now()
	_, err = fmt.Fprintf(f, "3,%d,%d,-;%s\n", at.UnixMicro(), at.UnixMicro(), text)
	return at, err
}
