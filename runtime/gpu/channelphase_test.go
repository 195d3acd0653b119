package gpu

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestChannelPhases: each phase can be reached, and only those that may come twice can be come back to, for entered is closed once.
func TestChannelPhases(t *testing.T) {
	var reaches func(from, to channelPhase, seen map[channelPhase]bool) bool
	reaches = func(from, to channelPhase, seen map[channelPhase]bool) bool {
		for _, next := range channelLeads[from] {
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
	for p := range channelPhases {
		if p != channelMaking && !reaches(channelMaking, p, map[channelPhase]bool{}) {
			t.Errorf("phase %d is never reached", p)
		}
		if twice := p == channelOpen || p == channelSuspended; reaches(p, p, map[channelPhase]bool{}) != twice {
			t.Errorf("phase %d comes twice: %v", p, !twice)
		}
		if p != channelEnded && !reaches(p, channelEnded, map[channelPhase]bool{}) {
			t.Errorf("phase %d does not lead to the end", p)
		}
	}
}

// TestAbortOfClosed aborts a channel that is closed, which is nothing that fails.
func TestAbortOfClosed(t *testing.T) {
	checkLeaks(t)
	d, g, chans := joined(t, simdriver.Config{})
	c := chans[0]
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	c.Abort(io.EOF)
	if err := c.Err(); err != nil {
		t.Errorf("it has failed: %v", err)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpAbortComm]; n != 0 || c.phase() != channelEnded {
		t.Errorf("its communicator was aborted %d times; phase %d", n, c.phase())
	}
	s := newSemaphore(t, 0)
	b, err := c.Device().Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Submit(context.Background(), Order{Signal: []Point{{s, 1}}}, AllReduce(b.All(), b.All(), Int8, Sum())); !errors.Is(err, ErrClosed) {
		t.Errorf("submitted: %v", err)
	}
	if _, err := c.Shrink(within(t), true, 1); err == nil {
		t.Error("it was shrunk")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileShrunk closes a channel of which another rank does not come to make a smaller one: Shrink ends, and Close with it.
func TestCloseWhileShrunk(t *testing.T) {
	checkLeaks(t)
	d, g, chans := joined(t, simdriver.Config{Devices: 3})
	c, shrunk := chans[0], make(chan error, 1)
	go func() {
		_, err := c.Shrink(within(t), true, 1)
		shrunk <- err
	}()
	for d.Counters().Devices[0].Calls[simdriver.OpShrinkComm] == 0 {
		time.Sleep(time.Millisecond)
	}
	if p := c.phase(); p != channelShrinking {
		t.Errorf("phase %d", p)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-shrunk; !errors.Is(err, ErrAborted) {
		t.Errorf("shrunk: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
