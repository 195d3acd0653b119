// Command gen writes the generated files of the binding packages.
//
//	gen [-C DIR] LIBRARY...
//	gen -echo LIBRARY
//
// DIR is the module's root, by default the nearest folder upwards with a go.mod. With -echo gen
// prints the C source of the library that proves the bindings.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/symbols"
)

func main() {
	root := flag.String("C", "", "root `folder` of the module")
	echo := flag.String("echo", "", "print the echo source of a `library`")
	flag.Parse()
	var err error
	switch {
	case *echo != "":
		err = show(gen.EchoSource(*echo))
	default:
		err = run(*root, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(text string, err error) error {
	if err == nil {
		_, err = fmt.Print(text)
	}
	return err
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
		lib, err := symbols.Load(l)
		if err != nil {
			return err
		}
		changed, err := gen.Run(filepath.Join(root, l), lib, true)
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
