// e2e runs the end-to-end cases on the cluster that tests/peer/cluster/up started. It must run inside the cluster's
// namespaces; `tests/peer/cluster/run` sees to all of that.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

func main() {
	scripts := flag.String("scripts", ".", "the folder tests/peer/cluster")
	run := flag.String("run", "/run/better-compute-cluster", "the cluster's run folder")
	match := flag.String("cases", "", "run only the cases whose name matches this regular expression")
	numa := flag.Bool("numa", false, "the cluster has two NUMA nodes: run the cases named numa/…, and no others")
	bcd := flag.String("bcd", "", "the bcd binary")
	betterCompute := flag.String("better-compute", "", "the better-compute binary")
	driver := flag.String("driver", "", "the folder of the made-up driver, as built")
	full := flag.Bool("full", false, "50 kills and more")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random kills")
	list := flag.Bool("list", false, "only list the cases")
	flag.Parse()
	re, err := regexp.Compile(*match)
	if err != nil {
		fatal(err)
	}
	c := &cluster{scripts: *scripts, run: *run}
	if !*list {
		if c, err = newCluster(*scripts, *run); err != nil {
			fatal(err)
		}
		fmt.Println(c.Name())
	}
	product := &dp.Product{Kubelet: c, Dir: filepath.Join(*run, "product"), BCD: *bcd, BetterCompute: *betterCompute,
		Kubeconfig: filepath.Join(*run, "bcd.kubeconfig")}
	product.Away = 40 * time.Second // the same case waits longer on the stand-in
	// As pods with the host's network reach it too.
	product.Host = nodeIP
	product.TLS.Cert, product.TLS.Key, product.TLS.CA = filepath.Join(*run, "pki/kubelet.crt"), filepath.Join(*run, "pki/kubelet.key"), filepath.Join(*run, "pki/ca.crt")
	cases := append(harnessCases(c), nodeCases(c, *driver)...)
	cases = append(cases, dp.SmokeCases(c, "example.com/dev", func(ids []string) error { return dp.OfferCDI("/etc/cdi", ids) })...)
	own := len(cases)
	cases = append(cases, productCases(c, product)...)
	cases = append(cases, reaperCases(c, product)...)
	rounds := 1
	if *full {
		rounds, product.Away = 7, dp.Away
	}
	cases = append(cases, c.killCases(product, rounds, *seed)...)
	health, stopRig := dp.HealthCases(func() (*dp.Rig, error) {
		product.Stop() // one plugin a resource
		return dp.StartRig(c, product, *driver, filepath.Join(*run, "rig"))
	})
	cases = append(cases, health...)
	asPods, stopHosted := hostedCases(c, *driver, *bcd, *betterCompute, func() { stopRig(); product.Stop() })
	cases = append(cases, asPods...)
	wanted := func(k dp.Case) bool { return re.MatchString(k.Name) && strings.HasPrefix(k.Name, "numa/") == *numa }
	if *list {
		for _, k := range cases {
			if re.MatchString(k.Name) {
				fmt.Printf("%s (%s)\n", k.Name, k.Proves)
			}
		}
		return
	}
	if slices.ContainsFunc(cases[own:], wanted) {
		setup := dp.Case{Name: "product/starts", Proves: "proves: JOIN-12", Run: func() error {
			if err := product.Setup(); err != nil {
				return fmt.Errorf("%w\n%s", err, product.Logs())
			}
			return nil
		}}
		passed, _ := dp.Run([]dp.Case{setup}, regexp.MustCompile(""), nil)
		if passed == 0 {
			cases = cases[:own]
		}
		defer product.Stop()
	}
	cases = slices.DeleteFunc(cases, func(k dp.Case) bool { return !wanted(k) })
	defer stopRig()
	defer stopHosted()
	if _, failed := dp.Run(cases, re, c.show); failed > 0 {
		stopHosted()
		stopRig()
		product.Stop()
		os.Exit(1)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(2)
}

// show prints what there is to see after a failed case.
func (c *cluster) show() {
	for _, args := range [][]string{
		{"kubectl", "get", "pods", "-o", "wide"},
		{"kubectl", "get", "events", "--field-selector", "type=Warning", "--sort-by=.lastTimestamp"},
		{"tail", "-n", "15", filepath.Join(c.run, "log/kubelet.log")},
	} {
		out, _ := exec.Command(args[0], args[1:]...).CombinedOutput()
		if len(out) > 4000 {
			out = out[len(out)-4000:]
		}
		fmt.Printf("---- %v\n%s", args, out)
	}
}
