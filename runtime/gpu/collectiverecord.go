package gpu

import (
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A recordedOp is an operation in a command buffer.
type recordedOp struct {
	comm.Op
	dstRef, srcRef int32 // indices into refers, or -1
}

func (r *recordedOp) rebase(by int32) {
	if r.dstRef >= 0 {
		r.dstRef += by
	}
	if r.srcRef >= 0 {
		r.srcRef += by
	}
}

// A groupRecorder adds operations to a command.
type groupRecorder struct {
	c   *CommandBuffer
	ops []recordedOp
}

func (g *groupRecorder) add(op *comm.RangeOp) (err error) {
	r := recordedOp{op.Op, -1, -1}
	align := uint64(max(op.Type.Size(), 1))
	if op.To.Buffer != nil {
		if r.dstRef, err = g.c.referTo(work.Collect, op.To, align); err != nil {
			return err
		}
	}
	if op.From.Buffer != nil {
		if r.srcRef, err = g.c.refer(work.Collect, op.From, align); err != nil {
			return err
		}
	}
	g.ops = append(g.ops, r)
	return nil
}

// takeGroup copies the operations of a part of a recording to a submission, with the addresses of
// its ranges in this execution.
func (c *CommandBuffer) takeGroup(s *record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.find(s.block(), s.binds); err != nil {
		return err
	}
	p := &c.parts[s.part]
	for i := p.from; i < p.to; i++ {
		for _, r := range c.cmds.at(i).rare.group {
			if r.dstRef >= 0 {
				r.Dst = c.present[r.dstRef]
			}
			if r.srcRef >= 0 {
				r.Src = c.present[r.srcRef]
			}
			s.group.Add(r.Op)
		}
	}
	return nil
}

// recordedGroup gives a group of a recording to the library.
type recordedGroup struct{ comm.Collect }

func (a recordedGroup) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	r := recordOf(s)
	if err := r.recording.takeGroup(r); err != nil {
		return false, err
	}
	return a.Collect.Issue(s, tl)
}

func (a recordedGroup) Issued(s *engine.Submission, tl *engine.Timeline, broken bool) bool {
	if r := recordOf(s); r.run != nil {
		r.leaveBlock(tl.At(s.Seq))
	}
	return a.Collect.Issued(s, tl, broken)
}
