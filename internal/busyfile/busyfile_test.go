package busyfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestReplaced checks that no read and no rename fails while a file is replaced again and again,
// and that every reader gets a complete file.
func TestReplaced(t *testing.T) {
	dir := t.TempDir()
	name, next := filepath.Join(dir, "file"), filepath.Join(dir, "next")
	write := func(name string) {
		if err := Retry(func() error { return os.WriteFile(name, []byte("whole"), 0o600) }); err != nil {
			t.Error(err)
		}
	}
	write(name)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for range 50 {
				var b []byte
				if err := Retry(func() (err error) { b, err = os.ReadFile(name); return }); err != nil || string(b) != "whole" {
					t.Errorf("%q, %v", b, err)
					return
				}
			}
		})
	}
	for range 50 {
		write(next)
		if err := Retry(func() error { return os.Rename(next, name) }); err != nil {
			t.Error(err)
		}
	}
	readers.Wait()
}

// TestError checks that Retry returns at once if the error is not about a file in use.
func TestError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, began := 0, time.Now()
		if err := Retry(func() error { calls++; return fs.ErrNotExist }); err != fs.ErrNotExist || calls != 1 || time.Since(began) != 0 {
			t.Errorf("%v after %d calls and %v", err, calls, time.Since(began))
		}
	})
}
