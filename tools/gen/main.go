// Command gen writes the generated files of the binding packages.
//
//	gen [-C DIR] cuda|hip|nccl ...
//
// DIR is the module's root, by default the nearest folder upwards with a go.mod.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/puregpu/puregpu/gen"
)

func main() {
	root := flag.String("C", "", "root `folder` of the module")
	flag.Parse()
	if err := run(*root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, libraries []string) error {
	if len(libraries) == 0 {
		return fmt.Errorf("usage: gen [-C DIR] LIBRARY...; libraries are %v", gen.Libraries())
	}
	if root == "" {
		var err error
		if root, err = moduleRoot(); err != nil {
			return err
		}
	}
	for _, l := range libraries {
		changed, err := gen.Run(root, l, true)
		if err != nil {
			return err
		}
		for _, name := range changed {
			fmt.Println("wrote", name)
		}
	}
	return nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("gen: no go.mod here or above; use -C")
		}
		dir = filepath.Dir(dir)
	}
}
