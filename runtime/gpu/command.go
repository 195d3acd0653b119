package gpu

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/memplan"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Mode is a way to run a command buffer.
type Mode int

// The modes.
const (
	AutoMode   Mode = iota // a graph if the device has graphs and the recording is worth one
	StreamMode             // the commands one after the other, each time
	GraphMode              // one launch of a graph, in which commands without an order may run at once
)

// A Command names a command of a command buffer.
type Command int

// A CommandBuffer is a recording of work that is submitted as a whole, any number of times: see
// [Queue.Execute]. Make one, record, call End, execute.
//
// Commands between two barriers may run at once. A barrier comes after all commands that were
// recorded before it. A command may also name others that it comes after, besides the last barrier.
// Leading, trailing and repeated barriers change nothing.
//
// A recording keeps its contents. The calls copy the data of updates and the arguments of kernels.
// The command buffer holds buffers and kernels until it is closed and no execution is in flight. A
// range of a [CommandBuffer.Binding] stands for memory that is named when the recording is
// executed. A range of [CommandBuffer.Alloca] stands for memory of the recording's own.
//
// A method that returns an error changes nothing. The error names the command by number and
// operation. All methods may be called concurrently, but then the order of the commands is not
// defined.
type CommandBuffer struct {
	dev    *Device
	mode   Mode
	refs   atomic.Int32 // one for the caller, and one for each execution
	closed atomic.Bool

	mu        sync.Mutex
	ended     bool
	flaw      error // of End
	awaits    bool  // there are waits for values
	cmds      commandList
	bounds    []argRef      // room for the bound of commands
	afters    []Command     // room for the after of commands
	rares     []rareCommand // room for the rare of commands
	slots     []slot
	scratches []*Buffer // of Alloca
	scratch   Range     // memory of the program for them, see SetScratch
	layout    memplan.Layout
	refers    []reference
	nrefers   int // how many of refers belong to recorded commands
	args      []uint64
	held      map[*Buffer]struct{}
	uses      engine.Uses // of all buffers that it holds
	foreign   []*Buffer   // the held buffers of other devices, and those of nested recordings
	code      map[*Executable]struct{}
	nested    []*CommandBuffer
	stages    []*stageBlock
	timers    int                        // how many timestamps there are
	kernels   map[driver.Function]string // names, if the tracer times commands
	parts     []part
	ptrs      []unsafe.Pointer // into args, one an argument
	many      bool             // executions that overlap need blocks of their own
	users     int              // how many parts use a block, if many is set
	latest    *block           // of the last execution
	using     *block           // of the execution that is being issued
	present   []driver.Ptr     // addresses of refers in that execution
	moving    []int            // numbers of the refers whose addresses may change
	sources   []source         // of the moving refers
	epoch     int              // how often a source has moved
	lost      bool             // the addresses of some sources are unknown

	blockMu sync.Mutex // protects blocks and their fields; only coverMu and Semaphore.mu are locked under it
	blocks  []*block   // from End on; none is removed
}

// ownScratch reports whether the recording has scratch memory, and keeps it in blocks of its own.
func (c *CommandBuffer) ownScratch() bool { return len(c.scratches) > 0 && c.scratch.Buffer == nil }

// CommandOptions say how a command buffer runs. With the zero value the runtime decides.
type CommandOptions struct {
	Mode Mode
}

// A commandList is commands in pages. A command never moves.
type commandList struct {
	pages []*[pageSize]command
	n     int
}

const pageSize = 32

func (l *commandList) add(cmd *command) {
	if l.n == len(l.pages)*pageSize {
		l.pages = append(l.pages, new([pageSize]command))
	}
	l.pages[l.n/pageSize][l.n%pageSize] = *cmd
	l.n++
}

func (l *commandList) at(i int) *command { return &l.pages[i/pageSize][i%pageSize] }

// carve takes n elements off a block, or off a new one.
func carve[T any](block *[]T, n int) []T {
	if len(*block) < n {
		*block = make([]T, max(n, 64))
	}
	taken := (*block)[:n:n]
	*block = (*block)[n:]
	return taken
}

// A command is one of a recording.
type command struct {
	op       work.Op
	depends  bool          // the address of dst or src is known only when it is executed
	moves    bool          // an address may change from one execution to the next
	arg      int32         // where its arguments begin in args
	dst, src int32         // in refers, or -1
	launch   driver.Launch // without Args
	layout   work.Layout   // of the arguments; the kernel's own
	bound    []argRef
	after    []Command
	rare     *rareCommand
}

// rare keeps a rareCommand.
func (c *CommandBuffer) rare(r rareCommand) *rareCommand {
	kept := &carve(&c.rares, 1)[0]
	*kept = r
	return kept
}

// A rareCommand has the fields that fills, copies and dispatches, the most frequent commands, do
// not need.
type rareCommand struct {
	stage  *stageBlock  // of an update
	fn     func() error // of a host call
	timer  int          // of a timestamp, in timers of a block
	native func(driver.Stream, []driver.Ptr) error
	ch     *Channel     // of collectives
	group  []recordedOp // of collectives
}

// An argRef says that an argument of a command is an address, and which.
type argRef struct {
	index int32 // of the argument
	ref   int32 // index in the list refers of the command buffer
}

// A reference is a range that commands use.
type reference struct {
	buffer       *Buffer
	offset, size uint64
	align        uint64 // that a binding must have
	late         bool   // the address is known only when it is executed
	written      bool
	used         bool    // by a command that is no copy
	valued       bool    // by a value
	source       int     // in sources, if the address may change
	scratch      *Buffer // the scratch memory that it was to; buffer is then the first block's
}

// A source is a buffer, or a binding, whose address may change from one execution to the next.
type source struct {
	buffer  *Buffer
	scratch bool       // it is the scratch memory of a block
	base    driver.Ptr // its last address
}

// A slot is a binding: the buffer that stands for it, and the commands' demands on it.
type slot struct {
	buffer  *Buffer
	size    uint64 // bytes that the commands use
	align   uint64
	written bool
	used    bool // by commands that are no copies
	valued  bool // by values
}

// A slotInfo says which binding, or which scratch memory, a buffer stands for.
type slotInfo struct {
	of    *CommandBuffer
	index int
}

// NewCommandBuffer makes an empty command buffer. GraphMode on a device without graphs is
// [driver.ErrUnsupported].
func (d *Device) NewCommandBuffer(o CommandOptions) (*CommandBuffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	switch {
	case o.Mode < AutoMode || o.Mode > GraphMode:
		return nil, argument("command buffer", "no mode %d", int(o.Mode))
	case o.Mode == GraphMode && d.faces.graphs == nil:
		return nil, fmt.Errorf("gpu: command buffer: graphs on %s: %w", d.native.Info.Name, driver.ErrUnsupported)
	}
	c := &CommandBuffer{dev: d, mode: o.Mode, held: map[*Buffer]struct{}{}, code: map[*Executable]struct{}{}}
	c.refs.Store(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recordings == nil { // the device has given everything back
		return nil, d.native.ClosedError()
	}
	d.recordings[c] = struct{}{}
	return c, nil
}

// bindingSize is the size of a buffer that stands for a binding.
const bindingSize = 1 << 63

// Binding adds a binding and returns a buffer that stands for it, in this command buffer only. The
// first binding is number 0. The buffer has no size of its own: an execution must bind as many
// bytes as the commands use. [Buffer.All] of it is all of the bound range. It may be a kernel's
// argument, or bound to a nested recording. Other commands must say how much they use.
func (c *CommandBuffer) Binding() (*Buffer, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	b := newBuffer(c.dev, bindingSize)
	b.rare = &rare{slot: &slotInfo{c, len(c.slots)}}
	b.state.Store(isPending)
	c.slots = append(c.slots, slot{buffer: b, align: 1})
	return b, nil
}

// recording returns why nothing can be recorded, or nil. The caller holds mu.
func (c *CommandBuffer) recording() error {
	switch {
	case c.closed.Load():
		return fmt.Errorf("gpu: command buffer: %w", ErrClosed)
	case c.ended:
		return argument("command buffer", "it has ended")
	}
	return nil
}

// roomFor returns an error if there are no numbers left for this many more words of arguments or
// references.
func (c *CommandBuffer) roomFor(words, refers int) error {
	if words > math.MaxInt32-len(c.args) || refers > math.MaxInt32-len(c.refers) {
		return argument("record", "the command buffer has %d words of arguments and %d ranges, which is too much for more", len(c.args), len(c.refers))
	}
	return nil
}

// fail adds to an error which command it is about.
func (c *CommandBuffer) fail(op work.Kind, err error) error {
	return fmt.Errorf("command %d, %s: %w", c.cmds.n, op, err)
}

// enter locks the recording for a call that records, and keeps it from being destroyed, until leave
// is called.
func (c *CommandBuffer) enter() error {
	if c.dev == nil {
		return errZero
	}
	if !holdLive(&c.refs, 1) {
		return fmt.Errorf("gpu: command buffer: %w", ErrClosed)
	}
	c.mu.Lock()
	if err := c.recording(); err != nil {
		c.leave()
		return err
	}
	c.refers = c.refers[:c.nrefers] // without those of a command that failed
	return nil
}

func (c *CommandBuffer) leave() {
	c.mu.Unlock()
	c.release()
}

// record adds a command with its references, after the commands in after.
func (c *CommandBuffer) record(cmd *command, after []Command) (Command, error) {
	for _, a := range after {
		if a < 0 || int(a) >= c.cmds.n {
			return -1, c.fail(cmd.op.Kind, argument("record", "it is to come after command %d, which there is not", a))
		}
	}
	refers := c.refers[c.nrefers:]
	for i := range refers {
		if r := &refers[i]; r.buffer.recordedIn() == nil {
			if err := c.hold(r.buffer); err != nil {
				return -1, c.fail(cmd.op.Kind, err)
			}
		}
	}
	for i := range refers {
		c.ask(&refers[i])
	}
	if len(after) > 0 {
		cmd.after = carve(&c.afters, len(after))
		copy(cmd.after, after)
	}
	c.cmds.add(cmd)
	c.nrefers = len(c.refers)
	return Command(c.cmds.n - 1), nil
}

// ask adds a reference's demands to its binding, if it is to a binding.
func (c *CommandBuffer) ask(r *reference) {
	if s := r.buffer.slot(); s != nil {
		at := &c.slots[s.index]
		at.size, at.align = max(at.size, r.offset+r.size), max(at.align, r.align)
		at.written, at.used, at.valued = at.written || r.written, at.used || r.used, at.valued || r.valued
	}
}

// begin starts to record a command, until leave is called.
func (c *CommandBuffer) begin(op work.Kind) error {
	err := c.enter()
	if err != nil {
		c.mu.Lock()
		err = c.fail(op, err)
		c.mu.Unlock()
	}
	return err
}

// unsized returns an error for all of a binding. It is for commands that need a size.
func (r Range) unsized(op work.Kind) error {
	if r.Size < bindingSize || r.Buffer == nil || r.Buffer.slot() == nil {
		return nil
	}
	return argument(op.String(), "all of a binding, which has no size of its own: say what is used of it with Range(offset, size)")
}

// refer checks a range and returns the number of a new reference to it. It checks that the address
// is a multiple of align, as far as the address is known.
func (c *CommandBuffer) refer(op work.Kind, r Range, align uint64) (int32, error) {
	if err := r.unsized(op); err != nil {
		if op != work.Dispatch && op != work.Native {
			return -1, c.fail(op, err)
		}
		r.Size = 0 // only the address is passed, and nobody knows how many bytes are used
	}
	at, err := r.checkOn(op.String(), c.dev)
	switch {
	case err != nil:
		return -1, c.fail(op, err)
	case r.Buffer.recordedIn() != nil && r.Buffer.recordedIn() != c:
		return -1, c.fail(op, argument(op.String(), "a binding of another command buffer, or a buffer of its Alloca"))
	case uint64(at.Ptr)%align != 0:
		return -1, c.fail(op, argument(op.String(), "offset %d is not aligned to %d bytes", r.Offset, align))
	}
	if err := c.roomFor(0, 1); err != nil {
		return -1, c.fail(op, err)
	}
	used := op == work.Fill || op == work.Dispatch || op == work.Native || op == work.ValueWrite || op == work.ValueWait
	if used {
		if err := r.usable(op.String(), c.dev); err != nil {
			return -1, c.fail(op, err)
		}
	}
	late := r.Buffer.late() && r.Buffer.state.Load() != isLive
	c.refers = append(c.refers, reference{buffer: r.Buffer, offset: r.Offset, size: r.Size, align: align, late: late, used: used})
	return int32(len(c.refers) - 1), nil
}

// referTo is refer for a range that the command writes.
func (c *CommandBuffer) referTo(op work.Kind, r Range, align uint64) (int32, error) {
	ref, err := c.refer(op, r, align)
	if err != nil {
		return -1, err
	}
	if err := r.writable(op.String()); err != nil {
		return -1, c.fail(op, err)
	}
	c.refers[ref].written = true
	return ref, nil
}

// hold keeps a buffer until the command buffer is destroyed.
func (c *CommandBuffer) hold(b *Buffer) error {
	if b.closed.Load() {
		return fmt.Errorf("buffer: %w", ErrClosed)
	}
	if _, ok := c.held[b]; ok {
		return nil
	}
	if err := b.hold(); err != nil {
		return err
	}
	c.held[b] = struct{}{}
	if b.from == pooled {
		b.uses.Join(&c.uses)
	}
	if b.dev != c.dev {
		c.foreign = append(c.foreign, b)
	}
	return nil
}

// holdCode keeps an executable until the command buffer is destroyed.
func (c *CommandBuffer) holdCode(x *Executable) error {
	if x.closed.Load() {
		return fmt.Errorf("executable: %w", ErrClosed)
	}
	if _, ok := c.code[x]; ok {
		return nil
	}
	if err := x.hold(); err != nil {
		return err
	}
	c.code[x] = struct{}{}
	return nil
}

// End ends the recording, and makes it ready to run. It blocks while the driver makes graphs, events
// for timestamps, and memory for buffers of [CommandBuffer.Alloca]. If one of these cannot be made, End
// returns the error, and so does each execution. One kind of graph is made by the first execution: a
// graph with a fill or a copy of more than 64 KiB in memory that is bound or allocated later, if the
// driver cannot enlarge such a node. That holds for patterns of 8 bytes, and in HIP.
func (c *CommandBuffer) End() error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	c.ended = true
	c.flaw = c.prepare()
	return c.flaw
}

// prepare makes an ended recording ready to run.
func (c *CommandBuffer) prepare() error {
	first, err := c.placeScratch()
	if err != nil {
		return err
	}
	c.present = make([]driver.Ptr, len(c.refers))
	c.layOut()
	for i := range c.refers {
		r := &c.refers[i]
		if !r.buffer.late() {
			c.present[i] = r.buffer.mem.Ptr + driver.Ptr(r.offset)
		}
		if r.buffer.late() || r.scratch != nil {
			c.moving = append(c.moving, i)
			r.source = slices.IndexFunc(c.sources, func(s source) bool { return s.buffer == r.buffer })
			if r.source < 0 {
				r.source = len(c.sources)
				c.sources = append(c.sources, source{buffer: r.buffer, scratch: r.scratch != nil})
			}
		}
	}
	c.many = c.timers > 0 || c.ownScratch() && c.layout.Size > 0
	c.split()
	c.needBlocks()
	first.graphs, first.taken = make([]graphOf, len(c.parts)), false
	c.using = first
	for i := range c.parts {
		p := &c.parts[i]
		if !p.graph {
			continue
		}
		if err := c.findLive(); err != nil {
			return err
		}
		began := time.Now()
		err := c.dev.native.OnBound(func() error {
			if p.late && !c.standIn(p) {
				return c.dev.failed() // else it is made at the first execution
			}
			return c.build(p, &first.graphs[i], p.late)
		})
		c.dev.happened(observe.Graph, began, "", 0, err)
		if err != nil {
			c.dev.native.Check(err)
			return fmt.Errorf("gpu: command buffer: graph of %d commands: %w", p.to-p.from, err)
		}
	}
	return nil
}

// layOut points to the arguments, which stay where they are from now on.
func (c *CommandBuffer) layOut() {
	n := 0
	for i := range c.cmds.n {
		n += len(c.cmds.at(i).layout)
	}
	c.ptrs, c.args = make([]unsafe.Pointer, 0, n), work.Align(c.args)
	for i := range c.cmds.n {
		cmd := c.cmds.at(i)
		c.awaits = c.awaits || cmd.op.Kind == work.ValueWait
		cmd.moves = c.moves(cmd)
		cmd.depends = cmd.dst >= 0 && c.refers[cmd.dst].depends() || cmd.src >= 0 && c.refers[cmd.src].depends() ||
			cmd.op.Kind == work.Native && slices.ContainsFunc(cmd.bound, func(b argRef) bool { return c.refers[b.ref].depends() })
		from := len(c.ptrs)
		c.ptrs = cmd.layout.Point(c.ptrs, c.args[cmd.arg:])
		cmd.launch.Args = c.ptrs[from:len(c.ptrs):len(c.ptrs)]
	}
}

// depends reports whether the address of a reference is known only when the recording is executed.
func (r *reference) depends() bool { return r.buffer.slot() != nil || r.late }

// moves reports whether an address of a command may change, or go away, from one execution to the
// next.
func (c *CommandBuffer) moves(cmd *command) bool {
	if cmd.dst >= 0 && c.refers[cmd.dst].buffer.late() || cmd.src >= 0 && c.refers[cmd.src].buffer.late() {
		return true
	}
	for _, b := range cmd.bound {
		if c.refers[b.ref].buffer.late() {
			return true
		}
	}
	return false
}

// A part is a run of commands that is submitted as a whole. A host call is a part, and so is a group
// of collectives. Where graphs are made, commands that no graph of the device can have are a part. So
// is every run of other commands in between.
type part struct {
	from, to int
	host     func() error
	ch       *Channel
	graph    bool
	late     bool // addresses of fills and copies are known only when it is executed
	native   bool // issuing it may call functions of Native
}

// split divides the recording into parts.
func (c *CommandBuffer) split() {
	for from := 0; from < c.cmds.n; {
		p := c.nextPart(from)
		if p.host != nil || p.ch != nil || c.setHow(&p) {
			c.parts = append(c.parts, p)
		}
		from = p.to
	}
	if len(c.parts) == 0 {
		c.parts = append(c.parts, part{to: c.cmds.n})
	}
}

// nextPart returns the part that begins at a command.
func (c *CommandBuffer) nextPart(from int) part {
	first, p := c.cmds.at(from), part{from: from, to: from + 1}
	switch first.op.Kind {
	case work.HostCall:
		p.host = first.rare.fn
		return p
	case work.Collect:
		p.ch = first.rare.ch
		for p.to < c.cmds.n && c.cmds.at(p.to).joins(p.ch) {
			p.to++
		}
		return p
	}
	graphs := c.makesGraphs(c.cmds.n)
	calls := graphs && c.noNode(first)
	for p.to < c.cmds.n {
		cmd := c.cmds.at(p.to)
		if cmd.op.Kind == work.HostCall || cmd.op.Kind == work.Collect || graphs && c.noNode(cmd) != calls {
			break
		}
		p.to++
	}
	return p
}

// setHow sets how a part is run. It reports false if there is nothing to run: all commands of the
// part are barriers or do nothing. On a device with graphs, the commands of a part are all fit to be
// nodes of a graph, or none is. So the first command tells whether the part becomes a graph.
func (c *CommandBuffer) setHow(p *part) bool {
	count, called := 0, false
	for i := p.from; i < p.to; i++ {
		cmd := c.cmds.at(i)
		if cmd.op.Kind != work.Barrier && cmd.op.Kind != work.Nothing {
			count++
			p.late = p.late || cmd.depends
			called = called || cmd.op.Kind == work.Native
			p.native = p.native || cmd.op.Kind == work.Native && cmd.moves
		}
	}
	p.graph = c.makesGraphs(count) && !c.noNode(c.cmds.at(p.from))
	p.native = p.native || called && (!p.graph || p.late || c.many)
	return count > 0
}

// worthGraph is the number of commands from which one launch of a graph costs less than they do.
const worthGraph = 3

// makesGraphs reports whether n commands become a graph.
func (c *CommandBuffer) makesGraphs(n int) bool {
	return c.mode == GraphMode || c.mode == AutoMode && c.dev.faces.graphs != nil && n >= worthGraph && !c.dev.timesCommands()
}

// noNode reports whether no node of a graph can do the work of a command.
func (c *CommandBuffer) noNode(cmd *command) bool {
	a := &cmd.launch.Attrs
	return c.across(cmd, nil) || cmd.op.Kind == work.ValueWrite || cmd.op.Kind == work.ValueWait ||
		cmd.op.Kind == work.Native && c.dev.faces.capturer == nil ||
		!c.dev.native.Caps.NodeAttrs && (a.Cooperative || a.Cluster != [3]uint32{})
}

// joins reports whether a command continues a group of a channel. A collective that moves no data
// continues any group.
func (cmd *command) joins(ch *Channel) bool {
	return cmd.op.Kind == work.Collect && cmd.rare.ch == ch || cmd.op.Kind == work.Nothing && cmd.rare != nil && cmd.rare.ch != nil
}

// Close lets go of the command buffer, recorded or not, and returns nil. Executions in flight and
// command buffers that have recorded it still use it. When they are over, it lets go of everything
// that it holds. Closing again does nothing.
func (c *CommandBuffer) Close() error {
	if c != nil && c.dev != nil && c.closed.CompareAndSwap(false, true) {
		c.release()
	}
	return nil
}

func (c *CommandBuffer) release() { c.releaseAll(1) }

// releaseAll lets go of n references.
func (c *CommandBuffer) releaseAll(n int32) {
	if c.refs.Add(-n) > 0 {
		return
	}
	c.dev.native.Reclaim(func() {
		c.dev.mu.Lock()
		_, ok := c.dev.recordings[c]
		delete(c.dev.recordings, c)
		c.dev.mu.Unlock()
		if ok {
			c.dev.native.NotTaken(c.destroy())
		}
	})
}

// destroy gives back everything that the command buffer holds. It runs on the reclaimer's thread,
// or on the device's thread when the device is closed.
func (c *CommandBuffer) destroy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	c.blockMu.Lock()
	blocks := c.blocks
	c.blockMu.Unlock()
	for _, b := range blocks {
		errs = append(errs, b.destroy(c.dev)...)
	}
	for _, b := range c.stages {
		b.free()
	}
	for b := range c.held {
		if b.from == pooled {
			b.uses.Leave(&c.uses)
		}
		b.release()
	}
	for x := range c.code {
		x.release()
	}
	for _, n := range c.nested {
		n.release()
	}
	// The parts stay: the goroutine that releases a parked execution looks at its part (mayMake), also
	// after the device has been closed.
	c.stages, c.nested = nil, nil
	clear(c.held)
	clear(c.code)
	return errors.Join(errs...)
}
