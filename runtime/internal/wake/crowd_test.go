package wake

import "testing"

// TestCrowd checks when a goroutine that polls in a loop skips its polls.
func TestCrowd(t *testing.T) {
	var c PollThrottle
	issued := uint64(0)
	asks := func(rounds int, each func(), issuing bool) (n int) {
		for range rounds {
			each()
			if !c.Skips(true, issued, issuing, WaiterSkips) {
				n++
			}
		}
		return n
	}
	nothing, issue := func() {}, func() { issued++ }
	if issue(); c.Skips(false, issued, true, WaiterSkips) {
		t.Error("the first poll is skipped")
	}
	for _, x := range []struct {
		rounds  int
		each    func()
		issuing bool
		want    int
	}{
		{100, nothing, false, 100},
		{10 * WaiterSkips, issue, false, 10},
		{WaiterSkips, nothing, false, WaiterSkips},
		{10 * WaiterSkips, nothing, true, 10},
	} {
		if n := asks(x.rounds, x.each, x.issuing); n != x.want {
			t.Errorf("of %d rounds %d poll, want %d", x.rounds, n, x.want)
		}
	}
}
