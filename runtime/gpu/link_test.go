package gpu_test

import (
	"errors"
	"io"
	"runtime/debug"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestLongChain has what a signal releases release more, and so on: that takes no stack, however long the chain is.
func TestLongChain(t *testing.T) {
	n := 100_000
	if raceEnabled { // all of it is on one goroutine, or nearly
		n = 10_000
	}
	// A call for each of 100,000 links would take more than this.
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	// chain links n semaphores to first, and returns the last.
	chain := func(t *testing.T, first *gpu.Semaphore, links int) *gpu.Semaphore {
		t.Helper()
		for range links {
			next, err := gpu.NewSemaphore(0)
			must(t, err)
			first.Link(1, next, 1)
			first = next
		}
		return first
	}
	start := func(t *testing.T) (first, last *gpu.Semaphore) {
		first = semaphores(t, 1)[0]
		return first, chain(t, first, n)
	}
	open := func(t *testing.T) (*simdriver.Driver, *gpu.Queue) {
		d := newSim(t, simdriver.Config{Devices: 1})
		return d, openDevice(t, d, 0, gpu.Options{}).Queue(0)
	}
	t.Run("B50 signalled by the host", func(t *testing.T) {
		first, last := start(t)
		must(t, first.Signal(1))
		must(t, last.Wait(minute(t), 1))
	})
	t.Run("B50 failed, closed", func(t *testing.T) {
		first, last := start(t)
		first.Fail(io.EOF)
		if err := last.Wait(minute(t), 1); err != io.EOF {
			t.Error(err)
		}
		first, last = start(t)
		must(t, first.Close())
		if err := last.Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("B50 the middle has failed, or is past the value", func(t *testing.T) {
		first, last := start(t)
		last = chain(t, last, n)
		last.Fail(io.EOF)
		must(t, first.Signal(1))
		if err := last.Wait(minute(t), 1); err != io.EOF {
			t.Error(err)
		}
		first, past := start(t)
		must(t, past.Signal(1))
		last = chain(t, past, 1)
		past.Link(2, last, 2)
		must(t, first.Signal(1))
		if err := last.Wait(minute(t), 2); !errors.Is(err, gpu.ErrValue) {
			t.Error(err)
		}
	})
	t.Run("B50 signalled by a device", func(t *testing.T) {
		_, q := open(t)
		first, last := start(t)
		must(t, q.Fill(gpu.Order{Signal: pts(first, 1)}, allocate(t, q.Device(), 64).All(), []byte{1}))
		must(t, last.Wait(minute(t), 1))
	})
	t.Run("B50 failed by a device that is lost", func(t *testing.T) {
		d, q := open(t)
		first, last := start(t)
		d.StallDevice(0)
		must(t, q.Fill(gpu.Order{Signal: pts(first, 1)}, allocate(t, q.Device(), 64).All(), []byte{1}))
		d.LoseDevice(0, nil)
		if err := last.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
	})
	t.Run("B50 with work between the links", func(t *testing.T) {
		_, q := open(t)
		first := semaphores(t, 1)[0]
		last := first
		for range n / 10 {
			next := semaphores(t, 1)[0]
			must(t, q.Barrier(order(last, 1, next, 1)))
			last = chain(t, next, 1)
		}
		must(t, first.Signal(1))
		must(t, last.Wait(minute(t), 1))
	})
	t.Run("B50 work alone, signalled or failed", func(t *testing.T) {
		for _, err := range []error{nil, io.EOF} {
			_, q := open(t)
			first := semaphores(t, 1)[0]
			last := first
			for range n / 10 {
				next := semaphores(t, 1)[0]
				must(t, q.Barrier(order(last, 1, next, 1)))
				last = next
			}
			if err != nil {
				first.Fail(err)
			} else {
				must(t, first.Signal(1))
			}
			if got := last.Wait(minute(t), 1); !errors.Is(got, err) {
				t.Error(got)
			}
		}
	})
	t.Run("B50 work between links when its device closes, is lost", func(t *testing.T) {
		for _, lose := range []bool{false, true} {
			d, q := open(t)
			last := semaphores(t, 1)[0]
			for range n / 10 {
				next := semaphores(t, 1)[0]
				must(t, q.Barrier(order(last, 1, next, 1)))
				last = chain(t, next, 1)
			}
			if lose {
				d.LoseDevice(0, nil)
				q.Flush()
			}
			q.Device().Close()
			if err := last.Wait(minute(t), 1); err == nil {
				t.Error("no failure")
			}
		}
	})
}
