package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A told is the point in a node's Order.Free. When the point is signalled, the test overwrites the
// memory that the node uses. If the device still uses that memory, a comparison fails or the race
// detector reports a race.
type told struct {
	point gpu.Point
	mem   []byte // memory of the program that the node uses, or nil
	was   []byte // contents of mem when the point was signalled
	then  func() // called when the point is signalled; may be nil
	calls atomic.Int32
	over  chan struct{} // closed when the point is signalled, or has failed with err
	err   error
	early error // set if told.point was signalled before the node's point was reached or failed
}

// ours is the byte with which the test overwrites told.mem.
const ours = 0xee

// tells gives the node a point in Order.Free. mem is the memory of the program that the node uses.
func (g *graph) tells(x *node, mem []byte) *told {
	x.told = &told{point: g.sem().At(1), mem: mem, over: make(chan struct{})}
	x.order.Free = []gpu.Point{x.told.point}
	return x.told
}

// watch decides at random whether the node has a point in Order.Free, and whether the device dev
// times the node's operation.
func (g *graph) watch(x *node, dev *gpu.Device) {
	if x.told == nil && g.r.IntN(4) == 0 {
		g.tells(x, nil)
	}
	if dev == nil || !simple[x.what] || !g.caps.Timers || g.r.IntN(8) != 0 {
		return
	}
	var err error
	x.timing, err = dev.NewTiming()
	must(g.t, err)
}

// begin registers the function that overwrites the memory when the point is signalled.
func (f *told) begin(x *node) {
	if f == nil {
		return
	}
	f.point.Semaphore.OnReached(f.point.Value, func(err error) {
		if f.calls.Add(1) > 1 {
			return
		}
		if f.err = err; err == nil {
			v, failed := x.done.Semaphore.Query()
			if v < x.done.Value && failed == nil && !x.passesOn {
				f.early = fmt.Errorf("its signal is at %d, and neither reaches %d nor has failed", v, x.done.Value)
			}
			f.was = bytes.Clone(f.mem)
			for i := range f.mem {
				f.mem[i] = ours
			}
			if f.then != nil {
				f.then()
			}
		}
		close(f.over)
	})
}

// wait waits until the point is signalled. It returns an error if the point fails or the context
// ends first.
func (f *told) wait(ctx context.Context) error {
	if f == nil {
		return nil
	}
	select {
	case <-f.over:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check is called after all devices have been closed. It checks that the point was signalled once
// and not too early, or never if the submission was refused. It also checks that nothing has
// written to the memory after the signal. If left is true, Close has left native objects to the
// driver, and the point may also have failed with ErrBusy.
func (f *told) check(ctx context.Context, x *node, left bool) error {
	if f == nil {
		return nil
	}
	if x.refused {
		if v, err := f.point.Semaphore.Query(); v != 0 || err != nil {
			return fmt.Errorf("nothing was submitted, but its Free was signalled: %d, %v", v, err)
		}
		return nil
	}
	err := f.wait(ctx)
	switch {
	case ctx.Err() != nil:
		return errors.New("its Free was never told")
	case left && errors.Is(err, driver.ErrBusy):
		return nil
	case err != nil:
		return fmt.Errorf("its Free has failed: %w", err)
	case f.early != nil:
		return fmt.Errorf("its Free was signalled too early: %w", f.early)
	case f.calls.Load() > 1:
		return fmt.Errorf("its Free was signalled %d times", f.calls.Load())
	case !bytes.Equal(f.mem, bytes.Repeat([]byte{ours}, len(f.mem))):
		return fmt.Errorf("its memory was written to after its Free was signalled: %x", f.mem)
	}
	return nil
}

// timed checks the Timing of a node that has succeeded, and closes the Timing. The parameter since
// is a time before the node was submitted.
func (x *node) timed(sound bool, since time.Time) error {
	if x.timing == nil {
		return nil
	}
	took, err := x.timing.Duration()
	err2 := x.timing.Close()
	untold := !sound && (errors.Is(err, gpu.ErrClosed) || errors.Is(err, driver.ErrLost)) || slicesOf[x.what] == "" && errors.Is(err, driver.ErrUnsupported)
	switch {
	case err != nil && !untold:
		return err
	case took < 0, took > time.Since(since):
		return fmt.Errorf("the device took %v for it, of %v since the graph began", took, time.Since(since))
	}
	return err2
}

// lent makes the node copy a cell to imported memory of the program, or execute a recording that
// writes to the imported memory. When the point in Order.Free is signalled, the import is closed.
func (g *graph) lent(x *node, q *gpu.Queue, src *cell) {
	mem, from, want := make([]byte, 8), src.r, src.value
	b, err := q.Device().ImportHost(mem, nil)
	must(g.t, err)
	f := g.tells(x, mem)
	f.then = func() { b.Close() }
	x.what = "copy to lent memory"
	if m := g.supplies[q.Device()].moves[0]; g.r.IntN(2) == 0 {
		x.what = "execution in lent memory"
		want = m.of(want)
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Execute(m.c, b.All(), from)) }
	} else {
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Copy(b.All(), from)) }
	}
	x.check = func() error { return came(f.was, want[:]) }
}

// came returns an error if got differs from want.
func came(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%x arrived, want %x", got, want)
	}
	return nil
}
