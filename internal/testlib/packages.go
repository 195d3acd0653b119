package testlib

import (
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Packages returns the types of packages of this module, by the given paths, such as "runtime/gpu".
// On any platform it returns the types of the build for linux/amd64 without tags. It skips the test
// if there is no go command.
func Packages(t testing.TB, paths ...string) map[string]*types.Package {
	t.Helper()
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command, which tells the packages' types")
	}
	const module = "github.com/puregpu/puregpu/"
	args := []string{"list", "-export", "-deps", "-tags=", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, p := range paths {
		args = append(args, module+p)
	}
	cmd := exec.Command(gocmd, args...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	export := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		export[path] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	pkgs := map[string]*types.Package{}
	for _, p := range paths {
		pkg, err := imp.Import(module + p)
		if err != nil {
			t.Fatal(err)
		}
		pkgs[p] = pkg
	}
	return pkgs
}
