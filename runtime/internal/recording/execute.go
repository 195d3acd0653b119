package recording

import (
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Part has the fields of a submission's record that are for executing a recording. The submission
// runs one of the recording's parts.
type Part struct {
	recording *Recording
	part      int
	binds     []memory.Range // the bound ranges
	values    []Value        // the values of all parameters
	// The execution's run, or nil if the execution or this part needs no instance, or if this part
	// has been issued. run is &run1 if the execution has only this part.
	run  *run
	run1 run
}

// A Record is the engine.Rest of a submission. Recording returns the Part of the record.
type Record interface{ Recording() *Part }

// partOf returns the Part of a submission.
func partOf(s *engine.Submission) *Part { return s.Rest.(Record).Recording() }

// Release empties p. It is called when the submission is recycled.
func (p *Part) Release() {
	if p.run != nil { // the submission has failed before it was issued, or is a control step
		p.leaveInstance(engine.Mark{})
	}
	clear(p.binds)
	p.recording, p.part, p.binds, p.values, p.run, p.run1 = nil, 0, p.binds[:0], p.values[:0], nil, run{}
}

// Recording returns the recording, or nil if the submission executes none.
func (p *Part) Recording() *Recording { return p.recording }

// Commands returns the number of the part's first command, how many commands the part has, and
// whether the part is a graph.
func (p *Part) Commands() (first, n int, graph bool) {
	x := &p.recording.parts[p.part]
	return x.from, x.to - x.from, x.graph
}

// Described returns the recording's description for the device's observer. It is nil if the
// observer wants none.
func (p *Part) Described() *observe.Recording { return p.recording.described }

// Number returns the number of the part in its recording.
func (p *Part) Number() int { return p.part }

// A Step is a part of a recording in an execution. Each step becomes a submission, behind the
// submission of the previous step.
type Step struct {
	c    *Recording
	part int
	// held says that the caller of AddSteps holds the bound buffers and the recording, so the
	// program may have closed them already.
	held bool
	// run is nil if the execution needs no instance. It is also nil if the execution has one part
	// only: then SetRun makes the run in Part.run1.
	run *run
}

func (x Step) at() *part { return &x.c.parts[x.part] }

// Call returns the function that the step calls, or nil.
func (x Step) Call() func() error { return x.at().host }

// IsControl reports whether the step is a conditional that the host runs.
func (x Step) IsControl() bool { return x.at().control != nil }

// Lane returns the communicator of a step that is a group of collectives, or nil.
func (x Step) Lane() *comm.Communicator { return x.at().lane }

// Label returns the label of a step that is a host call, a conditional or a group, or "".
func (x Step) Label() string { return x.at().label }

// FirstCollective returns the kind of the first operation of a step that is a group.
func (x Step) FirstCollective() driver.CommOpKind {
	return x.c.cmds.at(x.at().from).rare.group[0].Kind
}

// CheckBindings returns an error if the recording cannot be executed with the ranges.
func (c *Recording) CheckBindings(bindings []memory.Range) error {
	return checkBindings(c.slots, bindings, c.dev, nil)
}

// AddSteps appends the steps of an execution of the command buffer to a list. The list binds has
// the ranges to bind, and the list given has the parameters' values. If the parameter held is true,
// the caller holds the ranges' buffers and the recording, so the program may have closed them
// already.
func (c *Recording) AddSteps(to []Step, binds []memory.Range, given []Given, held bool) []Step {
	l := c.layouts[byGraph]
	if l != c.layouts[byHost] && !c.graphsCan(l, binds, given) {
		l = c.layouts[byHost]
	}
	var r *run
	if c.instances.many && l.to-l.from > 1 {
		r = new(run).start(c, l.users)
	}
	for i := l.from; i < l.to; i++ {
		to = append(to, Step{c, i, held, r})
	}
	return to
}

// Executable returns why the recording cannot be executed, or nil.
func (c *Recording) Executable() error {
	c.mu.Lock()
	ended, flaw := c.ended, c.flaw
	c.mu.Unlock()
	switch {
	case c.closed.Load():
		return fmt.Errorf("gpu: execute: command buffer: %w", errs.ErrClosed)
	case !ended:
		return errs.Argument("execute", "the command buffer has not ended")
	case flaw != nil:
		return fmt.Errorf("gpu: execute: the command buffer did not end well: %w", flaw)
	}
	return nil
}

// LeaveRest is called when the given steps, which are of the same execution as x, will not be
// submitted. These steps no longer count as users of the execution's instance.
func (x Step) LeaveRest(left []Step) {
	for _, y := range left {
		if x.run != nil && y.at().host == nil {
			x.run.leaveInstance(engine.Mark{})
		}
	}
}

// Timed returns the first and the last step that a Timing measures: the first and the last step
// that are work of streams. If the host runs all steps, Timed returns the first and the last of all
// steps.
func Timed(steps []Step) (first, last int) {
	onHost := func(x Step) bool { return x.at().onHost() }
	first, last = 0, len(steps)-1
	if !slices.ContainsFunc(steps, func(x Step) bool { return !onHost(x) }) {
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

// Set makes the submission s execute the step x. The list binds has the ranges to bind, and the
// list given has the parameters' values. The submission holds the ranges' buffers and the
// recording.
func (p *Part) Set(s *engine.Submission, x Step, binds []memory.Range, given []Given) error {
	c := x.c
	for _, r := range binds {
		if x.held {
			r.Buffer.HoldMore()
		} else if err := r.Buffer.Hold(); err != nil {
			return fmt.Errorf("gpu: execute: %w", err)
		}
		p.binds = append(p.binds, r)
		s.Holds = append(s.Holds, r.Buffer.Holding())
	}
	if err := c.HoldFor(s); err != nil {
		return err
	}
	p.recording, p.values = c, c.values(p.values, given)
	return nil
}

// HoldFor makes a submission hold the recording. It returns an error if the recording has been
// closed and nothing holds it.
func (c *Recording) HoldFor(s *engine.Submission) error {
	if !engine.HoldLive(&c.refs, 1) {
		return fmt.Errorf("gpu: execute: command buffer: %w", errs.ErrClosed)
	}
	s.Holds = append(s.Holds, (*holding)(c))
	return nil
}

// SetRun gives a submission the part and the run of a step. If the execution needs an instance and
// has only this part, SetRun makes the run. It is called before Set.
func (p *Part) SetRun(x Step) {
	p.part = x.part
	if x.at().host != nil {
		return
	}
	if p.run = x.run; x.c.instances.many && p.run == nil {
		p.run = p.run1.start(x.c, 1)
	}
}

// TakeGroup adds the collectives of a submission, with the addresses of this execution, to the
// submission's data for package comm.
func (p *Part) TakeGroup(to *comm.Part) error {
	c := p.recording
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.current.find(c.refers, p.instance(), p.binds, p.values); err != nil {
		return err
	}
	x := &c.parts[p.part]
	for i := x.from; i < x.to; i++ {
		for _, r := range c.cmds.at(i).rare.group {
			r.Dst, r.Src = c.current.address(r.dst), c.current.address(r.src)
			to.Add(r.Op)
		}
	}
	return nil
}

// Issued is called after the part has been issued at a mark. If the part uses an instance, Issued
// records the mark in the instance. If the part was the last, Issued gives the instance back.
func (p *Part) Issued(m engine.Mark) {
	if p.run != nil {
		p.leaveInstance(m)
	}
}

// Execute is the [engine.Action] that runs a part of a recording.
type Execute struct{ engine.SimpleAction }

// Prepare takes an instance if the execution needs one, and makes the part's graph if the graph is
// missing and will be launched.
func (Execute) Prepare(s *engine.Submission) (engine.Outcome, error) {
	p := partOf(s)
	if p.run != nil {
		if err := p.findInstance(s); err != nil {
			return engine.Refused, err
		}
	}
	return engine.Refused, p.recording.makeGraph(p.instance(), p.part, p.binds, p.values)
}

// Blocks reports whether the part may have to make an instance or a graph, or call functions of
// Native.
func (Execute) Blocks(s *engine.Submission) bool { return partOf(s).mayMake(s) }

// HoldsUp returns true: a graph may wait for its previous launch in another stream.
func (Execute) HoldsUp(*engine.Submission, *engine.Timeline) bool { return true }

// Issue makes the native calls.
func (Execute) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return partOf(s).execute(s, tl)
}

// Issued gives the instance back if no other part of the execution is still to be issued.
func (Execute) Issued(s *engine.Submission, tl *engine.Timeline, _ bool) bool {
	partOf(s).Issued(tl.At(s.Seq))
	return false
}

// Undo gives the instance back if how is Foreign, because the submission is then parked until its
// waits are reached. The execution keeps the instance if a stream already has a part of the
// execution.
func (Execute) Undo(s *engine.Submission, how engine.Outcome) {
	if p := partOf(s); how == engine.Foreign && p.run != nil {
		p.run.returnInstance()
	}
}

// describe returns the description of a command for an observer.
func (c *Recording) describe(i int) observe.Command {
	cmd := c.cmds.at(i)
	d := observe.Command{Index: i, Kind: cmd.op.Kind, Label: c.names.labels[Command(i)], Bytes: cmd.op.Bytes()}
	if cmd.op.Kind == work.Launch {
		d.Grid, d.Block, d.Kernel, d.Bytes = c.blocksOf(cmd), cmd.launch.Block, c.names.kernels[cmd.launch.Function], 0
	}
	return d
}

// describeAll returns the description of an ended recording for an observer.
func (c *Recording) describeAll() *observe.Recording {
	r := &observe.Recording{ID: c.dev.Memory.Observer.NewRecordingID(), Commands: make([]observe.Command, c.cmds.n)}
	for i := range r.Commands {
		r.Commands[i] = c.describe(i)
	}
	return r
}

// execute makes the native calls of a part of a recording.
func (p *Part) execute(s *engine.Submission, tl *engine.Timeline) (started bool, err error) {
	c := p.recording
	c.mu.Lock()
	defer c.mu.Unlock()
	x, b := &c.parts[p.part], p.instance()
	if err := c.current.find(c.refers, b, p.binds, p.values); err != nil {
		return false, err
	}
	seen := observe.Of(s)
	switch {
	case x.graph && !c.crosses(x, p.binds) && !x.leavesOut(p.values):
		started, err = c.launch(s, tl, p.part, &b.graphs[p.part])
	case x.awaits:
		started, err = tl.AwaitOthers(func() (bool, error) { return c.replay(seen, tl, x, p.binds) })
	default:
		started, err = c.replay(seen, tl, x, p.binds)
	}
	if started {
		c.current.latest = b
	}
	return started, err
}

// A holding is a recording as an engine.Holder.
type holding Recording

// Use adds a mark to the uses of the recording and of the recordings nested in it.
func (u *holding) Use(m engine.Mark) error {
	return (*Recording)(u).held.use(m)
}

// Unuse undoes Use. It returns true, because a Free of one of the recording's buffers may already
// wait for the mark.
func (u *holding) Unuse(m engine.Mark) (awaited bool) {
	(*Recording)(u).held.lowerUse(m)
	return true
}

// Release releases the references of n submissions.
func (u *holding) Release(n int32) { (*Recording)(u).releaseAll(n) }

// target returns the buffer of a reference in an execution. It returns nil for no reference (-1),
// and for a binding if binds is nil.
func (c *Recording) target(ref int32, binds []memory.Range) *memory.Buffer {
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

// across reports whether a command copies from or to another device's memory, or tests a number
// there. No node of a graph can do that, because a node does not name devices.
func (c *Recording) across(cmd *command, binds []memory.Range) bool {
	return (cmd.op.Copies() || cmd.op.Kind == work.Control) && (c.dev.Memory.Foreign(c.target(cmd.dst, binds)) || c.dev.Memory.Foreign(c.target(cmd.src, binds)))
}

// bindsForeign reports whether memory of another device is bound.
func (c *Recording) bindsForeign(binds []memory.Range) bool {
	return slices.ContainsFunc(binds, func(r memory.Range) bool { return c.dev.Memory.Foreign(r.Buffer) })
}

// crosses reports whether the bound ranges make a command of a part copy from or to another
// device's memory, or test a number there.
func (c *Recording) crosses(p *part, binds []memory.Range) bool {
	if !c.bindsForeign(binds) {
		return false
	}
	for cmd := range c.each(p) {
		if c.across(cmd, binds) {
			return true
		}
	}
	return false
}

// extra sets x to the data that a command needs besides dst and src, and puts addresses into a
// kernel's arguments.
func (c *Recording) extra(x *work.Extra, cmd *command) {
	for _, b := range cmd.bound {
		*work.Address(cmd.launch.Args[b.index]) = c.current.present[b.ref]
	}
	x.Launch = &cmd.launch
	if r := cmd.rare; r != nil {
		if x.Native = r.native; cmd.op.Kind == work.Timestamp {
			x.Event = c.current.instance.timers[r.timer]
		}
		if r.stage != nil {
			r.stage.Give(x)
		}
		c.useParams(x, cmd)
	}
}

// replay makes the native calls of a part's commands one after the other.
func (c *Recording) replay(seen observe.Submission, tl *engine.Timeline, p *part, binds []memory.Range) (started bool, err error) {
	d, h, foreign := tl.Device.Native, tl.Stream, len(c.held.foreign) > 0 || c.bindsForeign(binds)
	var x work.Extra
	timed := seen != nil && c.dev.timesCommands()
	for i := p.from; i < p.to; i++ {
		cmd := c.cmds.at(i)
		if foreign || !cmd.op.Kind.Plain() {
			c.extra(&x, cmd)
			if foreign {
				if x.DstOf, x.SrcOf, err = c.dev.Memory.Owners(c.target(cmd.dst, binds), c.target(cmd.src, binds)); err != nil {
					return started, c.failed(i, err)
				}
			}
		}
		if cmd.op.Kind == work.Launch && x.Launch.Grid[0] == 0 {
			// A parameter gives the launch 0 blocks, so skip the launch.
			continue
		}
		if timed || seen != nil && c.names.labels[Command(i)] != "" {
			seen.CommandBegins(tl, c.describe(i))
		}
		some, err := cmd.op.Run(d, h, c.current.address(cmd.dst), c.current.address(cmd.src), &x)
		if seen != nil {
			seen.CommandBegun(tl, i, cmd.op.Kind, some)
		}
		if err != nil {
			return started || some, c.failed(i, err)
		}
		started = started || some
	}
	return true, nil
}

// failed adds the number, label and kind of a command to an error.
func (c *Recording) failed(i int, err error) error {
	return fmt.Errorf("%s, %s: %w", c.names.of(i), c.cmds.at(i).op.Kind, err)
}
