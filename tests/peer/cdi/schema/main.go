// Judges CDI specs by the official JSON schema of the version they state. A module of its own: later
// releases of the library don't publish the schema.
//
//	schema FILE...
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tags.cncf.io/container-device-interface/schema"
)

// proves: DP-54
func main() {
	failed := 0
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err == nil {
			err = schema.BuiltinSchema().ValidateData(data)
		}
		if err != nil {
			fmt.Printf("FAIL schema %s: %v\n", filepath.Base(path), err)
			failed++
			continue
		}
		fmt.Printf("PASS schema %s\n", filepath.Base(path))
	}
	if failed > 0 || len(os.Args) < 2 {
		os.Exit(1)
	}
}
