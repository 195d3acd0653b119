package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Barrier orders all later commands behind all earlier ones.
func (c *CommandBuffer) Barrier() (Command, error) {
	if err := c.begin(work.Barrier); err != nil {
		return -1, err
	}
	defer c.leave()
	return c.record(&command{op: work.Op{Kind: work.Barrier}, dst: -1, src: -1}, nil)
}

// Fill records the operation of [Queue.Fill].
func (c *CommandBuffer) Fill(dst Range, pattern []byte, after ...Command) (Command, error) {
	if err := c.begin(work.Fill); err != nil {
		return -1, err
	}
	defer c.leave()
	if !work.IsPattern(pattern) {
		return -1, c.fail(work.Fill, badPattern(pattern))
	}
	size := uint64(len(pattern))
	ref, err := c.referTo(work.Fill, dst.in(), size)
	if err != nil {
		return -1, err
	}
	if dst.Size%size != 0 {
		return -1, c.fail(work.Fill, errs.Argument("fill", "size %d is not a multiple of the pattern of %d bytes", dst.Size, size))
	}
	cmd := command{dst: ref, src: -1}
	cmd.op.SetFill(pattern, dst.Size)
	if dst.Size == 0 {
		cmd.op.Kind = work.Nothing
	}
	return c.record(&cmd, after)
}

// Copy records the operation of [Queue.Copy].
func (c *CommandBuffer) Copy(dst, src Range, after ...Command) (Command, error) {
	if err := c.begin(work.Copy); err != nil {
		return -1, err
	}
	defer c.leave()
	to, from := dst.in(), src.in()
	if err := cmp.Or(unsized(to, work.Copy), unsized(from, work.Copy)); err != nil {
		return -1, c.fail(work.Copy, err)
	}
	d, err := c.referTo(work.Copy, to, 1)
	if err != nil {
		return -1, err
	}
	s, err := c.refer(work.Copy, from, 1)
	if err != nil {
		return -1, err
	}
	if err := sameSize(to, from); err != nil {
		return -1, c.fail(work.Copy, err)
	}
	if err := apart(to, from); err != nil {
		return -1, c.fail(work.Copy, err)
	}
	cmd := command{op: work.Op{Kind: work.Copy, Count: dst.Size}, dst: d, src: s}
	if dst.Size == 0 {
		cmd.op.Kind = work.Nothing
	}
	return c.record(&cmd, after)
}

// UploadCopy records the operation of [Queue.UploadCopy]. The call copies the data to pinned memory
// that the command buffer keeps.
func (c *CommandBuffer) UploadCopy(dst Range, data []byte, after ...Command) (Command, error) {
	if err := c.begin(work.Upload); err != nil {
		return -1, err
	}
	defer c.leave()
	if err := unsized(dst.in(), work.Upload); err != nil {
		return -1, c.fail(work.Upload, err)
	}
	ref, err := c.referTo(work.Upload, dst.in(), 1)
	if err != nil {
		return -1, err
	}
	if dst.Size != uint64(len(data)) {
		return -1, c.fail(work.Upload, errs.Argument("upload", "%d bytes of data for a range of %d", len(data), dst.Size))
	}
	cmd := command{op: work.Op{Kind: work.Upload, Count: dst.Size}, dst: ref, src: -1}
	if len(data) == 0 {
		cmd.op.Kind = work.Nothing
		return c.record(&cmd, after)
	}
	b, err := c.dev.memory.Stage.Get(len(data))
	if err != nil {
		return -1, c.fail(work.Upload, err)
	}
	copy(b.Bytes(), data)
	cmd.rare = c.rare(rareCommand{stage: b})
	at, err := c.record(&cmd, after)
	if err != nil {
		b.Free()
		return -1, err
	}
	c.stages = append(c.stages, b)
	return at, nil
}

// Dispatch records the operation of [Queue.Dispatch].
func (c *CommandBuffer) Dispatch(d Dispatch, after ...Command) (Command, error) {
	if err := c.begin(work.Dispatch); err != nil {
		return -1, err
	}
	defer c.leave()
	g, layout, err := d.check(c.dev)
	if err != nil {
		return -1, c.fail(work.Dispatch, err)
	}
	if d.Kernel.info.Params == nil { // then they are the caller's
		layout = slices.Clone(layout)
	}
	return c.recordLaunch(&g, &boundKernel{kernel: d.Kernel, layout: layout}, d.Args, d.Buffers, after)
}

// recordLaunch records a launch that has been checked, and copies its arguments that are not
// buffers. The caller holds mu.
func (c *CommandBuffer) recordLaunch(g *Grid, k *boundKernel, args []unsafe.Pointer, buffers []BufferArg, after []Command) (Command, error) {
	if g.Begun != nil {
		return -1, c.fail(work.Dispatch, fmt.Errorf("an event when kernel %s has begun, which no recording has: %w; launch it in a queue", k.kernel.name, driver.ErrUnsupported))
	}
	arg := k.layout.Begin(len(c.args))
	if err := c.roomFor(arg-len(c.args)+k.layout.Words(), len(buffers)); err != nil {
		return -1, c.fail(work.Dispatch, err)
	}
	if err := c.holdCode(k.kernel.exe); err != nil {
		return -1, c.fail(work.Dispatch, err)
	}
	cmd := command{op: work.Op{Kind: work.Dispatch}, dst: -1, src: -1, arg: int32(arg), layout: k.layout, launch: g.launch(k.kernel)}
	if len(buffers) > 0 {
		cmd.bound = carve(&c.bounds, len(buffers))
	}
	for i, b := range buffers {
		ref, err := c.refer(work.Dispatch, b.Range.in(), 1)
		if err != nil {
			return -1, k.refused(b.Index, err)
		}
		cmd.bound[i] = argRef{int32(b.Index), ref}
	}
	c.nameKernel(k.kernel)
	if g.nothing() {
		cmd.op.Kind = work.Nothing
	}
	at, err := c.record(&cmd, after)
	if err != nil {
		return -1, err
	}
	c.args = k.layout.Append(c.args, args)
	return at, nil
}

// HostCall records a function that is called on a goroutine, behind all commands that were recorded
// before it and before all later ones. An error, or a panic, fails the execution, and later
// commands do not run. Executions in flight at the same time may call it at the same time.
func (c *CommandBuffer) HostCall(fn func() error) (Command, error) {
	if err := c.begin(work.HostCall); err != nil {
		return -1, err
	}
	defer c.leave()
	if fn == nil {
		return -1, c.fail(work.HostCall, errs.Argument("host call", "no function"))
	}
	return c.record(&command{op: work.Op{Kind: work.HostCall}, dst: -1, src: -1, rare: c.rare(rareCommand{fn: fn})}, nil)
}

// Collective records collective operations on a channel of the same device, behind all commands
// that were recorded before them and before all later ones. Neighbouring ones on the same channel
// make one group, as [Channel.Submit] does, also if several calls recorded them. Any other command
// between them, or a barrier, ends the group. Groups go to the channel when the recording is
// executed, in the order of the calls of [Queue.Execute]. If a group fails, the execution fails.
// Commands behind the group that were issued run all the same, as far as the next host call, and
// the memory that they wrote is undefined.
func (c *CommandBuffer) Collective(ch *Channel, ops ...Collective) (Command, error) {
	if err := c.begin(work.Collect); err != nil {
		return -1, err
	}
	defer c.leave()
	if ch == nil || ch.Device() != c.dev {
		return -1, c.fail(work.Collect, errs.Argument("collective", "no channel, or one of another device"))
	}
	g := &groupRecorder{c: c}
	for i, x := range collectives(ops) {
		lowered, err := x.Lower(ch.in(), nil)
		for k := 0; k < len(lowered) && err == nil; k++ {
			err = g.add(&lowered[k])
		}
		if err != nil {
			return -1, c.fail(work.Collect, fmt.Errorf("operation %d: %w", i, err))
		}
	}
	cmd := command{op: work.Op{Kind: work.Collect}, dst: -1, src: -1, rare: c.rare(rareCommand{ch: ch, group: g.ops})}
	if len(g.ops) == 0 {
		cmd.op.Kind = work.Nothing
	}
	return c.record(&cmd, nil)
}

// Timestamp records the time at which the device gets there: behind all commands before the last
// barrier, and behind the commands named. [CommandBuffer.Elapsed] tells the time between two
// timestamps. [CommandBuffer.End] makes the event. Executions that overlap have events of their
// own, in blocks (see [Queue.Execute]). If the driver does not let an event be recorded again while
// it is outstanding (Caps.RerecordEvents), each execution in flight has its own.
func (c *CommandBuffer) Timestamp(after ...Command) (Command, error) {
	if err := c.begin(work.Timestamp); err != nil {
		return -1, err
	}
	defer c.leave()
	if c.dev.faces.Timers == nil {
		return -1, c.fail(work.Timestamp, driver.ErrUnsupported)
	}
	at, err := c.record(&command{op: work.Op{Kind: work.Timestamp}, dst: -1, src: -1, rare: c.rare(rareCommand{timer: c.timers})}, after)
	if err == nil {
		c.timers++
	}
	return at, err
}

// Elapsed returns the time from one timestamp to another in the last execution, which must be over.
// If it is not over, or if there was none, the error is [ErrArgument]. While several executions are
// in flight, the time means nothing. Elapsed blocks until the driver has answered.
func (c *CommandBuffer) Elapsed(from, to Command) (t time.Duration, err error) {
	var timers [2]driver.Event
	c.mu.Lock()
	for i, at := range []Command{from, to} {
		if at < 0 || int(at) >= c.cmds.n || c.cmds.at(int(at)).op.Kind != work.Timestamp {
			c.mu.Unlock()
			return 0, errs.Argument("elapsed", "command %d is no timestamp", at)
		}
		if b := c.latest; b != nil {
			timers[i] = b.timers[c.cmds.at(int(at)).rare.timer]
		}
	}
	executed := c.latest != nil
	c.mu.Unlock()
	switch {
	case c.closed.Load():
		return 0, fmt.Errorf("gpu: elapsed: command buffer: %w", ErrClosed)
	case !executed:
		return 0, errs.Argument("elapsed", "the device has been given no execution: execute the command buffer, and wait for a signal of that")
	case !engine.HoldLive(&c.refs, 1):
		return 0, fmt.Errorf("gpu: elapsed: command buffer: %w", ErrClosed)
	}
	defer c.release()
	err = c.dev.native.Do(func() (err error) {
		t, err = c.dev.elapsed(timers[0], timers[1])
		return err
	})
	if err != nil {
		err = fmt.Errorf("gpu: elapsed: %w", err)
	}
	return t, err
}

// Execute records all commands of another command buffer, which has ended, with ranges for its
// bindings. The ranges may be of bindings of this command buffer. The child's barriers are barriers
// here too.
func (c *CommandBuffer) Execute(child *CommandBuffer, bindings ...Range) error {
	if err := c.beginNest(child); err != nil {
		return err
	}
	defer c.leave()
	if err := c.nest(child, ranges(bindings), -1); err != nil {
		return c.fail(work.Execute, err)
	}
	return nil
}

// Nest is Execute, but the child's commands come after the commands in after, and after the last
// barrier. The returned command stands for all commands of the child: a command that comes after it
// comes after each of them.
func (c *CommandBuffer) Nest(child *CommandBuffer, bindings []Range, after ...Command) (Command, error) {
	if err := c.beginNest(child); err != nil {
		return -1, err
	}
	defer c.leave()
	before := c.cmds.n
	gate := Command(-1)
	if len(after) > 0 {
		var err error
		if gate, err = c.record(&command{op: work.Op{Kind: work.Nothing}, dst: -1, src: -1}, after); err != nil {
			return -1, err
		}
	}
	base := Command(c.cmds.n)
	if err := c.nest(child, ranges(bindings), gate); err != nil {
		c.cmds.n = before
		return -1, c.fail(work.Execute, err)
	}
	last := child.leaves()
	for i := range last {
		last[i] += base
	}
	if len(last) == 0 && gate >= 0 {
		last = append(last, gate)
	}
	return c.record(&command{op: work.Op{Kind: work.Nothing}, dst: -1, src: -1}, last)
}

// leaves returns the commands since the last barrier that no other command names in its after.
func (c *CommandBuffer) leaves() (last []Command) {
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

// nest records all commands of another command buffer. They come after the command gate, unless it is
// -1.
func (c *CommandBuffer) nest(child *CommandBuffer, bindings []memory.Range, gate Command) error {
	cmds, refers, args, slots := child.cmds, child.refers, child.args, child.slots // it has ended
	if err := checkBindings(slots, bindings, c.dev, c); err != nil {
		return err
	}
	c.args = work.AlignEnd(c.args) // for the child's to lie as they do there
	if err := c.roomFor(len(args), len(refers)+1); err != nil {
		return err
	}
	for _, b := range bindings {
		if recordedIn(b.Buffer) == nil {
			if err := c.hold(b.Buffer); err != nil {
				return err
			}
		}
	}
	if !engine.HoldLive(&child.refs, 1) {
		return ErrClosed
	}
	c.nameKernels(child)
	c.nested, c.foreign = append(c.nested, child), append(c.foreign, child.foreign...)
	by := shift{command: Command(c.cmds.n), ref: int32(len(c.refers)), arg: int32(len(c.args))}
	scratch := make([]*memory.Buffer, len(child.scratches))
	for _, r := range refers {
		if i := slotOf(r.buffer); i >= 0 {
			b := bindings[i]
			r.buffer, r.offset = b.Buffer, b.Offset+r.offset
			r.late = b.Buffer.HasNoAddress()
			c.ask(&r)
		} else if r.scratch != nil {
			c.scratchAnew(child, &r, scratch)
		}
		c.refers = append(c.refers, r)
	}
	c.nrefers = len(c.refers)
	child.mu.Lock() // for an execution of it, which puts addresses in
	c.args = append(c.args, args...)
	child.mu.Unlock()
	for i := range cmds.n {
		cmd := c.shifted(*cmds.at(i), by)
		if cmd.op.Kind == work.Barrier {
			gate = -1 // later commands come after the barrier
		} else if len(cmd.after) == 0 && gate >= 0 {
			cmd.after = append(cmd.after, gate)
		}
		c.cmds.add(&cmd)
	}
	return nil
}

// A shift is added to the numbers in the commands of a nested command buffer.
type shift struct {
	command Command
	ref     int32
	arg     int32
}

// shifted returns a copy of another command buffer's command for this one. Its after has room for one
// more.
func (c *CommandBuffer) shifted(cmd command, by shift) command {
	if cmd.dst >= 0 {
		cmd.dst += by.ref
	}
	if cmd.src >= 0 {
		cmd.src += by.ref
	}
	cmd.arg += by.arg
	bound := carve(&c.bounds, len(cmd.bound))
	for i, b := range cmd.bound {
		bound[i] = argRef{b.index, b.ref + by.ref}
	}
	after := carve(&c.afters, len(cmd.after)+1)[:len(cmd.after)]
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
		cmd.rare = c.rare(rareCommand{ch: cmd.rare.ch, group: group})
	case work.Timestamp:
		// A timer of its own: the child may be executed besides, and nested twice.
		cmd.rare = c.rare(rareCommand{timer: c.timers})
		c.timers++
	}
	return cmd
}

// beginNest is begin for the commands of another command buffer.
func (c *CommandBuffer) beginNest(child *CommandBuffer) error {
	wrong := c.mayNest(child) // before the lock, for it takes the child's
	if err := c.begin(work.Execute); err != nil {
		return err
	}
	if wrong != nil {
		wrong = c.fail(work.Execute, wrong)
		c.leave()
	}
	return wrong
}

// mayNest returns why another command buffer's commands cannot be recorded, or nil.
func (c *CommandBuffer) mayNest(child *CommandBuffer) error {
	if child == nil || child == c || child.dev != c.dev {
		return errs.Argument("execute", "no command buffer, the same one, or one of another device")
	}
	child.mu.Lock()
	defer child.mu.Unlock()
	switch {
	case child.closed.Load():
		return fmt.Errorf("gpu: execute: command buffer: %w", ErrClosed)
	case !child.ended:
		return errs.Argument("execute", "the command buffer has not ended")
	}
	return child.flaw
}

// checkBindings checks ranges for bindings. Ranges may be of bindings of c, unless c is nil.
func checkBindings(slots []slot, bindings []memory.Range, d *Device, c *CommandBuffer) error {
	const op = "execute"
	if len(bindings) != len(slots) {
		return errs.Argument(op, "%d bindings for a command buffer that has %d", len(bindings), len(slots))
	}
	for i, r := range bindings {
		at, err := r.CheckRecorded(op, d.mem())
		switch {
		case err != nil:
			return fmt.Errorf("binding %d: %w", i, err)
		case recordedIn(r.Buffer) != nil && recordedIn(r.Buffer) != c:
			return errs.Argument(op, "binding %d is a binding of another command buffer, or a buffer of its Alloca", i)
		case r.Size < slots[i].size:
			return fmt.Errorf("gpu: %s: binding %d has %d bytes, and the commands use %d: %w", op, i, r.Size, slots[i].size, ErrRange)
		case slots[i].written && r.Buffer.ReadOnly():
			return errs.Argument(op, "binding %d was imported for reading only, and the commands write to it", i)
		case slots[i].valued && r.Buffer.NoValues() != "":
			return errs.Argument(op, "binding %d is %s, in which there can be no values", i, r.Buffer.NoValues())
		case slots[i].used && r.Usable(op, d.mem()) != nil:
			return fmt.Errorf("binding %d: %w", i, r.Usable(op, d.mem()))
		case uint64(at.Ptr)%slots[i].align != 0:
			return errs.Argument(op, "binding %d is not aligned to %d bytes", i, slots[i].align)
		}
	}
	return nil
}
