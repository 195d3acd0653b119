package rendezvous

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// folder returns the folder of an exchange of no name.
func folder(t *testing.T, path string) string {
	t.Helper()
	k := token("", "")
	dir := filepath.Join(path, fmt.Sprintf("puregpu-%x", k[:12]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLeftBehind finds what killed processes can leave, of each step.
func TestLeftBehind(t *testing.T) {
	checkLeaks(t)
	path, ctx, id := t.TempDir(), withLimit(t, limit), newID()
	dir := folder(t, path)
	whole, ack := pack(newID())
	for name, content := range map[string][]byte{
		"1-A.ask": nil,
		"1-B.ask": nil, "1-B.id": whole,
		"2-C." + ack: nil, "2-C.id": whole,
		"2-D." + ack: nil,
		"x-E.id":     whole,
		"1-F.new":    whole[:17],
		"1-G.ask":    nil, "1-G.id": whole[:40],
		"1-H.ack-": nil, "y.z.w": nil,
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

// wantEmpty wants nothing to be left in a folder when all have gone.
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

// TestTooMany has more processes than rank 0 knows of: one of them must be told.
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
		if len(failed) != 1 || !strings.Contains(failed[0], "are there more processes than it was told of?") && !strings.Contains(failed[0], "rank 0 has not come") {
			return fmt.Errorf("failed: %q", failed)
		}
		wantEmpty(t, path)
		return nil
	})
}

// TestHalfFile reads answers that are not whole.
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
