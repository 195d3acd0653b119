package gpu

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A control is an operation of package control: it reads a number and executes the body whose
// bounds contain the number.
type control struct {
	number memory.Range
	loop   bool // there is one body, which runs again and again until the number is outside its bounds
	bodies []Op
	bounds [][2]uint32 // for each body, the least and the greatest number for which it runs
}

// each calls f for each body, but skips bodies that are barriers. It stops at the first error: of
// f, or of x.body for a body that is not valid. The body of a loop must not be a barrier, because
// the loop might never end.
func (x *control) each(f func(op *Op, b *recording.Body) error) error {
	for i := range x.bodies {
		op := &x.bodies[i]
		if op.kind == barrierOp && !x.loop {
			continue
		}
		b, err := x.body(i, op)
		if err == nil {
			err = f(op, &b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *control) body(i int, op *Op) (b recording.Body, err error) {
	switch {
	case op.kind == wrongOp:
		return b, op.obj.(error)
	case op.kind != executeOp:
		return b, errs.Argument("control", "a body that is %s: record it, and give the Op of Execute", op)
	case op.timing != nil:
		return b, errs.Argument("control", "a Timing of a body: give one to the whole operation")
	case op.obj.(*CommandBuffer).isZero():
		return b, errs.Argument("control", "a body of no command buffer")
	}
	return recording.Body{Low: x.bounds[i][0], High: x.bounds[i][1], Child: op.obj.(*CommandBuffer).in(),
		Binds: ranges(op.all()), Given: op.given(), Uses: op.uses()}, nil
}

// addControl records a control.
func (c *CommandBuffer) addControl(x *control, after []recording.Command) (recording.Command, error) {
	var bodies []recording.Body
	err := x.each(func(_ *Op, b *recording.Body) error {
		bodies = append(bodies, *b)
		return nil
	})
	if err != nil {
		return c.in().Refuse(err)
	}
	return c.in().Control(x.number, x.loop, bodies, after)
}

// control submits a control. A goroutine reads the number and executes the bodies.
func (q *Queue) control(o *Order, x *control) error {
	s := q.get(work.Control)
	if q.dev.failed() != nil { // the submission fails with the device's error
		return q.submit(s, o)
	}
	bodies, err := q.holdControl(s, x)
	if err != nil {
		if q.dev.failed() != nil { // the device may have failed since the check above
			return q.submit(s, o)
		}
		s.drop()
		return err
	}
	s.fn = func() error {
		_, err := q.runControl(x.number, x.loop, bodies, s.lent)
		return err
	}
	s.Mode = engine.UntilReached
	return q.submit(s, o)
}

// holdControl checks a control, and holds its memory and recordings for the submission.
func (q *Queue) holdControl(s *record, x *control) (bodies []recording.Branch, err error) {
	if _, err := x.number.Check("control", q.dev.mem()); err != nil {
		return nil, err
	}
	if err := s.hold(x.number.Buffer); err != nil {
		return nil, fmt.Errorf("gpu: control: %w", err)
	}
	err = x.each(func(op *Op, b *recording.Body) error {
		c := b.Child
		if c.Device() != &q.dev.recordings {
			return errs.Argument("control", "a command buffer of another device")
		}
		if err := op.checkExecution(c, b.Binds, b.Given); err != nil {
			return err
		}
		if err := c.HoldFor(&s.Submission); err != nil {
			return err
		}
		for _, r := range b.Binds {
			if err := s.hold(r.Buffer); err != nil {
				return fmt.Errorf("gpu: control: %w", err)
			}
		}
		bodies = append(bodies, recording.Branch{Low: b.Low, High: b.High, Recording: c, Binds: b.Binds, Given: b.Given})
		return nil
	})
	return bodies, err
}

// controlStep runs the control that is a step of an execution. s is the record of that step.
func (s *record) controlStep() error {
	number, loop, bodies := s.recording.Control()
	ran, err := s.q.runControl(number, loop, bodies, s.lent)
	if err != nil {
		tl := s.q.tl
		s.recording.Abandon(tl.At(tl.Latest()), ran != nil && ran.Recording.HasLanes())
	}
	return err
}

// runControl reads a number of 4 bytes, and executes the body whose bounds contain the number, if
// there is such a body. If loop is set, runControl repeats this until the number is outside the
// body's bounds. It blocks until the device has done all this work, or some of it has failed. ran
// is the last body that runControl has begun to execute, or nil. The caller holds the memory and
// the recordings.
//
// free is nil, or has the points of Order.Free. These points are signalled only when all work that
// runControl has submitted is over. If runControl returns an error, some of this work may still be
// in flight.
func (q *Queue) runControl(number memory.Range, loop bool, bodies []recording.Branch, free *lent) (ran *recording.Branch, err error) {
	block, err := q.dev.memory.Stage.Get(4)
	if err != nil {
		return nil, err
	}
	defer block.Free() // reads in flight hold the block too
	s := q.NewStream()
	read := func(o *Order) error { return q.readNumber(o, number, block, free) }
	if err := s.with(read); err != nil {
		return nil, err
	}
	for {
		if err := s.Wait(context.Background()); err != nil {
			return ran, err
		}
		n, found := binary.NativeEndian.Uint32(block.At(4)), false
		for i := range bodies {
			if b := &bodies[i]; n >= b.Low && n <= b.High {
				ran, found = b, true
				break
			}
		}
		if !found {
			return ran, nil
		}
		if err := s.with(func(o *Order) error { return q.executeHeld(o, ran, free) }); err != nil {
			return ran, err
		}
		if !loop {
			return ran, s.Wait(context.Background())
		}
		if err := s.with(read); err != nil {
			return ran, err
		}
	}
}

// executeHeld executes a recording. The caller holds the recording and the memory of its bindings.
// The values of parameters have been checked before. The bindings are checked once more, because
// pool memory may have been freed and growing memory may have shrunk since the first check.
func (q *Queue) executeHeld(o *Order, b *recording.Branch, free *lent) error {
	if err := b.Recording.CheckBindings(b.Binds); err != nil {
		return err
	}
	steps := b.Recording.AddSteps(nil, b.Binds, b.Given, true)
	return q.executeSteps(o, steps, b.Binds, b.Given, free)
}

// readNumber submits a copy of the 4 bytes at number to pinned memory. The range has been checked
// before. If its memory has been freed since then, the copy fails.
func (q *Queue) readNumber(o *Order, number memory.Range, to *memory.Block, free *lent) error {
	s := q.get(work.Download)
	s.Op.Count, s.staging.Block = 4, to.Hold()
	number.Buffer.HoldMore()
	s.keep(number.Buffer)
	s.between(nil, number.Buffer)
	s.Src = number.Address()
	if free != nil {
		free.add()
		s.lent, s.Lends = free, true
	}
	return q.submit(s, o)
}

// with adds an operation to the stream. The function submit gets an Order, and must submit the
// operation with this Order.
func (s *Stream) with(submit func(o *Order) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.end(submit(s.next()))
}
