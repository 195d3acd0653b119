package recording

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Barrier makes all later commands come after all earlier commands.
func (c *Recording) Barrier(after []Command) (Command, error) {
	if err := c.Begin(work.Barrier); err != nil {
		return -1, err
	}
	defer c.Leave()
	if err := c.checkAfter(work.Barrier, after); err != nil {
		return -1, err
	}
	return c.record(&command{op: work.Op{Kind: work.Barrier}, dst: -1, src: -1}, nil)
}

// Fill records a fill. The parameter bits has the pattern, whose size is width bytes.
func (c *Recording) Fill(dst memory.Range, bits, width uint64, after []Command) (Command, error) {
	if err := c.Begin(work.Fill); err != nil {
		return -1, err
	}
	defer c.Leave()
	ref, err := c.referTo(work.Fill, dst, width)
	if err != nil {
		return -1, err
	}
	if dst.Size%width != 0 {
		return -1, c.Fail(work.Fill, errs.Argument("fill", "size %d is not a multiple of the pattern of %d bytes", dst.Size, width))
	}
	cmd := command{dst: ref, src: -1}
	cmd.op.SetFill(bits, width, dst.Size)
	if dst.Size == 0 {
		cmd.op.Kind = work.Nothing
	}
	return c.record(&cmd, after)
}

// Copy records a copy.
func (c *Recording) Copy(dst, src memory.Range, after []Command) (Command, error) {
	if err := c.Begin(work.Copy); err != nil {
		return -1, err
	}
	defer c.Leave()
	if err := cmp.Or(unsized(dst, work.Copy), unsized(src, work.Copy)); err != nil {
		return -1, c.Fail(work.Copy, err)
	}
	d, err := c.referTo(work.Copy, dst, 1)
	if err != nil {
		return -1, err
	}
	s, err := c.refer(work.Copy, src, 1)
	if err != nil {
		return -1, err
	}
	if err := memory.SameSize(dst, src); err != nil {
		return -1, c.Fail(work.Copy, err)
	}
	if err := memory.Apart(dst, src); err != nil {
		return -1, c.Fail(work.Copy, err)
	}
	cmd := command{op: work.Op{Kind: work.Copy, Count: dst.Size}, dst: d, src: s}
	if dst.Size == 0 {
		cmd.op.Kind = work.Nothing
	}
	return c.record(&cmd, after)
}

// UploadCopy records a write of data to a range. The call copies the data to pinned memory that the
// recording keeps.
func (c *Recording) UploadCopy(dst memory.Range, data []byte, after []Command) (Command, error) {
	if err := c.Begin(work.Upload); err != nil {
		return -1, err
	}
	defer c.Leave()
	if err := unsized(dst, work.Upload); err != nil {
		return -1, c.Fail(work.Upload, err)
	}
	ref, err := c.referTo(work.Upload, dst, 1)
	if err != nil {
		return -1, err
	}
	if dst.Size != uint64(len(data)) {
		return -1, c.Fail(work.Upload, errs.Argument("upload", "%d bytes of data for a range of %d", len(data), dst.Size))
	}
	cmd := command{op: work.Op{Kind: work.Upload, Count: dst.Size}, dst: ref, src: -1}
	if len(data) == 0 {
		cmd.op.Kind = work.Nothing
		return c.record(&cmd, after)
	}
	b, err := c.dev.Memory.Stage.Get(len(data))
	if err != nil {
		return -1, c.Fail(work.Upload, err)
	}
	copy(b.Bytes(), data)
	cmd.rare = c.cmds.rare(rareCommand{stage: b})
	at, err := c.record(&cmd, after)
	if err != nil {
		b.Free()
		return -1, err
	}
	c.held.stages = append(c.held.stages, b)
	return at, nil
}

// A Launch is a kernel launch that is to be recorded. Its grid and arguments have been checked.
type Launch struct {
	Code    Code
	Name    string // the kernel's name
	Launch  driver.Launch
	Layout  work.Layout
	Uses    []Use      // uses of parameters
	Limits  GridLimits // limits of the blocks, if a parameter gives the blocks
	Nothing bool       // the grid is empty
}

// A Bound is an argument of a launch that is an address: argument number Index is the address of
// Range.
type Bound struct {
	Index int
	Range memory.Range
}

// Launch records a launch. The list buffers has the arguments that are addresses. The list words
// has all arguments, laid out by l.Layout, with zeros for buffers. The call copies both lists. If
// Launch refuses an argument, the result wrong is the argument's number. Otherwise wrong is -1. The
// caller has called Begin.
func (c *Recording) Launch(l *Launch, buffers []Bound, words []uint64, after []Command) (at Command, wrong int, err error) {
	arg := l.Layout.Begin(len(c.args))
	if err := c.roomFor(arg-len(c.args)+l.Layout.Words(), len(buffers)); err != nil {
		return -1, -1, c.Fail(work.Launch, err)
	}
	if err := c.held.addCode(l.Code); err != nil {
		return -1, -1, c.Fail(work.Launch, err)
	}
	cmd := command{op: work.Op{Kind: work.Launch}, dst: -1, src: -1, arg: int32(arg), layout: l.Layout, launch: l.Launch}
	if len(buffers) > 0 {
		cmd.bound = carve(&c.cmds.bounds, len(buffers))
	}
	for i, b := range buffers {
		ref, err := c.refer(work.Launch, b.Range, 1)
		if err != nil {
			return -1, b.Index, err
		}
		cmd.bound[i] = argRef{int32(b.Index), ref}
	}
	if wrong, err := c.checkUses(l); err != nil {
		return -1, wrong, c.Fail(work.Launch, err)
	}
	if len(l.Uses) > 0 {
		cmd.rare = c.cmds.rare(rareCommand{params: paramRefs(l.Uses)})
	}
	if c.dev.describes() {
		c.names.nameKernel(l.Launch.Function, l.Name)
	}
	if l.Nothing {
		cmd.op.Kind = work.Nothing
	}
	if at, err = c.record(&cmd, after); err != nil {
		return -1, -1, err
	}
	c.args = l.Layout.Append(c.args, nil)
	copy(c.args[arg:], words)
	c.addLimits(l, at)
	return at, -1, nil
}

// Native records a call of the function fn, which gives work to a stream. fn is called with the
// addresses of the ranges in uses. If the parameter again is set, no graph captures the work: each
// execution calls fn.
func (c *Recording) Native(fn func(driver.Stream, []driver.Ptr) error, uses []memory.Range, again bool, after []Command) (Command, error) {
	if err := c.Begin(work.Native); err != nil {
		return -1, err
	}
	defer c.Leave()
	switch {
	case fn == nil:
		return -1, c.Fail(work.Native, errs.Argument("native", "no function"))
	case c.dev.Faces.Natives == nil:
		return -1, c.Fail(work.Native, fmt.Errorf("driver %s: %w", c.dev.Engine.Driver.Name(), driver.ErrUnsupported))
	}
	if err := c.roomFor(len(uses), len(uses)); err != nil {
		return -1, c.Fail(work.Native, err)
	}
	cmd := command{op: work.Op{Kind: work.Native}, dst: -1, src: -1, arg: int32(len(c.args)), layout: work.Addresses(len(uses))}
	cmd.rare = c.cmds.rare(rareCommand{native: fn, again: again})
	if len(uses) > 0 {
		cmd.bound = carve(&c.cmds.bounds, len(uses))
	}
	for i, r := range uses {
		ref, err := c.refer(work.Native, r, 1)
		if err != nil {
			return -1, fmt.Errorf("range %d: %w", i, err)
		}
		cmd.bound[i] = argRef{int32(i), ref}
	}
	at, err := c.record(&cmd, after)
	if err != nil {
		return -1, err
	}
	c.args = append(c.args, make([]uint64, len(uses))...)
	return at, nil
}

// Value records a write of a value, or a wait for a value.
func (c *Recording) Value(kind work.Kind, r memory.Range, value uint64, after []Command) (Command, error) {
	if err := c.Begin(kind); err != nil {
		return -1, err
	}
	defer c.Leave()
	if !c.dev.Engine.Caps.Values {
		return -1, c.Fail(kind, driver.ErrUnsupported)
	}
	ref, err := c.refer(kind, r, 8)
	if err != nil {
		return -1, err
	}
	if err := r.CheckValue(kind, value); err != nil {
		return -1, c.Fail(kind, err)
	}
	c.refers[ref].written, c.refers[ref].valued = kind == work.ValueWrite, true
	cmd := command{dst: ref, src: -1}
	cmd.op.SetValue(kind, value)
	return c.record(&cmd, after)
}

// HostCall records a call of a function. The command is also a barrier.
func (c *Recording) HostCall(fn func() error, after []Command) (Command, error) {
	if err := c.Begin(work.HostCall); err != nil {
		return -1, err
	}
	defer c.Leave()
	if fn == nil {
		return -1, c.Fail(work.HostCall, errs.Argument("host call", "no function"))
	}
	if err := c.checkAfter(work.HostCall, after); err != nil {
		return -1, err
	}
	return c.record(&command{op: work.Op{Kind: work.HostCall}, dst: -1, src: -1, rare: c.cmds.rare(rareCommand{fn: fn})}, nil)
}

// A Collective is an operation of a communicator in a recording.
type Collective struct {
	comm.Op
	dst, src int32 // indexes in refers, or -1
}

// rebase adds a number to the references.
func (x *Collective) rebase(by int32) {
	if x.dst >= 0 {
		x.dst += by
	}
	if x.src >= 0 {
		x.src += by
	}
}

// AddCollective checks the ranges of an operation and appends the operation to a list for Collect.
// The caller has called Begin.
func (c *Recording) AddCollective(to []Collective, op *comm.RangeOp) ([]Collective, error) {
	x := Collective{op.Op, -1, -1}
	align := uint64(max(op.Type.Size(), 1))
	var err error
	if op.To.Buffer != nil {
		if x.dst, err = c.referTo(work.Collect, op.To, align); err != nil {
			return nil, err
		}
	}
	if op.From.Buffer != nil {
		if x.src, err = c.refer(work.Collect, op.From, align); err != nil {
			return nil, err
		}
	}
	return append(to, x), nil
}

// Collect records a command with operations of a communicator. Adjacent commands of one
// communicator form a group. A command with commands in the list after begins a new group. The
// caller has called Begin.
func (c *Recording) Collect(lane *comm.Communicator, group []Collective, after []Command) (Command, error) {
	cmd := command{op: work.Op{Kind: work.Collect}, dst: -1, src: -1, rare: c.cmds.rare(rareCommand{lane: lane, group: group})}
	if len(group) == 0 {
		cmd.op.Kind = work.Nothing
	}
	return c.record(&cmd, after)
}

// Timestamp records a command that notes the time at which the commands before the last barrier and
// the commands in the list after are done.
func (c *Recording) Timestamp(after []Command) (Command, error) {
	if err := c.Begin(work.Timestamp); err != nil {
		return -1, err
	}
	defer c.Leave()
	if c.dev.Faces.Timers == nil {
		return -1, c.Fail(work.Timestamp, driver.ErrUnsupported)
	}
	at, err := c.record(&command{op: work.Op{Kind: work.Timestamp}, dst: -1, src: -1, rare: c.cmds.rare(rareCommand{timer: c.instances.timers})}, after)
	if err == nil {
		c.instances.timers++
	}
	return at, err
}

// Elapsed returns the time from one timestamp to another in the latest execution, which must be
// over.
func (c *Recording) Elapsed(from, to Command) (t time.Duration, err error) {
	var timers [2]driver.Event
	c.mu.Lock()
	for i, at := range []Command{from, to} {
		if at < 0 || int(at) >= c.cmds.n || c.cmds.at(int(at)).op.Kind != work.Timestamp {
			c.mu.Unlock()
			return 0, errs.Argument("elapsed", "command %d is no timestamp", at)
		}
		if b := c.current.latest; b != nil {
			timers[i] = b.timers[c.cmds.at(int(at)).rare.timer]
		}
	}
	executed := c.current.latest != nil
	c.mu.Unlock()
	switch {
	case c.closed.Load():
		return 0, fmt.Errorf("gpu: elapsed: command buffer: %w", errs.ErrClosed)
	case !executed:
		return 0, errs.Argument("elapsed", "the device has been given no execution: execute the command buffer, and wait for a signal of that")
	case !engine.HoldLive(&c.refs, 1):
		return 0, fmt.Errorf("gpu: elapsed: command buffer: %w", errs.ErrClosed)
	}
	defer c.release()
	err = c.dev.Engine.Do(func() (err error) {
		t, err = c.dev.Host.Elapsed(timers[0], timers[1])
		return err
	})
	if err != nil {
		err = fmt.Errorf("gpu: elapsed: %w", err)
	}
	return t, err
}

// Nest records all commands of child. The parameter bindings has the ranges for the child's
// bindings. The parameter given has values for some of the child's parameters. In uses, parameters
// of c replace parameters of the child: Use.Index is the number of the child's parameter. All other
// parameters of the child have their defaults. All commands of child come after the commands in the
// list after. The returned command stands for all commands of child.
func (c *Recording) Nest(child *Recording, bindings []memory.Range, given []Given, uses []Use, after []Command) (Command, error) {
	if err := c.beginNest(child); err != nil {
		return -1, err
	}
	defer c.Leave()
	if err := c.checkAfter(work.Execute, after); err != nil {
		return -1, err
	}
	before := c.cmds.n
	gate := Command(-1)
	if len(after) > 0 || c.order && before > 0 {
		var err error
		if gate, err = c.record(&command{op: work.Op{Kind: work.Nothing}, dst: -1, src: -1}, after); err != nil {
			return -1, err
		}
	}
	base := Command(c.cmds.n)
	params, err := c.checkNested(child, given, uses)
	if err == nil {
		err = c.nest(child, bindings, params, gate)
	}
	if err != nil {
		c.cmds.n = before
		return -1, c.Fail(work.Execute, err)
	}
	last := child.leaves()
	for i := range last {
		last[i] += base
	}
	if len(last) == 0 && gate >= 0 {
		last = append(last, gate)
	}
	end := command{op: work.Op{Kind: work.Nothing}, dst: -1, src: -1}
	if lane := child.lastLane(); lane != nil {
		// With this lane, a collective behind the end command continues the child's last group.
		end.rare = c.cmds.rare(rareCommand{lane: lane})
	}
	return c.record(&end, last)
}

// lastLane returns the communicator of the last command. It returns nil if there is no command, or
// if the last command has no communicator.
func (c *Recording) lastLane() *comm.Communicator {
	if c.cmds.n == 0 || c.cmds.at(c.cmds.n-1).rare == nil {
		return nil
	}
	return c.cmds.at(c.cmds.n - 1).rare.lane
}

// leaves returns the commands behind the last barrier, except commands that another command lists
// in command.after.
func (c *Recording) leaves() (last []Command) {
	followed := map[Command]bool{}
	for i := Command(c.cmds.n) - 1; i >= 0; i-- {
		cmd := c.cmds.at(int(i))
		if cmd.op.Kind == work.Barrier {
			break
		}
		if !followed[i] {
			last = append(last, i)
		}
		for _, a := range cmd.after {
			followed[a] = true
		}
	}
	return last
}

// nest records all commands of another command buffer. The recorded commands come after the command
// gate, unless gate is -1.
func (c *Recording) nest(child *Recording, bindings []memory.Range, params []nestedParam, gate Command) error {
	// cmds is readable without child.mu, because child has ended.
	cmds := child.cmds
	if err := checkBindings(child.slots, bindings, c.dev, c); err != nil {
		return err
	}
	if err := c.roomFor(len(child.args)+work.Padding, len(child.refers)+1); err != nil {
		return err
	}
	for _, b := range bindings {
		if recordedIn(b.Buffer) == nil {
			if err := c.held.addBuffer(b.Buffer, c.dev.Memory); err != nil {
				return err
			}
		}
	}
	if !engine.HoldLive(&child.refs, 1) {
		return errs.ErrClosed
	}
	c.held.addNested(child)
	scratch := make([]*memory.Buffer, len(child.scratch.buffers))
	by := c.takeData(child, bindings, func(r *reference) { c.scratchAnew(child, r, scratch) })
	by.command, by.body = Command(c.cmds.n), c.bodies.n
	child.mu.Lock() // SetLabel may be writing
	c.names.nest(&child.names, by.command)
	child.mu.Unlock()
	forwardLimits(params, func(n Command) Command { return by.command + n })
	why := ""
	if child.conditionals(0, cmds.n) > 0 {
		why = c.noConditionals()
		if why == "" && child.refused != nil {
			why = child.refused.Error()
		}
	}
	c.copyTo(&c.bodies, &child.bodies, shift{ref: by.ref, arg: by.arg, body: by.body}, params)
	for i := range cmds.n {
		cmd := c.shifted(*cmds.at(i), by, params)
		c.nestParams(&cmd, params)
		if cmd.op.Kind == work.Control && cmd.rare.cond.why == "" {
			cmd.rare.cond.why = why
		}
		if cmd.op.Kind == work.Barrier {
			gate = -1 // later commands come after the barrier, and so after the command gate
		} else if len(cmd.after) == 0 && gate >= 0 {
			cmd.after = append(cmd.after, gate)
		}
		c.cmds.add(&cmd)
	}
	return nil
}

// takeData appends the references and the arguments of child, which has ended. The ranges in binds
// replace the bindings of child. The function scratch is called to change each reference to scratch
// memory of child. takeData returns the shift of the references and arguments.
func (c *Recording) takeData(child *Recording, binds []memory.Range, scratch func(*reference)) shift {
	c.args = work.AlignEnd(c.args) // so that the child's arguments keep their alignment
	by := shift{ref: int32(len(c.refers)), arg: int32(len(c.args))}
	for _, r := range child.refers {
		if i := slotOf(r.buffer); i >= 0 {
			r.buffer, r.offset = binds[i].Buffer, binds[i].Offset+r.offset
			r.late = r.buffer.HasNoAddress()
			c.ask(&r)
		} else if r.scratch != nil {
			scratch(&r)
		}
		c.refers = append(c.refers, r)
	}
	c.nrefers = len(c.refers)
	child.mu.Lock() // an execution of child may be writing addresses into child.args
	defer child.mu.Unlock()
	c.args = append(c.args, child.args...)
	return by
}

// A shift is added to the numbers in the commands of a nested command buffer.
type shift struct {
	command Command
	ref     int32
	arg     int32
	body    int // added to indexes in bodies
}

// shifted returns a copy of cmd for c. The command cmd is of another command buffer. The numbers in
// the parameter by are added to the numbers in the copy. In the copy of a conditional, params
// replace the parameters. The list command.after of the copy has room for one more command.
func (c *Recording) shifted(cmd command, by shift, params []nestedParam) command {
	if cmd.dst >= 0 {
		cmd.dst += by.ref
	}
	if cmd.src >= 0 {
		cmd.src += by.ref
	}
	cmd.arg += by.arg
	bound := carve(&c.cmds.bounds, len(cmd.bound))
	for i, b := range cmd.bound {
		bound[i] = argRef{b.index, b.ref + by.ref}
	}
	after := carve(&c.cmds.afters, len(cmd.after)+1)[:len(cmd.after)]
	for i, a := range cmd.after {
		after[i] = a + by.command
	}
	cmd.bound, cmd.after = bound, after
	switch cmd.op.Kind {
	case work.Collect:
		group := slices.Clone(cmd.rare.group)
		for i := range group {
			group[i].rebase(by.ref)
		}
		cmd.rare = c.cmds.rare(rareCommand{lane: cmd.rare.lane, group: group})
	case work.Control:
		cmd.rare = c.cmds.rare(rareCommand{cond: cmd.rare.cond.shifted(by, params)})
	case work.Timestamp:
		// The copy gets a timer of its own: the child may also be executed itself, or nested twice.
		cmd.rare = c.cmds.rare(rareCommand{timer: c.instances.timers})
		c.instances.timers++
	}
	return cmd
}

// beginNest is like Begin, for the commands of another command buffer.
func (c *Recording) beginNest(child *Recording) error {
	wrong := c.mayNest(child) // before Begin, which locks c.mu, because mayNest locks child.mu
	if err := c.Begin(work.Execute); err != nil {
		return err
	}
	if wrong != nil {
		wrong = c.Fail(work.Execute, wrong)
		c.Leave()
	}
	return wrong
}

// mayNest returns why another command buffer's commands cannot be recorded, or nil.
func (c *Recording) mayNest(child *Recording) error {
	if child == nil || child == c || child.dev != c.dev {
		return errs.Argument("execute", "no command buffer, the same one, or one of another device")
	}
	child.mu.Lock()
	defer child.mu.Unlock()
	switch {
	case child.closed.Load():
		return fmt.Errorf("gpu: execute: command buffer: %w", errs.ErrClosed)
	case !child.ended:
		return errs.Argument("execute", "the command buffer has not ended")
	}
	return child.flaw
}

// checkBindings checks the ranges given for bindings. If c is not nil, the ranges may be in c's
// bindings and scratch memory.
func checkBindings(slots []slot, bindings []memory.Range, d *Device, c *Recording) error {
	const op = "execute"
	if len(bindings) != len(slots) {
		return errs.Argument(op, "%d bindings for a command buffer that has %d", len(bindings), len(slots))
	}
	for i, r := range bindings {
		at, err := r.CheckRecorded(op, d.Memory)
		switch {
		case err != nil:
			return fmt.Errorf("binding %d: %w", i, err)
		case recordedIn(r.Buffer) != nil && recordedIn(r.Buffer) != c:
			return errs.Argument(op, "binding %d is a binding of another command buffer, or a buffer of its Scratch", i)
		case r.Size < slots[i].size:
			return fmt.Errorf("gpu: %s: binding %d has %d bytes, and the commands use %d: %w", op, i, r.Size, slots[i].size, errs.ErrRange)
		case slots[i].written && r.Buffer.ReadOnly():
			return errs.Argument(op, "binding %d was imported for reading only, and the commands write to it", i)
		case slots[i].valued && r.Buffer.NoValues() != "":
			return errs.Argument(op, "binding %d is %s, in which there can be no values", i, r.Buffer.NoValues())
		case slots[i].used && r.Usable(op, d.Memory) != nil:
			return fmt.Errorf("binding %d: %w", i, r.Usable(op, d.Memory))
		case uint64(at.Ptr)%slots[i].align != 0:
			return errs.Argument(op, "binding %d is not aligned to %d bytes", i, slots[i].align)
		}
	}
	return nil
}
