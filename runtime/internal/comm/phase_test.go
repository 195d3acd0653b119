package comm_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/comm"
)

// TestPhases checks that each phase can be reached and leads to IsEnded, and that only IsOpen and
// IsSuspended can be entered again.
func TestPhases(t *testing.T) {
	var reaches func(from, to comm.Phase, seen map[comm.Phase]bool) bool
	reaches = func(from, to comm.Phase, seen map[comm.Phase]bool) bool {
		for _, next := range comm.Leads[from] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				if reaches(next, to, seen) {
					return true
				}
			}
		}
		return false
	}
	for p := range comm.Phases {
		if p != comm.IsMaking && !reaches(comm.IsMaking, p, map[comm.Phase]bool{}) {
			t.Errorf("phase %d is never reached", p)
		}
		if twice := p == comm.IsOpen || p == comm.IsSuspended; reaches(p, p, map[comm.Phase]bool{}) != twice {
			t.Errorf("phase %d can be entered twice: %v", p, !twice)
		}
		if p != comm.IsEnded && !reaches(p, comm.IsEnded, map[comm.Phase]bool{}) {
			t.Errorf("phase %d does not lead to the end", p)
		}
	}
}

// TestAbortOfClosed checks that aborting a closed communicator is not an error.
func TestAbortOfClosed(t *testing.T) {
	checkLeaks(t)
	d, g, comms := joined(t, simdriver.Config{})
	c := comms[0]
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	c.Abort(io.EOF)
	if err := c.Err(); err != nil {
		t.Errorf("it has failed: %v", err)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpAbortComm]; n != 0 || in(c).Phase() != comm.IsEnded {
		t.Errorf("its communicator was aborted %d times; phase %d", n, in(c).Phase())
	}
	s := newSemaphore(t, 0)
	b, err := c.Device().Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Device().Queue(0).Submit(gpu.Order{Signal: points(s, 1)}, c.Group(collective.AllReduce(b.All(), b.All(), collective.Int8, collective.Sum()))); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("submitted: %v", err)
	}
	if _, err := c.Shrink(within(t), true, 1); err == nil {
		t.Error("it was shrunk")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileShrunk closes a communicator while its Shrink waits for a rank that does not come.
// Both Shrink and Close must return.
func TestCloseWhileShrunk(t *testing.T) {
	checkLeaks(t)
	d, g, comms := joined(t, simdriver.Config{Devices: 3})
	c, shrunk := comms[0], make(chan error, 1)
	go func() {
		_, err := c.Shrink(within(t), true, 1)
		shrunk <- err
	}()
	for d.Counters().Devices[0].Calls[simdriver.OpShrinkComm] == 0 {
		time.Sleep(time.Millisecond)
	}
	if p := in(c).Phase(); p != comm.IsShrinking {
		t.Errorf("phase %d", p)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-shrunk; !errors.Is(err, collective.ErrAborted) {
		t.Errorf("shrunk: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
