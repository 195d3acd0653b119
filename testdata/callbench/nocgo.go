//go:build !cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/puregpu/puregpu/runtime/dl"
)

const haveCgo = false

var cgoLoops map[string]func(n int) error

// open compiles callee.c to a shared library and opens that.
func open(l *library) error {
	dir, err := os.MkdirTemp("", "callbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "callee.so")
	if out, err := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", file, "callee.c").CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %v\n%s(run this in its own directory)", err, out)
	}
	spec := &dl.Spec{Name: "callee", Package: "callbench", Sets: []dl.Set{{Name: "core"}}, Symbols: make([]dl.Symbol, numFns)}
	for i, s := range []struct{ name, sig string }{
		idx0: {"f0", ""}, idx1: {"f1", "w"}, idx2: {"f2", "ww"}, idx3: {"f3", "www"}, idx4: {"f4", "wwww"}, idx6: {"f6", "wwwwww"},
		idx11: {"f11", "wwwwwwwwwww"}, idx16: {"f16", "wwwwwwwwwwwwwwww"}, idxOut: {"out2", "www"},
	} {
		spec.Symbols[i] = dl.Symbol{Name: s.name, Sig: s.sig}
	}
	return l.Library.Open(spec, l.fns[:], dl.Options{Path: file})
}
