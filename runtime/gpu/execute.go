package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Execute returns an Op that runs a command buffer after [CommandBuffer.End]. bindings[i] is the
// memory of binding i. The Op keeps a copy of the slice bindings. A recording may be executed again
// while executions are in flight: each execution uses its own bindings.
//
// There must be as many ranges as the recording has bindings, aligned as the commands need.
// Otherwise the error is [ErrArgument]. If a range is too small for the commands, the error is
// [ErrRange]. The buffers are held until the execution is over. Pool memory in bindings and in
// recorded commands must have been allocated when the execution is issued. Otherwise the execution
// fails with [ErrUnallocated].
//
// Do or Submit blocks while it makes a graph or an instance. The first execution makes the graphs
// that [CommandBuffer.End] has left to it. A later execution makes a graph if the driver cannot
// change the existing graph, for example for another kind of memory.
//
// A recording with scratch memory of its own ([CommandBuffer.Scratch]), or with timestamps, keeps
// instances. An instance has scratch memory, events and graphs, for one execution at a time. End
// makes the first instance. An execution takes an instance that is no longer in use, or whose last
// use comes before the execution because of the execution's queue or waits. If there is no such
// instance, the execution makes one. If there is no memory for the instance, the signals fail with
// [ErrOutOfMemory].
//
// Parameters of the recording ([NewParam]) have the values of [Op.With], otherwise their defaults.
//
// An Execute that is added to another recording adds all commands of c to that recording. The
// ranges may be ranges of that recording's bindings, and [Op.Param] passes that recording's
// parameters on to c. The barriers of c are barriers of that recording too. The added command
// stands for all commands of c: a command that comes after the added command comes after each
// command of c.
func Execute(c *CommandBuffer, bindings ...Range) (op Op) {
	op.kind, op.obj = executeOp, c
	op.setRanges(bindings)
	return op
}

func (q *Queue) execute(o *Order, op *Op) error {
	c, bindings, given := op.obj.(*CommandBuffer), ranges(op.all()), op.given()
	if c == nil || c.in().Device() != &q.dev.recordings {
		return errs.Argument("execute", "no command buffer, or one of another device")
	}
	if q.dev.failed() != nil {
		// The submission fails with the device's error, even if Close has closed the recording.
		return q.submit(q.get(work.Execute), o)
	}
	if err := op.checkExecution(c.in(), bindings, given); err != nil {
		if q.dev.failed() != nil { // the device may have failed since the check above
			return q.submit(q.get(work.Execute), o)
		}
		return err
	}
	var one [1]recording.Step
	return q.executeSteps(o, c.in().AddSteps(one[:0], bindings, given, false), bindings, given, nil)
}

// checkExecution checks that the Execute op can run the recording c with bindings and values of
// parameters.
func (op *Op) checkExecution(c *recording.Recording, bindings []memory.Range, given []recording.Given) error {
	if err := c.Executable(); err != nil {
		return err
	}
	if err := op.noUses(); err != nil {
		return err
	}
	if err := c.CheckBindings(bindings); err != nil {
		return err
	}
	return c.CheckGiven(given)
}

// executeSteps submits steps, each behind the previous step. If the argument free is not nil, then
// o.Free must be empty, and executeSteps calls free.add before it submits a step.
func (q *Queue) executeSteps(o *Order, steps []recording.Step, bindings []memory.Range, given []recording.Given, free *lent) error {
	if len(steps) == 1 {
		if free != nil {
			free.add()
		}
		return q.executeStep(o, steps[0], bindings, given, free)
	}
	if err := o.checkAll(); err != nil { // check now, because only the last step has the signals
		return fmt.Errorf("gpu: execute on %v: %w", q, err)
	}
	link, err := NewSemaphore(0) // its value is the number of steps that are over
	if err != nil {
		return err
	}
	l := free // all steps share l: when a step fails, an earlier step may still use the memory
	if len(o.Free) > 0 {
		l = newLent(len(steps), o.Free)
	}
	first, last := recording.Timed(steps)
	for n, x := range steps {
		each := Order{Wait: []Point{{link, uint64(n)}}, Signal: []Point{{link, uint64(n) + 1}}, label: o.label, timing: o.timing, edges: noBegin | noEnd}
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
		if free != nil {
			free.add()
		}
		err := q.executeStep(&each, x, bindings, given, l)
		if err == nil {
			continue
		}
		left := steps[n+1:]
		x.LeaveRest(left)
		if n == 0 && x.Lane() == nil && q.tl.FailedBy() == nil {
			return err
		}
		FailAll(err, signalled(o)...) // no later step will signal these semaphores; submitted steps still run
		if n == 0 {
			return err
		}
		if len(o.Free) > 0 && len(left) > 0 {
			l.over(len(left))
		}
		return nil
	}
	return nil
}

// signalled returns the semaphores of an order's signals.
func signalled(o *Order) (all []*Semaphore) {
	for _, p := range o.Signal {
		all = append(all, p.Semaphore)
	}
	return all
}

// executeStep submits a step. If l is not nil, the step is one of the submissions that l counts.
func (q *Queue) executeStep(o *Order, x recording.Step, bindings []memory.Range, given []recording.Given, l *lent) error {
	op, call := work.Execute, x.Call()
	if call != nil {
		op = work.HostCall
	} else if x.IsControl() {
		op = work.Control
	} else if c := x.Lane(); c != nil {
		q, op = queueOf(c.Timeline()), work.Collect
	}
	s := q.get(op)
	s.lent, s.Lends = l, l != nil
	if label := x.Label(); label != "" {
		o.label = label
	}
	if op == work.Collect {
		s.Action = recordedGroup{}
		s.group.SetFirst(x.FirstCollective())
	}
	if call != nil {
		s.fn, s.Mode = call, engine.UntilReached
	}
	if op == work.Control {
		s.fn, s.Mode = s.controlStep, engine.UntilReached
	}
	s.recording.SetRun(x)
	if q.dev.failed() != nil { // submit fails the signals with the error of the device
		return q.submit(s, o)
	}
	if err := s.recording.Set(&s.Submission, x, bindings, given); err != nil {
		s.drop()
		return err
	}
	return q.submit(s, o)
}
