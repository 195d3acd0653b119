package comm

import (
	"iter"

	"github.com/puregpu/puregpu/runtime/internal/engine"
)

// A groupList has the groups that a communicator has taken and not yet issued, in their order.
// Part.behind links them.
type groupList struct {
	first, last *engine.Submission
	withContext int // how many groups have a context
}

func (l *groupList) isEmpty() bool { return l.first == nil }

// arrived reports whether the first group has nothing left to wait for.
func (l *groupList) arrived() bool { return l.first != nil && partOf(l.first).arrived }

// append adds a group at the end.
func (l *groupList) append(s *engine.Submission) {
	if l.last == nil {
		l.first = s
	} else {
		partOf(l.last).behind = s
	}
	l.last = s
	l.count(s, 1)
}

// push puts a group back at the front after pop has taken it.
func (l *groupList) push(s *engine.Submission) {
	p := partOf(s)
	if l.first, p.behind = s, l.first; p.behind == nil {
		l.last = s
	}
	l.count(s, 1)
}

// pop takes the first group off the list.
func (l *groupList) pop() *engine.Submission {
	s := l.first
	p := partOf(s)
	if l.first, p.behind = p.behind, nil; l.first == nil {
		l.last = nil
	}
	l.count(s, -1)
	return s
}

// count adds n to withContext if the group has a context.
func (l *groupList) count(s *engine.Submission, n int) {
	if partOf(s).ctx != nil {
		l.withContext += n
	}
}

// all returns the groups in order. The body of a loop over the groups may pop the current group.
func (l *groupList) all() iter.Seq[*engine.Submission] {
	return func(yield func(*engine.Submission) bool) {
		for s := l.first; s != nil; {
			next := partOf(s).behind
			if !yield(s) {
				return
			}
			s = next
		}
	}
}
