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

// An instance has scratch memory, the events of timestamps, and the graphs that were made with that
// memory and these events. If a recording has neither scratch memory of its own nor timestamps, all
// its executions share one instance. Otherwise an instance belongs to one execution at a time. End
// makes the first instance. An execution takes a free instance, or makes one more.
//
// An execution takes its instance when the first part that uses it is about to be issued. By then
// the work for all waits of the execution has been issued, so a parked execution has no instance.
// The execution keeps the instance until each part that uses the instance has been issued or has
// failed (run.left and returnInstance have the exceptions). Then another execution may take the
// instance, and the work of that execution comes after these parts. So the executions that take an
// instance run one after the other on the device, as the parts of an execution do, and the mark of
// the last use covers all uses.
type instance struct {
	mem    *memory.Buffer // the scratch memory, or nil
	timers []driver.Event // events of the timestamps, in order
	graphs []graphOf      // graphs of the parts; protected by the recording's mu

	// instances.mu of the recording protects the following fields.
	taken bool        // an execution has taken the instance, and has not given it back
	last  engine.Mark // behind all work that has used the instance
}

// instances are the instances of a recording.
type instances struct {
	many   bool // an instance has one execution at a time; otherwise all executions share one
	timers int  // how many timestamps there are

	// mu protects the field all, and the fields of instances and runs that say so. Only coverMu and
	// ring.mu of timelines and Semaphore.mu are locked while mu is held.
	mu  sync.Mutex
	all []*instance // End adds the first; none is removed
}

// add adds an instance.
func (b *instances) add(x *instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, x)
}

// list returns all instances.
func (b *instances) list() []*instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}

// poll polls the last work of the instances that no execution has taken.
func (b *instances) poll() {
	var uses engine.Frontier
	b.mu.Lock()
	for _, x := range b.all {
		if !x.taken && x.last.Timeline != nil { // the instance's last work may have ended
			uses.Add(x.last)
		}
	}
	b.mu.Unlock()
	for _, m := range uses {
		m.Timeline.Poll(m.Seq, 1)
	}
}

// A run is an execution that needs an instance. The submissions of its parts share the run.
type run struct {
	of       *Recording
	instance *instance // nil until the first part that uses an instance is about to be issued

	// instances.mu of the recording protects the following fields.
	begun bool // a stream has received a part of the execution
	// left is the number of parts that still use the instance. A part uses the instance until the
	// part has been issued or has failed. A part that is a control step uses the instance until the
	// step has ended. The last part gives the instance back. Abandon may set left to math.MaxInt.
	// Then the instance is never given back.
	left int
}

// start prepares the run for a new execution. users is the number of parts that use an instance.
func (r *run) start(c *Recording, users int) *run {
	*r = run{of: c, left: users}
	return r
}

// needInstances counts the parts of a layout that use an instance, if executions need instances of
// their own. If the first such part is a group of collectives, or a conditional that the host runs,
// needInstances inserts an empty part before it. The empty part takes the instance. Making an
// instance on a communicator's timeline would delay other ranks. l must be the last layout of the
// recording, because the empty part moves later parts.
func (c *Recording) needInstances(l *layout) {
	if !c.instances.many {
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

// instance returns the instance that the submission uses.
func (p *Part) instance() *instance {
	if p.run != nil {
		return p.run.instance
	}
	return p.recording.instances.all[0]
}

// takeInstance takes an instance for the execution, unless the execution has one already. The
// instance must be free, and the execution must come after the last use of the instance
// (comesAfter). If there is no such instance, takeInstance returns false.
func (p *Part) takeInstance(s *engine.Submission) bool {
	r := p.run
	r.of.instances.mu.Lock()
	defer r.of.instances.mu.Unlock()
	if r.instance != nil {
		return true
	}
	for _, b := range r.of.instances.all {
		if !b.taken && p.comesAfter(s, b.last) {
			b.taken, r.instance = true, b
			return true
		}
	}
	return false
}

// comesAfter reports whether the execution comes after a mark: the work at the mark is done, or the
// execution's timeline or waits order the execution after it. If the recording has timestamps, and
// an event cannot be recorded again before the host has seen that the event is complete, the work
// at the mark must be done. A zero mark is before everything.
func (p *Part) comesAfter(s *engine.Submission, m engine.Mark) bool {
	if m.Timeline == nil || m.Passed() || m.Retiring() {
		return true
	}
	if p.run.of.instances.timers > 0 && !s.Timeline.Device.Caps.RerecordEvents {
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

// findInstance takes a free instance for the execution, or makes one, unless the execution has one
// already. It orders the execution after the last use of the instance. Making an instance blocks as
// long as the driver does.
func (p *Part) findInstance(s *engine.Submission) error {
	r := p.run
	if !p.takeInstance(s) {
		if err := p.addInstance(s); err != nil {
			return err
		}
	}
	// takeInstance may have relied on a wait of s for a point that the instance's last use was
	// going to signal. By now other work may have signalled that point, and the wait would order
	// nothing. So the stream also waits for the last use itself. If the stream is ordered after
	// that use already, this costs nothing.
	if m := r.instance.last; !r.begun && m.Timeline != nil && m.Timeline != s.Timeline && !m.Passed() {
		s.Deps.Add(m)
	}
	return nil
}

// addInstance gives the execution an instance after takeInstance has found none. addInstance polls,
// calls takeInstance again, and makes an instance if takeInstance still finds none.
func (p *Part) addInstance(s *engine.Submission) error {
	r := p.run
	if r.of.instances.poll(); p.takeInstance(s) {
		return nil
	}
	b, err := r.of.makeInstance()
	if err == nil {
		r.instance = b
		return nil
	}
	if p.takeInstance(s) { // an instance may have become free meanwhile
		return nil
	}
	return fmt.Errorf("all %d instances of the command buffer are in use by executions that this one does not come after, and one more cannot be made: %w; "+
		"have it wait for one of them, or free memory", len(r.of.instances.list()), err)
}

// makeInstance makes one more instance, and marks it as taken. It blocks as long as the driver
// does.
func (c *Recording) makeInstance() (*instance, error) {
	b := &instance{graphs: make([]graphOf, len(c.parts)), taken: true}
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
	if c.instances.timers == 0 {
		c.instances.add(b)
		return b, nil
	}
	err := c.dev.Engine.Do(func() error { // Do keeps Close from destroying native objects meanwhile
		for range c.instances.timers {
			e, err := c.dev.Faces.Timers.NewTimer()
			if err != nil {
				return errors.Join(append([]error{fmt.Errorf("an event of a timestamp: %w", err)}, b.destroyTimers(c.dev)...)...)
			}
			b.timers = append(b.timers, e)
		}
		c.instances.add(b)
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

// leaveInstance calls run.leaveInstance for the submission's part. Then the submission has no run
// any more.
func (p *Part) leaveInstance(m engine.Mark) {
	p.run.leaveInstance(m)
	p.run = nil
}

// leaveInstance notes that a part of the execution has been issued at the mark m, or, if m is zero,
// that the part will never be issued. After the last part, leaveInstance gives the instance back.
func (r *run) leaveInstance(m engine.Mark) {
	r.of.instances.mu.Lock()
	defer r.of.instances.mu.Unlock()
	if m.Timeline != nil {
		r.begun, r.instance.last = true, m
	}
	if r.left--; r.left == 0 && r.instance != nil {
		r.instance.taken = false
	}
}

// returnInstance gives the instance back if no stream has received a part of the execution. The
// execution takes an instance again when a part that uses one is issued.
func (r *run) returnInstance() {
	r.of.instances.mu.Lock()
	defer r.of.instances.mu.Unlock()
	if r.instance != nil && !r.begun {
		r.instance.taken, r.instance = false, nil
	}
}

// destroy frees the instance's objects. It runs on a bound thread, when nothing uses the instance
// any more. The fields graphs and timers keep their length, and mem stays set: an execution may
// still read them before it finds the device closed.
func (b *instance) destroy(d *Device) (errs []error) {
	for i := range b.graphs {
		errs = append(errs, b.graphs[i].destroy(d.Faces.Graphs)...)
	}
	errs = append(errs, b.destroyTimers(d)...)
	if b.mem != nil {
		b.mem.Release()
	}
	return errs
}

func (b *instance) destroyTimers(d *Device) (errs []error) {
	for _, e := range b.timers {
		errs = append(errs, d.Engine.Native.DestroyEvent(e))
	}
	return errs
}
