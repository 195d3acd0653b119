package gpu

import (
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// executePart is the part of a submission's record for an execution. Here a part is a part of the
// recording.
type executePart struct {
	recording *CommandBuffer
	part      int
	binds     []memory.Range // the bound ranges, or the ranges of a function of Native
	run       *run           // of the execution, if it needs a block; it is run1 if this is the only part
	run1      run
}

func (p *executePart) reset() {
	clear(p.binds)
	p.recording, p.part, p.binds, p.run, p.run1 = nil, 0, p.binds[:0], nil, run{}
}

// Execute runs a command buffer that has ended, with ranges for its bindings, in order. The ranges
// are copied by the call. A recording may be executed again, with the same or other bindings, while
// executions are in flight: each uses its own bindings.
//
// There must be as many ranges as the recording has bindings. Each is as large as the commands use,
// and aligned as they need it. The buffers stay until the execution is over. Memory of pools, bound
// or recorded, must have been allocated when the execution is issued, else its signals fail with
// [ErrUnallocated].
//
// Execute blocks while a graph is made: the first time, if [CommandBuffer.End] could not make it,
// and when the driver cannot change one, for other kinds of memory for example. It also blocks
// while a block is made. A recording with scratch memory of its own ([CommandBuffer.Alloca]), or
// with timestamps, keeps blocks. A block has scratch memory, events and graphs, for one execution
// at a time. End makes the first block. An execution takes a block that is no longer in use, or one
// whose last use comes before the execution, by its queue or its waits. If there is none, Execute
// makes one more. If there is no memory for it, the signals fail with [driver.ErrOutOfMemory].
func (q *Queue) Execute(o Order, c *CommandBuffer, bindings ...Range) error {
	if c == nil || c.dev != q.dev {
		return errs.Argument("execute", "no command buffer, or one of another device")
	}
	if q.dev.failed() != nil { // then the submission fails, even if Close has closed the recording
		return q.submit(q.get(work.Execute), o)
	}
	parts, err := c.executable()
	if err != nil {
		if q.dev.failed() != nil { // as above
			return q.submit(q.get(work.Execute), o)
		}
		return err
	}
	if err := checkBindings(c.slots, ranges(bindings), q.dev, nil); err != nil {
		return err
	}
	var one [1]step
	return q.executeSteps(o, c.addSteps(one[:0], parts), ranges(bindings))
}

// ExecuteAll runs command buffers that have ended one after the other, as one operation. The first
// begins when the waits are reached, each other one when the one before it is over, and the signals
// come when the last one is over. If one fails, the signals fail, and later ones that have not been
// issued do not run. A command buffer may be listed more than once. With no command buffers the
// operation is a barrier.
//
// The command buffers have no bindings: wrap one that has some in another one, with
// [CommandBuffer.Execute]. If one cannot be executed, none is. ExecuteAll blocks as [Queue.Execute]
// does.
func (q *Queue) ExecuteAll(o Order, all ...*CommandBuffer) error {
	for i, c := range all {
		if c == nil || c.dev != q.dev {
			return errs.Argument("execute", "command buffer %d is none, or one of another device", i)
		}
	}
	switch {
	case q.dev == nil:
		return errs.ErrZero
	case q.dev.failed() != nil: // as above
		return q.submit(q.get(work.Execute), o)
	case len(all) == 0:
		return q.Barrier(o)
	}
	var steps []step
	for i, c := range all {
		parts, err := c.executable()
		switch {
		case err != nil && q.dev.failed() != nil: // as above
			return q.submit(q.get(work.Execute), o)
		case err != nil:
			return err
		case len(c.slots) > 0:
			return errs.Argument("execute", "command buffer %d has %d bindings", i, len(c.slots))
		}
		steps = c.addSteps(steps, parts)
	}
	return q.executeSteps(o, steps, nil)
}

// addSteps appends the steps of an execution of the command buffer.
func (c *CommandBuffer) addSteps(to []step, parts int) []step {
	var r *run
	if c.many && parts > 1 {
		r = new(run).start(c)
	}
	for i := range parts {
		to = append(to, step{c, i, r})
	}
	return to
}

// A step is a part of a command buffer that is to be executed, and the run that it belongs to. The run
// is nil if the execution needs no block. It is also nil if the execution has one part only: then the
// run is in the submission's record.
type step struct {
	c    *CommandBuffer
	part int
	run  *run
}

// at returns the part.
func (x step) at() *part { return &x.c.parts[x.part] }

// executable returns how many parts a command buffer has, or why it cannot be executed. The parts stay
// as they are from End on.
func (c *CommandBuffer) executable() (parts int, err error) {
	c.mu.Lock()
	ended, flaw, parts := c.ended, c.flaw, len(c.parts)
	c.mu.Unlock()
	switch {
	case c.closed.Load():
		return 0, fmt.Errorf("gpu: execute: command buffer: %w", ErrClosed)
	case !ended:
		return 0, errs.Argument("execute", "the command buffer has not ended")
	case flaw != nil:
		return 0, fmt.Errorf("gpu: execute: the command buffer did not end well: %w", flaw)
	}
	return parts, nil
}

// executeSteps submits steps, each behind the one before it.
func (q *Queue) executeSteps(o Order, steps []step, bindings []memory.Range) error {
	if len(steps) == 1 {
		return q.executeStep(o, steps[0], bindings, nil)
	}
	if err := o.checkAll(); err != nil { // before the first step is submitted: the last one has the signals
		return fmt.Errorf("gpu: execute on %v: %w", q, err)
	}
	link, err := NewSemaphore(0) // its value is the number of steps that are over
	if err != nil {
		return err
	}
	var l *lent // of all steps: one may fail, and be over, before an earlier one is
	if len(o.Free) > 0 {
		l = newLent(len(steps), o.Free)
	}
	first, last := timed(steps)
	for n, x := range steps {
		each := Order{Wait: []Point{{link, uint64(n)}}, Signal: []Point{{link, uint64(n) + 1}}, Label: o.Label, Timing: o.Timing, edges: noBegin | noEnd}
		if n == 0 {
			each.Wait = o.Wait
		}
		if n == len(steps)-1 {
			each.Signal = o.Signal
		}
		if n == first {
			each.edges &^= noBegin
		}
		if n == last {
			each.edges &^= noEnd
		}
		err := q.executeStep(each, x, bindings, l)
		if err == nil {
			continue
		}
		left := steps[n+1:]
		x.leaveRest(left)
		if n == 0 && x.at().ch == nil && q.tl.FailedBy() == nil {
			return err
		}
		FailAll(err, signalled(o)...) // the steps that have been submitted go on
		if n == 0 {
			return err
		}
		if l != nil && len(left) > 0 {
			l.over(len(left))
		}
		return nil
	}
	return nil
}

// leaveRest has the later steps of a run leave its block: they will not be submitted.
func (x step) leaveRest(left []step) {
	for _, y := range left {
		if x.run != nil && y.run == x.run && y.at().host == nil {
			x.run.leaveBlock(engine.Mark{})
		}
	}
}

// timed returns the first and the last step that a Timing measures: work of streams or, if there is
// none, host calls.
func timed(steps []step) (first, last int) {
	onHost := func(x step) bool { return x.at().host != nil }
	first, last = 0, len(steps)-1
	if !slices.ContainsFunc(steps, func(x step) bool { return !onHost(x) }) {
		return first, last
	}
	for onHost(steps[first]) {
		first++
	}
	for onHost(steps[last]) {
		last--
	}
	return first, last
}

// signalled returns the semaphores of an order's signals.
func signalled(o Order) (all []*Semaphore) {
	for _, p := range o.Signal {
		all = append(all, p.Semaphore)
	}
	return all
}

// executeStep submits a step. l is told when it is over, unless l is nil.
func (q *Queue) executeStep(o Order, x step, bindings []memory.Range, l *lent) error {
	c, op, p := x.c, work.Execute, x.at()
	switch {
	case p.host != nil:
		op = work.HostCall
	case p.ch != nil:
		q, op = queueOf(p.ch.in().Timeline()), work.Collect
	}
	s := q.get(op)
	s.lent, s.Lends, s.part = l, l != nil, x.part
	if p.ch != nil {
		s.Action = recordedGroup{}
		s.group.SetFirst(c.cmds.at(p.from).rare.group[0].Kind)
	}
	if p.host != nil {
		s.fn, s.Mode = p.host, engine.UntilReached
	} else if s.run = x.run; c.many && s.run == nil {
		s.run = s.run1.start(c)
	}
	if q.dev.failed() != nil { // then the submission fails
		return q.submit(s, o)
	}
	for _, r := range bindings {
		if err := r.Buffer.Hold(); err != nil {
			s.drop()
			return fmt.Errorf("gpu: execute: %w", err)
		}
		s.binds = append(s.binds, r)
		s.keep(r.Buffer)
	}
	if !engine.HoldLive(&c.refs, 1) {
		s.drop()
		return fmt.Errorf("gpu: execute: command buffer: %w", ErrClosed)
	}
	s.recording = c
	s.Holds = append(s.Holds, (*recordingUse)(c))
	return q.submit(s, o)
}

// executeAction runs a part of a command buffer.
type executeAction struct{ engine.SimpleAction }

func (executeAction) Prepare(s *engine.Submission) (engine.Outcome, error) {
	r := recordOf(s)
	if r.run != nil {
		if err := r.findBlock(); err != nil {
			return engine.Refused, err
		}
	}
	return engine.Refused, r.recording.makeGraph(r.block(), r.part, r.binds)
}

func (executeAction) Blocks(s *engine.Submission) bool { return recordOf(s).mayMake() }

func (executeAction) HoldsUp(*engine.Submission, *engine.Timeline) bool { return true }

func (executeAction) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return recordOf(s).execute(tl)
}

func (executeAction) Issued(s *engine.Submission, tl *engine.Timeline, _ bool) bool {
	if r := recordOf(s); r.run != nil {
		r.leaveBlock(tl.At(s.Seq))
	}
	return false
}

func (executeAction) Undo(s *engine.Submission, how engine.Outcome) {
	if r := recordOf(s); how == engine.Foreign && r.run != nil {
		r.run.returnBlock()
	}
}

// execute makes the native calls of a part of a command buffer.
func (s *record) execute(tl *engine.Timeline) (started bool, err error) {
	c := s.recording
	c.mu.Lock()
	defer c.mu.Unlock()
	p, b := &c.parts[s.part], s.block()
	if err := c.find(b, s.binds); err != nil {
		return false, err
	}
	switch {
	case p.graph && !c.crosses(p, s.binds):
		started, err = c.launch(s, tl, &b.graphs[s.part])
	case c.awaits:
		started, err = tl.AwaitOthers(func() (bool, error) { return c.replay(spanOf(&s.Submission), tl, p, s.binds) })
	default:
		started, err = c.replay(spanOf(&s.Submission), tl, p, s.binds)
	}
	if started {
		c.latest = b
	}
	return started, err
}

// A recordingUse is a command buffer as the scheduler knows it.
type recordingUse CommandBuffer

// Use notes that the work at a mark executes the recording, and those nested in it.
func (u *recordingUse) Use(m engine.Mark) error {
	c := (*CommandBuffer)(u)
	c.addUse(m)
	for _, b := range c.foreign {
		if !b.Device().Engine.Borrow(m) {
			return fmt.Errorf("a buffer of device %s: %w", b.Device().Engine.Info.Name, ErrClosed)
		}
	}
	return nil
}

// addUse adds a mark to the uses of the recording, and of those nested in it.
func (c *CommandBuffer) addUse(m engine.Mark) {
	c.uses.Add(m)
	for _, n := range c.nested {
		n.addUse(m)
	}
}

// Unuse undoes use. Any buffer of the recording may have been freed.
func (u *recordingUse) Unuse(m engine.Mark) (awaited bool) {
	(*CommandBuffer)(u).lowerUse(m)
	return true
}

func (c *CommandBuffer) lowerUse(m engine.Mark) {
	c.uses.Lower(m)
	for _, n := range c.nested {
		n.lowerUse(m)
	}
}

// LetGo ends n executions.
func (u *recordingUse) LetGo(n int32) { (*CommandBuffer)(u).releaseAll(n) }

// target returns the buffer of a reference in an execution. It returns nil if the reference is to a
// binding and no ranges are bound yet, and for no reference (-1).
func (c *CommandBuffer) target(ref int32, binds []memory.Range) *memory.Buffer {
	if ref < 0 {
		return nil
	}
	b := c.refers[ref].buffer
	switch slot := slotOf(b); {
	case slot < 0:
		return b
	case binds == nil:
		return nil
	default:
		return binds[slot].Buffer
	}
}

// across reports whether a command copies from or to another device's memory. No node of a graph
// can do that, because a node does not name devices.
func (c *CommandBuffer) across(cmd *command, binds []memory.Range) bool {
	return cmd.op.Copies() && (c.dev.mem().Foreign(c.target(cmd.dst, binds)) || c.dev.mem().Foreign(c.target(cmd.src, binds)))
}

// bindsForeign reports whether memory of another device is bound.
func (c *CommandBuffer) bindsForeign(binds []memory.Range) bool {
	return slices.ContainsFunc(binds, func(r memory.Range) bool { return c.dev.mem().Foreign(r.Buffer) })
}

// crosses reports whether the bound ranges make a command of a part copy from or to another
// device's memory.
func (c *CommandBuffer) crosses(p *part, binds []memory.Range) bool {
	if !c.bindsForeign(binds) {
		return false
	}
	for i := p.from; i < p.to; i++ {
		if c.across(c.cmds.at(i), binds) {
			return true
		}
	}
	return false
}

// find finds the addresses, in an execution, of the references whose addresses may change.
func (c *CommandBuffer) find(b *block, binds []memory.Range) error {
	moved := c.epoch == 0 || c.lost
	c.lost, c.using = true, b
	for i := range c.sources {
		s := &c.sources[i]
		at := engine.Address{Late: s.buffer.Holding()}
		if slot := slotOf(s.buffer); slot >= 0 {
			r := &binds[slot]
			if at = (engine.Address{Ptr: driver.Ptr(r.Offset), Late: r.Buffer.Holding()}); !r.Buffer.Late() {
				at = engine.Address{Ptr: r.Buffer.Addr() + at.Ptr}
			}
		} else if s.scratch {
			at = engine.Address{Ptr: b.mem.Addr()}
		}
		base, err := at.Resolve()
		if err != nil {
			return err
		}
		if base != s.base {
			s.base, moved = base, true
		}
	}
	c.lost = false
	if moved {
		c.epoch++
		for _, i := range c.moving {
			r := &c.refers[i]
			c.present[i] = c.sources[r.source].base + driver.Ptr(r.offset)
		}
	}
	return nil
}

// findLive is find for memory from pools that has been allocated already, so that a graph can be
// made with it.
func (c *CommandBuffer) findLive() error {
	for _, i := range c.moving {
		if r := &c.refers[i]; !r.depends() && r.buffer.Late() {
			ptr, err := (engine.Address{Ptr: driver.Ptr(r.offset), Late: r.buffer.Holding()}).Resolve()
			if err != nil {
				return err
			}
			c.present[i] = ptr
		}
	}
	return nil
}

// address returns the address of a reference in the execution that is being issued, or 0 for no
// reference (-1).
func (c *CommandBuffer) address(ref int32) driver.Ptr {
	if ref < 0 {
		return 0
	}
	return c.present[ref]
}

// extra finds what a command needs besides dst and src, and puts addresses into a kernel's
// arguments.
func (c *CommandBuffer) extra(x *work.Extra, cmd *command) {
	for _, b := range cmd.bound {
		*work.Address(cmd.launch.Args[b.index]) = c.present[b.ref]
	}
	x.Launch = &cmd.launch
	if r := cmd.rare; r != nil {
		if x.Native = r.native; cmd.op.Kind == work.Timestamp {
			x.Event = c.using.timers[r.timer]
		}
		if r.stage != nil {
			r.stage.Give(x)
		}
	}
}

// replay makes the calls of a part one after the other.
func (c *CommandBuffer) replay(traced *span, tl *engine.Timeline, p *part, binds []memory.Range) (started bool, err error) {
	d, h, foreign := tl.Device.Native, tl.Stream, len(c.foreign) > 0 || c.bindsForeign(binds)
	var x work.Extra
	for i := p.from; i < p.to; i++ {
		cmd := c.cmds.at(i)
		if foreign || !cmd.op.Kind.Plain() {
			c.extra(&x, cmd)
			if foreign {
				if x.DstOf, x.SrcOf, err = c.dev.mem().Owners(c.target(cmd.dst, binds), c.target(cmd.src, binds)); err != nil {
					return started, c.failed(i, err)
				}
			}
		}
		traced.commandBegun(tl, c, i)
		some, err := cmd.op.Run(d, h, c.address(cmd.dst), c.address(cmd.src), &x)
		traced.commandEnded(tl, cmd.op.Kind, i, some)
		if err != nil {
			return started || some, c.failed(i, err)
		}
		started = started || some
	}
	return true, nil
}

// failed adds to an error which command of a recording it is about.
func (c *CommandBuffer) failed(i int, err error) error {
	return fmt.Errorf("command %d, %s: %w", i, c.cmds.at(i).op.Kind, err)
}
