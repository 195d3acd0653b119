package engine

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// untilIn waits until a goroutine is in the function with this name.
func untilIn(name string) {
	for buf := make([]byte, 1<<20); !bytes.Contains(buf[:runtime.Stack(buf, true)], []byte(name)); {
		runtime.Gosched()
	}
}

// TestFailedWhenPassed checks that findEvents returns the error of work at a mark, if that work
// fails and is passed while findEvents runs.
func TestFailedWhenPassed(t *testing.T) {
	d, why := new(Device), errors.New("why")
	tl, other, fails := NewTimeline(d, nil), NewTimeline(d, nil), NewTimeline(d, nil)
	var of sema.Semaphore
	of.Publish(sema.Signal{Value: 1, Producer: fails, Seq: 1}, nil)
	s := &Submission{Timeline: tl, Waits: []sema.Point{{Semaphore: &of, Value: 1}}, Deps: Deps{marks: Frontier{{other, 1}, {fails, 1}}}}
	tl.addCover(Mark{other, 1})
	tl.coverMu.Lock() // blocks findEvents at the first mark
	result := make(chan error)
	go func() {
		_, err := s.findEvents()
		result <- err
	}()
	untilIn("(*Timeline).Covers(")
	fails.addFailed(1, 1, why)
	fails.passed.Store(1)
	tl.coverMu.Unlock()
	if err := <-result; !errors.Is(err, why) {
		t.Errorf("%v; it waits for failed work", err)
	}
}
