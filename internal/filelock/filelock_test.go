package filelock

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

func TestTry(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	open := func() *os.File {
		f, err := root.OpenFile("file", os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Try(first); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no locks here")
	} else if err != nil {
		t.Fatal(err)
	}
	if err := Try(second); !errors.Is(err, ErrLocked) {
		t.Errorf("a file that is locked: %v", err)
	}
	first.Close()
	if err := errors.Join(Try(second), Named(root, second, "file")); err != nil {
		t.Errorf("the lock ended with the file that had it, and then: %v", err)
	}
	if err := root.Remove("file"); err != nil {
		t.Fatal(err)
	}
	if err := Named(root, second, "file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was removed: %v", err)
	}
	open()
	if err := Named(root, second, "file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that another file has: %v", err)
	}
}
