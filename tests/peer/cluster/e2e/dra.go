package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	dp "better-compute/deviceplugin"
)

// dra shows that a DRA driver works here: a slice, a claim, its CDI device in the container.
func (c *cluster) dra() error {
	if err := dp.OfferCDI("/etc/cdi", []string{"dev0", "dev1"}); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.run, "log/dra-plugin.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	driver := exec.Command("clusterharness", "dra-plugin", "--kubeconfig", filepath.Join(c.run, "pki/admin.kubeconfig"))
	driver.Stdout, driver.Stderr = log, log
	if err := driver.Start(); err != nil {
		return err
	}
	defer func() { driver.Process.Kill(); driver.Wait() }()
	manifest := filepath.Join(c.scripts, "e2e/dra.yaml")
	if out, err := exec.Command("kubectl", "apply", "-f", manifest).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	defer exec.Command("kubectl", "delete", "--ignore-not-found", "-f", manifest).Run()
	if err := dp.Eventually(dp.Soon, func() error { return c.running("dra") }); err != nil {
		return err
	}
	out, err := c.exec("dra", "ls /dev/nvidia0 /dev/nvidia1 2>/dev/null; exit 0")
	if err != nil {
		return err
	}
	if got := strings.Count(out, "/dev/nvidia"); got != 1 {
		return fmt.Errorf("the claim's pod has %d devices, expected 1: %s", got, out)
	}
	return c.remove("dra")
}
