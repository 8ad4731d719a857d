// standin runs the table of device plugin cases on kubelet-standin: no cluster, no root.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	dp "better-compute/deviceplugin"
)

func main() {
	standin := flag.String("standin", "", "the kubelet-standin binary")
	bcd := flag.String("bcd", "", "the bcd binary")
	betterCompute := flag.String("better-compute", "", "the better-compute binary")
	driver := flag.String("driver", "", "the folder of the made-up driver, as built")
	dir := flag.String("dir", "", "an empty folder for all files; the caller removes it")
	match := flag.String("cases", "", "run only the cases whose name matches this regular expression")
	flag.Parse()
	ok, err := run(*standin, *bcd, *betterCompute, *driver, *dir, *match)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(standin, bcd, betterCompute, driver, dir, match string) (bool, error) {
	re, err := regexp.Compile(match)
	if err != nil {
		return false, err
	}
	cdi := filepath.Join(dir, "cdi")
	if err := os.Mkdir(cdi, 0o755); err != nil {
		return false, err
	}
	k := &dp.StandIn{Binary: standin, Dir: dir, CDI: cdi}
	if err := k.Start(); err != nil {
		return false, err
	}
	defer k.Remove()
	fmt.Println(k.Name())
	passed, failed := dp.Run(dp.SmokeCases(k, "example.com/dev", func(ids []string) error { return dp.OfferCDI(cdi, ids) }), re, k.Show)

	p := &dp.Product{Kubelet: k, Dir: filepath.Join(dir, "product"), BCD: bcd, BetterCompute: betterCompute,
		Paths: map[string]string{"data": filepath.Join(dir, "data"), "run": filepath.Join(dir, "run"),
			"kubelet": k.Root(), "cdi": cdi, "run_cdi": filepath.Join(dir, "run-cdi")}}
	if err := p.Setup(); err != nil {
		return false, fmt.Errorf("%w\n%s", err, p.Logs())
	}
	more, bad := dp.Run(dp.Cases(k, p, dp.Table), re, k.Show)
	passed, failed = passed+more, failed+bad
	p.Stop() // one plugin a resource

	cases, stop := dp.HealthCases(func() (*dp.Rig, error) { return dp.StartRig(k, p, driver, filepath.Join(dir, "rig")) })
	defer stop()
	more, bad = dp.Run(cases, re, k.Show)
	passed, failed = passed+more, failed+bad
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	return failed == 0, nil
}
