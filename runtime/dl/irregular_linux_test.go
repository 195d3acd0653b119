//go:build (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// promptly ends the process if a call blocks: a thread that waits in open(2) cannot be recovered.
func promptly(t *testing.T) {
	t.Helper()
	late := time.AfterFunc(20*time.Second, func() { panic("it blocks") })
	t.Cleanup(func() { late.Stop() })
}

// TestOpenIrregular opens files that are not regular. The call must return at once, and the error
// must say the file's kind.
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
		"/dev/fd/0":        "", // standard input may be a file of any kind
		"/proc/kmsg":       "", // a read blocks, if the user may read the file
		"/proc/version":    "an empty file",
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

// TestOpenIrregularSearch puts a named pipe in the folders that the environment tells the system
// loader to search. Each case runs in a separate process, because the loader reads the environment
// once.
func TestOpenIrregularSearch(t *testing.T) {
	const variable = "PUREGPU_TEST_PIPE"
	if path := os.Getenv(variable); path != "" {
		for _, o := range []Options{{}, {Path: "libpuregpu-absent.so"}} {
			_, err := open(t, o, nil)
			distinct(t, err, ErrNotLoadable)
			if err == nil || !strings.Contains(err.Error(), path+": a named pipe, not a regular file") {
				t.Error(err)
			}
		}
		return
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	// The name of a processor feature that every processor in use has.
	level := map[string]string{"amd64": "x86-64-v2", "arm64": "atomics"}[runtime.GOARCH]
	for _, c := range []struct{ name, folder, search string }{
		{"a folder", "", "/nowhere:DIR"},
		{"an empty element", ".", "/nowhere:"},
		{"an empty element between others", ".", "/nowhere;;/none"},
		{"a folder for processors", "glibc-hwcaps/" + level, "DIR"},
		{"a folder for processors, of old releases", "tls", "DIR"},
		{"folders in folders for processors, of old releases", "tls/" + machine, "DIR"},
		{"a folder behind one with another machine's library", "", "DIR/other:DIR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const name = "libpuregpu-absent.so"
			dir := t.TempDir()
			other := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
			other[16], other[18], other[20] = elfShared, 8, 1 // an ELF file for MIPS, which the loader skips
			for _, err := range []error{
				os.MkdirAll(filepath.Join(dir, c.folder), 0o777),
				syscall.Mkfifo(filepath.Join(dir, c.folder, name), 0o666),
				os.Mkdir(filepath.Join(dir, "other"), 0o777),
				os.WriteFile(filepath.Join(dir, "other", name), other, 0o666),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, c.folder, name)
			if c.folder == "." {
				path = "./" + name
			}
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			// A thread that waits in open(2) keeps a panic from ending the process.
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe, "-test.run=^TestOpenIrregularSearch$")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), variable+"="+path, "LD_LIBRARY_PATH="+strings.ReplaceAll(c.search, "DIR", dir))
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.ENOEXEC) {
				t.Skip("needs to start itself, which under an emulator the system cannot do")
			}
			if err != nil {
				t.Errorf("%v\n%.2000s", err, out)
			}
		})
	}
}

// TestErrorsPrintable opens files in a folder whose name contains terminal escapes and a forged
// line. No error may contain the name unquoted.
func TestErrorsPrintable(t *testing.T) {
	const bad, shown = "a\x1bc\nb\xff", `a\x1bc\nb\xff`
	dir := filepath.Join(t.TempDir(), bad)
	absent, text, pipe := filepath.Join(dir, "none.so"), filepath.Join(dir, "libpuregpu-absent.so"), filepath.Join(dir, "pipe.so")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(text, []byte("text"), 0o666), syscall.Mkfifo(pipe, 0o666)); err != nil {
		t.Fatal(err)
	}
	check := func(name, text string) {
		t.Helper()
		if strings.Contains(text, "\x1b") || strings.Contains(text, "\xff") || strings.Contains(text, "\nb") {
			t.Errorf("%s has raw bytes: %q", name, text)
		}
		if !strings.Contains(text, shown) {
			t.Errorf("%s lacks %q: %q", name, shown, text)
		}
	}
	for _, path := range []string{absent, text, pipe, bad} {
		l, err := open(t, Options{Path: path}, nil)
		check("the error", err.Error())
		check("Explain", l.Explain())
	}
	l, err := open(t, Options{}, func(s *Spec) { s.Dirs = []string{dir, filepath.Join(dir, "no", "folder")} })
	check("the error of a search", err.Error())
	check("Explain after a search", l.Explain())
	var e *OpenError
	if !errors.As(err, &e) || !slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return a.Path == text }) {
		t.Errorf("no attempt has the path as it is: %q", e.Attempts)
	}
	check("another library's error", (&TooOldError{Path: text, spec: testSpec()}).Error())
}
