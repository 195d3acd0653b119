package simdriver

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitEnd waits for streams of a lost device that are at something for a minute, as they may be on a machine that has much to do: for
// a copy to the end, for it touches memory, and not for the program's code, which may go on for ever.
func TestAwaitEnd(t *testing.T) {
	for _, c := range []struct {
		what    string
		outside int32
		want    time.Duration
	}{
		{"a copy", 0, time.Minute},
		{"a kernel", 1, lastMoment},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stream{ended: make(chan struct{})}
			s.outside.Store(c.outside)
			time.AfterFunc(time.Minute, func() { close(s.ended) })
			began := time.Now()
			s.awaitEnd(false)
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: waited for %v, want %v", c.what, took, c.want)
			}
			<-s.ended
		})
	}
}
