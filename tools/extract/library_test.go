package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/symbols"
)

// TestLibraryFromData checks that data alone makes a package for a made-up library: a header, a
// description and an overlay. The test extracts the table, generates the package in a module of its
// own, builds it, also for other systems, and runs a program that calls the library.
func TestLibraryFromData(t *testing.T) {
	const file = "testdata/library/vec.txtar"
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	golden := map[string]*txtar.File{}
	for i := range a.Files {
		f := &a.Files[i]
		if !strings.Contains(f.Name, "/") && filepath.Ext(f.Name) != ".c" && f.Name != "main.go" {
			golden[f.Name] = f
			continue
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	vec := filepath.Join(dir, "vec")
	args := []string{vec, "-headers", filepath.Join(dir, "include"), "-o", filepath.Join(vec, "table.json")}
	if err := run(args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "give it with -version") {
		t.Fatalf("extract without a version: %v", err)
	}
	if err := run(append(args, "-version", "1.4"), io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	lib, err := symbols.Read(os.DirFS(vec), ".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gen.Run(vec, lib, true); err != nil {
		t.Fatal(err)
	}
	if changed, err := gen.Run(vec, lib, false); err != nil || len(changed) > 0 {
		t.Errorf("generated twice: %v, %v", changed, err)
	}
	text, err := os.ReadFile(filepath.Join(vec, "zlibrary.go"))
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, golden["zlibrary.go"], text)
	t.Run("build", func(t *testing.T) { buildAndRun(t, dir, golden["want"]) })
	if *update && !t.Failed() {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// buildAndRun builds a module that uses package vec, and runs it with the library that a C compiler
// makes of vec.c.
func buildAndRun(t *testing.T, dir string, want *txtar.File) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/puregpu/puregpu"
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/made\n\ngo 1.26\n\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n"))
	write(t, filepath.Join(dir, "go.sum"), sum)
	goCommand := func(env []string, args ...string) {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), slices.Concat([]string{"CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off"}, env)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s go %s: %v\n%s", strings.Join(env, " "), strings.Join(args, " "), err, out)
		}
	}
	goCommand(nil, "vet", "./vec")
	if !testing.Short() {
		for _, system := range []string{"GOOS=windows GOARCH=amd64", "GOOS=darwin GOARCH=arm64"} {
			goCommand(strings.Fields(system), "build", "./vec")
		}
	}
	compiler := os.Getenv("PUREGPU_TEST_CC")
	if compiler == "" {
		compiler = "gcc"
	}
	if _, err := exec.LookPath(compiler); err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no C compiler, or no system on which libraries are opened")
	}
	program := filepath.Join(dir, "program")
	goCommand(nil, "build", "-o", program, ".")
	libs := []string{filepath.Join(dir, "libvec.so"), filepath.Join(dir, "libstub.so")}
	for i, lib := range libs {
		out, err := exec.Command(compiler, "-shared", "-fPIC", []string{"-UX", "-DSTUB"}[i], "-I"+filepath.Join(dir, "include"), "-o", lib, filepath.Join(dir, "vec.c")).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", compiler, err, out)
		}
	}
	out, err := exec.Command(program, libs...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compareGolden(t, want, out)
}

// compareGolden compares a golden part, or with -update changes it.
func compareGolden(t *testing.T, want *txtar.File, got []byte) {
	t.Helper()
	switch {
	case *update:
		want.Data = got
	case !bytes.Equal(got, want.Data):
		t.Errorf("%s is\n%s\nwant\n%s", want.Name, got, want.Data)
	}
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
