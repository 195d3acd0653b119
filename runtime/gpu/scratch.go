package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/memplan"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Alloca returns a buffer for what the commands leave for each other: scratch memory, of size bytes, at a multiple of [Alignment]. It is
// the recording's from the first command that uses it to the last, in whatever order they run; before, behind, and between executions the
// bytes are other buffers'. So nothing is in it at first, and it needs no dealloca. A size of zero is legal.
//
// [CommandBuffer.End] places all buffers of Alloca in one block of [DeviceMem] of
// [CommandBuffer.ScratchSize] bytes, or in memory of the program ([CommandBuffer.SetScratch]). Two
// buffers share bytes if every command that uses the first comes before every command that uses the
// second. Barriers, host calls, collectives and lists of commands give that order. The order of the
// recording calls does not count.
//
// Executions that overlap have a block each. [Queue.Execute] makes a block when it needs one. The
// command buffer keeps its blocks until it is closed. To have one block only, order the executions: on
// one queue, in a [Stream], or by waits.
//
// The buffer is for commands of this recording, and for bindings of what is recorded with [CommandBuffer.Execute] and [CommandBuffer.Nest];
// anything else refuses it. A recording that is nested has its scratch memory in the other's block, each time anew. The call does not
// block, allocates no memory of the device, and is safe for concurrent use.
func (c *CommandBuffer) Alloca(size uint64) (*Buffer, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	if err := memory.CanBe(size); err != nil {
		return nil, fmt.Errorf("gpu: alloca: %w", err)
	}
	return (*Buffer)(c.newScratch(size)), nil
}

// newScratch returns what stands for scratch memory. The caller holds mu.
func (c *CommandBuffer) newScratch(size uint64) *memory.Buffer {
	b := memory.NewPlaceholder(c.dev.mem(), size, memory.Place{Recording: c, Index: len(c.scratches), Scratch: true})
	c.scratches = append(c.scratches, b)
	return b
}

// ScratchSize returns how many bytes the buffers of [CommandBuffer.Alloca] take together, as they are used by the commands that have been
// recorded. It does not block, but takes as long as [CommandBuffer.End] does to find places for them; after End the size is known. It is
// safe for concurrent use.
func (c *CommandBuffer) ScratchSize() (uint64, error) {
	if c == nil || c.dev == nil {
		return 0, errs.ErrZero
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return c.layout.Size, nil
	}
	l, err := c.layOutScratch()
	return l.Size, err
}

// SetScratch has the buffers of [CommandBuffer.Alloca] be parts of a range, which several recordings may share, instead of blocks of the
// command buffer's own. The range is used as any other that is recorded: it must have [CommandBuffer.ScratchSize] bytes when the recording
// ends, else [CommandBuffer.End] fails with [ErrRange]; it may be memory of a pool, or of a [CommandBuffer.Binding]; and it is for the
// program to order executions that use it, also in recordings that this one is nested in. Its address is a multiple of [Alignment]. The
// buffer is held until the command buffer is closed and no execution is under way. The call does not block, and is safe for concurrent use.
func (c *CommandBuffer) SetScratch(r Range) error {
	const op = "set scratch"
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	at, err := r.in().CheckRecorded(op, c.dev.mem())
	if err == nil {
		err = r.in().Writable(op)
	}
	if err == nil {
		err = r.in().Usable(op, c.dev.mem())
	}
	switch {
	case err != nil:
		return err
	case scratchOf(r.Buffer.in()) >= 0:
		return errs.Argument(op, "the buffer stands for scratch memory itself")
	case recordedIn(r.Buffer.in()) != nil && recordedIn(r.Buffer.in()) != c:
		return errs.Argument(op, "a binding of another command buffer")
	case uint64(at.Ptr)%Alignment != 0:
		return errs.Argument(op, "the range is not aligned to %d bytes", Alignment)
	}
	if slotOf(r.Buffer.in()) < 0 {
		if err := c.hold(r.Buffer.in()); err != nil {
			return fmt.Errorf("gpu: %s: %w", op, err)
		}
	}
	c.scratch = r.in()
	return nil
}

// layOutScratch finds places for scratch memory as it is used by what has been recorded. The caller holds mu.
func (c *CommandBuffer) layOutScratch() (memplan.Layout, error) {
	if len(c.scratches) == 0 {
		return memplan.Layout{}, nil
	}
	sizes := make([]uint64, len(c.scratches))
	for i, b := range c.scratches {
		sizes[i] = b.Size()
	}
	l, err := memplan.Plan(c.scratchSteps(), sizes, Alignment)
	if err != nil {
		err = fmt.Errorf("gpu: command buffer: %d buffers of Alloca: %w: %w", len(sizes), err, driver.ErrOutOfMemory)
	}
	return l, err
}

// scratchSteps returns the commands with their order and the scratch memory that they use.
func (c *CommandBuffer) scratchSteps() []memplan.Step {
	steps := make([]memplan.Step, c.cmds.n)
	var uses, afters []int // room for the steps'
	add := func(ref int32) {
		if ref >= 0 {
			if i := scratchOf(c.refers[ref].buffer); i >= 0 {
				uses = append(uses, i)
			}
		}
	}
	level := 0
	var group *Channel // that the command in front is a collective of
	alone := false     // the command in front is a host call
	for i := range steps {
		cmd := c.cmds.at(i)
		goesOn := group != nil && cmd.joins(group) // such collectives run at once
		if kind := cmd.op.Kind; alone || kind == work.Barrier || kind == work.HostCall || !goesOn && (group != nil || kind == work.Collect) {
			level++
		}
		switch alone = cmd.op.Kind == work.HostCall; {
		case cmd.op.Kind == work.Collect:
			group = cmd.rare.ch
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
				add(op.dstRef)
				add(op.srcRef)
			}
		}
		for _, a := range cmd.after {
			afters = append(afters, int(a))
		}
		steps[i] = memplan.Step{Level: level, Uses: uses[from:], After: afters[fromAfter:]}
	}
	return steps
}

// placeScratch finds places for scratch memory, and makes the first block. It turns references to
// scratch memory into references to that block, or to the memory that the program has set.
func (c *CommandBuffer) placeScratch() (first *block, err error) {
	if c.layout, err = c.layOutScratch(); err != nil {
		return nil, err
	}
	if c.scratch.Buffer != nil && c.layout.Size > c.scratch.Size {
		return nil, fmt.Errorf("gpu: command buffer: the buffers of Alloca take %d bytes, and the range of SetScratch has %d: %w",
			c.layout.Size, c.scratch.Size, ErrRange)
	}
	if first, err = c.makeBlock(); err != nil {
		return nil, fmt.Errorf("gpu: command buffer: %w", err)
	}
	if len(c.scratches) == 0 {
		return first, nil
	}
	at := c.scratch
	if c.ownScratch() {
		at = memory.Range{Buffer: first.mem, Size: first.mem.Size()}
	}
	late := at.Buffer.HasNoAddress()
	c.ask(&reference{buffer: at.Buffer, offset: at.Offset, size: c.layout.Size, align: Alignment, written: true, used: true})
	for i := range c.refers {
		if r := &c.refers[i]; scratchOf(r.buffer) >= 0 {
			if c.ownScratch() {
				r.scratch = r.buffer
			}
			r.buffer, r.offset, r.late = at.Buffer, at.Offset+c.layout.Offsets[scratchOf(r.buffer)]+r.offset, late
		}
	}
	return first, nil
}

// scratchAnew makes a reference of a nested recording to its block one to scratch memory of this recording's, of which there is one in anew
// for each that the nested one has.
func (c *CommandBuffer) scratchAnew(child *CommandBuffer, r *reference, anew []*memory.Buffer) {
	i := scratchOf(r.scratch)
	if anew[i] == nil {
		anew[i] = c.newScratch(r.scratch.Size())
	}
	r.buffer, r.offset, r.scratch, r.late = anew[i], r.offset-child.layout.Offsets[i], nil, true
}
