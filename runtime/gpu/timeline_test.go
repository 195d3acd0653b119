package gpu

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
)

// TestFailedWhenPassed: what a submission waits for is looked at for failure after it has been found passed, not before, for it may fail in between.
func TestFailedWhenPassed(t *testing.T) {
	d, why := new(Device), errors.New("why")
	tl, other, fails := newTimeline(d), newTimeline(d), newTimeline(d)
	var of Semaphore
	of.publish(point{Value: 1, Timeline: fails, Seq: 1})
	s := &submission{q: &Queue{dev: d, tl: tl}, waits: []Point{{&of, 1}}, deps: frontier{{other, 1}, {fails, 1}}}
	tl.coverMu.Lock() // holds it up at the first
	result := make(chan error)
	go func() {
		_, _, err := tl.order(s)
		result <- err
	}()
	for buf := make([]byte, 1<<20); !bytes.Contains(buf[:runtime.Stack(buf, true)], []byte("(*timeline).covers(")); {
		runtime.Gosched()
	}
	fails.addFailed(1, 1, why)
	fails.passed.Store(1)
	tl.coverMu.Unlock()
	if err := <-result; !errors.Is(err, why) {
		t.Errorf("%v; it waits for what has failed", err)
	}
}
