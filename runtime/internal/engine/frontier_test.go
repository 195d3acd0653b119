package engine

import "testing"

// TestComeAndGo checks that a frontier does not grow when marks are added and passed many times.
func TestComeAndGo(t *testing.T) {
	d := new(Device)
	tl, lasting := NewTimeline(d, nil), NewTimeline(d, nil)
	var f Frontier
	f.AddLive(Mark{lasting, 5})
	tl.addCover(Mark{lasting, 5})
	for range 1000 {
		other := NewTimeline(d, nil)
		f.AddLive(Mark{other, 3})
		tl.addCover(Mark{other, 3})
		if !tl.Covers(other, 3) || tl.Covers(other, 4) || f.Passed() {
			t.Fatal("the frontier lacks a mark that was added")
		}
		other.passed.Store(3)
		if !tl.Covers(other, 3) {
			t.Fatal("a passed mark counts as not passed")
		}
	}
	if len(f) > 2 || len(tl.cover) > 3 {
		t.Errorf("a frontier of %d marks, and %d timelines that another one is ordered after", len(f), len(tl.cover))
	}
	if !tl.Covers(lasting, 5) || tl.Covers(lasting, 6) {
		t.Error("the frontier lost a mark that is not passed")
	}
	if lasting.passed.Store(5); !f.Passed() {
		t.Error("the frontier has not been passed")
	}
}
