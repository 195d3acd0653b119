package gpu

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/blockpool"
	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
)

// An alloca of a pool with PoolOptions.Wait that finds no memory stands in the pool's line: it is parked, as a submission is whose wait
// has no producer, on a semaphore of its own. Only the first in line tries to get memory, each time when some may have come back: a
// dealloca was issued or passed, a buffer closed, an alloca given up. So a large one is not overtaken by small ones for ever.
//
// No memory comes back any more when nothing is allocated and nothing is being deallocated; then the first in line fails with the error of its
// last try.

// A poolLine is the allocas that wait for memory of a pool, in the order in which all else that they waited for had been issued.
type poolLine struct {
	n       atomic.Int32  // how many there are
	news    atomic.Uint64 // how often memory may have come back
	freeing atomic.Int64  // deallocas that have been issued and are not over
	stuck   atomic.Int64  // blocks of a portable pool that work of a lost device may use for ever

	mu    sync.Mutex // over bufferStats.mu and Semaphore.mu; protects what follows, and claims
	first *claim
	last  *claim
}

// A claim is what an alloca that has stood in line has there. Its buffer keeps it.
type claim struct {
	turn  Semaphore // the alloca waits until it reaches round
	there Semaphore // 1 is signalled by the alloca: the buffer's uses without lists wait for it
	gone  Semaphore // how many of those uses are over: a dealloca waits for all

	before, after *claim
	size          uint64
	since         moment // that it stands in line
	listed        bool   // it is in line
	waits         bool   // turn has not reached round
	round         uint64
	at            int    // in the alloca's waits
	uses          uint64 // that were parked until the alloca is issued
}

// linePart is the part of a submission's record for a pool's line.
type linePart struct {
	claims []*Buffer // it was parked until their allocas, which stood in line, were issued
	heard  uint64    // of an alloca: the news when it began to try
}

func (p *linePart) reset() {
	clear(p.claims)
	p.claims = p.claims[:0]
}

// errNotFirst is why an alloca that is not the first in line does not try to get memory.
var errNotFirst = fmt.Errorf("gpu: others wait for memory of the pool: %w", driver.ErrOutOfMemory)

// errAwaited is the error of a use of memory whose alloca stands in line.
var errAwaited = fmt.Errorf("gpu: the memory has not been allocated: its alloca waits for memory of the pool: %w", ErrUnallocated)

// lined returns the pool with a line whose memory the submission allocates or deallocates, or nil.
func (s *submission) lined() *Pool {
	if k := s.op.Kind; k != work.Alloca && k != work.Dealloca || s.keep[0] == nil || !s.keep[0].pool.opt.Wait {
		return nil
	}
	return s.keep[0].pool
}

// tooLarge reports whether a pool can never have so much memory.
func (p *Pool) tooLarge(size uint64) bool {
	limit := p.opt.MaxSize
	if p.over != nil {
		limit &^= Alignment - 1 // blocks are whole
	}
	return p.opt.MaxSize > 0 && size > limit || canBe(size) != nil
}

// mayTry reports whether an alloca may try to get memory, and notes how many news it has heard of.
func (l *poolLine) mayTry(s *submission) bool {
	s.heard = math.MaxUint64
	if l.n.Load() > 0 {
		l.mu.Lock()
		first := l.first
		l.mu.Unlock()
		if first != nil && first != s.keep[0].claim.Load() {
			return false
		}
	}
	s.heard = l.news.Load()
	return true
}

// lacksMemory reports whether a submission was refused because memory is not there that may come: an alloca's, or that of an alloca.
func (s *submission) lacksMemory(err error) bool {
	if s.q.tl.ch != nil { // whose groups keep their order
		return false
	}
	if errors.Is(err, errAwaited) {
		return true
	}
	p := s.lined()
	return p != nil && s.op.Kind == work.Alloca && errors.Is(err, driver.ErrOutOfMemory) && s.keep[0].state.Load() != isLive
}

// await makes a submission that was refused, as err says, ready to be parked until there is memory. It reports false if it fails
// instead.
func (s *submission) await(err error) bool {
	if !s.lacksMemory(err) {
		return false
	}
	if s.op.Kind == work.Alloca {
		if !s.standInLine(err) {
			return false
		}
	} else {
		s.awaitAllocas()
	}
	s.letGoAll()
	if s.event != nil { // many may be parked
		s.event.drop()
		s.event = nil
	}
	for _, t := range s.tps {
		s.putTimepoint(t)
	}
	clear(s.tps)
	s.tps, s.fed = s.tps[:0], false
	return true
}

// standInLine has an alloca wait in its pool's line, or try again at once if it is the first and memory may have come back since it
// began to try. It reports false if no memory will ever do.
func (s *submission) standInLine(why error) bool {
	b := s.keep[0]
	p, l := b.pool, &b.pool.line
	if p.tooLarge(b.mem.Size) {
		return false
	}
	comes := p.comes(why)
	l.mu.Lock()
	c := b.claim.Load()
	if c == nil { // before the news are looked at, for who brings some looks whether anybody is in line then
		c = &claim{size: b.mem.Size, since: now(), at: len(s.waits)}
		s.waits = append(s.waits, Point{&c.turn, 0})
		s.signals = append(s.signals, Point{&c.there, 1})
		b.claim.Store(c)
		p.push(c)
	}
	isFirst := l.first == c
	anew := isFirst && s.heard != l.news.Load() || p.closed.Load() // looked at after what comes
	if !anew && isFirst && !comes {
		l.mu.Unlock()
		return false // it leaves the line when it has failed
	}
	if !anew {
		c.round++
		c.waits = true
		s.waits[c.at].Value = c.round
	}
	var released *timepoint
	if !isFirst { // the first may have taken memory for another one's that was only tried for just now
		released = p.tryFirst()
	}
	l.mu.Unlock()
	if isFirst && !anew { // somebody has to find out when what uses the memory is over
		p.dev.askAll()
	}
	if released != nil {
		release(released)
	}
	return true
}

// comes reports whether memory will come back that was not there in an alloca's try, which failed with err.
func (p *Pool) comes(err error) bool {
	if p.blocks == nil {
		return p.live.Load() > 0 || p.line.freeing.Load() > 0
	}
	e, ok := errors.AsType[*blockpool.AllocError](err)
	if !ok {
		return errors.Is(err, errNotFirst)
	}
	return int64(e.Live) > p.line.stuck.Load() || slices.ContainsFunc(e.Behind, func(i int) bool {
		tl := p.timeline(i)
		return mark{tl, tl.issued.Load()}.lost() == nil
	})
}

// askAll has devices asked about all that they have been given, or are being given, which may use memory of this one. What they are given from
// now on they are asked about as long as somebody waits for memory to come back (short).
func (d *Device) askAll() {
	for _, q := range d.all() {
		q.tl.want(q.tl.issued.Load() + 1)
	}
	d.lent.any(func(m mark) bool {
		m.tl.want(m.seq)
		return false
	})
}

// push puts a claim at the end of the line. The caller holds its mu.
func (p *Pool) push(c *claim) {
	l := &p.line
	c.before, c.listed = l.last, true
	if l.last != nil {
		l.last.after = c
	} else {
		l.first = c
	}
	l.last = c
	l.n.Add(1)
	p.dev.short.Add(1)
}

// remove takes a claim out of the line, if it is in it. The caller holds its mu.
func (p *Pool) remove(c *claim) {
	l := &p.line
	if !c.listed {
		return
	}
	if c.before != nil {
		c.before.after = c.after
	} else {
		l.first = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		l.last = c.before
	}
	c.before, c.after, c.listed = nil, nil, false
	l.n.Add(-1)
	p.dev.short.Add(-1)
}

// cameBack has the first alloca in line try again, since memory may have come back. It returns what that releases.
func (p *Pool) cameBack() *timepoint {
	p.line.news.Add(1)
	if p.line.n.Load() == 0 {
		return nil
	}
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	return p.tryFirst()
}

// tryFirst has the first alloca in line try again, unless there cannot be room for it. The caller holds the line's mu.
func (p *Pool) tryFirst() *timepoint {
	l := &p.line
	c := l.first
	if c == nil || !c.waits || p.blocks != nil && l.stuck.Load() == 0 && !p.blocks.Room(c.size) {
		return nil
	}
	c.waits = false
	list, _ := c.turn.signal(c.round) // one that has failed is about to leave
	return list
}

// leave is called when an alloca has been issued, or has ended without. It returns what is released: the next in line tries.
func (p *Pool) leave(b *Buffer) *timepoint {
	c := b.claim.Load()
	if c == nil {
		return nil
	}
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	p.remove(c)
	return p.tryFirst()
}

// issued is called when a submission has been given to a stream that allocates or deallocates memory of a pool with a line.
func (p *Pool) issued(s *submission) *timepoint {
	if s.op.Kind == work.Alloca {
		return p.leave(s.keep[0]).before(p.cameBack()) // a part of one may have been given back
	}
	return p.cameBack()
}

// unfreeing notes that so many deallocas are over that had been issued, or have not been after all. Call cameBack after it.
func (p *Pool) unfreeing(deallocas int64) {
	p.line.news.Add(1) // first: who finds that nothing comes any more looks at the news then
	p.line.freeing.Add(-deallocas)
}

// passed is called when submissions that allocate or deallocate are over, of which so many are deallocas. It returns what is released.
func (p *Pool) passed(deallocas int64) *timepoint {
	p.unfreeing(deallocas)
	return p.cameBack()
}

// A comingBack is a pool whose memory comes back when a timeline's passed has been set.
type comingBack struct {
	pool      *Pool
	deallocas int64
}

// comesBack notes that a submission is over that allocated or deallocated memory of a pool with a line. The caller holds retireMu.
func (tl *timeline) comesBack(s *submission) {
	p := s.lined()
	if p == nil {
		return
	}
	x := comingBack{pool: p}
	if s.frees {
		x.deallocas = 1
	}
	tl.back = append(tl.back, x)
}

// cameBack tells the pools that comesBack has noted. The caller holds retireMu.
func (tl *timeline) cameBack() {
	for _, x := range tl.back {
		if list := x.pool.passed(x.deallocas); list != nil {
			release(list)
		}
	}
	clear(tl.back)
	tl.back = tl.back[:0]
}

// notIssued is called when an alloca or a dealloca has ended that no stream has passed, and has let go of what it held.
func (p *Pool) notIssued(b *Buffer, isAlloca, frees bool) {
	if frees {
		p.unfreeing(1)
	}
	var list *timepoint
	if isAlloca {
		list = p.leave(b)
	}
	release(list.before(p.cameBack()))
}

// closeLine has all allocas in line fail, for the pool has been closed.
func (p *Pool) closeLine() {
	p.line.mu.Lock()
	var list timepointList
	for c := p.line.first; c != nil; c = c.after {
		list.join(c.turn.fail(p.ended()))
	}
	p.line.mu.Unlock()
	release(list.first)
}

// giveUp is called when nothing but the alloca holds a buffer that has been closed: if that stands in line it fails.
func (c *claim) giveUp(b *Buffer) {
	if b.closed.Load() && b.state.Load() == isPending {
		release(c.turn.fail(errBufferClosed))
	}
}

// awaitAllocas has a submission wait until the allocas are issued of the buffers that it uses, and a dealloca until those uses are
// over that have waited as well.
func (s *submission) awaitAllocas() {
	isDealloca := s.op.Kind == work.Dealloca
	s.eachBuffer(func(b *Buffer) {
		c := b.claim.Load()
		if c == nil {
			return
		}
		l := &b.pool.line
		l.mu.Lock()
		defer l.mu.Unlock()
		pending := b.state.Load() == isPending
		if pending {
			s.waits = append(s.waits, Point{&c.there, 1})
		}
		switch {
		case isDealloca:
			s.waits = append(s.waits, Point{&c.gone, c.uses})
		case pending:
			c.uses++
			s.claims, s.cold = append(s.claims, b), true
		}
	})
}

// busy reports whether uses are not over that were parked until the alloca is issued.
func (c *claim) busy(p *Pool) bool {
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	return c.gone.value.Load() < c.uses
}

// useOver is called when such a use is over.
func (b *Buffer) useOver() {
	l, c := &b.pool.line, b.claim.Load()
	l.mu.Lock()
	list, _ := c.gone.signal(c.gone.value.Load() + 1)
	l.mu.Unlock()
	if list != nil {
		release(list)
	}
}

// unallocated returns errAwaited if the alloca of a buffer that the submission uses stands in line.
func (s *submission) unallocated() (err error) {
	s.eachBuffer(func(b *Buffer) {
		if b.claim.Load() != nil && b.state.Load() == isPending {
			err = errAwaited
		}
	})
	return err
}

// eachBuffer calls a function with each buffer that a submission uses.
func (s *submission) eachBuffer(do func(*Buffer)) {
	for b := range s.named {
		do(b)
	}
	if s.cold && s.recording != nil {
		for i := range s.recording.sources {
			if b := s.recording.sources[i].buffer; b.slot() == nil {
				do(b)
			}
		}
	}
}

// prepares reports whether an alloca has to be prepared before its timeline is locked.
func (p *Pool) prepares() bool { return p.blocks != nil || p.opt.Wait }

// since returns from when on a submission is parked that is about to be: an alloca may be parked anew, between its tries.
func (p *Pool) since(s *submission) moment {
	if c := s.keep[0].claim.Load(); c != nil && s.op.Kind == work.Alloca {
		return c.since
	}
	return now()
}

// awaits reports whether a semaphore is that on which the buffer's alloca waits in line.
func (b *Buffer) awaits(s *Semaphore) bool {
	if b == nil {
		return false
	}
	c := b.claim.Load()
	return c != nil && s == &c.turn
}

// awaited completes what is known of the wait of an alloca that stands in line, of which open are the operations that may end it.
func (w *ParkedWait) awaited(b *Buffer, open []openOperation) {
	p := b.pool
	p.line.mu.Lock()
	for c := p.line.first; c != nil; c = c.after {
		w.Ahead++
		if c == b.claim.Load() {
			break
		}
	}
	p.line.mu.Unlock()
	w.Pool, w.Size, w.Ahead = p, b.mem.Size, max(w.Ahead-1, 0)
	for i := range open {
		if o := &open[i]; o.op == work.Dealloca && o.buffer != nil && o.buffer.pool == p {
			w.Producer = o.String()
			return
		}
	}
	if tl := p.deallocating(); tl != nil {
		w.Producer = producer{tl: tl, op: work.Dealloca.String(), known: true}.String()
	}
}

// deallocating returns a timeline of the pool's device that has a dealloca of its memory in flight, or nil.
func (p *Pool) deallocating() *timeline {
	for _, q := range p.dev.all() {
		if q.tl.deallocates(p) {
			return q.tl
		}
	}
	return nil
}

func (tl *timeline) deallocates(p *Pool) bool {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := tl.ring.head; seq <= tl.issued.Load(); seq++ {
		if s := tl.ring.at(seq); s.op.Kind == work.Dealloca && s.keep[0].pool == p {
			return true
		}
	}
	return false
}

// mention describes the pool: "a pool of at most 65536 bytes on H200".
func (p *Pool) mention() string {
	if p.opt.MaxSize > 0 {
		return fmt.Sprintf("a pool of at most %d bytes on %s", p.opt.MaxSize, p.dev.info.Name)
	}
	return fmt.Sprintf("a pool on %s", p.dev.info.Name)
}
