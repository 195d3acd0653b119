package memory

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/blockpool"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// The states of a buffer's memory. Memory that is not from a pool is always live. A placeholder is
// always pending.
const (
	isLive    int32 = iota
	isPending       // the allocation has not been issued
	isFreed         // the Free is about to be issued, or waits for work that uses the memory
	isGone          // the Free has been issued
	isClosed        // the memory went back to the pool because the buffer was closed
	isFailed        // the allocation has failed
)

// For returns the pool for an allocation that names the pool h. If h is nil, it returns the current
// pool.
func (d *Device) For(h *PoolHandle) (*Pool, error) {
	if h == nil {
		if h = d.current.Load(); h == nil || h.pool.closed.Load() {
			h, err := d.CurrentPool()
			return h.Pool(), err
		}
	}
	p := h.pool
	switch {
	case p == nil || p.dev != d:
		return nil, errs.Argument("alloc", "the pool is of another device")
	case p.closed.Load() && d.Failed() == nil:
		return nil, fmt.Errorf("gpu: alloc: pool: %w", errs.ErrClosed)
	}
	return p, nil
}

// NewBuffer makes a buffer for memory of the pool. The queue of the timeline home will allocate the
// memory.
func (p *Pool) NewBuffer(home *engine.Timeline, size uint64) *Buffer {
	if p.dev.Leaks != nil {
		b := newBuffer(p.dev, size)
		b.from, b.pool, b.home, b.mem.Kind = pooled, p, home, p.opt.Kind
		return b
	}
	stats := &p.dev.buffers
	stats.mu.Lock()
	b := stats.fresh()
	stats.mu.Unlock()
	b.dev, b.from, b.pool, b.home = p.dev, pooled, p, home
	b.mem.Kind, b.mem.Size = p.opt.Kind, size
	return b
}

// ListEmpty counts an empty buffer of a pool as one of the device's buffers.
func (b *Buffer) ListEmpty() { b.dev.buffers.add(b) }

// SetAlloc sets up s as the submission that allocates the memory of b, a buffer of NewBuffer. The
// submission holds b.
func (p *Part) SetAlloc(s *engine.Submission, b *Buffer) {
	b.state.Store(isPending)
	if b.pool.opt.Zero {
		s.Op.Count = b.mem.Size
	}
	b.refs.Add(1)
	p.buffer = b
	s.Holds = append(s.Holds, b.Holding())
}

// allocate allocates memory of a native pool. The caller holds the timeline's mu.
func (p *Pool) allocate(tl *engine.Timeline, size uint64) (driver.Mem, error) {
	if err := CanBe(size); err != nil {
		return driver.Mem{}, err
	}
	if !p.keeps {
		return p.allocateOpen(tl, size)
	}
	// This pool stays open until the device is closed.
	return p.dev.Faces.Pools.AllocAsync(tl.Stream, p.native, size)
}

// allocateOpen is like allocate, for a pool that the program may close. It locks p.life, so that
// the pool stays open during the call.
func (p *Pool) allocateOpen(tl *engine.Timeline, size uint64) (m driver.Mem, err error) {
	p.life.RLock()
	defer p.life.RUnlock()
	if err := p.ended(); err != nil {
		return m, err
	}
	p.live.Add(1)
	if m, err = p.dev.Faces.Pools.AllocAsync(tl.Stream, p.native, size); err != nil {
		p.live.Add(-1)
	}
	return m, err
}

// crosses reports whether a native pool may make a timeline's stream wait for another stream,
// because the pool reuses memory that was freed in that other stream.
func (p *Pool) crosses(tl *engine.Timeline) bool {
	freed := p.freed.Load()
	return freed != nil && (freed != tl || p.shared.Load())
}

// Alloc is the [engine.Action] that allocates memory of a pool.
type Alloc struct{ engine.SimpleAction }

// Prepare takes a block of a portable pool.
func (Alloc) Prepare(s *engine.Submission) (engine.Outcome, error) {
	return engine.Refused, partOf(s).buffer.takeMemory(s)
}

// Blocks reports whether the allocation may block, because a portable pool may have to grow.
func (Alloc) Blocks(s *engine.Submission) bool {
	b := partOf(s).buffer
	return b.pool.blocks != nil && !b.pool.blocks.Near(b.mem.Size, b.pool.number(s.Timeline))
}

// HoldsUp reports whether a native pool may make the stream wait for another stream.
func (Alloc) HoldsUp(s *engine.Submission, tl *engine.Timeline) bool {
	return partOf(s).buffer.pool.crosses(tl)
}

// Issue makes the native calls.
func (Alloc) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return partOf(s).buffer.alloc(s, tl)
}

// Issued calls spoil if the stream has received only a part of the allocation.
func (Alloc) Issued(s *engine.Submission, tl *engine.Timeline, broken bool) bool {
	if broken {
		partOf(s).buffer.spoil(s, tl)
	}
	return false
}

// Undo gives the block of a portable pool back. With the outcome Early or Foreign, the memory is
// pending again, because the submission may be issued later. With any other outcome the allocation
// has failed.
func (Alloc) Undo(s *engine.Submission, how engine.Outcome) {
	b := partOf(s).buffer
	if how == engine.Early || how == engine.Foreign {
		b.returnMemory(isPending)
	} else {
		b.returnMemory(isFailed)
	}
}

// Retries reports whether a native pool has found no memory and may find some after unused memory
// has been freed. Retries returns false for a portable pool, because Prepare has already taken the
// block from that pool.
func (Alloc) Retries(s *engine.Submission, err error) bool {
	b := partOf(s).buffer
	return b.pool.blocks == nil && b.state.Load() != isLive && b.pool.collects(b.mem.Size, err)
}

// Explain adds to an out-of-memory error how many bytes the buffers and each pool hold.
func (Alloc) Explain(s *engine.Submission, err error) error {
	return partOf(s).buffer.holders(err)
}

// Release forgets the buffer, so that the recycled record does not keep the buffer reachable.
func (Alloc) Release(s *engine.Submission) { partOf(s).buffer = nil }

// takeMemory takes a block of a portable pool for an allocation. For a native pool it does nothing.
// The caller does not hold the timeline's mu, because the pool may have to grow.
func (b *Buffer) takeMemory(s *engine.Submission) error {
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
				p.dev.Engine.Collect(s.MayBlock())
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
				// Nobody will know when the lost device stops using the block, so the block stays
				// taken.
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

// returnMemory gives back the block that takeMemory took, and sets the state. If the memory is
// allocated, returnMemory does nothing.
func (b *Buffer) returnMemory(state int32) {
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

// spoil is called when the stream has received only a part of the allocation. It sets the state to
// isFailed and gives back the block that takeMemory took: the block is free behind that part. If
// the memory was allocated despite the error, spoil does nothing.
func (b *Buffer) spoil(s *engine.Submission, tl *engine.Timeline) {
	if b.state.Load() == isLive {
		return
	}
	if b.pool.blocks != nil && b.mem.Ptr != 0 {
		b.pool.blocks.Free(uint64(b.mem.Ptr), blockpool.Mark{Timeline: b.pool.number(tl), Seq: s.Seq})
		b.pool.tidyIfClosed()
	}
	b.state.Store(isFailed)
}

// alloc makes the native calls of an allocation.
func (b *Buffer) alloc(s *engine.Submission, tl *engine.Timeline) (started bool, err error) {
	native := b.pool.blocks == nil
	if native {
		m, err := b.pool.allocate(tl, b.mem.Size)
		if err != nil {
			if !s.Action.Retries(s, err) {
				b.state.Store(isFailed)
			}
			return false, err
		}
		b.mem.Ptr, b.mem.Host = m.Ptr, m.Host // other goroutines may be reading b.mem's other fields
	} else if b.mem.Kind != driver.DeviceMem {
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

// hostOf returns the host address of memory of a portable pool, or nil if the host cannot access
// it.
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

// A FreeKind says which queue frees a buffer's memory.
type FreeKind uint8

const (
	FreeHere      FreeKind = iota // the queue to which the Free is submitted
	FreeElsewhere                 // the queue that allocated the memory
	FreeNothing                   // none: the buffer is not from a pool, or is empty
)

// CheckFree returns which queue frees the memory when a Free of the buffer is submitted to the
// queue of tl. It returns an error if the buffer cannot be freed.
func (b *Buffer) CheckFree(tl *engine.Timeline) (FreeKind, error) {
	switch {
	case b.dev.Engine != tl.Device && b.dev.Engine.Driver != tl.Device.Driver:
		return 0, b.foreign("free", tl.Device)
	case b.Place().Recording != nil:
		return 0, errs.Argument("free", "a binding of a command buffer, or a buffer of its Scratch: neither is allocated by a queue")
	case b.from != pooled || b.mem.Size == 0:
		return FreeNothing, nil
	// If the device has failed, the submission fails with the device's error instead.
	case b.hasGone() && b.dev.Failed() == nil:
		return 0, fmt.Errorf("gpu: free: the memory has been deallocated: %w", errs.ErrUnallocated)
	case b.closed.Load() && tl.Device.Failed() == nil:
		return 0, fmt.Errorf("gpu: free: buffer: %w", errs.ErrClosed)
	case b.home != tl && b.pool.native != 0 && (b.dev.Engine != tl.Device || b.dev.Engine.Caps.PoolsByStream):
		return FreeElsewhere, nil
	}
	return FreeHere, nil
}

// Home returns the timeline of the queue that allocated the memory from a pool, or nil for other
// memory.
func (b *Buffer) Home() *engine.Timeline { return b.home }

// UnlistEmpty undoes ListEmpty. It does nothing if the buffer is not from a pool.
func (b *Buffer) UnlistEmpty() {
	if b.from == pooled {
		b.dev.buffers.remove(b)
	}
}

// SetFree sets up s as the submission that frees the memory of b. The submission holds b, but does
// not count as a use of the memory. If b is closed, SetFree returns an error.
func (p *Part) SetFree(s *engine.Submission, b *Buffer) error {
	if err := b.Hold(); err != nil {
		return err
	}
	p.buffer = b
	s.Holds = append(s.Holds, (*freed)(b))
	return nil
}

// Free is the [engine.Action] that gives memory back to a pool.
type Free struct{ engine.SimpleAction }

// Prepare marks the memory as freed.
func (Free) Prepare(s *engine.Submission) (engine.Outcome, error) { return partOf(s).takeAway(s) }

// Issue gives the memory back.
func (Free) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	p := partOf(s)
	err := p.buffer.deallocate(tl, tl.Latest()+1)
	p.endAwait()
	return err == nil, err
}

// Issued requests polling if the pool is closed, because the memory then goes back to the driver.
func (Free) Issued(s *engine.Submission, _ *engine.Timeline, _ bool) bool {
	return partOf(s).buffer.pool.closed.Load()
}

// Undo undoes takeAway (giveUp) if the outcome is Early. For Foreign, Undo ends the wait for uses.
// For Deferred, Undo parks the Free until the streams have passed the uses. With any other outcome
// the Free fails, and Release undoes takeAway.
func (Free) Undo(s *engine.Submission, how engine.Outcome) {
	p := partOf(s)
	switch how {
	case engine.Early:
		p.giveUp()
	case engine.Foreign:
		p.endAwait()
	case engine.Deferred:
		p.awaitUses(s)
	}
}

// Release first calls giveUp, which undoes takeAway if the Free was not issued. Then it calls
// maintain, so that the pool gives back unused memory above its threshold. Finally it forgets the
// buffer, so that the recycled record does not keep the buffer reachable.
func (Free) Release(s *engine.Submission) {
	p := partOf(s)
	p.giveUp()
	if b := p.buffer; b != nil {
		b.pool.maintain(s.Timeline.At(s.Seq))
	}
	p.buffer = nil
}

// The type freed is the buffer of a Free as an engine.Holder. The submission holds the buffer, but
// does not count as a use of the memory. If another device owns the memory, Close of that device
// waits for the Free.
type freed Buffer

// Use tells the device that owns the memory about the work, if another device does the work.
func (u *freed) Use(m engine.Mark) error { return (*Buffer)(u).borrow(m) }

// Unuse does nothing.
func (*freed) Unuse(engine.Mark) (awaited bool) { return false }

// Release releases n references.
func (u *freed) Release(n int32) { (*Buffer)(u).releaseAll(n) }

// deallocate gives memory back to the pool, after takeAway has marked the memory as freed. seq is
// the number of the Free. The caller holds the timeline's mu. If a native pool refuses the memory,
// the runtime does not free it again: the driver may have freed it despite the error, and a second
// free could free memory of a new owner.
func (b *Buffer) deallocate(tl *engine.Timeline, seq uint64) error {
	b.state.Store(isGone)
	b.dev.buffers.remove(b)
	if b.pool.blocks == nil {
		return b.freeAsync(tl, tl.Stream)
	}
	return b.pool.blocks.Free(uint64(b.mem.Ptr), blockpool.Mark{Timeline: b.pool.number(tl), Seq: seq})
}

// hasGone reports whether a Free has marked the memory as freed.
func (b *Buffer) hasGone() bool {
	state := b.state.Load()
	return state == isGone || state == isFreed
}

// freeAsync frees memory of a native pool in the stream h: the timeline's stream or, while the
// device is being closed, another stream. The caller holds the timeline's mu.
func (b *Buffer) freeAsync(tl *engine.Timeline, h driver.Stream) error {
	p := b.pool
	if p.freed.Load() != tl && !p.freed.CompareAndSwap(nil, tl) && !p.shared.Load() {
		p.shared.Store(true)
	}
	err := p.dev.Faces.Pools.FreeAsync(h, b.mem)
	if !p.keeps && p.live.Add(-1) == 0 && p.closed.Load() {
		p.dev.sweepPools()
	}
	return err
}

// giveBack frees memory that no queue has deallocated. No work in flight uses the memory. A native
// pool frees the memory in the stream h, or in the stream that allocated the memory if h is 0.
// giveBack runs on a bound thread.
func (p *Pool) giveBack(b *Buffer, h driver.Stream) error {
	if b.mem.Size == 0 {
		return nil
	}
	// While the device is being closed, a Free may have marked the memory as freed. That Free is
	// about to find the device closed, and will not free the memory.
	if !b.state.CompareAndSwap(isLive, isClosed) && !b.state.CompareAndSwap(isFreed, isClosed) {
		return nil
	}
	tl := b.home
	if p.blocks != nil {
		err := p.blocks.Free(uint64(b.mem.Ptr), blockpool.Mark{Timeline: p.number(tl)})
		return errors.Join(err, p.tidySoon())
	}
	if h == 0 {
		h = tl.Stream
	}
	return tl.Locked(func() error { return b.freeAsync(tl, h) })
}
