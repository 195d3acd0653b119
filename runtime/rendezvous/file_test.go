package rendezvous

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// folderName returns the name of the folder of an exchange whose name is empty.
func folderName() string {
	k := token("", "")
	return fmt.Sprintf("puregpu-%x", k[:12])
}

// folder makes the folder of an exchange whose name is empty, and returns its path.
func folder(t *testing.T, path string) string {
	t.Helper()
	dir := filepath.Join(path, folderName())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// key returns a key of a rank's files, with only the letter r in place of random letters.
func key(rank string, r rune) string {
	return rank + "-" + strings.Map(func(rune) rune { return r }, rand.Text())
}

// TestLeftBehind checks that ranks meet, and leave an empty folder, although killed processes have
// left files there at each step.
func TestLeftBehind(t *testing.T) {
	checkLeaks(t)
	path, ctx, id := t.TempDir(), withLimit(t, limit), newID()
	dir := folder(t, path)
	whole, ack := pack(newID())
	for name, content := range map[string][]byte{
		key("1", 'A') + ".ask": nil,
		key("1", 'B') + ".ask": nil, key("1", 'B') + ".id": whole,
		key("2", 'C') + "." + ack: nil, key("2", 'C') + ".id": whole,
		key("2", 'D') + "." + ack: nil,
		key("x", 'E') + ".id":     whole,
		key("1", 'F') + ".new":    whole[:17],
		key("1", 'G') + ".ask":    nil, key("1", 'G') + ".id": whole[:40],
		key("0", 'H') + ".ask": nil, key("3", 'I') + ".ask": nil, // ranks that do not exist
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	each(t, 3, func(rank int) error {
		time.Sleep(time.Duration(rank) * 20 * time.Millisecond)
		return share(ctx, File{Path: path, At: Place{Rank: rank, Count: 3}}, rank, "", id)
	})
	wantEmpty(t, path)
}

// wantEmpty checks that a folder is empty after all ranks have left.
func wantEmpty(t *testing.T, path string) {
	t.Helper()
	var left []string
	filepath.WalkDir(path, func(p string, _ os.DirEntry, _ error) error {
		if p != path {
			left = append(left, p)
		}
		return nil
	})
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestNoSuchRank checks that rank 0 neither answers nor counts the files of impossible ranks.
func TestNoSuchRank(t *testing.T) {
	for _, rank := range []string{"0", "2", "3", "2147483647"} {
		path := t.TempDir()
		k := key(rank, 'A')
		ask := filepath.Join(folder(t, path), k+".ask")
		if err := os.WriteFile(ask, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		content, ack := pack(newID())
		g := giver{fileExchange{path, folderName(), 0, 2}, content, ack, map[string]bool{}, nil}
		for range 2 { // in the second round the file is an ack
			if all, err := g.look(); all || err != nil {
				t.Errorf("rank %s of 2: all have come: %v, %v", rank, all, err)
			}
			os.Rename(ask, strings.TrimSuffix(ask, "ask")+ack)
		}
		if g.answered[k] {
			t.Errorf("rank %s of 2 is answered", rank)
		}
	}
}

// TestCanceled checks that Share with an ended context returns the context's cause, and does not
// make the folder.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	end := errors.New("out of patience")
	cancel(end)
	for rank := range 2 {
		path := filepath.Join(t.TempDir(), "path")
		if err := share(ctx, File{Path: path, At: Place{Rank: rank, Count: 2}}, rank, "", newID()); !errors.Is(err, end) {
			t.Errorf("rank %d: %v, want %v", rank, err, end)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("rank %d has made the folder: %v", rank, err)
		}
	}
}

// TestTooMany checks that one rank gets an error if there are more ranks than rank 0 expects.
func TestTooMany(t *testing.T) {
	checkLeaks(t)
	inTime(t, time.Second, func(short time.Duration) error {
		path, ctx, id := t.TempDir(), withLimit(t, short), newID()
		var mu sync.Mutex
		var failed []string
		each(t, 4, func(rank int) error {
			p := Place{Rank: rank, Count: 3}
			if rank == 3 {
				p.Count = 4
			}
			err := share(ctx, File{Path: path, At: p}, rank, "", id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err.Error())
			}
			return nil
		})
		if len(failed) != 1 || !strings.Contains(failed[0], "are there more processes than its Count?") && !strings.Contains(failed[0], "rank 0 has not come") {
			return fmt.Errorf("failed: %q", failed)
		}
		wantEmpty(t, path)
		return nil
	})
}

// TestHalfFile checks that unpack refuses incomplete answers, and that pack returns other bytes
// each time.
func TestHalfFile(t *testing.T) {
	content, ack := pack(newID())
	for n := range content {
		if id, _ := unpack(content[:n]); id != nil {
			t.Errorf("%d of %d bytes are taken for whole", n, len(content))
		}
	}
	if id, again := unpack(content); len(id) != 128 || again != ack {
		t.Errorf("%x, %s; want %s", id, again, ack)
	}
	if again, other := pack(content[len(content)-128:]); string(again) == string(content) || other == ack {
		t.Error("the same id is packed in the same way twice")
	}
}
