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

// TestTrusted checks that only files of root and of the user are trusted. Root can change any file
// anyway.
func TestTrusted(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		uid  int
		mode os.FileMode
		want string // a part of the error
	}{
		{"own", -1, 0o600, ""},
		{"group", -1, 0o620, "its mode 0620 lets others write"},
		{"stranger", 12345, 0o600, "it belongs to user 12345"},
	} {
		path := filepath.Join(dir, test.name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, test.mode)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, test.uid, -1); errors.Is(err, syscall.EPERM) {
			continue // only root can give a file away
		} else if err != nil {
			t.Fatal(err)
		}
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		err = Trusted(fi)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	fi, err := os.Lstat("/")
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := fi.Sys().(*syscall.Stat_t); ok && s.Uid == 0 && fi.Mode().Perm()&0o022 == 0 {
		if err := Trusted(fi); err != nil {
			t.Errorf("root's folder: %v", err)
		}
	}
}
