//go:build (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// promptly ends the process if a call blocks: a thread that waits in open(2) cannot be taken back.
func promptly(t *testing.T) {
	t.Helper()
	late := time.AfterFunc(20*time.Second, func() { panic("it blocks") })
	t.Cleanup(func() { late.Stop() })
}

// TestOpenIrregular opens what is no regular file. The call returns at once, and the error says what it is.
func TestOpenIrregular(t *testing.T) {
	promptly(t)
	dir := t.TempDir()
	pipe, link, loop := filepath.Join(dir, "libpuregpu-absent.so"), filepath.Join(dir, "link.so"), filepath.Join(dir, "loop.so")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o666), os.Symlink(pipe, link), os.Symlink(loop, loop)); err != nil {
		t.Fatal(err)
	}
	const device, named = "a device, not a regular file", "a named pipe, not a regular file"
	for path, want := range map[string]string{
		pipe:               named,
		link:               named,
		dir:                "a directory, not a regular file",
		loop:               "too many levels of symbolic links",
		"/dev/zero":        device,
		"/dev/null":        device,
		"/dev/tty":         device,
		"/dev/fd/0":        "", // whatever it is
		"/proc/kmsg":       "", // a read of it blocks, where it is allowed
		"/proc/self/maps":  "an empty file",
		"/proc/self/mem":   "an empty file",
		"/proc/self/fd/99": "no such file",
	} {
		for _, by := range []string{"Options.Path", "environment variable PUREGPU_TEST_LIBRARY"} {
			var err error
			if by == "Options.Path" {
				_, err = open(t, Options{Path: path}, nil)
			} else {
				t.Setenv("PUREGPU_TEST_LIBRARY", path)
				_, err = open(t, Options{}, nil)
			}
			if want == "no such file" {
				distinct(t, err, ErrNotFound)
			} else {
				distinct(t, err, ErrNotLoadable)
			}
			if err == nil || !strings.Contains(err.Error(), path+" ("+by+"): "+want) {
				t.Errorf("%s by %s: %v", path, by, err)
			}
		}
	}
	t.Setenv("PUREGPU_TEST_LIBRARY", "")
	_, err := open(t, Options{}, func(s *Spec) { s.Dirs = []string{dir} })
	distinct(t, err, ErrNotLoadable)
	if !strings.Contains(err.Error(), "found, but it cannot be loaded: "+pipe+": "+named) {
		t.Error(err)
	}
}

// TestOpenIrregularSearch has the system loader meet a named pipe where the environment tells it to search.
func TestOpenIrregularSearch(t *testing.T) {
	if dir := os.Getenv("PUREGPU_TEST_PIPE"); dir != "" {
		promptly(t)
		for _, o := range []Options{{}, {Path: "libpuregpu-absent.so"}} {
			_, err := open(t, o, nil)
			distinct(t, err, ErrNotLoadable)
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "libpuregpu-absent.so")+": a named pipe, not a regular file") {
				t.Error(err)
			}
		}
		return
	}
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "libpuregpu-absent.so"), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOpenIrregularSearch$")
	cmd.Env = append(os.Environ(), "PUREGPU_TEST_PIPE="+dir, "LD_LIBRARY_PATH=/nowhere:"+dir)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("needs to start itself, which under an emulator the system cannot do")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
