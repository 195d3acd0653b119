package gpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// groupOp returns the Op of a group. It copies the group: each collective into three elements of
// Op.args, or a group of more than comm.Few collectives into opMore.group.
func groupOp(g *comm.Group) (op Op) {
	op.kind, op.data, op.n = collectiveOp, unsafe.Pointer(g.Communicator), int32(g.Len())
	if g.Context != nil {
		op.obj = g.Context
	}
	if g.Len() > comm.Few {
		op.more = &opMore{group: *g}
		return op
	}
	for i := range g.Len() {
		args := op.args[3*i:]
		dst, src, a, b := g.At(i).Pack()
		args[0] = Range{(*Buffer)(dst.Buffer), dst.Offset, dst.Size}
		args[1] = Range{(*Buffer)(src.Buffer), src.Offset, src.Size}
		args[2] = Range{nil, a, b}
	}
	return op
}

// group returns the group of an Op that groupOp has made.
func (op *Op) group() (g comm.Group) {
	if op.more != nil {
		return op.more.group
	}
	g.Communicator = (*comm.Communicator)(op.data)
	g.Context, _ = op.obj.(context.Context)
	for i := range int(op.n) {
		args := op.args[3*i:]
		g.Add(comm.Unpack(args[0].in(), args[1].in(), args[2].Offset, args[2].Size))
	}
	return g
}

// collect submits a group.
func (q *Queue) collect(o *Order, op *Op) error {
	g := op.group()
	c := g.Communicator
	switch tl := c.Timeline(); {
	case tl == nil:
		return errs.Argument("collective", "a nil or zero communicator")
	case tl.Device != q.tl.Device:
		return errs.Argument("collective", "the communicator is of another device (%s) than the queue (%s)", place(tl.Device), place(q.tl.Device))
	}
	lane := queueOf(c.Timeline())
	s := lane.get(work.Collect)
	if err := c.SetGroup(&s.Submission, &g); err != nil {
		s.drop()
		return err
	}
	if s.group.IsEmpty() {
		s.drop()
		if q.tl.Lane != nil {
			q = q.dev.queues[0]
		}
		return q.submit(q.get(work.Barrier), o)
	}
	return lane.submit(s, o)
}

// addCollective records a group.
func (c *CommandBuffer) addCollective(op *Op, after []recording.Command) (recording.Command, error) {
	g := op.group()
	r, tl := c.in(), g.Communicator.Timeline()
	if err := r.Begin(work.Collect); err != nil {
		return -1, err
	}
	defer r.Leave()
	switch {
	case tl == nil:
		return -1, r.Fail(work.Collect, errs.Argument("collective", "a nil or zero communicator"))
	case tl.Device != r.Device().Engine:
		return -1, r.Fail(work.Collect, errs.Argument("collective", "the communicator is of another device (%s) than the recording (%s)",
			place(tl.Device), place(r.Device().Engine)))
	case g.Context != nil:
		return -1, r.Fail(work.Collect, errs.Argument("collective", "a recording takes no context: use Group"))
	}
	var group []recording.Collective
	for i := range g.Len() {
		all, err := g.At(i).Lower(g.Communicator, nil)
		for k := range all {
			if err == nil {
				group, err = r.AddCollective(group, &all[k])
			}
		}
		if err != nil {
			return -1, r.Fail(work.Collect, fmt.Errorf("operation %d: %w", i, err))
		}
	}
	return r.Collect(g.Communicator, group, after)
}

// place returns the name and number of a device: several devices may have the same name.
func place(d *engine.Device) string { return fmt.Sprintf("%s, device %d", d.Info.Name, d.Info.Index) }

// recordedGroup is the [engine.Action] that gives a group of a recording to the library.
type recordedGroup struct{ comm.Collect }

// Issue sets the addresses that the group has in this execution, and makes the native calls.
func (a recordedGroup) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	r := recordOf(s)
	if err := r.recording.TakeGroup(&r.group); err != nil {
		return false, err
	}
	return a.Collect.Issue(s, tl)
}

// Issued gives the execution's instance back, unless other parts of the execution still use it. A
// later execution that uses the instance comes after this group.
func (recordedGroup) Issued(s *engine.Submission, tl *engine.Timeline, _ bool) bool {
	recordOf(s).recording.Issued(tl.At(s.Seq))
	return false
}
