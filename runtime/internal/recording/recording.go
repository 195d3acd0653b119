package recording

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Mode is a way to run a recording. See package gpu.
type Mode int

// The modes.
const (
	AutoMode Mode = iota
	StreamMode
	GraphMode
)

// A Recording is work that is submitted as a whole, any number of times. It is a command buffer of
// package gpu, which documents the methods.
type Recording struct {
	dev   *Device
	mode  Mode
	order bool // each command comes after the previous command
	// The number of references: one of the program, which Close drops, and one of each submission,
	// outer recording and call in progress.
	refs   atomic.Int32
	closed atomic.Bool

	// mu protects the following fields except instances. After End, most of them do not change, and
	// are read without mu.
	mu      sync.Mutex
	ended   bool
	flaw    error // the error of End
	cmds    commandList
	bodies  commandList // commands in bodies of conditionals that graphs run
	names   names
	slots   []slot // the bindings
	params  []*Param
	scratch scratchMemory
	refers  []reference
	nrefers int      // how many of refers belong to recorded commands
	args    []uint64 // the words of all commands' arguments
	held    held

	// End sets the following fields, except instances.timers.
	ptrs  []unsafe.Pointer // pointers into args, one for each argument
	parts []part
	// layouts[byGraph] has the parts of an execution in which graphs run conditionals.
	// layouts[byHost] has the parts of an execution in which the host runs all conditionals. The
	// two are the same if there are no graphs that run conditionals.
	layouts   [2]layout
	refused   error              // the error, if graphs with conditionals could not be made
	described *observe.Recording // nil if no observer wants it
	current   execution
	instances instances
}

// A reference is a range that commands use.
type reference struct {
	buffer       *memory.Buffer
	offset, size uint64
	align        uint64 // the alignment that a binding must have
	late         bool   // the address is known only in an execution
	written      bool
	used         bool           // used by a command other than a copy, upload or collective
	valued       bool           // used by a work.ValueWrite or work.ValueWait
	source       int            // index in sources, if the address may change
	scratch      *memory.Buffer // the buffer of Scratch, or nil; if set, buffer is the memory of the first instance
}

// A slot is a binding: the buffer that stands for the binding, and the demands of the commands.
type slot struct {
	buffer  *memory.Buffer
	size    uint64 // how far into the buffer the commands' ranges reach, in bytes
	align   uint64
	written bool
	used    bool // used by commands other than copies, uploads and collectives
	valued  bool // used by a work.ValueWrite or work.ValueWait
}

// recordedIn returns the command buffer of a buffer that stands for a binding or for scratch
// memory, or nil for other buffers.
func recordedIn(b *memory.Buffer) *Recording {
	c, _ := b.Place().Recording.(*Recording)
	return c
}

// slotOf returns the number of the binding that a buffer stands for, or -1.
func slotOf(b *memory.Buffer) int {
	if p := b.Place(); p.Recording != nil && !p.Scratch {
		return p.Index
	}
	return -1
}

// scratchOf returns the number of the scratch memory that a buffer stands for, or -1.
func scratchOf(b *memory.Buffer) int {
	if p := b.Place(); p.Recording != nil && p.Scratch {
		return p.Index
	}
	return -1
}

// New makes an empty recording.
func (d *Device) New(mode Mode, inOrder bool) (*Recording, error) {
	switch {
	case mode < AutoMode || mode > GraphMode:
		return nil, errs.Argument("command buffer", "no mode %d", int(mode))
	case mode == GraphMode && d.Faces.Graphs == nil:
		return nil, fmt.Errorf("gpu: command buffer: graphs on %s: %w", d.Engine.Info.Name, driver.ErrUnsupported)
	}
	c := &Recording{dev: d, mode: mode, order: inOrder}
	c.refs.Store(1)
	if err := d.add(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Device returns the device of the recording, or nil for a nil or zero Recording.
func (c *Recording) Device() *Device {
	if c == nil {
		return nil
	}
	return c.dev
}

// bindingSize is the size of a buffer that stands for a binding.
const bindingSize = 1 << 63

// Binding adds a binding and returns a buffer that stands for it.
func (c *Recording) Binding() (*memory.Buffer, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.Leave()
	b := memory.NewPlaceholder(c.dev.Memory, bindingSize, memory.Place{Recording: c, Index: len(c.slots)})
	c.slots = append(c.slots, slot{buffer: b, align: 1})
	return b, nil
}

// recording returns why nothing can be recorded, or nil. The caller holds mu.
func (c *Recording) recording() error {
	switch {
	case c.closed.Load():
		return fmt.Errorf("gpu: command buffer: %w", errs.ErrClosed)
	case c.ended:
		return errs.Argument("command buffer", "it has ended")
	}
	return nil
}

// roomFor returns an error if the recording has no room for the given number of further words of
// arguments, or of further references. A recording can have math.MaxInt32 of each.
func (c *Recording) roomFor(words, refers int) error {
	if words > math.MaxInt32-len(c.args) || refers > math.MaxInt32-len(c.refers) {
		return errs.Argument("record", "the command buffer has %d words of arguments and %d ranges, which is too much for more", len(c.args), len(c.refers))
	}
	return nil
}

// Fail adds the number and kind of the command that is being recorded to an error.
func (c *Recording) Fail(op work.Kind, err error) error {
	return errs.At(fmt.Sprintf("command %d, %s", c.cmds.n, op), op.String(), err)
}

// SetLabel sets the label that errors and traces show for a command.
func (c *Recording) SetLabel(at Command, label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names.setLabel(at, label)
}

// Refuse returns the error of a command that is not recorded: err with the command's number. If the
// recording has ended or is closed, the error says that instead.
func (c *Recording) Refuse(err error) (Command, error) {
	if closed := c.enter(); closed != nil {
		return -1, closed
	}
	defer c.Leave()
	return -1, errs.At(fmt.Sprintf("command %d", c.cmds.n), "", err)
}

// enter locks the recording. Until Leave is called, the recording is not destroyed. If the
// recording has ended or is closed, enter returns an error and does not lock it.
func (c *Recording) enter() error {
	if !engine.HoldLive(&c.refs, 1) {
		return fmt.Errorf("gpu: command buffer: %w", errs.ErrClosed)
	}
	c.mu.Lock()
	if err := c.recording(); err != nil {
		c.Leave()
		return err
	}
	c.refers = c.refers[:c.nrefers] // drop the references of a command that failed
	return nil
}

// Leave unlocks the recording after a successful call of enter or Begin.
func (c *Recording) Leave() {
	c.mu.Unlock()
	c.release()
}

// checkAfter returns an error if the list after has a command that does not exist.
func (c *Recording) checkAfter(op work.Kind, after []Command) error {
	for _, a := range after {
		if a < 0 || int(a) >= c.cmds.n {
			return c.Fail(op, errs.Argument("record", "it is to come after command %d, which there is not", a))
		}
	}
	return nil
}

// record adds a command with its references. The argument after lists the commands that the new
// command comes after.
func (c *Recording) record(cmd *command, after []Command) (Command, error) {
	if err := c.checkAfter(cmd.op.Kind, after); err != nil {
		return -1, err
	}
	refers := c.refers[c.nrefers:]
	for i := range refers {
		if r := &refers[i]; recordedIn(r.buffer) == nil {
			if err := c.held.addBuffer(r.buffer, c.dev.Memory); err != nil {
				return -1, c.Fail(cmd.op.Kind, err)
			}
		}
	}
	for i := range refers {
		c.ask(&refers[i])
	}
	before := Command(c.cmds.n) - 1
	if ordered := c.order && before >= 0 && !slices.Contains(after, before); ordered || len(after) > 0 {
		cmd.after = append(carve(&c.cmds.afters, len(after)+1)[:0], after...)
		if ordered {
			cmd.after = append(cmd.after, before)
		}
	}
	c.cmds.add(cmd)
	c.nrefers = len(c.refers)
	return Command(c.cmds.n - 1), nil
}

// ask adds the demands of a reference to the binding, if the reference is to a binding.
func (c *Recording) ask(r *reference) {
	if i := slotOf(r.buffer); i >= 0 {
		at := &c.slots[i]
		at.size, at.align = max(at.size, r.offset+r.size), max(at.align, r.align)
		at.written, at.used, at.valued = at.written || r.written, at.used || r.used, at.valued || r.valued
	}
}

// Begin locks the recording for a call that records a command of kind op. If it returns no error,
// the caller must call Leave.
func (c *Recording) Begin(op work.Kind) error {
	err := c.enter()
	if err != nil {
		c.mu.Lock()
		err = c.Fail(op, err)
		c.mu.Unlock()
	}
	return err
}

// unsized returns an error if the range is all of a binding. It is for commands that need a size.
func unsized(r memory.Range, op work.Kind) error {
	if r.Size < bindingSize || r.Buffer == nil || slotOf(r.Buffer) < 0 {
		return nil
	}
	return errs.Argument(op.String(), "all of a binding, which has no size of its own: say what is used of it with Range(offset, size)")
}

// refer checks a range and returns the number of a new reference to it. It checks that the address
// is a multiple of align, as far as the address is known.
func (c *Recording) refer(op work.Kind, r memory.Range, align uint64) (int32, error) {
	if err := unsized(r, op); err != nil {
		if op != work.Launch && op != work.Native {
			return -1, c.Fail(op, err)
		}
		r.Size = 0 // the command gets only the address, so the number of bytes is unknown
	}
	at, err := r.CheckRecorded(op.String(), c.dev.Memory)
	switch {
	case err != nil:
		return -1, c.Fail(op, err)
	case recordedIn(r.Buffer) != nil && recordedIn(r.Buffer) != c:
		return -1, c.Fail(op, errs.Argument(op.String(), "a binding of another command buffer, or a buffer of its Scratch"))
	case uint64(at.Ptr)%align != 0:
		return -1, c.Fail(op, errs.Argument(op.String(), "offset %d is not aligned to %d bytes", r.Offset, align))
	}
	if err := c.roomFor(0, 1); err != nil {
		return -1, c.Fail(op, err)
	}
	used := op == work.Fill || op == work.Launch || op == work.Control || op == work.Native || op == work.ValueWrite || op == work.ValueWait
	if used {
		if err := r.Usable(op.String(), c.dev.Memory); err != nil {
			return -1, c.Fail(op, err)
		}
	}
	late := r.Buffer.HasNoAddress()
	c.refers = append(c.refers, reference{buffer: r.Buffer, offset: r.Offset, size: r.Size, align: align, late: late, used: used})
	return int32(len(c.refers) - 1), nil
}

// referTo is like refer, for a range that the command writes.
func (c *Recording) referTo(op work.Kind, r memory.Range, align uint64) (int32, error) {
	ref, err := c.refer(op, r, align)
	if err != nil {
		return -1, err
	}
	if err := r.Writable(op.String()); err != nil {
		return -1, c.Fail(op, err)
	}
	c.refers[ref].written = true
	return ref, nil
}

// End ends the recording, and makes it ready to run. It blocks while the driver makes graphs,
// events for timestamps, and scratch memory.
func (c *Recording) End() error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.Leave()
	c.ended = true
	c.flaw = c.prepare()
	return c.flaw
}

// prepare makes an ended recording ready to run.
func (c *Recording) prepare() error {
	first, err := c.placeScratch()
	if err != nil {
		return err
	}
	c.current.init(c.refers, len(c.params))
	c.current.setWords(c.values(nil, nil))
	c.layOut()
	if c.dev.describes() {
		c.described = c.describeAll()
	}
	c.instances.many = c.instances.timers > 0 || c.scratch.own() && c.scratch.layout.Size > 0
	c.layouts[byHost] = c.addLayout(byHost)
	c.layouts[byGraph] = c.layouts[byHost]
	if c.conditionals(0, c.cmds.n) > 0 {
		c.layouts[byGraph] = c.addLayout(byGraph)
	}
	first.graphs, first.taken = make([]graphOf, len(c.parts)), false
	c.current.instance = first
	err = c.buildParts(c.layouts[byGraph], first)
	if err != nil && c.layouts[byGraph] != c.layouts[byHost] && c.dev.Engine.Failed() == nil {
		c.refused, c.layouts[byGraph] = err, c.layouts[byHost]
		err = c.buildParts(c.layouts[byHost], first)
	}
	return err
}

// buildParts makes the graphs of a layout for the first instance. If standIn returns false for a
// part, the first execution makes the part's graph.
func (c *Recording) buildParts(l layout, first *instance) error {
	for i := l.from; i < l.to; i++ {
		p := &c.parts[i]
		if !p.graph {
			continue
		}
		if err := c.current.findLive(c.refers); err != nil {
			return err
		}
		err := c.dev.graph(func() error {
			if p.late && !c.standIn(p) {
				return c.dev.Engine.Failed() // if nil, the first execution makes the graph
			}
			return c.build(p, &first.graphs[i], p.late)
		})
		if err != nil {
			c.dev.Engine.Check(err)
			return fmt.Errorf("gpu: command buffer: graph of %d commands: %w", p.to-p.from, err)
		}
	}
	return nil
}

// layOut makes the pointers to the arguments. From then on the arguments do not move.
func (c *Recording) layOut() {
	lists := []*commandList{&c.cmds, &c.bodies}
	n := 0
	for _, l := range lists {
		for i := range l.n {
			n += len(l.at(i).layout)
		}
	}
	c.ptrs, c.args = make([]unsafe.Pointer, 0, n), work.Align(c.args)
	for _, l := range lists {
		for i := range l.n {
			c.layOutCommand(l.at(i))
		}
	}
}

func (c *Recording) layOutCommand(cmd *command) {
	cmd.moves = c.moves(cmd)
	cmd.depends = cmd.dst >= 0 && c.refers[cmd.dst].depends() || cmd.src >= 0 && c.refers[cmd.src].depends() ||
		cmd.op.Kind == work.Native && slices.ContainsFunc(cmd.bound, func(b argRef) bool { return c.refers[b.ref].depends() })
	from := len(c.ptrs)
	c.ptrs = cmd.layout.Point(c.ptrs, c.args[cmd.arg:])
	cmd.launch.Args = c.ptrs[from:len(c.ptrs):len(c.ptrs)]
}

// depends reports whether the address of a reference is known only when the recording is executed.
func (r *reference) depends() bool { return slotOf(r.buffer) >= 0 || r.late }

// moves reports whether an address or a parameter of a command may change from one execution of a
// graph to the next. The address of an instance's scratch memory does not change: the graph belongs
// to the instance.
func (c *Recording) moves(cmd *command) bool {
	if cmd.dst >= 0 && c.refers[cmd.dst].buffer.Late() || cmd.src >= 0 && c.refers[cmd.src].buffer.Late() {
		return true
	}
	if cmd.rare != nil && len(cmd.rare.params) > 0 {
		return true
	}
	for _, b := range cmd.bound {
		if c.refers[b.ref].buffer.Late() {
			return true
		}
	}
	return false
}

// Close releases the recording, and returns nil. Closing again does nothing.
func (c *Recording) Close() error {
	if c != nil && c.dev != nil && c.closed.CompareAndSwap(false, true) {
		c.release()
	}
	return nil
}

func (c *Recording) release() { c.releaseAll(1) }

// releaseAll releases n references.
func (c *Recording) releaseAll(n int32) {
	if c.refs.Add(-n) > 0 {
		return
	}
	c.dev.Engine.Reclaim(func() {
		if c.dev.remove(c) {
			c.dev.Engine.NotTaken(c.destroy())
		}
	})
}

// destroy destroys the instances of the command buffer, and releases everything that it holds. It
// runs on the reclaimer's thread, or on the pending-queue thread when the device is closed.
func (c *Recording) destroy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, b := range c.instances.list() {
		errs = append(errs, b.destroy(c.dev)...)
	}
	// The parts stay: a goroutine that is about to issue a parked execution reads the execution's
	// part (mayMake), perhaps after the device has been closed.
	c.held.release()
	return errors.Join(errs...)
}
