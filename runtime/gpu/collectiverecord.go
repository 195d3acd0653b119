package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// addCollective records a group.
func (c *CommandBuffer) addCollective(g *collectiveGroup, after []recording.Command) (recording.Command, error) {
	r, ch := c.in(), g.channel
	if err := r.Begin(work.Collect); err != nil {
		return -1, err
	}
	defer r.Leave()
	switch {
	case ch == nil || ch.Device() != c.device():
		return -1, r.Fail(work.Collect, errs.Argument("collective", "no channel, or one of another device"))
	case g.ctx != nil:
		return -1, r.Fail(work.Collect, errs.Argument("collective", "a recording takes no context: use Group"))
	}
	var group []recording.Collective
	for i, x := range g.ops {
		all, err := comm.Collective(x).Lower(ch.in(), nil)
		for k := range all {
			if err == nil {
				group, err = r.AddCollective(group, &all[k])
			}
		}
		if err != nil {
			return -1, r.Fail(work.Collect, fmt.Errorf("operation %d: %w", i, err))
		}
	}
	return r.Collect(ch.in(), group, after)
}

// recordedGroup is the [engine.Action] that gives a group of a recording to the library.
type recordedGroup struct{ comm.Collect }

// Issue finds the addresses of this execution, and makes the native calls.
func (a recordedGroup) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	r := recordOf(s)
	if err := r.recording.TakeGroup(&r.group); err != nil {
		return false, err
	}
	return a.Collect.Issue(s, tl)
}

// Issued leaves the block of the execution.
func (recordedGroup) Issued(s *engine.Submission, tl *engine.Timeline, _ bool) bool {
	recordOf(s).recording.Issued(tl.At(s.Seq))
	return false
}
