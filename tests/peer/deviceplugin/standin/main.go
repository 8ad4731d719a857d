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
	dir := flag.String("dir", "", "an empty folder for all files; the caller removes it")
	match := flag.String("cases", "", "run only the cases whose name matches this regular expression")
	flag.Parse()
	ok, err := run(*standin, *bcd, *betterCompute, *dir, *match)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(standin, bcd, betterCompute, dir, match string) (bool, error) {
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
	defer p.Stop()
	more, bad := dp.Run(dp.Cases(k, p, dp.Table), re, k.Show)
	fmt.Printf("%d passed, %d failed\n", passed+more, failed+bad)
	return failed+bad == 0, nil
}
