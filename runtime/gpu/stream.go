package gpu

import (
	"context"
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A Stream runs operations in order: each operation begins when the previous operation is done. An
// operation may be added while the previous operation still waits for a semaphore.
// [Queue.NewStream] makes a Stream of a queue. A Stream takes the same Ops as its [Queue], but no
// [Order]: it makes the waits and signals between its operations itself. Its calls return as early
// as calls of the queue, and cost the host as much time. Operations of different Streams have no
// order. Streams of one queue share the queue's native stream. So give work that should run on the
// device at the same time to Streams of different queues.
//
// A stream fails as a whole, and for good: when a call is refused, when an operation fails, or when
// the program calls [Stream.Fail]. Operations that have not been issued before the failure do not
// run. Later calls and [Stream.Wait] return the error with which the stream failed. So a program
// may ignore the errors of single calls and check only the error of Wait. To continue, make a new
// stream.
//
// Operations that were issued before the failure still run. For example, an operation that was
// issued behind a collective runs even if the collective fails. The contents of the memory that
// such an operation writes are undefined: restore the contents before you go on.
//
// All methods may be called concurrently. The operations then run in the order of the calls. A
// stream needs no Close, because it holds only memory. Operations on a nil or zero Stream return
// [ErrArgument].
type Stream struct {
	q   *Queue
	sem Semaphore // operation n, counted from 1, signals n

	mu sync.Mutex // protects the following fields
	n  uint64     // operations submitted so far
	// order is the Order of the next operation. Its waits are the point of the previous operation
	// and the points given to After.
	order  Order
	signal [1]Point // the storage of order.Signal
}

// NewStream makes a stream that submits its operations to the queue.
func (q *Queue) NewStream() *Stream {
	s := &Stream{q: q}
	s.sem.sema.Tag.Store(engine.IsStream)
	s.signal[0].Semaphore = &s.sem
	s.order = Order{Wait: []Point{{Semaphore: &s.sem}}, Signal: s.signal[:]}
	return s
}

// Queue returns the queue that the stream submits to.
func (s *Stream) Queue() *Queue {
	if s == nil {
		return nil
	}
	return s.q
}

// isZero reports whether the stream is nil, or a zero value, which belongs to no queue.
func (s *Stream) isZero() bool { return s == nil || s.q.isZero() }

// begin locks the stream for operations. If the stream has failed, begin returns the error and does
// not lock the stream. The stream must not be nil or zero. The caller submits each operation with
// the Order that s.next returns, and calls s.end after the last operation.
func (s *Stream) begin() error {
	if err := s.sem.sema.Failed(); err != nil {
		return received(err)
	}
	s.mu.Lock()
	return nil
}

// next returns the Order of the next operation, and counts the operation. The Order waits for the
// previous operation, and for the points given to After since that operation.
func (s *Stream) next() *Order {
	s.order.Wait[0].Value = s.n
	s.n++
	s.signal[0].Value = s.n
	return &s.order
}

// clearWaits removes the points given to After from the Order. It is called when an operation that
// waits for these points has been submitted or refused.
func (s *Stream) clearWaits() {
	if o := &s.order; len(o.Wait) > 1 {
		clear(o.Wait[1:])
		o.Wait = o.Wait[:1]
	}
}

// end unlocks the stream after operations have been submitted. If err is not nil, an operation was
// refused: end fails the stream with err, and returns the stream's error.
func (s *Stream) end(err error) error {
	s.clearWaits()
	s.order.label, s.order.timing = "", nil
	s.mu.Unlock()
	if err != nil {
		return s.refused(err)
	}
	return nil
}

// refused fails the stream with err. If the stream has failed before, refused returns the error of
// that failure, otherwise err.
func (s *Stream) refused(err error) error {
	s.sem.Fail(err)
	return received(s.sem.sema.Failed())
}

// Wait blocks until all operations so far are done, the stream has failed, or the context ends. It
// treats the context as [Semaphore.Wait] does. If the stream has failed, Wait returns the error at
// once, and does not wait for operations that still run.
func (s *Stream) Wait(ctx context.Context) error {
	if s.isZero() {
		return errs.Zero("wait", "Stream")
	}
	p := s.point()
	return p.Semaphore.Wait(ctx, p.Value)
}

// Point returns the point that is reached when all operations so far are done. Other streams and
// queues can wait for the point. If the stream fails, so does the point. The semaphore belongs to
// the stream: do not signal it. For a nil or zero Stream, Point returns the zero Point.
func (s *Stream) Point() Point {
	if s.isZero() {
		return Point{}
	}
	at := s.point()
	if how, p := s.sem.sema.Next(at.Value, nil); how == sema.Ordered {
		// Record the event now: one recorded later, when somebody waits for the point, would also
		// cover work submitted in between. If Record fails, the wait for the point tries again.
		engine.MarkOf(p).Record()
		if p.ByBarrier {
			s.recordJoined(at.Value)
		}
	}
	return at
}

// recordJoined records events behind all work that a barrier joins. value is the stream's value
// that the barrier signals.
func (s *Stream) recordJoined(value uint64) {
	var behind engine.Frontier
	s.sem.sema.Next(value, behind.Join)
	for _, m := range behind {
		m.Record()
	}
}

func (s *Stream) point() Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Point{&s.sem, s.n}
}

// After makes the next operation wait for points, and so all later operations too. If one of the
// points fails, the next operation fails, and with it the stream. The stream fails with
// [ErrArgument] if a point has no semaphore or a value above [MaxValue], or is the point of an
// operation that has not been added to this stream yet.
func (s *Stream) After(points ...Point) error {
	if s.isZero() {
		return errs.Zero("after", "Stream")
	}
	if err := s.sem.sema.Failed(); err != nil {
		return received(err)
	}
	s.mu.Lock()
	for _, p := range points {
		switch {
		case p.Semaphore == nil, p.Value > MaxValue:
			s.mu.Unlock()
			return s.refused(errs.Argument("after", "a point has no semaphore, or a value above %d", uint64(MaxValue)))
		case p.Semaphore == &s.sem && p.Value > s.n:
			s.mu.Unlock()
			return s.refused(errs.Argument("after", "the stream waits for its own operation %d of %d, which would come after this one", p.Value, s.n))
		}
	}
	s.order.Wait = append(s.order.Wait, points...)
	s.mu.Unlock()
	return nil
}

// Fail makes the stream fail with err, unless it has failed before. Operations of the stream that
// have not been issued do not run. Operations of other streams and queues that wait for this stream
// and have not been issued do not run either. All waits for the stream return err. Operations that
// have been issued still run and use their memory, even if they wait for the stream.
func (s *Stream) Fail(err error) {
	if !s.isZero() {
		s.sem.Fail(err)
	}
}

// Fill does the Op [Fill].
func (s *Stream) Fill(dst Range, pattern []byte) error { return s.Do(Fill(dst, pattern)) }

// Copy does the Op [Copy].
func (s *Stream) Copy(dst, src Range) error { return s.Do(Copy(dst, src)) }

// Upload does the Op [Upload]. Do not change the data until the operation is done.
func (s *Stream) Upload(dst Range, data []byte) error { return s.Do(Upload(dst, data)) }

// UploadCopy does the Op [UploadCopy]. The call copies the data.
func (s *Stream) UploadCopy(dst Range, data []byte) error {
	if s.isZero() {
		return errs.Zero("upload", "Stream")
	}
	if err := s.begin(); err != nil {
		return err
	}
	return s.end(s.q.uploadCopy(s.next(), dst, data)) // an Op would move the data to the heap
}

// Download does the Op [Download]. Do not use dst until the operation is done.
func (s *Stream) Download(dst []byte, src Range) error { return s.Do(Download(dst, src)) }

// Alloc does the Op [Alloc], and returns the buffer. All later operations of the stream may use the
// memory. So may work that waits for a [Stream.Point] that was taken after the call.
func (s *Stream) Alloc(p *Pool, size uint64) (b *Buffer, err error) {
	if s.isZero() {
		return nil, errs.Zero("alloc", "Stream")
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	b, err = s.q.alloc(s.next(), p, size) // an Op would move b to the heap
	if err := s.end(err); err != nil {
		return nil, err
	}
	return b, nil
}

// Free does the Op [Free]. Earlier operations of the stream may use the memory.
func (s *Stream) Free(b *Buffer) error { return s.Do(Free(b)) }
