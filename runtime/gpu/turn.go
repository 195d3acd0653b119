package gpu

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Executions of a recording must not overlap where they use the same memory, of Alloca, or the same events, of timestamps, where these must
// not be recorded anew before they are over. So each takes a turn. Turn n is for who has taken the n-th number, and begins when turn n-1 is
// over: on the device, so that the host takes no part in it, or for the host to see, which events need.
//
// A number is taken when all that the execution waits for has been issued: then it waits for nothing that comes after it in the line. Only
// one with collectives takes it in the call, for its groups are issued in the order of the calls as well, and the two orders must agree.
//
// Of an execution of several parts the first takes the number, and that the last one is over is published when it is issued, as any point
// is. If there is no such point, since it failed before or the last part is a host call, the turn is over when its submissions have let
// go of what they hold, and the turn before is over.

// A line is the turns of a recording.
type line struct {
	hostly  bool       // a turn begins when the host knows that the one before it is over
	atCalls bool       // numbers are taken in the calls, under
	calls   sync.Mutex // which is held while all parts of an execution are submitted
	numbers atomic.Uint64
	over    Semaphore // at n when the turns up to n are over; it never fails
}

// A turn is an execution's. The submissions of its parts share it.
type turn struct {
	line  *line
	parts int
	n     atomic.Uint64 // 0 until the number is taken
	left  atomic.Int32  // submissions that hold something
	end   point         // of the last part, once it is issued
}

// lineUp makes the line of a recording whose parts are known, if it needs one. Then the first part is one that is issued on a queue's
// timeline, where the turn is taken.
func (c *CommandBuffer) lineUp() {
	hostly := c.timed && !c.dev.caps.RerecordEvents
	if !hostly && (c.layout.Size == 0 || c.block == nil) {
		return
	}
	c.line = &line{hostly: hostly}
	c.line.atCalls = slices.ContainsFunc(c.parts, func(p part) bool { return p.ch != nil })
	c.line.over.SetName("executions before it of the same command buffer")
	if first := &c.parts[0]; first.host != nil || first.ch != nil {
		c.parts = slices.Insert(c.parts, 0, part{})
	}
}

// begin makes the turn that of an execution of so many parts.
func (t *turn) begin(l *line, parts int) *turn {
	t.line, t.parts, t.end = l, parts, point{}
	t.n.Store(0)
	t.left.Store(int32(parts))
	return t
}

func (t *turn) take() { t.n.Store(t.line.numbers.Add(1)) }

// awaitTurn has the first part of an execution, which waits for nothing else that has not been issued, come after the turn before its own.
// If that is not over, or cannot be waited for by the stream, the submission must be parked.
func (s *submission) awaitTurn() outcome {
	t := s.turn
	if t.n.Load() == 0 {
		t.take()
	}
	before := Point{&t.line.over, t.n.Load() - 1}
	how, p := before.Semaphore.next(before.Value)
	switch {
	case how == reached:
		return issuedWork
	case t.line.hostly:
		s.waits = append(s.waits, before)
		return foreign
	case how == unknown:
		s.waits = append(s.waits, before)
		return inLine
	}
	if p.Timeline != s.q.tl {
		s.deps.add(mark{p.Timeline, p.Seq})
	}
	return issuedWork
}

// publishTurn says when the turn will be over, if the submission is the last of it, and has been issued as number seq. It returns what
// Semaphore.publish does.
func (s *submission) publishTurn(seq uint64) (*timepoint, bool) {
	t := s.turn
	if s.part < t.parts-1 {
		return nil, false
	}
	t.end = point{Value: t.n.Load(), Timeline: s.q.tl, Seq: seq}
	return t.line.over.publish(t.end)
}

// leaveTurn is called when a submission lets go of what it holds.
func (s *submission) leaveTurn() {
	t, isLast := s.turn, s.part == s.turn.parts-1
	s.turn = nil
	if !t.letGo(1) && isLast { // it failed in front of others, about which nobody else may ask
		for _, q := range s.q.dev.all() {
			q.tl.want(q.tl.issued.Load())
		}
	}
}

// letGo notes that so many submissions hold nothing any more, and reports whether none does. The caller may hold locks.
func (t *turn) letGo(submissions int) bool {
	if t.left.Add(-int32(submissions)) > 0 {
		return false
	}
	over, n := &t.line.over, t.n.Load()
	switch {
	case n == 0: // it had not begun
	case t.end.Timeline != nil:
		released, _ := over.arrive(t.end, t.end) // an error says that the host has found the next one over first
		if released != nil {
			go release(released)
		}
	default:
		go over.Link(n-1, over, n)
	}
	return true
}
