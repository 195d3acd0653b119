package recording

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A block belongs to one execution of a recording at a time. It has scratch memory, the events of
// timestamps, and the graphs that were made with these. End makes the first block. An execution
// takes a free block, or makes one more. A recording without scratch memory of its own and without
// timestamps has one block, which all executions share.
//
// An execution takes its block when its first part is about to be issued. By then all its waits
// have been issued, so a parked execution has no block. The execution keeps the block until its
// last part has been issued, or has failed. Then an execution that comes after that part may take
// it. Executions of one block come one after the other on the device, and so do the parts of an
// execution. So the mark of the last use covers all uses.
type block struct {
	mem    *memory.Buffer // the scratch memory, or nil
	timers []driver.Event // events of the timestamps, in order
	graphs []graphOf      // graphs of the parts; protected by the recording's mu

	// blocks.mu of the recording protects the following fields.
	taken bool        // an execution that has parts left to issue uses the block
	last  engine.Mark // behind all work that has used it
}

// blocks are the blocks of a recording.
type blocks struct {
	many   bool // each execution in flight needs a block of its own
	timers int  // how many timestamps there are

	mu  sync.Mutex // protects all and the blocks' fields; only coverMu and Semaphore.mu are locked under it
	all []*block   // End adds the first; none is removed
}

// add adds a block.
func (b *blocks) add(x *block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, x)
}

// list returns all blocks.
func (b *blocks) list() []*block {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}

// poll polls the work that uses blocks.
func (b *blocks) poll() {
	var uses engine.Frontier
	b.mu.Lock()
	for _, x := range b.all {
		if !x.taken && x.last.Timeline != nil { // the work that used it last may have ended
			uses.Add(x.last)
		}
	}
	b.mu.Unlock()
	for _, m := range uses {
		m.Timeline.Poll(m.Seq, 1)
	}
}

// A run is an execution that needs a block. The submissions of its parts share it.
type run struct {
	of    *Recording
	block *block // nil until the first part is about to be issued

	// blocks.mu of the recording protects the following fields.
	begun bool // a stream has received a part of the execution
	// left is the number of parts that still use the block. A part uses it until the part has been
	// issued or has failed. The last part gives the block back. If left is math.MaxInt, the block is
	// never given back.
	left int
}

// start sets the run up for a new execution of which a number of parts use a block.
func (r *run) start(c *Recording, users int) *run {
	*r = run{of: c, left: users}
	return r
}

// needBlocks counts the parts of a layout that use a block, if executions need blocks of their own.
// If the first such part is a group of collectives, or a conditional that the host runs, needBlocks
// inserts an empty part before it, which takes the block: making a block on a communicator's
// timeline would delay other ranks. l must be the last layout of the recording, because the empty
// part moves later parts.
func (c *Recording) needBlocks(l *layout) {
	if !c.blocks.many {
		return
	}
	parts := c.parts[l.from:]
	first := slices.IndexFunc(parts, func(p part) bool { return p.host == nil })
	if first >= 0 && (parts[first].lane != nil || parts[first].control != nil) {
		c.parts = slices.Insert(c.parts, l.from+first, part{})
	}
	for _, p := range c.parts[l.from:] {
		if p.host == nil {
			l.users++
		}
	}
}

// block returns the block that the submission uses.
func (p *Part) block() *block {
	if p.run != nil {
		return p.run.block
	}
	return p.recording.blocks.all[0]
}

// takeBlock takes a free block for the execution, and reports false if there is none.
func (p *Part) takeBlock(s *engine.Submission) bool {
	r := p.run
	r.of.blocks.mu.Lock()
	defer r.of.blocks.mu.Unlock()
	if r.block != nil {
		return true
	}
	for _, b := range r.of.blocks.all {
		if !b.taken && p.comesAfter(s, b.last) {
			b.taken, r.block = true, b
			return true
		}
	}
	return false
}

// comesAfter reports whether the execution comes after a mark: the mark has been passed, or the
// execution's timeline or waits order the execution after it. Only a passed mark counts if the
// recording has timestamps and an event cannot be recorded again before the host has seen it done.
func (p *Part) comesAfter(s *engine.Submission, m engine.Mark) bool {
	if m.Timeline == nil || m.Passed() || m.Retiring() {
		return true
	}
	if p.run.of.blocks.timers > 0 && !s.Timeline.Device.Caps.RerecordEvents {
		return false
	}
	if s.Timeline.Covers(m.Timeline, m.Seq) {
		return true
	}
	for _, w := range s.Waits {
		if how, p := w.Semaphore.Next(w.Value, nil); how == sema.Ordered && p.Producer == m.Timeline && p.Seq >= m.Seq {
			return true
		}
	}
	return false
}

// findBlock takes a free block for the execution, or makes one. Making one blocks as long as the
// driver does. The execution comes after the last use of the block.
func (p *Part) findBlock(s *engine.Submission) error {
	r := p.run
	if !p.takeBlock(s) {
		if err := p.addBlock(s); err != nil {
			return err
		}
	}
	// takeBlock may have relied on a wait of s for a point that the block's last use was going to
	// signal. By now other work may have signalled that point, and the wait would order nothing. So
	// the stream also waits for the last use itself. That mostly costs nothing, because the stream
	// is ordered after that use already.
	if m := r.block.last; !r.begun && m.Timeline != nil && m.Timeline != s.Timeline && !m.Passed() {
		s.Deps.Add(m)
	}
	return nil
}

// addBlock does the work of findBlock for an execution that has found no free block.
func (p *Part) addBlock(s *engine.Submission) error {
	r := p.run
	if r.of.blocks.poll(); p.takeBlock(s) {
		return nil
	}
	b, err := r.of.makeBlock()
	if err == nil {
		r.block = b
		return nil
	}
	if p.takeBlock(s) { // a block may have become free meanwhile
		return nil
	}
	return fmt.Errorf("all %d blocks of the command buffer are in use by executions that this one does not come after, and one more cannot be made: %w; "+
		"have it wait for one of them, or free memory", len(r.of.blocks.list()), err)
}

// makeBlock makes one more block, and marks it as taken. It blocks as long as the driver does.
func (c *Recording) makeBlock() (*block, error) {
	b := &block{graphs: make([]graphOf, len(c.parts)), taken: true}
	if c.scratch.own() {
		mem, err := c.dev.Memory.Alloc(driver.DeviceMem, c.scratch.layout.Size)
		if err == nil {
			err = mem.Hold()
			mem.Close() // the recording keeps the only reference
		}
		if err != nil {
			return nil, fmt.Errorf("scratch memory: %w", err)
		}
		b.mem = mem
	}
	if c.blocks.timers == 0 {
		c.blocks.add(b)
		return b, nil
	}
	err := c.dev.Engine.Do(func() error { // Do keeps Close from destroying native objects meanwhile
		for range c.blocks.timers {
			e, err := c.dev.Faces.Timers.NewTimer()
			if err != nil {
				return errors.Join(append([]error{fmt.Errorf("an event of a timestamp: %w", err)}, b.destroyTimers(c.dev)...)...)
			}
			b.timers = append(b.timers, e)
		}
		c.blocks.add(b)
		return nil
	})
	if err != nil {
		if b.mem != nil {
			b.mem.Release()
		}
		return nil, err
	}
	return b, nil
}

// leaveBlock calls run.leaveBlock for the submission's part.
func (p *Part) leaveBlock(m engine.Mark) {
	p.run.leaveBlock(m)
	p.run = nil
}

// leaveBlock notes that a part of the execution has been issued at the mark m. A zero m means that
// the part will never be issued.
func (r *run) leaveBlock(m engine.Mark) {
	r.of.blocks.mu.Lock()
	defer r.of.blocks.mu.Unlock()
	if m.Timeline != nil {
		r.begun, r.block.last = true, m
	}
	if r.left--; r.left == 0 && r.block != nil {
		r.block.taken = false
	}
}

// returnBlock gives the block back if no stream has a part of the execution. The execution takes a
// block again when it is issued.
func (r *run) returnBlock() {
	r.of.blocks.mu.Lock()
	defer r.of.blocks.mu.Unlock()
	if r.block != nil && !r.begun {
		r.block.taken, r.block = false, nil
	}
}

// destroy frees the block's objects. It runs on a bound thread, when nothing uses the block any
// more. The fields stay: an execution may still read them before it finds the device closed.
func (b *block) destroy(d *Device) (errs []error) {
	for i := range b.graphs {
		errs = append(errs, b.graphs[i].destroy(d.Faces.Graphs)...)
	}
	errs = append(errs, b.destroyTimers(d)...)
	if b.mem != nil {
		b.mem.Release()
	}
	return errs
}

func (b *block) destroyTimers(d *Device) (errs []error) {
	for _, e := range b.timers {
		errs = append(errs, d.Engine.Native.DestroyEvent(e))
	}
	return errs
}
