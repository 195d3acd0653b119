package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Collective records collective operations on a channel of the same device, behind all commands
// that were recorded before them and before all later ones. Neighbouring ones on the same channel
// make one group, as [Channel.Submit] does, also if several calls recorded them. Any other command
// between them, or a barrier, ends the group. Groups go to the channel when the recording is
// executed, in the order of the calls of [Queue.Execute]. If a group fails, the execution fails.
// Commands behind the group that were issued run all the same, as far as the next host call, and
// the memory that they wrote is undefined.
func (c *CommandBuffer) Collective(ch *Channel, ops ...Collective) (Command, error) {
	if err := c.in().Begin(work.Collect); err != nil {
		return -1, err
	}
	defer c.in().Leave()
	if ch == nil || ch.Device() != c.device() {
		return -1, c.in().Fail(work.Collect, errs.Argument("collective", "no channel, or one of another device"))
	}
	var group []recording.Collective
	for i, x := range ops {
		all, err := comm.Collective(x).Lower(ch.in(), nil)
		for k := range all {
			if err == nil {
				group, err = c.in().AddCollective(group, &all[k])
			}
		}
		if err != nil {
			return -1, c.in().Fail(work.Collect, fmt.Errorf("operation %d: %w", i, err))
		}
	}
	at, err := c.in().Collect(ch.in(), group)
	return Command(at), err
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
