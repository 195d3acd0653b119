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
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/memplan"
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

// A Command names a command of a recording, by its number.
type Command int

// A Recording is work that is submitted as a whole, any number of times. It is a command buffer of
// package gpu, which documents the methods.
type Recording struct {
	dev    *Device
	mode   Mode
	order  bool         // each command comes after the one before it
	refs   atomic.Int32 // one for the caller, and one for each execution
	closed atomic.Bool

	mu        sync.Mutex
	ended     bool
	flaw      error // the error of End
	awaits    bool  // there are waits for values
	cmds      commandList
	bounds    []argRef      // storage of command.bound
	afters    []Command     // storage of command.after
	rares     []rareCommand // storage of command.rare
	slots     []slot
	params    []*Param
	scratches []*memory.Buffer // the buffers that Scratch returned
	scratch   memory.Range     // the program's memory for scratches; see SetScratch
	layout    memplan.Layout
	refers    []reference
	nrefers   int // how many of refers belong to recorded commands
	args      []uint64
	held      map[*memory.Buffer]struct{}
	uses      engine.Uses      // of all held buffers
	foreign   []*memory.Buffer // held buffers of other devices; also those that nested recordings hold
	code      map[Code]struct{}
	nested    []*Recording
	stages    []*memory.Block
	timers    int                        // how many timestamps there are
	kernels   map[driver.Function]string // names, if the tracer times commands
	labels    map[Command]string         // of the program
	parts     []part
	ptrs      []unsafe.Pointer // into args, one for each argument
	many      bool             // executions that overlap need blocks of their own
	users     int              // how many parts use a block, if many is set
	latest    *block           // of the last execution
	using     *block           // of the execution that is being issued
	present   []driver.Ptr     // in that execution: the addresses of refers, then the words of params
	shaped    driver.Launch    // in that execution: the launch whose blocks are a parameter
	moving    []int            // numbers of the refers whose addresses may change
	sources   []source         // of the moving refers
	epoch     int              // how often a source has moved or a parameter has changed
	lost      bool             // the addresses of some sources are unknown

	blockMu sync.Mutex // protects blocks and their fields; only coverMu and Semaphore.mu are locked under it
	blocks  []*block   // from End on; none is removed
}

// ownScratch reports whether the recording has scratch memory, and keeps it in blocks of its own.
func (c *Recording) ownScratch() bool { return len(c.scratches) > 0 && c.scratch.Buffer == nil }

// A Code is loaded code with kernels.
type Code interface {
	Hold() error     // keeps it loaded until Release is called
	Release(n int32) // releases n holds
	IsClosed() bool  // the program has closed it
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
	depends  bool          // the address of dst or src is known only in an execution
	moves    bool          // an address or a parameter may change from one execution to the next
	arg      int32         // where its arguments begin in args
	dst, src int32         // in refers, or -1
	launch   driver.Launch // without Args
	layout   work.Layout   // of the arguments; the kernel's own
	bound    []argRef
	after    []Command
	rare     *rareCommand
}

// rare stores a rareCommand, and returns its address.
func (c *Recording) rare(r rareCommand) *rareCommand {
	kept := &carve(&c.rares, 1)[0]
	*kept = r
	return kept
}

// A rareCommand has the fields that the most frequent commands, fills, copies and launches, do not
// need.
type rareCommand struct {
	stage  *memory.Block // pinned memory of an upload
	fn     func() error  // of a host call
	timer  int           // of a timestamp, in timers of a block
	native func(driver.Stream, []driver.Ptr) error
	again  bool               // each execution calls native
	lane   *comm.Communicator // of collectives
	group  []Collective       // of collectives
	params []paramRef         // of a launch
}

// An argRef says which address an argument of a command is.
type argRef struct {
	index int32 // of the argument
	ref   int32 // index in the list refers of the command buffer
}

// A reference is a range that commands use.
type reference struct {
	buffer       *memory.Buffer
	offset, size uint64
	align        uint64 // that a binding must have
	late         bool   // the address is known only in an execution
	written      bool
	used         bool           // by a command that is no copy
	valued       bool           // a value is written there or awaited
	source       int            // in sources, if the address may change
	scratch      *memory.Buffer // nil, or the buffer of Scratch; buffer is then the first block's
}

// A source is a buffer, or a binding, whose address may change from one execution to the next.
type source struct {
	buffer  *memory.Buffer
	scratch bool       // it is the scratch memory of a block
	base    driver.Ptr // its last address
}

// A slot is a binding: the buffer that stands for it, and the commands' demands on it.
type slot struct {
	buffer  *memory.Buffer
	size    uint64 // bytes that the commands use
	align   uint64
	written bool
	used    bool // by commands that are no copies
	valued  bool // values are written there or awaited
}

// recordedIn returns the command buffer in which a buffer stands for a binding or for scratch
// memory, or nil.
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
	c := &Recording{dev: d, mode: mode, order: inOrder, held: map[*memory.Buffer]struct{}{}, code: map[Code]struct{}{}}
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

// roomFor returns an error if the recording has no numbers left for so many more words of arguments
// or references.
func (c *Recording) roomFor(words, refers int) error {
	if words > math.MaxInt32-len(c.args) || refers > math.MaxInt32-len(c.refers) {
		return errs.Argument("record", "the command buffer has %d words of arguments and %d ranges, which is too much for more", len(c.args), len(c.refers))
	}
	return nil
}

// Fail adds the number and kind of the command to an error.
func (c *Recording) Fail(op work.Kind, err error) error {
	return fmt.Errorf("command %d, %s: %w", c.cmds.n, op, err)
}

// SetLabel sets the label of a command, which errors and traces show.
func (c *Recording) SetLabel(at Command, label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setLabel(at, label)
}

func (c *Recording) setLabel(at Command, label string) {
	if c.labels == nil {
		c.labels = map[Command]string{}
	}
	c.labels[at] = label
}

// Refuse returns the error of a command that is not recorded.
func (c *Recording) Refuse(err error) (Command, error) {
	if closed := c.enter(); closed != nil {
		return -1, closed
	}
	defer c.Leave()
	return -1, fmt.Errorf("command %d: %w", c.cmds.n, err)
}

// enter locks the recording for a call that records. The recording is not destroyed before Leave is
// called.
func (c *Recording) enter() error {
	if c == nil || c.dev == nil {
		return errs.ErrZero
	}
	if !engine.HoldLive(&c.refs, 1) {
		return fmt.Errorf("gpu: command buffer: %w", errs.ErrClosed)
	}
	c.mu.Lock()
	if err := c.recording(); err != nil {
		c.Leave()
		return err
	}
	c.refers = c.refers[:c.nrefers] // without the references of a command that failed
	return nil
}

func (c *Recording) Leave() {
	c.mu.Unlock()
	c.release()
}

// checkAfter checks the commands after which a new command is to come.
func (c *Recording) checkAfter(op work.Kind, after []Command) error {
	for _, a := range after {
		if a < 0 || int(a) >= c.cmds.n {
			return c.Fail(op, errs.Argument("record", "it is to come after command %d, which there is not", a))
		}
	}
	return nil
}

// record adds a command with its references, after the commands in after.
func (c *Recording) record(cmd *command, after []Command) (Command, error) {
	if err := c.checkAfter(cmd.op.Kind, after); err != nil {
		return -1, err
	}
	refers := c.refers[c.nrefers:]
	for i := range refers {
		if r := &refers[i]; recordedIn(r.buffer) == nil {
			if err := c.hold(r.buffer); err != nil {
				return -1, c.Fail(cmd.op.Kind, err)
			}
		}
	}
	for i := range refers {
		c.ask(&refers[i])
	}
	before := Command(c.cmds.n) - 1
	if ordered := c.order && before >= 0 && !slices.Contains(after, before); ordered || len(after) > 0 {
		cmd.after = append(carve(&c.afters, len(after)+1)[:0], after...)
		if ordered {
			cmd.after = append(cmd.after, before)
		}
	}
	c.cmds.add(cmd)
	c.nrefers = len(c.refers)
	return Command(c.cmds.n - 1), nil
}

// ask adds the demands of a reference to its binding, if it has one.
func (c *Recording) ask(r *reference) {
	if i := slotOf(r.buffer); i >= 0 {
		at := &c.slots[i]
		at.size, at.align = max(at.size, r.offset+r.size), max(at.align, r.align)
		at.written, at.used, at.valued = at.written || r.written, at.used || r.used, at.valued || r.valued
	}
}

// Begin starts to record a command, until Leave is called.
func (c *Recording) Begin(op work.Kind) error {
	err := c.enter()
	if err != nil && c != nil {
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
		r.Size = 0 // only the address is passed, and nobody knows how many bytes are used
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
	used := op == work.Fill || op == work.Launch || op == work.Native || op == work.ValueWrite || op == work.ValueWait
	if used {
		if err := r.Usable(op.String(), c.dev.Memory); err != nil {
			return -1, c.Fail(op, err)
		}
	}
	late := r.Buffer.HasNoAddress()
	c.refers = append(c.refers, reference{buffer: r.Buffer, offset: r.Offset, size: r.Size, align: align, late: late, used: used})
	return int32(len(c.refers) - 1), nil
}

// referTo is refer for a range that the command writes.
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

// hold keeps a buffer until the command buffer is destroyed.
func (c *Recording) hold(b *memory.Buffer) error {
	if b.IsClosed() {
		return fmt.Errorf("buffer: %w", errs.ErrClosed)
	}
	if _, ok := c.held[b]; ok {
		return nil
	}
	if err := b.Hold(); err != nil {
		return err
	}
	c.held[b] = struct{}{}
	b.JoinUses(&c.uses)
	if b.Device() != c.dev.Memory {
		c.foreign = append(c.foreign, b)
	}
	return nil
}

// holdCode keeps code loaded until the recording is destroyed.
func (c *Recording) holdCode(x Code) error {
	if x.IsClosed() {
		return fmt.Errorf("executable: %w", errs.ErrClosed)
	}
	if _, ok := c.code[x]; ok {
		return nil
	}
	if err := x.Hold(); err != nil {
		return err
	}
	c.code[x] = struct{}{}
	return nil
}

// End ends the recording, and makes it ready to run. It blocks while the driver makes graphs, events
// for timestamps, and scratch memory.
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
	c.present = make([]driver.Ptr, len(c.refers)+2*len(c.params))
	c.setWords(c.values(nil, nil))
	c.layOut()
	for i := range c.refers {
		r := &c.refers[i]
		if !r.buffer.Late() {
			c.present[i] = r.buffer.Addr() + driver.Ptr(r.offset)
		}
		if r.buffer.Late() || r.scratch != nil {
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

// layOut makes the pointers to the arguments, which do not move from now on.
func (c *Recording) layOut() {
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
func (r *reference) depends() bool { return slotOf(r.buffer) >= 0 || r.late }

// moves reports whether an address or a parameter of a command may change from one execution to the
// next.
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

// A part is adjacent commands that are submitted as a whole. A host call is a part, and so is a
// group of collectives. Where graphs are made, adjacent commands that no graph of the device can
// have are a part. So are the other commands in between.
type part struct {
	from, to int
	host     func() error
	lane     *comm.Communicator // of a group of collectives
	label    string             // of a host call, or of the first collective
	graph    bool
	late     bool    // addresses of fills and copies are known only in an execution
	native   bool    // issuing it may call functions of Native
	grids    []int32 // the parameters that are blocks of its launches
}

// split divides the recording into parts.
func (c *Recording) split() {
	for from := 0; from < c.cmds.n; {
		p := c.nextPart(from)
		if p.host != nil || p.lane != nil {
			p.label = c.labels[Command(from)]
		}
		if p.host != nil || p.lane != nil || c.setHow(&p) {
			c.parts = append(c.parts, p)
		}
		from = p.to
	}
	if len(c.parts) == 0 {
		c.parts = append(c.parts, part{to: c.cmds.n})
	}
}

// nextPart returns the part that begins at a command.
func (c *Recording) nextPart(from int) part {
	first, p := c.cmds.at(from), part{from: from, to: from + 1}
	switch first.op.Kind {
	case work.HostCall:
		p.host = first.rare.fn
		return p
	case work.Collect:
		p.lane = first.rare.lane
		for p.to < c.cmds.n && c.cmds.at(p.to).joins(p.lane) {
			p.to++
		}
		return p
	}
	graphs := c.makesGraphs(c.cmds.n)
	calls := graphs && c.noNode(first)
	for p.to < c.cmds.n {
		cmd := c.cmds.at(p.to)
		if kind := cmd.op.Kind; kind == work.HostCall || kind == work.Collect || kind != work.Nothing && graphs && c.noNode(cmd) != calls {
			break
		}
		p.to++
	}
	return p
}

// setHow sets how a part is run. It reports false if there is nothing to run: all commands of the
// part are barriers or do nothing. On a device with graphs, the commands of a part are all fit to be
// nodes of a graph, or none is. So the first command tells whether the part becomes a graph.
func (c *Recording) setHow(p *part) bool {
	count, called := 0, false
	for i := p.from; i < p.to; i++ {
		cmd := c.cmds.at(i)
		if cmd.op.Kind != work.Barrier && cmd.op.Kind != work.Nothing {
			count++
			p.late = p.late || cmd.depends
			called = called || cmd.op.Kind == work.Native
			p.native = p.native || cmd.op.Kind == work.Native && cmd.moves
			p.addGrids(cmd)
		}
	}
	p.graph = c.makesGraphs(count) && !c.noNode(c.cmds.at(p.from))
	p.native = p.native || called && (!p.graph || p.late || c.many || len(p.grids) > 0)
	return count > 0
}

// worthGraph is the least number of commands that cost more than one launch of their graph.
const worthGraph = 3

// makesGraphs reports whether n commands become a graph.
func (c *Recording) makesGraphs(n int) bool {
	worth := worthGraph
	if c.dev.Engine.Caps.ChecksOrder {
		worth = 2 // so that a missing order between two commands is found
	}
	return c.mode == GraphMode || c.mode == AutoMode && c.dev.Faces.Graphs != nil && n >= worth && !c.dev.timesCommands()
}

// noNode reports whether no node of a graph can do the work of a command.
func (c *Recording) noNode(cmd *command) bool {
	a := &cmd.launch.Attrs
	return c.across(cmd, nil) || cmd.op.Kind == work.ValueWrite || cmd.op.Kind == work.ValueWait ||
		cmd.op.Kind == work.Native && (c.dev.Faces.Capturer == nil || cmd.rare.again) ||
		!c.dev.Engine.Caps.NodeAttrs && (a.Cooperative || a.Cluster != [3]uint32{})
}

// joins reports whether a command continues a group of a communicator. A collective that moves no
// data continues any group. Another one that has commands in after continues none.
func (cmd *command) joins(lane *comm.Communicator) bool {
	if cmd.op.Kind == work.Collect && len(cmd.after) > 0 {
		return false
	}
	return cmd.op.Kind == work.Collect && cmd.rare.lane == lane || cmd.op.Kind == work.Nothing && cmd.rare != nil && cmd.rare.lane != nil
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

// destroy gives back everything that the command buffer holds. It runs on the reclaimer's thread,
// or on the device's thread when the device is closed.
func (c *Recording) destroy() error {
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
		b.Free()
	}
	for b := range c.held {
		b.LeaveUses(&c.uses)
		b.Release()
	}
	for x := range c.code {
		x.Release(1)
	}
	for _, n := range c.nested {
		n.release()
	}
	// The parts stay: the goroutine that releases a parked execution reads its part (mayMake). It
	// may do so after the device has been closed.
	c.stages, c.nested = nil, nil
	clear(c.held)
	clear(c.code)
	return errors.Join(errs...)
}
