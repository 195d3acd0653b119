package gpu

import "testing"

// TestComeAndGo has many timelines come and go, of which what is known to be over takes no room.
func TestComeAndGo(t *testing.T) {
	d := new(nativeDevice)
	tl, lasting := newTimeline(d, nil), newTimeline(d, nil)
	var f frontier
	f.addLive(mark{lasting, 5})
	tl.addCover(mark{lasting, 5})
	for range 1000 {
		other := newTimeline(d, nil)
		f.addLive(mark{other, 3})
		tl.addCover(mark{other, 3})
		if !tl.covers(other, 3) || tl.covers(other, 4) || f.passed() {
			t.Fatal("what is there is not known")
		}
		other.passed.Store(3)
		if !tl.covers(other, 3) {
			t.Fatal("what is over is not known")
		}
	}
	if len(f) > 2 || len(tl.cover) > 3 {
		t.Errorf("a frontier of %d marks, and %d timelines that another one is ordered after", len(f), len(tl.cover))
	}
	if !tl.covers(lasting, 5) || tl.covers(lasting, 6) {
		t.Error("what lasts is not known any more")
	}
	if lasting.passed.Store(5); !f.passed() {
		t.Error("the frontier has not been passed")
	}
}
