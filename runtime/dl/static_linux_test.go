package dl

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestNoGPUStatic checks that a program with the tag nogpu is a static ELF file.
func TestNoGPUStatic(t *testing.T) {
	buildStatic(t, "nogpu", runtime.GOARCH)
}

// TestTagStatic checks that a program with the tag puregpu_static is also a static ELF file. The
// program must call C if glibc is installed, and must also start without glibc.
func TestTagStatic(t *testing.T) {
	prog := buildStatic(t, "puregpu_static", "amd64")
	if runtime.GOARCH != "amd64" {
		t.Skip("run on amd64 only")
	}
	run := func(want string, attr *syscall.SysProcAttr, env ...string) {
		t.Helper()
		cmd := exec.Command(prog)
		cmd.Env = append(os.Environ(), env...)
		if attr != nil {
			cmd.Path, cmd.SysProcAttr, cmd.Dir = "/prog", attr, "/"
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, os.ErrPermission) {
			t.Skip("only root may change the root folder")
		}
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q; it said\n%s", err, want, out)
		}
	}
	if _, err := os.Stat("/lib64/ld-linux-x86-64.so.2"); err == nil {
		run("abs: 5", nil)
	}
	run("not found: false test: cannot open the C library: PUREGPU_LOADER=/nonexistent", nil, "PUREGPU_LOADER=/nonexistent")
	run("not found: true test: cannot open the C library: no glibc on this machine", &syscall.SysProcAttr{Chroot: filepath.Dir(prog)})
}

// TestTagStaticElevated starts a set-user-ID program as another user. The program must not run the
// loader that the caller names.
func TestTagStaticElevated(t *testing.T) {
	if runtime.GOARCH != "amd64" || os.Getuid() != 0 {
		t.Skip("needs amd64, and root to make a set-user-ID program of its own and start it as another user")
	}
	prog := buildStatic(t, "puregpu_static", "amd64")
	dir, err := os.MkdirTemp("", "elevated")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	code, err := os.ReadFile(prog)
	if err != nil {
		t.Fatal(err)
	}
	prog = filepath.Join(dir, "prog")
	for _, err := range []error{os.Chmod(dir, 0o755), os.WriteFile(prog, code, 0o755), os.Chmod(prog, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	say := func() string {
		cmd := exec.Command(prog)
		cmd.Env = []string{"PUREGPU_LOADER=/the/caller's"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	const asked = "PUREGPU_LOADER=/the/caller's"
	if got := say(); !strings.Contains(got, asked) {
		t.Errorf("with the caller's own rights it said\n%s", got)
	}
	if err := os.Chmod(prog, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Flags&syscall.MS_NOSUID != 0 {
		t.Skip("the folder for temporary files is mounted nosuid: ", err)
	}
	if got := say(); strings.Contains(got, asked) {
		t.Errorf("with root's rights it said\n%s", got)
	} else {
		t.Log(got)
	}
}

// buildStatic builds a program with a tag and checks that it is static. It skips the test where the
// program cannot be built.
func buildStatic(t *testing.T, tag, goarch string) string {
	if testing.Short() {
		t.Skip("builds a program")
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	dir := programDir(t)
	out := filepath.Join(t.TempDir(), "prog")
	cmd := exec.Command(gocmd, "build", "-tags", tag, "-o", out, "./"+dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+goarch)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_DYNAMIC || p.Type == elf.PT_INTERP {
			t.Errorf("the program has a %v segment", p.Type)
		}
	}
	return out
}

// programDir writes the source of a program that opens the C library and calls abs, and returns its
// folder.
func programDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("testdata", "static")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const src = `package main

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/dl"
)

func main() {
	spec := &dl.Spec{Name: "the C library", Package: "test", Names: []string{"libc.so.6"}, Sets: []dl.Set{{Name: "core"}},
		Symbols: []dl.Symbol{{Name: "abs", Sig: "w"}}}
	var lib dl.Library
	if err := lib.Open(spec, nil, dl.Options{}); err != nil {
		fmt.Println("not found:", errors.Is(err, dl.ErrNotFound), err)
		return
	}
	minus := -5
	r, err := lib.Slow(0, uintptr(minus))
	fmt.Println("abs:", int32(r), err)
}
`
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}
