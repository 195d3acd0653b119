//go:build unix

package trace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/trace"
)

// TestFileOfOthers creates traces under names that may exist already. If the name belongs to a
// regular file, Create must replace that file. If the name belongs to anything else, Create must
// fail. Create must not change the file target, to which the name may be a symbolic or a hard link.
func TestFileOfOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(name, target string) error
		want string // text of the error; empty if Create must succeed
	}{
		{"a link to a file", func(name, target string) error { return os.Symlink(target, name) }, "not a regular file"},
		{"a link to nothing", func(name, target string) error { return os.Symlink(target+"-none", name) }, "not a regular file"},
		{"a named pipe", func(name, target string) error { return syscall.Mkfifo(name, 0o666) }, "not a regular file"},
		{"a folder", func(name, target string) error { return os.Mkdir(name, 0o777) }, "not a regular file"},
		{"a second name of a file", func(name, target string) error { return os.Link(target, name) }, ""},
		{"a file", func(name, target string) error { return os.WriteFile(name, []byte("old"), 0o666) }, ""},
		{"nothing", func(name, target string) error { return nil }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			late := time.AfterFunc(time.Minute, func() { panic("it blocks") })
			defer late.Stop()
			dir := t.TempDir()
			name, target := filepath.Join(dir, "a\x1b.json"), filepath.Join(dir, "target")
			must(t, os.WriteFile(target, []byte("precious"), 0o666))
			must(t, c.make(name, target))
			tr, err := trace.Create(name, trace.Options{})
			if c.want == "" {
				must(t, err)
				must(t, tr.Close())
				info, err := os.Lstat(name)
				must(t, err)
				if info.Mode() != 0o600 {
					t.Errorf("the mode is %v", info.Mode())
				}
				data, err := os.ReadFile(name)
				must(t, err)
				check(t, data)
			} else if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join(dir, `a\x1b.json`)) {
				t.Errorf("%q, want %q", err, c.want)
			}
			if data, err := os.ReadFile(target); string(data) != "precious" {
				t.Errorf("the other file has become %q, %v", data, err)
			}
			if _, err := os.Lstat(target + "-none"); err == nil {
				t.Error("a file has been made through a link")
			}
		})
	}
}

// TestFilesAtOnce creates many traces with one name at the same time. An old file has this name,
// too. Each trace must get a file of its own and keep it.
func TestFilesAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.json")
	must(t, os.WriteFile(name, []byte("old"), 0o666))
	traces := make([]*trace.Trace, 20)
	errs := make([]error, len(traces))
	var wg sync.WaitGroup
	for i := range traces {
		wg.Go(func() { traces[i], errs[i] = trace.Create(name, trace.Options{Records: 16}) })
	}
	wg.Wait()
	for i, tr := range traces {
		must(t, errs[i])
		must(t, tr.Close())
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	must(t, err)
	if len(files) != len(traces) {
		t.Errorf("%d files of %d traces: %q", len(files), len(traces), files)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		check(t, data)
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Error(fmt.Sprint(file, info.Mode(), err))
		}
	}
}
