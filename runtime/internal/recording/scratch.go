package recording

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/memplan"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// scratchMemory is the scratch memory of a recording.
type scratchMemory struct {
	buffers []*memory.Buffer // the scratch buffers of this recording, and those of nested recordings and bodies
	given   memory.Range     // the program's memory for the buffers; see SetScratch
	layout  memplan.Layout   // the layout of the buffers; End makes it
}

// own reports whether each instance of the recording has scratch memory of its own. It returns
// false if the recording has no scratch memory, or if the program gave the memory by SetScratch.
func (s *scratchMemory) own() bool { return len(s.buffers) > 0 && s.given.Buffer == nil }

// Scratch returns a buffer that stands for scratch memory of the recording.
func (c *Recording) Scratch(size uint64) (*memory.Buffer, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.Leave()
	if err := memory.CanBe(size); err != nil {
		return nil, fmt.Errorf("gpu: scratch: %w", err)
	}
	return c.newScratch(size), nil
}

// newScratch returns a buffer that stands for scratch memory. The caller holds c.mu.
func (c *Recording) newScratch(size uint64) *memory.Buffer {
	b := memory.NewPlaceholder(c.dev.Memory, size, memory.Place{Recording: c, Index: len(c.scratch.buffers), Scratch: true})
	c.scratch.buffers = append(c.scratch.buffers, b)
	return b
}

// ScratchSize returns how many bytes the scratch memory takes. Before End, that is the size for the
// commands recorded so far.
func (c *Recording) ScratchSize() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return c.scratch.layout.Size, nil
	}
	l, err := c.layOutScratch()
	return l.Size, err
}

// SetScratch places the scratch memory in a range.
func (c *Recording) SetScratch(r memory.Range) error {
	const op = "set scratch"
	if err := c.enter(); err != nil {
		return err
	}
	defer c.Leave()
	at, err := r.CheckRecorded(op, c.dev.Memory)
	if err == nil {
		err = r.Writable(op)
	}
	if err == nil {
		err = r.Usable(op, c.dev.Memory)
	}
	switch {
	case err != nil:
		return err
	case scratchOf(r.Buffer) >= 0:
		return errs.Argument(op, "the buffer stands for scratch memory itself")
	case recordedIn(r.Buffer) != nil && recordedIn(r.Buffer) != c:
		return errs.Argument(op, "a binding of another command buffer")
	case uint64(at.Ptr)%memory.Alignment != 0:
		return errs.Argument(op, "the range is not aligned to %d bytes", memory.Alignment)
	}
	if slotOf(r.Buffer) < 0 {
		if err := c.held.addBuffer(r.Buffer, c.dev.Memory); err != nil {
			return fmt.Errorf("gpu: %s: %w", op, err)
		}
	}
	c.scratch.given = r
	return nil
}

// layOutScratch finds places for the scratch memory of the commands recorded so far. The caller
// holds c.mu.
func (c *Recording) layOutScratch() (memplan.Layout, error) {
	if len(c.scratch.buffers) == 0 {
		return memplan.Layout{}, nil
	}
	sizes := make([]uint64, len(c.scratch.buffers))
	for i, b := range c.scratch.buffers {
		sizes[i] = b.Size()
	}
	l, err := memplan.Plan(c.scratchSteps(), sizes, memory.Alignment)
	if err != nil {
		err = fmt.Errorf("gpu: command buffer: %d buffers of Scratch: %w: %w", len(sizes), err, driver.ErrOutOfMemory)
	}
	return l, err
}

// scratchSteps returns the commands with their order and the scratch memory that they use.
func (c *Recording) scratchSteps() []memplan.Step {
	steps := make([]memplan.Step, c.cmds.n)
	var uses, afters []int // storage of the steps' Uses and After
	add := func(ref int32) {
		if ref >= 0 {
			if i := scratchOf(c.refers[ref].buffer); i >= 0 {
				uses = append(uses, i)
			}
		}
	}
	level := 0
	var group *comm.Communicator // the communicator if the command before this one is a collective
	alone := false               // the host runs the command before this one
	for i := range steps {
		cmd := c.cmds.at(i)
		goesOn := group != nil && cmd.joins(group) // the collectives of a group run at the same time
		onHost := cmd.op.Kind == work.HostCall || cmd.op.Kind == work.Control && cmd.rare.cond.why != ""
		if kind := cmd.op.Kind; alone || kind == work.Barrier || onHost || !goesOn && (group != nil || kind == work.Collect) {
			level++
		}
		switch alone = onHost; {
		case cmd.op.Kind == work.Collect:
			group = cmd.rare.lane
		case !goesOn:
			group = nil
		}
		from, fromAfter := len(uses), len(afters)
		add(cmd.dst)
		add(cmd.src)
		for _, b := range cmd.bound {
			add(b.ref)
		}
		if cmd.rare != nil {
			for _, op := range cmd.rare.group {
				add(op.dst)
				add(op.src)
			}
			if x := cmd.rare.cond; x != nil {
				for ref := x.refs[0]; ref < x.refs[1]; ref++ {
					add(ref)
				}
			}
		}
		for _, a := range cmd.after {
			afters = append(afters, int(a))
		}
		steps[i] = memplan.Step{Level: level, Uses: uses[from:], After: afters[fromAfter:]}
	}
	return steps
}

// placeScratch finds places for scratch memory, and makes the first instance. It turns references
// to scratch memory into references to that instance's memory, or to the range of SetScratch.
func (c *Recording) placeScratch() (first *instance, err error) {
	if c.scratch.layout, err = c.layOutScratch(); err != nil {
		return nil, err
	}
	if c.scratch.given.Buffer != nil && c.scratch.layout.Size > c.scratch.given.Size {
		return nil, fmt.Errorf("gpu: command buffer: the buffers of Scratch take %d bytes, and the range of SetScratch has %d: %w",
			c.scratch.layout.Size, c.scratch.given.Size, errs.ErrRange)
	}
	if first, err = c.makeInstance(); err != nil {
		return nil, fmt.Errorf("gpu: command buffer: %w", err)
	}
	if len(c.scratch.buffers) == 0 {
		return first, nil
	}
	at := c.scratch.given
	if c.scratch.own() {
		at = memory.Range{Buffer: first.mem, Size: first.mem.Size()}
	}
	late := at.Buffer.HasNoAddress()
	c.ask(&reference{buffer: at.Buffer, offset: at.Offset, size: c.scratch.layout.Size, align: memory.Alignment, written: true, used: true})
	for i := range c.refers {
		if r := &c.refers[i]; scratchOf(r.buffer) >= 0 {
			if c.scratch.own() {
				r.scratch = r.buffer
			}
			r.buffer, r.offset, r.late = at.Buffer, at.Offset+c.scratch.layout.Offsets[scratchOf(r.buffer)]+r.offset, late
		}
	}
	return first, nil
}

// scratchAnew turns a reference to the scratch memory of the nested recording's first instance into
// a reference to scratch memory of this recording. anew has an entry for each scratch buffer of the
// nested recording: the new buffer, or nil until it is made.
func (c *Recording) scratchAnew(child *Recording, r *reference, anew []*memory.Buffer) {
	i := scratchOf(r.scratch)
	if anew[i] == nil {
		anew[i] = c.newScratch(r.scratch.Size())
	}
	r.buffer, r.offset, r.scratch, r.late = anew[i], r.offset-child.scratch.layout.Offsets[i], nil, true
}
