package gpu

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A Stream runs operations in order: each operation begins when the previous one is done, even if
// the previous one still waits for a semaphore. [Queue.NewStream] makes a Stream of a queue. Its
// operations are those of the [Queue], without lists of points. They return as soon as the queue's
// and cost the host as much. Streams of one queue or of several run concurrently.
//
// A stream fails as a whole, and for good: when a call is refused, when an operation fails, or by
// [Stream.Fail]. Operations that have not been issued then do not run. Later calls and
// [Stream.Wait] return the error with which the stream failed. So a program may ignore the errors
// of single calls and check only the error of Wait. To continue, make a new stream.
//
// Operations that were issued before the failure run. After a collective that fails, the device
// still runs the work that the stream was given. The memory that this work wrote is undefined:
// restore it before you go on.
//
// All methods may be called concurrently, except from the function given to [Stream.Submit]. The
// order of operations is then that of the calls. A stream needs no Close, since it holds only
// memory. A zero Stream accepts nothing: [ErrArgument].
type Stream struct {
	q   *Queue
	sem Semaphore // operation n, counted from 1, signals n

	mu      sync.Mutex
	n       uint64   // operations submitted so far
	waits   []Point  // of the next operation: the previous one, and points from After
	signal  [1]Point // the signal of the operation being submitted
	ordered *Order   // lists for Submit; nil while in use
}

// NewStream makes a stream that submits its operations to the queue.
func (q *Queue) NewStream() *Stream {
	s := &Stream{q: q}
	s.sem.sema.Tag.Store(engine.IsStream)
	s.waits = []Point{{Semaphore: &s.sem}}
	s.signal[0].Semaphore = &s.sem
	return s
}

// Queue returns the queue that the stream submits to.
func (s *Stream) Queue() *Queue { return s.q }

// begin locks the stream and returns the Order of its next operation. The caller submits the
// operation and then calls end. If begin returns an error, nothing is locked.
func (s *Stream) begin() (Order, error) {
	if s == nil || s.q == nil || s.q.dev == nil {
		return Order{}, errs.ErrZero
	}
	if err := s.sem.sema.Failed(); err != nil {
		return Order{}, received(err)
	}
	s.mu.Lock()
	s.waits[0].Value = s.n
	s.n++
	s.signal[0].Value = s.n
	return Order{Wait: s.waits, Signal: s.signal[:]}, nil
}

// end unlocks the stream after an operation has been submitted or, with an error, refused.
func (s *Stream) end(err error) error {
	if len(s.waits) > 1 {
		clear(s.waits[1:])
		s.waits = s.waits[:1]
	}
	s.mu.Unlock()
	if err != nil {
		return s.refused(err)
	}
	return nil
}

// refuse fails the stream as if it had submitted an operation that a queue refused with err.
func (s *Stream) refuse(err error) error {
	if _, err := s.begin(); err != nil {
		return err
	}
	return s.end(err)
}

// refused fails the stream, and returns the error with which it has failed.
func (s *Stream) refused(err error) error {
	s.sem.Fail(err)
	return received(s.sem.sema.Failed())
}

// Wait waits until all operations so far are done, the stream has failed, or the context ends, as
// [Semaphore.Wait] does.
func (s *Stream) Wait(ctx context.Context) error {
	if s == nil || s.q == nil || s.q.dev == nil {
		return errs.ErrZero
	}
	p := s.point()
	return p.Semaphore.Wait(ctx, p.Value)
}

// Point returns the point that is reached when all operations so far are done. Other streams and
// queues can wait for it. It fails when the stream does. The semaphore belongs to the stream: do
// not signal it.
func (s *Stream) Point() Point {
	at := s.point()
	if how, p := s.sem.sema.Next(at.Value, nil); how == sema.Ordered {
		// The event excludes later work from the wait. The wait reports an error.
		engine.MarkOf(p).Record()
		if p.ByBarrier {
			s.recordJoined(at.Value)
		}
	}
	return at
}

// recordJoined records events behind all work that a barrier joins.
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

// After makes the next operation, and so all later ones, wait for points. If one of them fails, the
// stream fails.
func (s *Stream) After(points ...Point) error {
	if s == nil || s.q == nil || s.q.dev == nil {
		return errs.ErrZero
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
	s.waits = append(s.waits, points...)
	s.mu.Unlock()
	return nil
}

// Fail makes the stream fail with err. Operations that have not been issued do not run. This covers
// the stream's operations and others that wait for the stream. All waits for the stream return err.
// Operations that have been issued run, and may still use their memory. So do operations of other
// streams and queues that were issued after waiting for this stream.
func (s *Stream) Fail(err error) { s.sem.Fail(err) }

// Submit adds an operation that takes an [Order] to the stream, such as a collective of a [Channel]
// or an operation of another queue. Submit calls the function once. The function submits one
// operation with the order, to which it may add points. It must not keep the lists. If it returns
// an error, the stream fails. If it submits nothing and returns nil, the stream waits forever.
func (s *Stream) Submit(submit func(Order) error) (err error) {
	if submit == nil {
		return s.refused(errs.Argument("submit", "no function"))
	}
	o, err := s.begin()
	if err != nil {
		return err
	}
	lists := s.ordered
	s.ordered = nil
	if lists == nil {
		lists = &Order{Signal: make([]Point, 0, 2)}
	}
	lists.Wait, lists.Signal = append(lists.Wait[:0], o.Wait...), append(lists.Signal[:0], o.Signal...)
	s.end(nil)
	err = errNotSubmitted
	defer func() { // also if submit panics: else the stream would wait forever
		clear(lists.Wait)
		clear(lists.Signal)
		s.mu.Lock()
		s.ordered = lists
		s.mu.Unlock()
		if err != nil {
			err = s.refused(err)
		}
	}()
	err = submit(*lists)
	return err
}

var errNotSubmitted = errors.New("gpu: submit: the function panicked, or ended its goroutine")

// Barrier is an operation without work. Later operations, and [Stream.Point], then wait for the
// points given to [Stream.After].
func (s *Stream) Barrier() error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Barrier(o))
}

// Fill is [Queue.Fill].
func (s *Stream) Fill(dst Range, pattern []byte) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Fill(o, dst, pattern))
}

// Copy is [Queue.Copy].
func (s *Stream) Copy(dst, src Range) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Copy(o, dst, src))
}

// Prefetch is [Queue.Prefetch].
func (s *Stream) Prefetch(r Range, to MemKind) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Prefetch(o, r, to))
}

// UploadCopy is [Queue.UploadCopy]. The call copies the data.
func (s *Stream) UploadCopy(dst Range, data []byte) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.UploadCopy(o, dst, data))
}

// Upload is [Queue.Upload]. Leave the data alone until the operation is done.
func (s *Stream) Upload(dst Range, data []byte) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Upload(o, dst, data))
}

// Download is [Queue.Download]. Leave the memory alone until the operation is done.
func (s *Stream) Download(dst []byte, src Range) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Download(o, dst, src))
}

// Read is [Queue.Read].
func (s *Stream) Read(dst Range, from io.ReaderAt, offset int64) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Read(o, dst, from, offset))
}

// Write is [Queue.Write].
func (s *Stream) Write(to io.WriterAt, offset int64, src Range) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Write(o, to, offset, src))
}

// Dispatch is [Queue.Dispatch].
func (s *Stream) Dispatch(d Dispatch) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Dispatch(o, d))
}

// HostCall is [Queue.HostCall].
func (s *Stream) HostCall(fn func() error) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.HostCall(o, fn))
}

// Notify is [Queue.Notify].
func (s *Stream) Notify(fn func()) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Notify(o, fn))
}

// Alloca is [Queue.Alloca]. All later operations of the stream may use the memory, and so may work
// that waits for the stream's [Stream.Point].
func (s *Stream) Alloca(p *Pool, size uint64) (*Buffer, error) {
	o, err := s.begin()
	if err != nil {
		return nil, err
	}
	b, err := s.q.Alloca(o, p, size)
	if err := s.end(err); err != nil {
		return nil, err
	}
	return b, nil
}

// Dealloca is [Queue.Dealloca]. All earlier operations of the stream may have used the memory.
func (s *Stream) Dealloca(b *Buffer) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Dealloca(o, b))
}

// Execute is [Queue.Execute].
func (s *Stream) Execute(c *CommandBuffer, bindings ...Range) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.Execute(o, c, bindings...))
}

// ExecuteAll is [Queue.ExecuteAll].
func (s *Stream) ExecuteAll(all ...*CommandBuffer) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.ExecuteAll(o, all...))
}
