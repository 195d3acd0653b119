package gpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/blockpool"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// The states of a buffer's memory. Memory that is not from a pool is always live. A binding is
// always pending.
const (
	isLive    int32 = iota
	isPending       // its alloca has not been issued
	isFreed         // its dealloca is about to be issued, or waits for work that uses the memory
	isGone          // its dealloca has been issued
	isClosed        // it went back to the pool because the buffer was closed
	isFailed        // it was never allocated
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
		return nil, errZero
	}
	if p == nil {
		if p = d.current.Load(); p == nil || p.closed.Load() {
			var err error
			if p, err = d.CurrentPool(); err != nil {
				if d.failed() != nil {
					return nil, q.submit(q.get(work.Barrier), o)
				}
				return nil, err
			}
		}
	}
	switch {
	case p.dev != d:
		return nil, argument("alloca", "the pool is of another device")
	case p.closed.Load() && d.failed() == nil:
		return nil, fmt.Errorf("gpu: alloca: pool: %w", ErrClosed)
	case q.tl.Adopted:
		return nil, q.notOnAdopted(work.Alloca)
	}
	b := q.newBuffer(p, size)
	if size == 0 {
		if err := q.submit(q.get(work.Barrier), o); err != nil {
			return nil, err
		}
		d.buffers.add(b)
		return b, nil
	}
	b.state.Store(isPending)
	s := q.get(work.Alloca)
	if p.opt.Zero {
		s.Op.Count = size
	}
	b.refs.Add(1)
	s.buffer = b
	s.keep(b)
	if err := q.submit(s, o); err != nil {
		return nil, err
	}
	return b, nil
}

// newBuffer makes a buffer for memory of a pool.
func (q *Queue) newBuffer(p *Pool, size uint64) *Buffer {
	stats := &q.dev.buffers
	stats.mu.Lock()
	b := stats.fresh()
	stats.mu.Unlock()
	b.dev, b.from, b.pool, b.home = q.dev, pooled, p, q
	b.mem.Kind, b.mem.Size = p.opt.Kind, size
	return b
}

// allocate allocates memory of a native pool. The caller holds the timeline's mu.
func (p *Pool) allocate(tl *engine.Timeline, size uint64) (driver.Mem, error) {
	if err := canBe(size); err != nil {
		return driver.Mem{}, err
	}
	if !p.keeps {
		return p.allocateOpen(tl, size)
	}
	// The device keeps this pool open until it is closed itself.
	return deviceOf(tl).faces.pooling.AllocAsync(tl.Stream, p.native, size)
}

// allocateOpen is allocate for a pool that the program may close. p.life keeps it open during the
// call.
func (p *Pool) allocateOpen(tl *engine.Timeline, size uint64) (m driver.Mem, err error) {
	p.life.RLock()
	defer p.life.RUnlock()
	if err := p.ended(); err != nil {
		return m, err
	}
	p.live.Add(1)
	if m, err = deviceOf(tl).faces.pooling.AllocAsync(tl.Stream, p.native, size); err != nil {
		p.live.Add(-1)
	}
	return m, err
}

// crosses reports whether a native pool may make a timeline's stream wait for another stream, whose
// freed memory it reuses.
func (p *Pool) crosses(tl *engine.Timeline) bool {
	freed := p.freed.Load()
	return freed != nil && (freed != tl || p.shared.Load())
}

// allocaAction allocates memory of a pool.
type allocaAction struct{ engine.SimpleAction }

func (allocaAction) Prepare(s *engine.Submission) (engine.Outcome, error) {
	return engine.Refused, recordOf(s).takeMemory()
}

// Blocks reports whether a portable pool has to grow.
func (allocaAction) Blocks(s *engine.Submission) bool {
	b := recordOf(s).buffer
	return b.pool.blocks != nil && !b.pool.blocks.Near(b.mem.Size, b.pool.number(s.Timeline))
}

func (allocaAction) HoldsUp(s *engine.Submission, tl *engine.Timeline) bool {
	return recordOf(s).buffer.pool.crosses(tl)
}

func (allocaAction) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return recordOf(s).alloca(tl)
}

func (allocaAction) Issued(s *engine.Submission, tl *engine.Timeline, broken bool) bool {
	if broken {
		recordOf(s).spoil(tl)
	}
	return false
}

func (allocaAction) Undo(s *engine.Submission, how engine.Outcome) {
	if how == engine.Early || how == engine.Foreign {
		recordOf(s).returnMemory(isPending)
	} else {
		recordOf(s).returnMemory(isFailed)
	}
}

// Retries reports whether a native pool has found no memory. A portable pool has memory before the
// alloca is issued.
func (allocaAction) Retries(s *engine.Submission, err error) bool {
	b := recordOf(s).buffer
	return b.pool.blocks == nil && b.state.Load() != isLive && b.pool.collects(b.mem.Size, err)
}

func (allocaAction) Explain(s *engine.Submission, err error) error {
	return recordOf(s).buffer.holders(err)
}

// deallocaAction gives memory back to a pool.
type deallocaAction struct{ engine.SimpleAction }

func (deallocaAction) Prepare(s *engine.Submission) (engine.Outcome, error) {
	return recordOf(s).takeAway()
}

func (deallocaAction) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	r := recordOf(s)
	err := r.buffer.deallocate(tl, tl.Latest()+1)
	r.endAwait()
	return err == nil, err
}

// Issued reports whether the pool is closed. Then the memory goes back to the driver.
func (deallocaAction) Issued(s *engine.Submission, _ *engine.Timeline, _ bool) bool {
	return recordOf(s).buffer.pool.closed.Load()
}

func (deallocaAction) Undo(s *engine.Submission, how engine.Outcome) {
	r := recordOf(s)
	switch how {
	case engine.Early:
		r.giveUpFree()
	case engine.Foreign:
		r.endAwait()
	case engine.Deferred:
		r.awaitUses()
	}
}

func (deallocaAction) Release(s *engine.Submission) {
	r := recordOf(s)
	r.giveUpFree()
	if b := r.buffer; b != nil {
		b.pool.maintain(s.Timeline.At(s.Seq))
	}
}

// takeMemory takes a block of a portable pool for an alloca. It is called before the timeline is
// locked, because the pool may have to grow.
func (s *record) takeMemory() error {
	b := s.buffer
	p := b.pool
	if p.blocks == nil {
		return nil
	}
	if err := p.ended(); err != nil {
		return err
	}
	for collected := false; ; {
		block, err := p.blocks.Alloc(b.mem.Size, p.number(s.Timeline), p.order())
		if err != nil {
			if !collected && p.collects(b.mem.Size, err) {
				p.dev.native.Collect(s.MayBlock())
				collected = true
				continue
			}
			if errors.Is(err, blockpool.ErrClosed) {
				err = p.ended()
			}
			if collected {
				err = b.holders(err)
			}
			return err
		}
		if block.Wait.Seq > 0 {
			last := p.timeline(block.Wait.Timeline).At(block.Wait.Seq)
			if last.Lost() != nil {
				// Nobody will know when the lost device stops using the block, so it stays taken.
				continue
			}
			if !last.Passed() {
				s.Deps.Add(last)
			}
		}
		b.mem.Ptr = driver.Ptr(block.Addr)
		return nil
	}
}

// returnMemory gives back the block of takeMemory, because the alloca was not issued.
func (s *record) returnMemory(state int32) {
	b := s.buffer
	if b.state.Load() == isLive {
		return
	}
	if b.pool.blocks != nil && b.mem.Ptr != 0 {
		b.pool.blocks.Cancel(uint64(b.mem.Ptr))
		b.mem.Ptr = 0
		b.pool.tidyIfClosed()
	}
	b.state.Store(state)
}

// spoil gives back the block of takeMemory when the stream has got a part of the alloca.
func (s *record) spoil(tl *engine.Timeline) {
	b := s.buffer
	if b.state.Load() == isLive {
		return
	}
	if b.pool.blocks != nil && b.mem.Ptr != 0 {
		b.pool.blocks.Free(uint64(b.mem.Ptr), blockpool.Mark{Timeline: b.pool.number(tl), Seq: s.Seq})
		b.pool.tidyIfClosed()
	}
	b.state.Store(isFailed)
}

// alloca makes the native calls of an allocation.
func (s *record) alloca(tl *engine.Timeline) (started bool, err error) {
	b := s.buffer
	native := b.pool.blocks == nil
	if native {
		m, err := b.pool.allocate(tl, b.mem.Size)
		if err != nil {
			if !s.Action.Retries(&s.Submission, err) {
				b.state.Store(isFailed)
			}
			return false, err
		}
		b.mem.Ptr, b.mem.Host = m.Ptr, m.Host // others may be reading the other fields
	} else if b.mem.Kind != DeviceMem {
		b.mem.Host = b.pool.hostOf(b.mem.Ptr)
	}
	if native {
		b.goLive()
	}
	if b.pool.opt.Zero {
		if err := tl.Device.Native.Fill(tl.Stream, b.mem.Ptr, 0, 1, b.mem.Size); err != nil {
			return native, err
		}
	}
	if !native {
		b.goLive()
	}
	return true, nil
}

// goLive marks the memory as allocated. The caller holds the timeline's mu, so the device is not
// closed meanwhile.
func (b *Buffer) goLive() {
	b.dev.buffers.add(b)
	b.state.Store(isLive)
}

// hostOf returns the host's address of memory of a portable pool, or nil if it has none.
func (p *Pool) hostOf(ptr driver.Ptr) unsafe.Pointer {
	if p.over != nil {
		if p.over.mem.Host == nil {
			return nil
		}
		return unsafe.Add(p.over.mem.Host, ptr-p.over.mem.Ptr)
	}
	p.slabs.mu.Lock()
	defer p.slabs.mu.Unlock()
	for _, m := range p.slabs.mem {
		if ptr >= m.Ptr && uint64(ptr-m.Ptr) < m.Size && m.Host != nil {
			return unsafe.Add(m.Host, ptr-m.Ptr)
		}
	}
	return nil
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
	case !b.exists():
		return argument("dealloca", "no buffer")
	case q.dev == nil:
		return errZero
	case b.dev != q.dev && b.dev.native.Driver != q.dev.native.Driver:
		return argument("dealloca", "the buffer is of driver %s, the queue of %s", b.dev.native.Driver.Name(), q.dev.native.Driver.Name())
	case b.recordedIn() != nil:
		return argument("dealloca", "a binding of a command buffer, or a buffer of its Alloca: neither is allocated by a queue")
	case b.from != pooled || b.mem.Size == 0:
		err := q.submit(q.get(work.Barrier), o)
		if err == nil && b.from == pooled {
			b.dev.buffers.remove(b)
		}
		return err
	// With a failed device the memory went with the device.
	case b.hasGone() && b.dev.failed() == nil:
		return fmt.Errorf("gpu: dealloca: the memory has been deallocated: %w", ErrUnallocated)
	case b.closed.Load() && q.dev.failed() == nil:
		return fmt.Errorf("gpu: dealloca: buffer: %w", ErrClosed)
	}
	if q.tl.Adopted {
		return q.notOnAdopted(work.Dealloca)
	}
	if b.home != q && b.pool.native != 0 && (b.dev != q.dev || b.dev.native.Caps.PoolsByStream) {
		return q.deallocaElsewhere(o, b)
	}
	r := q.get(work.Dealloca)
	if err := r.free(b); err != nil {
		return err
	}
	return q.submit(r, o)
}

// free makes the record a dealloca of a buffer. The record holds the buffer, but does not count as
// a use of it. The errors are those of keepBuffer.
func (r *record) free(b *Buffer) error {
	if err := b.hold(); err != nil {
		return r.notKept(err)
	}
	r.buffer = b
	r.Holds = append(r.Holds, (*freedUse)(b))
	return nil
}

// A freedUse is the buffer of a dealloca as the scheduler knows it. The work holds the buffer, and the
// device that owns it must know of the work. It is no use of the memory.
type freedUse Buffer

// Use tells the device that owns the memory, if it is another one.
func (u *freedUse) Use(m engine.Mark) error { return (*Buffer)(u).borrow(m) }

// Unuse does nothing.
func (*freedUse) Unuse(engine.Mark) (awaited bool) { return false }

// Release lets go of n references.
func (u *freedUse) Release(n int32) { (*Buffer)(u).releaseAll(n) }

// deallocaElsewhere deallocates memory of a native pool that this queue's stream must not free. One
// case is memory of another device, whose streams the driver might make wait for this one. The
// other is, with Caps.PoolsByStream, memory that another stream allocated. When this queue reaches
// the dealloca, the host submits it to the queue that allocated the memory.
func (q *Queue) deallocaElsewhere(o Order, b *Buffer) error {
	if err := o.checkAll(); err != nil {
		return fmt.Errorf("gpu: dealloca on %v: %w", q, err)
	}
	if t := o.Timing; t != nil && t.dev == q.dev && q.dev != b.dev {
		return argument("dealloca", "the memory is of %s, whose stream deallocates it: a timing of %s cannot tell how long that takes", b.dev.native.Info.Name, q.dev.native.Info.Name)
	}
	if q.tl.FailedBy() != nil {
		return q.submit(q.get(work.Barrier), o) // it fails, and does not tell o.Free
	}
	turn := new(Semaphore)
	s := b.home.get(work.Dealloca)
	s.Mode = engine.UntilReached
	if err := s.free(b); err != nil {
		return err
	}
	if err := b.home.submit(s, Order{Wait: []Point{{turn, 1}}, Signal: o.Signal, Free: o.Free, Label: o.Label, Timing: o.Timing}); err != nil {
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
	if !b.exists() {
		return argument("dealloca", "no buffer")
	}
	q := b.home
	if q == nil {
		q = b.dev.Queue(0)
	}
	return q.Dealloca(o, b)
}

// deallocate gives memory that takeAway has marked as freed back to the pool. A portable pool gets
// it with the mark seq of the timeline. The caller holds the timeline's mu. If a native pool
// refuses the memory, it is gone too: the driver may have freed it all the same, and a second free
// could free memory that somebody else has by then.
func (b *Buffer) deallocate(tl *engine.Timeline, seq uint64) error {
	b.state.Store(isGone)
	b.dev.buffers.remove(b)
	if b.pool.blocks == nil {
		return b.freeAsync(tl, tl.Stream)
	}
	return b.pool.blocks.Free(uint64(b.mem.Ptr), blockpool.Mark{Timeline: b.pool.number(tl), Seq: seq})
}

// hasGone reports whether a dealloca has taken the memory.
func (b *Buffer) hasGone() bool {
	state := b.state.Load()
	return state == isGone || state == isFreed
}

// freeAsync frees memory of a native pool in the stream h. That is the timeline's stream, except
// while the device is being closed. The caller holds the timeline's mu.
func (b *Buffer) freeAsync(tl *engine.Timeline, h driver.Stream) error {
	p := b.pool
	if p.freed.Load() != tl && !p.freed.CompareAndSwap(nil, tl) && !p.shared.Load() {
		p.shared.Store(true)
	}
	err := deviceOf(tl).faces.pooling.FreeAsync(h, b.mem)
	if !p.keeps && p.live.Add(-1) == 0 && p.closed.Load() {
		p.dev.sweepPools()
	}
	return err
}

// giveBack frees memory that no queue has deallocated and nothing holds: the streams have passed
// all its uses, the alloca included. A driver's pool frees it in the stream h, or if h is 0 in the
// stream that allocated it. giveBack runs on a bound thread.
func (p *Pool) giveBack(b *Buffer, h driver.Stream) error {
	if b.mem.Size == 0 {
		return nil
	}
	// While the device is being closed, a dealloca may have marked the memory that is about to find
	// the device closed.
	if !b.state.CompareAndSwap(isLive, isClosed) && !b.state.CompareAndSwap(isFreed, isClosed) {
		return nil
	}
	tl := b.home.tl
	if p.blocks != nil {
		err := p.blocks.Free(uint64(b.mem.Ptr), blockpool.Mark{Timeline: p.number(tl)})
		return errors.Join(err, p.tidySoon())
	}
	if h == 0 {
		h = tl.Stream
	}
	return tl.Locked(func() error { return b.freeAsync(tl, h) })
}
