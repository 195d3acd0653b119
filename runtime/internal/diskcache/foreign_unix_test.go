//go:build unix

package diskcache

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignFolder uses folders to which other users may have written. Get finds nothing and Put
// fails.
func TestForeignFolder(t *testing.T) {
	for _, test := range []struct {
		name string
		mode os.FileMode
		uid  int // the owner; -1 is this user
		want string
	}{
		{"own", 0o700, -1, ""},
		{"readable", 0o755, -1, ""},
		{"a group's", 0o770, -1, "lets others write"},
		{"everybody's", 0o777 | os.ModeSticky, -1, "lets others write"},
		{"another user's", 0o700, 12345, "belongs to user 12345"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Cache{Dir: filepath.Join(t.TempDir(), "a\nb"), Max: 1 << 20}
			key, b := KeyOf("a"), data(10, 1)
			c.put(t, key, b)
			if test.uid >= 0 {
				if os.Getuid() != 0 {
					t.Skip("only root can give a folder away")
				}
				if err := os.Chown(c.Dir, test.uid, -1); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(c.Dir, test.mode); err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				c.has(t, key, b)
				c.put(t, key, b)
				return
			}
			c.has(t, key, nil)
			err := c.Put(KeyOf("b"), b)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `a\nb is not used`) {
				t.Errorf("%q, want %q", err, test.want)
			}
			if n := names(t, c.Dir); len(n) != 1 {
				t.Errorf("put: %q", n)
			}
		})
	}
}

// TestForeignEntry uses entries that other users may have written, in a folder to which those users
// had access before. Get must not return them, and Put must replace them.
func TestForeignEntry(t *testing.T) {
	key, b := KeyOf("a"), data(10, 1)
	for name, change := range map[string]func(file string) error{
		"writable by a group": func(file string) error { return os.Chmod(file, 0o620) },
		"another user's": func(file string) error {
			if os.Getuid() != 0 {
				t.Skip("only root can give a file away")
			}
			return os.Chown(file, 12345, -1)
		},
		"a link": func(file string) error {
			if err := os.Rename(file, file+"-target"); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(file)+"-target", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Cache{Dir: folder(t), Max: 1 << 20}
			c.put(t, key, b)
			c.has(t, key, b)
			if err := change(c.file(key)); err != nil {
				t.Fatal(err)
			}
			c.has(t, key, nil)
			c.put(t, key, b)
			c.has(t, key, b)
		})
	}
}
