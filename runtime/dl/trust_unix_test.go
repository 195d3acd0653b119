//go:build unix

package dl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrustedFolder checks that a folder lib beside a program is used only if no other user can
// change the files in the folder.
func TestTrustedFolder(t *testing.T) {
	s := &Spec{Names: []string{"libx.so"}}
	for _, test := range []struct {
		name string
		make func(root, lib, file string) error
		want string // a part of the error, or "" if Open takes the file
	}{
		{"own", func(_, _, _ string) error { return nil }, ""},
		{"link in it", func(_, lib, file string) error {
			return errors.Join(os.Rename(file, file+".1"), os.Symlink("libx.so.1", file))
		}, ""},
		{"folder is a link", func(root, lib, _ string) error {
			return errors.Join(os.Rename(lib, root+"/real"), os.Symlink("real", lib))
		}, "symbolic link"},
		{"folder of all", func(_, lib, _ string) error { return os.Chmod(lib, 0o777) }, "its mode 0777"},
		{"file of all", func(_, _, file string) error { return os.Chmod(file, 0o666) }, "its mode 0666"},
		{"link to a file of all", func(root, _, file string) error {
			return errors.Join(os.Rename(file, root+"/x"), os.Chmod(root+"/x", 0o666), os.Symlink("../x", file))
		}, "its mode 0666"},
		{"link to a folder of all", func(root, _, file string) error {
			d := root + "/shared"
			return errors.Join(os.Mkdir(d, 0o700), os.Rename(file, d+"/x"), os.Symlink(d+"/x", file), os.Chmod(d, 0o777))
		}, "its mode 0777"},
	} {
		root, err := filepath.EvalSymlinks(t.TempDir())
		lib := filepath.Join(root, "lib")
		file := filepath.Join(lib, "libx.so")
		if err := errors.Join(err, os.Chmod(root, 0o700), os.Mkdir(lib, 0o700), os.WriteFile(file, nil, 0o600), test.make(root, lib, file)); err != nil {
			t.Fatal(err)
		}
		cs := s.trusted(nil, lib, "here")
		if len(cs) != 1 {
			t.Fatalf("%s: %v", test.name, cs)
		}
		if err := cs[0].err; test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}
