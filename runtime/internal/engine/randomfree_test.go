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

// A told is the point in an operation's Free. When it is told, what the operation was given is the program's again, which writes over it at once: what touches it
// then the model finds, or the race detector.
type told struct {
	point gpu.Point
	mem   []byte // what the operation was given, if it is the program's
	was   []byte // what that had then
	then  func() // is called then
	calls atomic.Int32
	over  chan struct{} // closed when it has been told, or failed, by
	err   error
	early error // the operation was not over
}

// ours is what memory has that is the program's again.
const ours = 0xee

// tells has an operation tell when nothing touches any more what it was given.
func (g *graph) tells(x *node, mem []byte) *told {
	x.told = &told{point: g.sem().At(1), mem: mem, over: make(chan struct{})}
	x.order.Free = []gpu.Point{x.told.point}
	return x.told
}

// watch has a share of the operations tell when they are over, and how long the device took.
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

// begin is called before the operation is submitted.
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

// wait waits until it is told.
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

// check looks at the end, when all devices have been closed, whether it has been told: once, if the operation was submitted, and when that was over. Some devices were
// left to the driver, with what they have.
func (f *told) check(ctx context.Context, x *node, left bool) error {
	if f == nil {
		return nil
	}
	if x.refused {
		if v, err := f.point.Semaphore.Query(); v != 0 || err != nil {
			return fmt.Errorf("nothing was submitted, and its Free was told: %d, %v", v, err)
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
		return fmt.Errorf("its Free was told too early: %w", f.early)
	case f.calls.Load() > 1:
		return fmt.Errorf("its Free was told %d times", f.calls.Load())
	case !bytes.Equal(f.mem, bytes.Repeat([]byte{ours}, len(f.mem))):
		return fmt.Errorf("its Free was told, and its memory then written to: %x", f.mem)
	}
	return nil
}

// timed looks how long the device took for an operation that has been reached, and was submitted after a time.
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

// lent copies a cell to memory of the program's own, which is lent to the device until that has told that it is free.
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

// came compares what has come with what was to.
func came(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%x came, and %x was to", got, want)
	}
	return nil
}
