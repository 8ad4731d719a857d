// Judges the CDI specs of one folder with the library that container runtimes use.
//
//	cdi -folder DIR
//
// One line a case: "PASS name", "FAIL name: why"; exit status 1 when one failed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

const kind = "bcd.dev/gpu"

// proves: DP-54 DP-55
var cases = []struct {
	name string
	run  func(folder string) error
}{
	{"every spec is taken by the library", everySpecIsValid},
	{"the needed version is the stated one", versionIsEnough},
	{"every device resolves, and none twice", everyDeviceResolves},
	{"a container gets its devices and no other", containerGetsItsDevices},
	{"several devices in one container keep all of their variables", variablesStay},
}

func paths(folder string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(folder, "bcd.dev-*.json"))
	if err == nil && len(found) < 5 {
		err = fmt.Errorf("%d specs found, 5 expected", len(found))
	}
	return found, err
}

func read(path string) (*specs.Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{}
	return spec, json.Unmarshal(data, spec)
}

func everySpecIsValid(folder string) error {
	found, err := paths(folder)
	if err != nil {
		return err
	}
	for _, path := range found {
		if _, err := cdi.ReadSpec(path, 0); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func versionIsEnough(folder string) error {
	found, err := paths(folder)
	if err != nil {
		return err
	}
	for _, path := range found {
		spec, err := read(path)
		if err != nil {
			return err
		}
		needed, err := specs.MinimumRequiredVersion(spec)
		if err != nil {
			return err
		}
		if needed > spec.Version {
			return fmt.Errorf("%s states %s and needs %s", filepath.Base(path), spec.Version, needed)
		}
	}
	return nil
}

func load(folder string) (*cdi.Cache, error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(folder), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, err
	}
	if err := cache.Refresh(); err != nil {
		return nil, err
	}
	for path, errs := range cache.GetErrors() {
		return nil, fmt.Errorf("%s: %v", path, errs)
	}
	return cache, nil
}

func everyDeviceResolves(folder string) error {
	cache, err := load(folder)
	if err != nil {
		return err
	}
	devices := cache.ListDevices()
	if len(devices) != 1+3+2+3+2 {
		return fmt.Errorf("%d devices: %v", len(devices), devices)
	}
	for _, name := range devices {
		if !strings.HasPrefix(name, kind+"=gpu_") || cache.GetDevice(name) == nil {
			return fmt.Errorf("%s doesn't resolve", name)
		}
	}
	return nil
}

// The node paths that one container sees. Devices whose nodes the host lacks can't be injected.
func inject(cache *cdi.Cache, names ...string) (*oci.Spec, error) {
	container := &oci.Spec{}
	if _, err := cache.InjectDevices(container, names...); err != nil {
		return nil, err
	}
	return container, nil
}

// The devices of the first hold that has `count` of them and nodes on this host.
func devicesOf(folder string, count int, class string) ([]string, error) {
	found, err := paths(folder)
	if err != nil {
		return nil, err
	}
	for _, path := range found {
		spec, err := read(path)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, device := range spec.Devices {
			nodes := device.ContainerEdits.DeviceNodes
			if device.Annotations["bcd.dev/class"] == class && len(nodes) > 0 && nodes[0].Type != "" {
				names = append(names, kind+"="+device.Name)
			}
		}
		if len(names) == count {
			return names, nil
		}
	}
	return nil, fmt.Errorf("no hold with %d devices of class %s that this host has nodes for", count, class)
}

func containerGetsItsDevices(folder string) error {
	cache, err := load(folder)
	if err != nil {
		return err
	}
	for class, wanted := range map[string]struct{ count, nodes int }{
		"gpu":      {3, 3 + 3},     // three GPUs; nvidiactl, uvm, uvm-tools
		"gpu.mig":  {2, 1 + 4 + 3}, // one GPU, two capabilities an instance
		"gpu.slot": {3, 1 + 3},     // three slots of one GPU
	} {
		names, err := devicesOf(folder, wanted.count, class)
		if err != nil {
			return err
		}
		container, err := inject(cache, names...)
		if err != nil {
			return err
		}
		if container.Linux == nil || len(container.Linux.Devices) != wanted.nodes {
			return fmt.Errorf("%s: got %+v", class, container.Linux)
		}
		for _, device := range container.Linux.Devices {
			if !strings.HasPrefix(device.Path, "/dev/nvidia") || device.Type != "c" {
				return fmt.Errorf("%s: got %+v", class, device)
			}
		}
	}
	return nil
}

func variablesStay(folder string) error {
	cache, err := load(folder)
	if err != nil {
		return err
	}
	names, err := devicesOf(folder, 3, "gpu")
	if err != nil {
		return err
	}
	container, err := inject(cache, names...)
	if err != nil {
		return err
	}
	seen := 0
	for _, variable := range container.Process.Env {
		if strings.HasPrefix(variable, "BCD_DEVICE_GPU_") {
			seen++
		}
	}
	if seen != len(names) {
		return fmt.Errorf("%d variables of %d devices: %v", seen, len(names), container.Process.Env)
	}
	return nil
}

func main() {
	folder := flag.String("folder", "", "the folder with the specs")
	flag.Parse()
	failed := 0
	for _, one := range cases {
		if err := one.run(*folder); err != nil {
			fmt.Printf("FAIL %s: %v\n", one.name, err)
			failed++
			continue
		}
		fmt.Printf("PASS %s\n", one.name)
	}
	if failed > 0 {
		os.Exit(1)
	}
}
