// Package testlib builds C libraries that tests open in place of GPU libraries. It also has helpers
// of tests that check the packages of this module.
package testlib

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A Fake describes a library that replaces a GPU library.
type Fake struct {
	File    string   // name of the library's file
	Source  string   // C file in testdata/fakes, or "" for none
	Defines []string // macros for Source, as in -D
	Symbols []string // functions to export; those not in Source do nothing and return 0
}

// built holds the libraries that this process has built.
var built struct {
	sync.Mutex
	libs map[string][]byte // contents of library files, by their sources and flags
}

// Build compiles f and returns the path of a separate copy. It skips the test if there is no C
// compiler, or if the test needs a C source and runs outside the module.
func (f Fake) Build(t testing.TB) string {
	t.Helper()
	cc := compiler(t)
	key := fmt.Sprintf("%q", f)
	built.Lock()
	defer built.Unlock()
	if built.libs[key] == nil {
		if built.libs == nil {
			built.libs = map[string][]byte{}
		}
		built.libs[key] = f.compile(t, cc)
	}
	// The loader keeps an opened library in the process and identifies it by its path, so each copy
	// gets its own directory.
	out := filepath.Join(t.TempDir(), f.File)
	if err := os.WriteFile(out, built.libs[key], 0o777); err != nil {
		t.Fatal(err)
	}
	return out
}

func (f Fake) compile(t testing.TB, cc string) []byte {
	t.Helper()
	dir := t.TempDir()
	out, stubs := filepath.Join(dir, "lib.so"), filepath.Join(dir, "stubs.c")
	var b strings.Builder // all functions are aliases of one function: that compiles faster
	fmt.Fprintln(&b, "__attribute__((unused)) static int stub(void) { return 0; }")
	for _, name := range f.Symbols {
		fmt.Fprintf(&b, "__attribute__((weak, alias(\"stub\"))) int %s(void);\n", name)
	}
	if err := os.WriteFile(stubs, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"-std=gnu11", "-Wall", "-Werror", "-pthread", "-shared", "-fPIC", "-o", out, stubs}
	if f.Source != "" {
		for _, d := range f.Defines {
			args = append(args, "-D"+d)
		}
		args = append(args, filepath.Join(root(t), "testdata", "fakes", f.Source))
	}
	if msg, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, strings.Join(args, " "), err, msg)
	}
	lib, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func compiler(t testing.TB) string {
	t.Helper()
	cc := os.Getenv("PUREGPU_TEST_CC")
	if cc == "" {
		cc = "gcc"
	}
	path, err := exec.LookPath(cc)
	if err != nil {
		t.Skipf("no C compiler %s, which the fake library needs: install gcc or set PUREGPU_TEST_CC", cc)
	}
	return path
}

// root returns the directory of go.mod. It skips the test if the test runs outside the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("the C sources of the fakes are not here: run the test inside the module")
		}
		dir = up
	}
}

// ForeignELF writes the head of a shared library that this process cannot load: for a 32-bit
// platform, or for another machine.
func ForeignELF(t testing.TB, file string, class elf.Class) string {
	t.Helper()
	machine := elf.EM_RISCV
	if class == elf.ELFCLASS32 {
		machine = elf.EM_386
	}
	h := elf.Header64{
		Ident:     [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(class), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:      uint16(elf.ET_DYN),
		Machine:   uint16(machine),
		Version:   uint32(elf.EV_CURRENT),
		Ehsize:    64,
		Phentsize: 56,
		Shentsize: 64,
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Deep uses n levels of stack, about a hundred bytes each, so that the goroutine's stack must grow
// and move.
//
//go:noinline
func Deep(n int) int {
	var pad [8]int
	pad[n%8] = n
	if n > 0 {
		pad[(n+1)%8] = Deep(n - 1)
	}
	return pad[n%8] + pad[(n+1)%8]
}
