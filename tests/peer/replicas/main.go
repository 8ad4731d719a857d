// replicas plays nodes against two replicas of the control plane.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Env is what all cases share.
type Env struct {
	program  string
	bcd      string
	postgres *Postgres
	wire     *Wire
}

// Case is one named test in a world of its own.
type Case struct {
	Name   string
	Proves string
	Run    func(w *World) error
}

func valueOf(text string) protoreflect.Value { return protoreflect.ValueOfString(text) }

func main() {
	root := flag.String("root", "", "the repository")
	program := flag.String("program", "", "the better-compute binary")
	bcd := flag.String("bcd", "", "the bcd binary")
	conninfo := flag.String("postgres", "", "conninfo of a PostgreSQL server; empty: start one")
	match := flag.String("cases", "", "run only the cases whose name matches this regular expression")
	flag.Parse()
	ok, err := run(*root, *program, *bcd, *conninfo, *match)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(root, program, bcd, conninfo, match string) (bool, error) {
	re, err := regexp.Compile(match)
	if err != nil {
		return false, err
	}
	env := &Env{program: program, bcd: bcd}
	if env.wire, err = NewWire(root); err != nil {
		return false, err
	}
	if env.postgres, err = StartPostgres(conninfo); err != nil {
		return false, err
	}
	defer env.postgres.Stop()
	passed, failed := 0, 0
	for _, c := range slices.Concat(cases, frozenCases, bcdCases) {
		if !re.MatchString(c.Name) {
			continue
		}
		start := time.Now()
		logs, err := inWorld(env, c)
		took := time.Since(start).Seconds()
		if err != nil {
			failed++
			fmt.Printf("FAIL %s  (%.1f s) (%s)\n     %s\n%s\n", c.Name, took, c.Proves, strings.ReplaceAll(err.Error(), "\n", "\n     "), logs)
			continue
		}
		passed++
		fmt.Printf("PASS %s  (%.1f s) (%s)\n", c.Name, took, c.Proves)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	return failed == 0 && passed > 0, nil
}

func inWorld(env *Env, c Case) (logs string, err error) {
	w, err := NewWorld(env)
	if err != nil {
		return "", err
	}
	defer w.Close()
	err = c.Run(w)
	if err != nil {
		logs = "--- a\n" + tail(w.A.Log()) + "--- b\n" + tail(w.B.Log())
	}
	return logs, err
}

func tail(text string) string {
	if len(text) > 3000 {
		return "…" + text[len(text)-3000:]
	}
	return text
}
