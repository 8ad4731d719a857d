package deviceplugin

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Case is one named test. Proves is "proves: " and the requirement ids that it shows, or what else it proves.
type Case struct {
	Name   string
	Proves string
	Run    func() error
	// Needs is empty, or what the case needs and this machine lacks: the case is then skipped with that reason.
	Needs string
}

// Run runs the cases whose name matches, prints a line for each and a last one with the numbers, and tells whether none
// failed. after is called after each failed case, to show what there is to see.
func Run(cases []Case, match *regexp.Regexp, after func(Case)) bool {
	var passed, failed, skipped int
	for _, c := range cases {
		if !match.MatchString(c.Name) {
			continue
		}
		if c.Needs != "" {
			skipped++
			fmt.Printf("SKIP %s: needs %s\n", c.Name, c.Needs)
			continue
		}
		start := time.Now()
		err := safely(c.Run)
		took := time.Since(start).Seconds()
		if err != nil {
			failed++
			fmt.Printf("FAIL %s  (%.1f s) (%s)\n     %s\n", c.Name, took, c.Proves, strings.ReplaceAll(err.Error(), "\n", "\n     "))
			if after != nil {
				after(c)
			}
			continue
		}
		passed++
		fmt.Printf("PASS %s  (%.1f s) (%s)\n", c.Name, took, c.Proves)
	}
	fmt.Printf("%d passed, %d failed", passed, failed)
	if skipped > 0 {
		fmt.Printf(", %d skipped", skipped)
	}
	fmt.Println()
	return failed == 0
}

func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
