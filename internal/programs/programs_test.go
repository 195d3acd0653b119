//go:build !race

// The race detector would find nothing in programs that are built without it.

// Package programs tests common behaviour of all programs of the module.
package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCommandLines checks that every program with flags prints its usage for -h, for --help and for
// an unknown flag.
func TestCommandLines(t *testing.T) {
	if testing.Short() {
		t.Skip("builds all programs")
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	build := func(args ...string) string {
		cmd := exec.Command(gocmd, args...)
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go %q: %v\n%s", args, err, exit.Stderr)
		} else if err != nil {
			t.Fatalf("go %q: %v", args, err)
		}
		return string(out)
	}
	mains := strings.Fields(build("list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./..."))
	mains = slices.DeleteFunc(mains, func(path string) bool {
		return strings.HasSuffix(path, "/runtime/examples/first") || strings.HasSuffix(path, "/runtime/examples/compile") // short examples without flags
	})
	if len(mains) < 12 {
		t.Fatalf("found the programs %q only", mains)
	}
	dir := t.TempDir()
	build(append([]string{"build", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}, mains...)...)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(mains) {
		t.Errorf("%d programs gave %d files", len(mains), len(files))
	}
	for _, test := range [][]string{{"kernelgen"}, {"size", "1000000"}} { // kernelgen without the file that it reads, and size without -limit
		cmd := exec.Command(filepath.Join(dir, test[0]), test[1:]...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if status := cmd.ProcessState.ExitCode(); status != 2 || !strings.Contains(strings.ToLower(string(out)), "usage") {
			t.Errorf("%q: exit status %d, want 2 and how to use it; printed\n%s", test, status, out)
		}
	}
	for _, f := range files {
		for _, test := range []struct {
			arg    string
			status int
		}{{"-h", 0}, {"--help", 0}, {"-no-such-flag", 2}} {
			cmd := exec.Command(filepath.Join(dir, f.Name()), test.arg)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if status := cmd.ProcessState.ExitCode(); status != test.status || !strings.Contains(strings.ToLower(string(out)), "usage") {
				t.Errorf("%s %s: exit status %d, want %d and how to use it; printed\n%s", f.Name(), test.arg, status, test.status, out)
			}
		}
	}
}
