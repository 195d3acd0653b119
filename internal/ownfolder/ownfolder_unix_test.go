//go:build unix

package ownfolder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		make func(path string) error
		want string // a part of the error
	}{
		{"own", func(path string) error { return os.Mkdir(path, 0o700) }, ""},
		{"readable", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) }, ""},
		{"setgid", func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o700|os.ModeSetgid))
		}, ""},
		{"group", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770)) }, "its mode 0770 lets others write"},
		{"world", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o702)) }, "its mode 0702 lets others write"},
		{"sticky", func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777|os.ModeSticky))
		}, "its mode 0777 lets others write"},
		{"link", func(path string) error { return os.Symlink(filepath.Join(dir, "own"), path) }, "symbolic link"},
		{"file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, "it is a file"},
		{"pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }, "it is a file"},
		{"stranger", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 12345, 12345)) }, "it belongs to user 12345 and this process runs as user"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(dir, test.name)
			if err := test.make(path); errors.Is(err, syscall.EPERM) && test.name == "stranger" {
				t.Skip("only root can give a folder away")
			} else if err != nil {
				t.Fatal(err)
			}
			fi, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			err = Check(fi)
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
