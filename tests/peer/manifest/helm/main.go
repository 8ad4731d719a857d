// helm CHART [NAME=VALUE]... : what Helm's own engine makes of a chart, as `helm template` does with --set.
package main

import (
	"fmt"
	"os"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

func render(folder string, sets []string) (map[string]string, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	if err := chart.Validate(); err != nil {
		return nil, err
	}
	given := map[string]interface{}{}
	for _, set := range sets {
		if err := strvals.ParseInto(set, given); err != nil {
			return nil, err
		}
	}
	release := chartutil.ReleaseOptions{Name: "bcd", Namespace: "bcd-system", IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, values)
}

func main() {
	rendered, err := render(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			fmt.Print(text)
		}
	}
}
