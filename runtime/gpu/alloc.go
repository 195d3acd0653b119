package gpu

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Alloc returns an Op that allocates size bytes from a pool, in the order of the queue's work. The
// call of [Stream.Do] or [Queue.Submit] sets *b to the buffer before it returns. Make Ops that use
// the buffer only after that call. If the call fails, *b does not change. If p is nil, the device's
// current pool is used.
//
// The memory is valid for work that waits for a signal of the allocation. Once the allocation has
// been issued, the memory is also valid for work that this queue's stream receives later. Barriers,
// host calls and collectives are not in the queue's stream. If they use the memory, or order other
// work that uses it, they must wait for a signal of the allocation. Work without such an order must
// not use the memory. If such work is issued before the allocation, it fails with [ErrUnallocated].
//
// If the memory cannot be allocated, the signals fail. If the Order has no points, the Op has no
// Timing, and the allocation is issued at once, the call returns the error instead. The error is
// [ErrOutOfMemory] if the pool or the device is at its limit, and [ErrClosed] if the pool has been
// closed. If the queue's stream is adopted, the call returns [ErrUnsupported].
//
// To allocate, a native pool needs one driver call. A portable pool that has the memory needs none.
// The call of Stream.Do or Queue.Submit blocks while the pool grows. If there is no memory, the
// call also blocks for up to a second while unused memory is freed, and tries once more. If the
// allocation is parked, the call does not block.
//
// The buffer owns the memory until [Free] frees it. Without a Free, the memory goes back to the
// pool when the buffer has been closed and is no longer used. A recording cannot allocate: see
// [CommandBuffer.Scratch].
func Alloc(b **Buffer, p *Pool, size uint64) (op Op) {
	if b == nil {
		return BadOp(errs.Argument("alloc", "nowhere to put the buffer"))
	}
	op.kind, op.obj, op.data, op.args[0].Size = allocOp, p, unsafe.Pointer(b), size
	return op
}

func (q *Queue) alloc(o *Order, p *Pool, size uint64) (*Buffer, error) {
	d := q.dev
	pool, err := d.memory.For(p.handle())
	switch {
	case err != nil && p == nil && d.failed() != nil:
		return nil, q.submit(q.get(work.Barrier), o)
	case err != nil:
		return nil, err
	case q.tl.Adopted:
		return nil, q.notOnAdopted(work.Alloc)
	}
	b := pool.NewBuffer(q.tl, size)
	if size == 0 {
		if err := q.submit(q.get(work.Barrier), o); err != nil {
			return nil, err
		}
		b.ListEmpty()
		return (*Buffer)(b), nil
	}
	r := q.get(work.Alloc)
	r.memory.SetAlloc(&r.Submission, b)
	if err := q.submit(r, o); err != nil {
		return nil, err
	}
	return (*Buffer)(b), nil
}

// Free returns an Op that frees memory that [Alloc] allocated, on this or another queue, in the
// order of the queue's work. Order the Free after all work that uses the memory, by waits or by the
// order of the queue's stream. Once the waits of the Free have been issued, new uses of the memory
// fail with [ErrUnallocated]. Free does not block, unless the driver does. A recording cannot free.
//
// The pool does not reuse the memory until the streams have passed all work that may use it, even
// if the signals of that work have failed. If the Free is not ordered after some of that work, the
// Free is parked until the streams have passed that work. No stream is made to wait. If the device
// of that work is lost meanwhile, the signals of the Free fail, and the memory goes back to the
// pool when the lost device is closed.
//
// If a wait of the Free fails, the memory stays allocated. If the driver fails to free the memory,
// the memory cannot be used any more. After a Free that has succeeded, the buffer need not be
// closed. If the buffer is empty or not from a pool, the Free is a barrier and frees nothing.
//
// The error of a second Free is [ErrUnallocated]. The call returns this error if the waits of the
// first Free have been issued, otherwise the signals fail with it. The error for a closed buffer is
// [ErrClosed]. If the buffer is from a pool and the queue's stream is adopted, the call returns
// [ErrUnsupported].
//
// Some memory of a driver's pool must not be freed in this queue's stream: memory of another
// device, and with [driver.Caps].PoolsByStream memory that another queue allocated. When this queue
// reaches such a Free, the queue that allocated the memory frees the memory in its own stream. Uses
// of the memory fail only from then on.
func Free(b *Buffer) (op Op) {
	op.kind, op.args[0].Buffer = freeOp, b
	return op
}

func (q *Queue) free(o *Order, b *Buffer) error {
	if !b.in().Exists() {
		return errs.Argument("free", "no buffer")
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
		return q.notOnAdopted(work.Free)
	case kind == memory.FreeElsewhere:
		return q.freeElsewhere(o, b.in())
	}
	r := q.get(work.Free)
	if err := r.free(b.in()); err != nil {
		return err
	}
	return q.submit(r, o)
}

// free sets up r as a Free of the buffer b. If SetFree refuses b, free recycles r and returns an
// error, unless the device has failed. Then free returns nil, and r will fail with the device's
// error.
func (r *record) free(b *memory.Buffer) error {
	if err := r.memory.SetFree(&r.Submission, b); err != nil {
		return r.notKept(err)
	}
	return nil
}

// freeElsewhere frees memory of a native pool that this queue's stream must not free. One case is
// memory of another device: the driver might make that device's streams wait for this queue's
// stream. The other case is memory that another stream allocated, if Caps.PoolsByStream is set.
//
// freeElsewhere submits the Free to the queue that allocated the memory. To the queue q it submits
// an operation without work, with the waits of o. The Free is parked until that operation has
// signalled the semaphore turn.
func (q *Queue) freeElsewhere(o *Order, b *memory.Buffer) error {
	if err := o.checkAll(); err != nil {
		return fmt.Errorf("gpu: free on %v: %w", q, err)
	}
	if t := o.timing; t != nil && t.dev == q.dev && q.dev.mem() != b.Device() {
		return errs.Argument("free", "the memory is of %s, whose stream deallocates it: a timing of %s cannot tell how long that takes", b.Device().Engine.Info.Name, q.dev.native.Info.Name)
	}
	if q.tl.FailedBy() != nil {
		return q.submit(q.get(work.Barrier), o) // submit returns an error and does not signal o.Free
	}
	turn := new(Semaphore)
	home := queueOf(b.Home())
	s := home.get(work.Free)
	s.Mode = engine.UntilReached
	if err := s.free(b); err != nil {
		return err
	}
	if err := home.submit(s, &Order{Wait: []Point{{turn, 1}}, Signal: o.Signal, Free: o.Free, label: o.label, timing: o.timing}); err != nil {
		return err
	}
	if err := q.submit(q.get(work.Nothing), &Order{Wait: o.Wait, Signal: []Point{{turn, 1}}, label: o.label}); err != nil {
		// The queue's device was closed or lost meanwhile. Because turn fails, the signals of s
		// fail, and the points in o.Free are signalled.
		turn.Fail(err)
	}
	return nil
}
