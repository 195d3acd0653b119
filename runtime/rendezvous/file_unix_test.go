//go:build unix

package rendezvous

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPlantedFolder plants a link, a file or an unsafe folder in place of the exchange's folder, as
// any user could. The ranks must return an error, and the planted folder's files must not change.
func TestPlantedFolder(t *testing.T) {
	for name, test := range map[string]struct {
		plant func(path, victim string) error // victim is a folder with files
		want  string
	}{
		"link": {func(path, victim string) error { return os.Symlink(victim, path) }, "it is a symbolic link"},
		"link inside the path": {func(path, victim string) error {
			inside := filepath.Join(filepath.Dir(path), "inside")
			return errors.Join(os.Rename(victim, inside), os.Symlink("inside", path), os.Symlink(inside, victim))
		}, "it is a symbolic link"},
		"dangling link": {func(path, victim string) error { return os.Symlink(victim+"-none", path) }, "it is a symbolic link"},
		"stranger's folder": {func(path, victim string) error {
			return errors.Join(os.Rename(victim, path), os.Symlink(path, victim), os.Chown(path, 12345, 12345))
		}, "it belongs to user 12345"},
		"world-writable folder": {func(path, victim string) error {
			return errors.Join(os.Rename(victim, path), os.Symlink(path, victim), os.Chmod(path, 0o777))
		}, "its mode 0777 lets others write to it"},
		"sticky folder": {func(path, victim string) error {
			return errors.Join(os.Rename(victim, path), os.Symlink(path, victim), os.Chmod(path, 0o777|os.ModeSticky))
		}, "lets others write to it"},
		"group's folder": {func(path, victim string) error {
			return errors.Join(os.Rename(victim, path), os.Symlink(path, victim), os.Chmod(path, 0o770))
		}, "its mode 0770 lets others write to it"},
		"pipe": {func(path, _ string) error { return syscall.Mkfifo(path, 0o666) }, "it is a file"},
		"file": {func(path, _ string) error { return os.WriteFile(path, nil, 0o600) }, "it is a file"},
	} {
		for _, rank := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, rank %d", name, rank), func(t *testing.T) {
				checkLeaks(t)
				path, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
				key := "1-" + rand.Text()
				content := map[string]string{"file": "a", key + ".ask": "b", "2-" + rand.Text() + ".id": "c", "2-" + rand.Text() + ".ack-0123456789ab": "d"}
				if err := os.Mkdir(victim, 0o700); err != nil {
					t.Fatal(err)
				}
				for name, text := range content {
					if err := os.WriteFile(filepath.Join(victim, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := test.plant(filepath.Join(path, folderName()), victim); errors.Is(err, syscall.EPERM) {
					t.Skip("only root can give a folder away")
				} else if err != nil {
					t.Fatal(err)
				}
				err := share(withLimit(t, limit), File{Path: path, At: Place{Rank: rank, Count: 2}}, rank, "", newID())
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), folderName()) ||
					!strings.Contains(err.Error(), "remove it or set another Path") {
					t.Errorf("got %v, want %q, the folder's name and what to do", err, test.want)
				}
				entries, err := os.ReadDir(victim)
				if err != nil || len(entries) != len(content) {
					t.Errorf("%v, %v; want what was there", entries, err)
				}
				for name, want := range content {
					if got, err := os.ReadFile(filepath.Join(victim, name)); string(got) != want || err != nil {
						t.Errorf("%s: %q, %v; want %q", name, got, err, want)
					}
				}
			})
		}
	}
}

// TestSharedPath checks that ranks meet below a path that others can write to, such as /tmp or a
// container's volume.
func TestSharedPath(t *testing.T) {
	for _, mode := range []os.FileMode{0o777 | os.ModeSticky, 0o777, 0o775 | os.ModeSetgid} {
		t.Run(mode.String(), func(t *testing.T) {
			path, ctx, id := t.TempDir(), withLimit(t, limit), newID()
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			each(t, 3, func(rank int) error {
				return share(ctx, File{Path: path, At: Place{Rank: rank, Count: 3}}, rank, "", id)
			})
			wantEmpty(t, path)
		})
	}
}

// TestLinkedPath checks that ranks meet if Path is a link.
func TestLinkedPath(t *testing.T) {
	path, ctx, id := t.TempDir(), withLimit(t, limit), newID()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	each(t, 2, func(rank int) error {
		return share(ctx, File{Path: link, At: Place{Rank: rank, Count: 2}}, rank, "", id)
	})
	wantEmpty(t, path)
}

// TestForeignEntries puts foreign files in the exchange's folder. The ranks must meet, and all
// foreign files must survive.
func TestForeignEntries(t *testing.T) {
	checkLeaks(t)
	path, ctx, id := t.TempDir(), withLimit(t, limit), newID()
	dir, victim := folder(t, path), filepath.Join(t.TempDir(), "victim")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(victim, []byte("victim"), 0o600))
	foreign := []string{"y.z.w", "notes.txt", ".hidden", "1-A.ask", "1-" + rand.Text() + ".ack-", "1-" + rand.Text() + ".txt", rand.Text() + ".ask",
		"-1-" + rand.Text() + ".ask", "99999999999-" + rand.Text() + ".ask", "1-" + strings.ToLower(rand.Text()) + ".id", "1-" + rand.Text() + ".ack-0123456789AB"}
	for _, name := range foreign {
		must(os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	folders := []string{"1-" + rand.Text() + ".ask", "1-" + rand.Text() + ".id"} // folders with names of a rank's files
	for _, name := range folders {
		must(os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	links := []string{"2-" + rand.Text() + ".ask", "2-" + rand.Text() + ".new"}
	for _, name := range links {
		must(os.Symlink(victim, filepath.Join(dir, name)))
	}
	pipe := filepath.Join(dir, "1-"+rand.Text()+".ask")
	must(syscall.Mkfifo(pipe, 0o600))
	own := filepath.Join(dir, "1-"+rand.Text()+".ask") // a file of a rank that has ended
	must(os.WriteFile(own, nil, 0o600))

	each(t, 3, func(rank int) error {
		return share(ctx, File{Path: path, At: Place{Rank: rank, Count: 3}}, rank, "", id)
	})
	for _, name := range foreign {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != name || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range append(append(folders, links...), filepath.Base(pipe)) {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err != nil || fi.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
	if got, err := os.ReadFile(victim); string(got) != "victim" || err != nil {
		t.Errorf("behind a link: %q, %v", got, err)
	}
	if _, err := os.Lstat(own); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a rank left behind is still there: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(foreign)+len(folders)+len(links)+1 {
		t.Errorf("%d entries, %v: %v", len(entries), err, entries)
	}
}

// TestPlantedAnswer plants a pipe, a link, a folder or a large file where a rank expects its
// answer. The rank must not read the planted file, and must return an error that names the planted
// file.
func TestPlantedAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		plant func(path, victim string) error
		want  string
	}{
		"pipe":   {func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		"link":   {func(path, victim string) error { return os.Symlink(victim, path) }, "not a regular file"},
		"folder": {func(path, _ string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"large file": {func(path, _ string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<30))
		}, "1073741824 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			checkLeaks(t)
			path, victim, ctx := t.TempDir(), filepath.Join(t.TempDir(), "victim"), withLimit(t, limit)
			whole, _ := pack(newID())
			if err := os.WriteFile(victim, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := File{Path: path, At: Place{Rank: 1, Count: 2}}.Share(ctx, "", nil)
				ended <- err
			}()
			var asks []string
			for pace := filePace(); len(asks) == 0; {
				if err := pace.wait(ctx); err != nil {
					t.Fatal(err)
				}
				asks, _ = filepath.Glob(filepath.Join(path, folderName(), "1-*.ask"))
			}
			answer := strings.TrimSuffix(asks[0], "ask") + "id"
			if err := test.plant(answer, victim); err != nil {
				t.Fatal(err)
			}
			err := <-ended
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), filepath.Base(answer)) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %q and the file's name", err, test.want)
			}
			if got, err := os.ReadFile(victim); string(got) != string(whole) || err != nil {
				t.Errorf("behind the link: %q, %v", got, err)
			}
		})
	}
}

// TestPathIsPipe passes a named pipe as the path. Opening a pipe waits for a writer, so the ranks
// must not open the pipe.
func TestPathIsPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		err := share(withLimit(t, limit), File{Path: path, At: Place{Rank: rank, Count: 2}}, rank, "", newID())
		if err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestGone checks that a folder removed by another machine counts as missing, so that a rank tries
// again.
func TestGone(t *testing.T) {
	for err, want := range map[error]bool{syscall.ENOENT: true, syscall.ESTALE: true, syscall.EACCES: false, syscall.ENOTDIR: false, syscall.EIO: false} {
		if got := gone(&os.PathError{Op: "openat", Path: "file", Err: err}); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	if gone(nil) {
		t.Error("without an error")
	}
}

// TestPathIsPrintable checks that errors do not contain a path's control characters.
func TestPathIsPrintable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a\x1b[31m\nb")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := share(withLimit(t, limit), File{Path: path, At: Place{Count: 2}}, 0, "", newID())
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\n") || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%q", err)
	}
}
