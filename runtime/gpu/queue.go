package gpu

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"unique"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Queue takes operations for a device. Only semaphores order operations: without an order between
// them operations may run in any order, or at once. All methods may be called concurrently. They
// return without waiting for the device to run the operation. They do not keep the lists. They keep
// the program's data after they return only if their documentation says so.
//
// If a method returns an error, it has submitted nothing: an argument is wrong, or the device is
// lost or closed. If the device is lost or closed, the points that the operation would have
// signalled fail too, so that nobody waits for them in vain.
//
// A signal that is known not to raise its semaphore is [ErrValue]: its value has been reached, or
// is not above a value of the same semaphore that the operation waits for, or signals before it. If
// the host reaches the value later, or other work signals it too, the operation's signals fail with
// [ErrValue].
type Queue struct {
	dev      *Device
	tl       *engine.Timeline
	index    int
	priority int
	name     atomic.Pointer[string]
}

// Device returns the queue's device.
func (q *Queue) Device() *Device { return q.dev }

// newQueue makes a queue with a timeline. The device does not list the timeline yet.
func newQueue(d *Device, index int) *Queue {
	q := &Queue{dev: d, index: index}
	q.tl = engine.NewTimeline(&d.native, q)
	q.tl.NewRecord = func() *engine.Submission { return &q.newRecord().Submission }
	return q
}

// submit copies the lists into the record. Then it gives the submission to the scheduler.
func (q *Queue) submit(r *record, o Order) error {
	if q.dev == nil {
		return errs.ErrZero
	}
	for _, p := range o.Wait {
		if p.invalid() {
			return q.reject(r, "wait")
		}
		r.Waits = append(r.Waits, p.inner())
	}
	for _, p := range o.Signal {
		if p.invalid() {
			return q.reject(r, "signal")
		}
		r.Signals = append(r.Signals, p.inner())
	}
	if slices.ContainsFunc(o.Free, Point.invalid) {
		return q.reject(r, "point of Free")
	}
	if err := q.tl.FailedBy(); err != nil {
		q.tl.Device.FailSubmission(&r.Submission, err)
		if q.tl.Device.Loss() != nil {
			q.dev.lossReceived.Store(true)
		}
		return err
	}
	if err := o.check(); err != nil {
		err = fmt.Errorf("gpu: %s on %v: %w", operation(r.Op.Kind.String(), r.kernelName(), o.Label), q, err)
		r.drop()
		return err
	}
	if !o.plain() || q.dev.memory.Observer != nil {
		if err := r.note(&o); err != nil {
			r.drop()
			return err
		}
	}
	kind, byLane := r.Op.Kind, r.ByLane()
	how, err := q.tl.Submit(&r.Submission)
	switch {
	case how != engine.Refused && how != engine.NotIssued:
		return nil
	case byLane:
		return err
	case o.untold(kind):
		return q.submitError(kind, "", "", err)
	}
	return nil
}

// note copies the rarer fields of an order into the record, and begins to trace the submission if
// somebody wants that.
func (s *record) note(o *Order) error {
	if o.Label != "" {
		// A copy of the label keeps the caller's lists from escaping to the heap.
		s.label, s.UsesRest = unique.Make(o.Label).Value(), true
	}
	if err := s.observed(o); err != nil {
		return err
	}
	if len(o.Free) > 0 {
		s.lent, s.Lends, s.UsesRest = newLent(1, o.Free), true, true
	}
	return nil
}

// invalid reports whether no operation can wait for the point or signal it.
func (p Point) invalid() bool { return p.Semaphore == nil || p.Value > MaxValue }

// reject takes a record back because a point is not valid.
func (q *Queue) reject(s *record, kind string) error {
	op := s.Op.Kind.String()
	s.drop()
	return errs.Argument(op, "a %s has no semaphore, or a value above %d", kind, uint64(MaxValue))
}

// Barrier signals when its waits are reached.
func (q *Queue) Barrier(o Order) error { return q.submit(q.get(work.Barrier), o) }

// HostCall calls fn on a goroutine when the waits are reached, and signals when fn has returned
// nil. An error of fn fails the signals. So does a panic, with a [PanicError]. If a wait fails, fn
// is not called. [Device.Close] waits up to ten seconds for calls that are running.
func (q *Queue) HostCall(o Order, fn func() error) error {
	if fn == nil {
		return errs.Argument("host call", "no function")
	}
	s := q.get(work.HostCall)
	s.fn, s.Mode = fn, engine.UntilReached
	return q.submit(s, o)
}

// Notify signals when the waits are reached, like [Queue.Barrier], and then calls fn on a
// goroutine. Nothing waits for fn. A panic of fn is logged, as a [PanicError], and has no other
// effect. If a wait fails, fn is not called.
func (q *Queue) Notify(o Order, fn func()) error {
	if fn == nil {
		return errs.Argument("notify", "no function")
	}
	s := q.get(work.Notify)
	s.fn, s.Mode = func() error { return guard(func() error { fn(); return nil }) }, engine.UntilReached
	return q.submit(s, o)
}

// Flush gives the device the submitted operations that may run. Operations do so by themselves.
// Flush is for systems that batch the calls of programs to a device. It returns an error if the
// device takes no more work.
func (q *Queue) Flush() error {
	if q.dev == nil {
		return errs.ErrZero
	}
	q.tl.Poll(q.tl.Latest(), 1)
	return q.dev.failed()
}

// Fill fills a range with a pattern of 1, 2, 4 or 8 bytes. The offset and the size of the range
// must be aligned to the pattern. Memory of another device can be filled only if the driver gives
// this device access to it, as it does to devices of a [Group]. For a pool's memory [Pool.Access]
// gives the access.
func (q *Queue) Fill(o Order, dst Range, pattern []byte) error {
	if !work.IsPattern(pattern) {
		return memory.BadPattern(pattern)
	}
	ptr, err := dst.checkTo("fill", q)
	if err == nil {
		err = dst.in().Usable("fill", q.dev.mem())
	}
	if err != nil {
		return err
	}
	if (dst.Size|uint64(ptr.Ptr))&uint64(len(pattern)-1) != 0 {
		return errs.Argument("fill", "offset %d and size %d are not aligned to the pattern of %d bytes", dst.Offset, dst.Size, len(pattern))
	}
	s := q.get(work.Fill)
	s.Op.SetFill(pattern, dst.Size)
	s.Dst = ptr
	if dst.Size == 0 {
		s.Op.Kind = work.Barrier
	}
	return q.submitWith(s, o, dst.Buffer.in(), nil)
}

// Copy copies between ranges of the same size, on this device or another one. One of the two must
// be of the queue's driver. Between devices of one driver the driver copies, directly if there is a
// way. Between drivers a goroutine copies in pieces through the host. It begins when the waits are
// reached. Ranges of one buffer must not overlap: that is [ErrArgument]. Ranges of different
// buffers that share memory must not overlap either: drivers do not define the result.
func (q *Queue) Copy(o Order, dst, src Range) error {
	to, from := dst.in(), src.in()
	if q.dev != nil && to.Buffer.Exists() && from.Buffer.Exists() && to.Buffer.Device().Engine.Driver != from.Buffer.Device().Engine.Driver {
		return q.copyAcross(o, to, from)
	}
	d, err := dst.checkTo("copy", q)
	if err != nil {
		return err
	}
	f, err := src.check("copy", q)
	if err == nil {
		err = memory.SameSize(to, from)
	}
	if err == nil {
		err = memory.Apart(to, from)
	}
	if err != nil {
		return err
	}
	s := q.get(work.Copy)
	s.Dst, s.Src, s.Op.Count = d, f, dst.Size
	if dst.Size == 0 {
		s.Op.Kind = work.Barrier
	}
	return q.submitWith(s, o, to.Buffer, from.Buffer)
}

// Prefetch moves managed memory to the memory of a device or of the host. It stays managed memory.
// to is [DeviceMem] for the queue's device or [HostMem] for the host. Prefetch is never needed. It
// saves the next user of the memory from fetching it page by page. Other memory is [ErrArgument].
// If the device cannot prefetch, the error is [driver.ErrUnsupported].
func (q *Queue) Prefetch(o Order, r Range, to MemKind) error {
	at, err := r.check("prefetch", q)
	switch {
	case err != nil:
		return err
	case r.Buffer.Kind() != ManagedMem:
		return errs.Argument("prefetch", "the buffer is no managed memory")
	case to != DeviceMem && to != HostMem:
		return errs.Argument("prefetch", "to where memory of kind %d is", int(to))
	case !q.dev.native.Caps.Prefetch:
		return fmt.Errorf("gpu: prefetch on %s: %w", q.dev.native.Info.Name, driver.ErrUnsupported)
	}
	s := q.get(work.Prefetch)
	s.Dst, s.Op.Count, s.Op.To = at, r.Size, uint8(to)
	if r.Size == 0 {
		s.Op.Kind = work.Barrier
	}
	return q.submitWith(s, o, r.Buffer.in(), nil)
}

// UploadCopy writes host data to a range. The call copies the data. It blocks while pinned memory
// is made for the copy, if none is free.
func (q *Queue) UploadCopy(o Order, dst Range, data []byte) error {
	d, err := dst.checkTo("upload", q)
	if err != nil {
		return err
	}
	if dst.Size != uint64(len(data)) {
		return errs.Argument("upload", "%d bytes of data for a range of %d", len(data), dst.Size)
	}
	if len(data) == 0 {
		return q.submit(q.get(work.Barrier), o)
	}
	if q.dev.native.Stay() != nil { // the device is closed: the submission fails
		return q.submit(q.get(work.Barrier), o)
	}
	defer q.dev.native.Leave() // the device keeps the pinned memory until then
	b, err := q.dev.memory.Stage.Get(len(data))
	if err != nil {
		return q.notStaged(o, "upload", err)
	}
	copy(b.Bytes(), data)
	s := q.get(work.Upload)
	s.Dst, s.Op.Count, s.staging.Block = d, dst.Size, b
	return q.submitWith(s, o, dst.Buffer.in(), nil)
}

// Download copies a range to host memory. Leave that memory alone until a signal of the operation
// is reached. The data arrives soon after the device is done, even if nobody waits for it. A
// download larger than [Options.StageSize] goes through pinned memory in pieces. A goroutine that
// begins when the waits are reached moves them.
func (q *Queue) Download(o Order, dst []byte, src Range) error {
	f, err := src.check("download", q)
	if err != nil {
		return err
	}
	if src.Size != uint64(len(dst)) {
		return errs.Argument("download", "from %d bytes to %d", src.Size, len(dst))
	}
	if len(dst) == 0 {
		return q.submit(q.get(work.Barrier), o)
	}
	if len(dst) > q.dev.opt.StageSize {
		return q.transfer(o, "download", src.in(), nil, false, func(_ *lent, piece []byte, at int64) error {
			memory.Land(dst[at:at+int64(len(piece))], piece)
			return nil
		})
	}
	b, err := q.dev.memory.Stage.Get(len(dst))
	if err != nil {
		return q.notStaged(o, "download", err)
	}
	s := q.get(work.Download)
	s.Src, s.Op.Count, s.Delivers = f, src.Size, true
	s.staging.Host, s.staging.Block = dst, b
	return q.submitWith(s, o, nil, src.Buffer.in())
}

// notStaged returns the error of an operation for which no pinned memory could be made. If the
// device has failed, the operation is submitted and fails its signals.
func (q *Queue) notStaged(o Order, op string, err error) error {
	if q.dev.failed() != nil {
		return q.submit(q.get(work.Barrier), o)
	}
	return fmt.Errorf("gpu: %s: %w", op, err)
}

// submitWith is submit for an operation that writes to dst, reads from src, or both. Either may be
// nil.
func (q *Queue) submitWith(r *record, o Order, dst, src *memory.Buffer) error {
	for _, b := range [...]*memory.Buffer{dst, src} {
		if b != nil {
			if err := r.keepBuffer(b); err != nil {
				return err
			}
		}
	}
	r.between(dst, src)
	return q.submit(r, o)
}

// guard calls a function of the program, and turns a panic into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, debug.Stack()}
		}
	}()
	return fn()
}
