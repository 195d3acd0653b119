package comm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// A Part is the part of a submission's record for a group of collective operations.
type Part struct {
	ops []groupOp
	// first is the kind of a recorded group's first operation. The method name uses first until the
	// group is issued, because ops is empty until then.
	first driver.CommOpKind
	ctx   context.Context // nil if the group has no context that can end
	// behind is the next group in the communicator's list. The communicator's mu protects behind
	// and arrived.
	behind   *engine.Submission
	arrived  bool      // the group has no open waits
	refused  bool      // the communicator has refused to take the group
	issuedAt time.Time // when the thread first began to issue the group
}

// A groupOp is an operation as submitted. The addresses Dst and Src in Op are filled in from dst
// and src when the group is issued.
type groupOp struct {
	Op
	dst, src engine.Address
}

// A Record is the Rest of a submission of a communicator's timeline.
type Record interface{ Group() *Part }

func partOf(s *engine.Submission) *Part { return s.Rest.(Record).Group() }

// Reset empties the part.
func (p *Part) Reset() {
	clear(p.ops)
	*p = Part{ops: p.ops[:0]}
}

// IsEmpty reports whether the group has no operations.
func (p *Part) IsEmpty() bool { return len(p.ops) == 0 }

// Refused reports whether the communicator has refused to take the group.
func (p *Part) Refused() bool { return p.refused }

// Add adds an operation whose addresses are known. Operations of a recorded group are added when
// the group is issued.
func (p *Part) Add(op Op) {
	p.ops = append(p.ops, groupOp{op, engine.Address{Ptr: op.Dst}, engine.Address{Ptr: op.Src}})
}

// SetFirst sets the kind that the first operation of a recorded group will have.
func (p *Part) SetFirst(kind driver.CommOpKind) { p.first = kind }

// name returns the name of the group's first operation.
func (p *Part) name() string {
	if len(p.ops) == 0 {
		return p.first.String()
	}
	return p.ops[0].Kind.String()
}

// A Group is a group of operations to submit or to record.
type Group struct {
	Communicator *Communicator
	// If Context ends before the group is done, the communicator is aborted. Context may be nil.
	Context context.Context

	n    int
	few  [Few]Operation
	more []Operation // all operations, if there are more than Few
}

// Few is the number of operations for which a Group, and a gpu.Op, have room. More operations
// allocate.
const Few = 5

// Len returns the number of operations.
func (g *Group) Len() int { return g.n }

// At returns an operation.
func (g *Group) At(i int) Operation {
	if g.more != nil {
		return g.more[i]
	}
	return g.few[i]
}

// Add adds an operation.
func (g *Group) Add(x Operation) {
	switch {
	case g.n < Few:
		g.few[g.n] = x
	case g.n == Few:
		g.more = append(g.more, g.few[:]...)
		fallthrough
	default:
		g.more = append(g.more, x)
	}
	g.n++
}

// SetGroup makes a submission a group of operations, and holds the buffers that the operations use.
// The group may be empty. If there is an error, the caller must recycle the record.
func (c *Communicator) SetGroup(s *engine.Submission, g *Group) error {
	if g.Context != nil && g.Context.Err() != nil {
		return g.Context.Err()
	}
	for i := range g.n {
		if err := c.add(s, g.At(i)); err != nil {
			if g.n > 1 {
				err = fmt.Errorf("operation %d: %w", i, err)
			}
			return err
		}
	}
	if g.Context != nil && g.Context.Done() != nil {
		partOf(s).ctx = g.Context
	}
	return nil
}

// add adds an operation to a submission.
func (c *Communicator) add(s *engine.Submission, x Operation) error {
	var room [2]RangeOp
	lowered, err := x.Lower(c, room[:0])
	if err != nil {
		return err
	}
	for i := range lowered {
		op := &lowered[i]
		g := groupOp{Op: op.Op}
		if op.To.Buffer != nil {
			if g.dst, err = op.To.CheckTo(op.Kind.String(), c.dev.Memory); err != nil {
				return err
			}
			if err := c.hold(s, op.Kind, op.To.Buffer); err != nil {
				return err
			}
		}
		if op.From.Buffer != nil {
			if g.src, err = op.From.Check(op.Kind.String(), c.dev.Memory); err != nil {
				return err
			}
			if err := c.hold(s, op.Kind, op.From.Buffer); err != nil {
				return err
			}
		}
		p := partOf(s)
		p.ops = append(p.ops, g)
	}
	return nil
}

// hold makes a submission hold a buffer. If the communicator has failed or is closed, hold does
// nothing: the submission will fail, so the state of its buffers does not matter.
func (c *Communicator) hold(s *engine.Submission, kind driver.CommOpKind, b *memory.Buffer) error {
	if c.failed() != nil {
		return nil
	}
	if err := b.Hold(); err != nil {
		return fmt.Errorf("gpu: %v: %w", kind, err)
	}
	s.Holds = append(s.Holds, b.Holding())
	return nil
}

// Collect gives a group of operations to the library. It is an engine.Action. An action for
// recorded groups embeds Collect, and adds the operations in Issue.
type Collect struct{ engine.SimpleAction }

// HoldsUp returns true, because the stream waits for the other ranks.
func (Collect) HoldsUp(*engine.Submission, *engine.Timeline) bool { return true }

// Issue makes the native calls.
func (Collect) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return (*Communicator)(tl.Lane.(*lane)).collect(partOf(s), tl)
}

// collect makes the native calls of a group.
func (c *Communicator) collect(p *Part, tl *engine.Timeline) (started bool, err error) {
	c.ops = c.ops[:0]
	for i := range p.ops {
		g := &p.ops[i]
		if g.Dst, err = g.dst.Resolve(); err == nil {
			g.Src, err = g.src.Resolve()
		}
		if err != nil {
			return started, err
		}
		if g.Zero == 0 {
			c.ops = append(c.ops, g.CommOp)
			continue
		}
		if err := tl.Device.Native.Fill(tl.Stream, g.Dst, 0, 1, g.Zero); err != nil {
			return started, err
		}
		started = true
	}
	if len(c.ops) == 0 {
		return started, nil
	}
	err = c.comms.Collect(tl.Stream, c.comm, c.ops)
	c.returned()
	switch {
	case errors.Is(err, driver.ErrUnsupported):
		return started, refusal{err}
	case err != nil: // the stream may have got a part of the group
		return true, c.setFailure(isAborting, err)
	}
	return true, nil
}

// A refusal is the error of a group that the library has refused because the library lacks a
// feature. The stream has no collective operation of the group, and the native communicator is
// unchanged. Ranks with the same library refuse the same groups.
type refusal struct{ error }

func (e refusal) Unwrap() error { return e.error }

func isRefusal(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}
