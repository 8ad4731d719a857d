// Our gRPC against grpc-go and against raw HTTP/2 frames; our proto files against the official ones.
//
// ../run builds and starts it. It prints a line a case and "N passed, N failed" at the end.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

var (
	build  = flag.String("build", "", "our build folder")
	root   = flag.String("root", "", "our source folder")
	client = flag.String("client", "", "grpc-go's interop client")
	only   = flag.String("cases", "", "run only the cases whose name fits this regular expression")
)

// A bench is what all cases share: where things are, and the count.
type bench struct {
	folder         string // for sockets and files; goes away at the end
	only           *regexp.Regexp
	passed, failed int
}

// check runs one case, unless it was not asked for.
func (b *bench) check(name string, run func() error) {
	if !b.only.MatchString(name) {
		return
	}
	if err := run(); err != nil {
		b.failed++
		fmt.Printf("FAIL %s: %v\n", name, err)
		return
	}
	b.passed++
	fmt.Printf("PASS %s\n", name)
}

func (b *bench) path(name string) string { return filepath.Join(b.folder, name) }

func ours(name string) string { return filepath.Join(*build, "tests/peer/grpc", name) }

func main() {
	flag.Parse()
	folder, err := os.MkdirTemp("", "grpc-peer-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	b := &bench{folder: folder, only: regexp.MustCompile(*only)}
	descriptors(b)
	interopServer(b)
	interopClient(b)
	conformance(b)
	mapping(b)
	os.RemoveAll(folder)
	fmt.Printf("%d passed, %d failed\n", b.passed, b.failed)
	if b.failed > 0 || b.passed == 0 {
		os.Exit(1)
	}
}
