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
}

// Run runs the cases whose name matches, prints a line for each, and gives the numbers. after is called after each failed case,
// to show what there is to see; it may be nil.
func Run(cases []Case, match *regexp.Regexp, after func()) (passed, failed int) {
	for _, c := range cases {
		if !match.MatchString(c.Name) {
			continue
		}
		start := time.Now()
		err := safely(c.Run)
		took := time.Since(start).Seconds()
		if err == nil {
			passed++
			fmt.Printf("PASS %s  (%.1f s) (%s)\n", c.Name, took, c.Proves)
			continue
		}
		failed++
		fmt.Printf("FAIL %s  (%.1f s) (%s)\n     %s\n", c.Name, took, c.Proves, strings.ReplaceAll(err.Error(), "\n", "\n     "))
		if after != nil {
			after()
		}
	}
	return passed, failed
}

func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
