package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Alloca allocates memory from a pool, in the order of the queue's work. If p is nil it uses the
// device's current pool. Alloca returns the buffer at once. The memory is valid for work that is
// ordered after a signal of the Order, and for work that the device does for this queue after the
// call. Barriers, host calls and collectives have no place in the queue's stream: they, and work
// that comes after them elsewhere, must wait for a signal. A use of the memory without such an
// order is a mistake. While the allocation has not been issued, it is [ErrUnallocated].
//
// An allocation is one call of the driver, or none if a portable pool has the memory. If the memory
// cannot be allocated, the signals fail. If the Order has no lists, the call returns the error,
// unless the allocation is issued later. The error is [driver.ErrOutOfMemory] if the pool or the
// device is at its limit, and [ErrClosed] if the pool has been closed meanwhile. Alloca blocks
// while the pool grows. If there is no memory, it also blocks for up to a second while unused
// memory is freed, and tries once more.
//
// The buffer owns the memory until a queue deallocates it. If none does, the memory goes back to
// the pool when the buffer was closed and nothing uses it any more.
func (q *Queue) Alloca(o Order, p *Pool, size uint64) (*Buffer, error) {
	d := q.dev
	if d == nil {
		return nil, errs.ErrZero
	}
	pool, err := d.memory.For(p.in())
	switch {
	case err != nil && p == nil && d.failed() != nil:
		return nil, q.submit(q.get(work.Barrier), o)
	case err != nil:
		return nil, err
	case q.tl.Adopted:
		return nil, q.notOnAdopted(work.Alloca)
	}
	b := pool.NewBuffer(q.tl, size)
	if size == 0 {
		if err := q.submit(q.get(work.Barrier), o); err != nil {
			return nil, err
		}
		b.ListEmpty()
		return (*Buffer)(b), nil
	}
	r := q.get(work.Alloca)
	r.memory.SetAlloc(&r.Submission, b)
	if err := q.submit(r, o); err != nil {
		return nil, err
	}
	return (*Buffer)(b), nil
}

// Dealloca deallocates memory that [Queue.Alloca] allocated, on this or another queue, in the order
// of the queue's work. Order it after all work that uses the memory, by the queue or by waits. Once
// the waits of the dealloca have been issued, a use of the memory is [ErrUnallocated].
//
// The pool gives the memory to nobody else until the streams have passed all work that may use it,
// even if the signals of that work have failed. If the dealloca does not come after such work, it
// is parked until the streams have passed that work. No stream waits for it. If the device of that
// work is lost meanwhile, the signals fail, and the memory goes back to the pool when that device
// is closed.
//
// If a wait fails, the memory stays allocated. For a buffer that is not from a pool, Dealloca is a
// barrier, and the buffer stays. The buffer need not be closed as well. A second dealloca is
// [ErrUnallocated]: the call returns the error if it can tell, otherwise the signals fail with it.
// A buffer that has been closed is [ErrClosed]. Memory that the driver fails to deallocate cannot
// be used any more.
//
// Some memory of a driver's pool must not be freed in this queue's stream: memory of another
// device, and with [driver.Caps].PoolsByStream memory that another queue allocated. When this queue
// reaches the dealloca, the queue that allocated the memory frees it, behind its own work. Dealloca
// does not block, unless the driver does.
func (q *Queue) Dealloca(o Order, b *Buffer) error {
	switch {
	case !b.in().Exists():
		return errs.Argument("dealloca", "no buffer")
	case q.dev == nil:
		return errs.ErrZero
	}
	kind, err := b.in().CheckFree(q.tl)
	switch {
	case err != nil:
		return err
	case kind == memory.FreeNothing:
		if err = q.submit(q.get(work.Barrier), o); err == nil {
			b.in().UnlistEmpty()
		}
		return err
	case q.tl.Adopted:
		return q.notOnAdopted(work.Dealloca)
	case kind == memory.FreeElsewhere:
		return q.deallocaElsewhere(o, b.in())
	}
	r := q.get(work.Dealloca)
	if err := r.free(b.in()); err != nil {
		return err
	}
	return q.submit(r, o)
}

// free makes the record a dealloca of a buffer. The errors are those of keepBuffer.
func (r *record) free(b *memory.Buffer) error {
	if err := r.memory.SetFree(&r.Submission, b); err != nil {
		return r.notKept(err)
	}
	return nil
}

// deallocaElsewhere deallocates memory of a native pool that this queue's stream must not free. One
// case is memory of another device, whose streams the driver might make wait for this one. The
// other is, with Caps.PoolsByStream, memory that another stream allocated. When this queue reaches
// the dealloca, the host submits it to the queue that allocated the memory.
func (q *Queue) deallocaElsewhere(o Order, b *memory.Buffer) error {
	if err := o.checkAll(); err != nil {
		return fmt.Errorf("gpu: dealloca on %v: %w", q, err)
	}
	if t := o.Timing; t != nil && t.dev == q.dev && q.dev.mem() != b.Device() {
		return errs.Argument("dealloca", "the memory is of %s, whose stream deallocates it: a timing of %s cannot tell how long that takes", b.Device().Engine.Info.Name, q.dev.native.Info.Name)
	}
	if q.tl.FailedBy() != nil {
		return q.submit(q.get(work.Barrier), o) // it fails, and does not tell o.Free
	}
	turn := new(Semaphore)
	home := queueOf(b.Home())
	s := home.get(work.Dealloca)
	s.Mode = engine.UntilReached
	if err := s.free(b); err != nil {
		return err
	}
	if err := home.submit(s, Order{Wait: []Point{{turn, 1}}, Signal: o.Signal, Free: o.Free, Label: o.Label, Timing: o.Timing}); err != nil {
		return err
	}
	if err := q.submit(q.get(work.Nothing), Order{Wait: o.Wait, Signal: []Point{{turn, 1}}, Label: o.Label}); err != nil {
		// The device was closed or lost meanwhile. The signals report that, because o.Free is told.
		turn.Fail(err)
	}
	return nil
}

// Dealloca is [Queue.Dealloca] on the queue that allocated the buffer.
func (b *Buffer) Dealloca(o Order) error {
	if !b.in().Exists() {
		return errs.Argument("dealloca", "no buffer")
	}
	if tl := b.in().Home(); tl != nil {
		return queueOf(tl).Dealloca(o, b)
	}
	return b.Device().Queue(0).Dealloca(o, b)
}
