package dl

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestClosedRuntime builds a program with a Go release that hides the runtime functions that this
// module links to. Under every build tag that calls C, the linker's message must say what to do,
// and a build that follows the message must succeed.
func TestClosedRuntime(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Go's runtime")
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("calls no C on this architecture")
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	out, err := exec.Command(gocmd, "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	// The go command cannot overlay files of a toolchain in the module cache.
	dir := t.TempDir()
	root := filepath.Join(dir, "go")
	if err := os.Symlink(strings.TrimSpace(string(out)), root); err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for file, push := range map[string]string{"cgocall.go": "\n//go:linkname cgocall\n", "runtime.go": "\n//go:linkname getAuxv\n"} {
		name := filepath.Join(root, "src", "runtime", file)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(push)) {
			t.Fatalf("%s no longer has %q, which opens the function to other modules: see docs/new-go.md", name, push)
		}
		replace[name] = filepath.Join(dir, file)
		if err := os.WriteFile(replace[name], bytes.Replace(text, []byte(push), []byte("\n\n"), 1), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	files, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, files, 0o666); err != nil {
		t.Fatal(err)
	}
	src := programDir(t)
	build := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(root, "bin", "go"), append(append([]string{"build", "-overlay", overlay, "-o", filepath.Join(dir, "prog")}, args...), "./"+src)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOROOT="+root)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, tag := range []string{"", "puregpu_syscalln", "puregpu_static"} {
		if tag == "puregpu_static" && runtime.GOARCH != "amd64" {
			continue
		}
		t.Run("tag "+tag, func(t *testing.T) {
			const want = "/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go: invalid reference to runtime."
			if out, err := build("-tags", tag); err == nil || !strings.Contains(out, want) {
				t.Errorf("%v, want %q; the linker said\n%s", err, want, out)
			}
			if out, err := build("-tags", tag, "-ldflags=-checklinkname=0"); err != nil {
				t.Errorf("with -ldflags=-checklinkname=0: %v\n%s", err, out)
			}
		})
	}
}
