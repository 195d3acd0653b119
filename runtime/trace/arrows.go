package trace

import (
	"cmp"
	"math"
	"slices"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// An arrows finds the signal that ended each wait, and draws an arrow from the signal's slice to
// the slice of the wait. It remembers a limited number of signals, and of waits that still lack
// their signal. If too many other signals or waits come between a signal and its wait, the arrow is
// missing and counts as forgotten.
type arrows struct {
	signals map[uint64][]signalled // lists by semaphore, each ordered by value
	waits   map[uint64][]waiting
	oldest  ring // the order in which signals were added
	first   ring // the order in which waits were added

	let uint64 // number of waits that were forgotten before they had an arrow
}

// A flowEnd is an end of an arrow. The clocks of devices are known only within a margin. So the
// field limit is the earliest possible time of a signal, or the latest possible end of a wait. If
// pid is 0, the signalling work has no slice, and no arrow is drawn.
type flowEnd struct {
	pid, tid  int64
	at, limit traceformat.Time
	sub       uint64 // the number of the submission, or 0
}

// same reports whether both ends belong to one submission. A submission's own signal cannot have
// ended its wait.
func (e flowEnd) same(to flowEnd) bool { return e.sub != 0 && e.sub == to.sub }

// hidden reports whether the signalling work is not drawn.
func (e flowEnd) hidden() bool { return e.pid == 0 }

// before reports whether a signal can have ended a wait. e is the end of their arrow at the signal,
// and to is the end at the wait. before compares times, because records of devices and of the host
// come in no common order: the record of a higher value may come before the record of the value
// that ended the wait.
func (e flowEnd) before(to flowEnd) bool { return e.limit <= to.limit && !e.same(to) }

type signalled struct {
	value uint64
	age   int
	from  flowEnd
}

type waiting struct {
	semaphore uint64

	value uint64
	age   int
	to    flowEnd
	any   bool // the wait is for any of several points, so another point may have ended it
}

func (s signalled) since() int { return s.age }
func (s waiting) since() int   { return s.age }
func (s signalled) at() uint64 { return s.value }
func (s waiting) at() uint64   { return s.value }

// An entry is an element of a list in one of the maps of arrows. It has a value (at) and an age
// (since): the entry's number in the order in which entries were added.
type entry interface {
	since() int
	at() uint64
}

// A ring lists the semaphores of the latest entries of a map, in the order in which the entries
// were added. The function remember uses the ring to find the oldest entry.
type ring struct {
	of []uint64
	n  int // number of entries ever added, which is the age of the newest entry
}

const remembered = 1 << 15

func (a *arrows) init() {
	a.signals, a.waits = map[uint64][]signalled{}, map[uint64][]waiting{}
}

// remember adds the entry x for a semaphore to m, whose lists are ordered by value. It removes and
// returns the entry that was added 1<<15 entries (remembered) before x, if m still has that entry.
func remember[T entry](m map[uint64][]T, r *ring, semaphore uint64, x T) (let T, gone bool) {
	list := append(m[semaphore], x)
	for i := len(list) - 1; i > 0 && list[i-1].at() > x.at(); i-- { // usually x has the highest value
		list[i], list[i-1] = list[i-1], list[i]
	}
	m[semaphore] = list
	if r.n++; len(r.of) < remembered {
		r.of = append(r.of, semaphore)
		return let, false
	}
	at := (r.n - 1) % remembered
	old := r.of[at]
	r.of[at] = semaphore
	list = m[old]
	i := slices.IndexFunc(list, func(x T) bool { return x.since() <= r.n-remembered })
	if i < 0 { // the entry was removed before
		return let, false
	}
	let = list[i]
	switch {
	case len(list) == 1:
		delete(m, old)
	case i == 0:
		m[old] = list[1:]
	default:
		m[old] = slices.Delete(list, i, i+1)
	}
	return let, true
}

// signal adds signals, and draws arrows from them to the remembered waits that they ended.
func (a *arrows) signal(w *writer, points []Point, from flowEnd) {
	for _, p := range points {
		remember(a.signals, &a.oldest, p.Semaphore, signalled{p.Value, a.oldest.n + 1, from})
		if list := a.waits[p.Semaphore]; len(list) > 0 {
			list = slices.DeleteFunc(list, func(x waiting) bool {
				switch {
				case x.value > p.Value:
					return false
				case from.hidden():
					return x.value == p.Value
				case !from.before(x.to) || a.hides(x, p.Value):
					return false
				}
				w.arrow(from, x.to)
				return true
			})
			if len(list) == 0 {
				delete(a.waits, p.Semaphore)
			} else {
				a.waits[p.Semaphore] = list
			}
		}
	}
}

// hides reports whether the signal that ended a wait is known to have no slice. That signal is the
// lowest one that satisfies the wait and belongs to another submission. hides looks only at signals
// below limit.
func (a *arrows) hides(x waiting, limit uint64) bool {
	list := a.signals[x.semaphore]
	at := enough(list, x.value)
	for at < len(list) && list[at].from.same(x.to) {
		at++
	}
	return at < len(list) && list[at].value < limit && list[at].from.hidden()
}

// wait draws the arrows to a slice that waited for all of the points, or for any of them. Each
// arrow begins at the lowest signal that can have ended the wait. If the signal is not known yet,
// wait remembers the wait.
func (a *arrows) wait(w *writer, points []Point, to flowEnd, any bool) {
	for _, p := range points {
		if p.Value == 0 {
			continue
		}
		list := a.signals[p.Semaphore]
		at := enough(list, p.Value)
		if at < len(list) && list[at].from.hidden() {
			if list[at].value == p.Value {
				continue
			}
			at = len(list) // draw nothing yet: the record of a lower signal with a slice may still come
		}
		for at < len(list) && !(list[at].from.before(to) && !list[at].from.hidden()) {
			at++
		}
		if at < len(list) {
			w.arrow(list[at].from, to)
			continue
		}
		x, gone := remember(a.waits, &a.first, p.Semaphore, waiting{p.Semaphore, p.Value, a.first.n + 1, to, any})
		if gone && !x.any && !a.hides(x, math.MaxUint64) {
			a.let++
		}
	}
}

// enough returns the index of the first signal in the list whose value is at least the given one.
// If there is none, enough returns len(list).
func enough(list []signalled, value uint64) int {
	at, _ := slices.BinarySearchFunc(list, value, func(x signalled, value uint64) int { return cmp.Compare(x.value, value) })
	return at
}

// missing returns how many arrows are missing. undrawn counts waits whose known signals have times
// after the wait. forgotten counts forgotten waits, and waits whose signal may have been forgotten.
// Two kinds of waits need no arrow and do not count: a wait for any of several points, because any
// of the points may have ended it; and a wait whose signal is known to have no slice.
func (a *arrows) missing() (undrawn, forgotten uint64) {
	forgotten = a.let
	for semaphore, list := range a.waits {
		signals := a.signals[semaphore]
		for _, x := range list {
			switch {
			case x.any || a.hides(x, math.MaxUint64):
			case slices.ContainsFunc(signals[enough(signals, x.value):], func(s signalled) bool { return !s.from.same(x.to) }):
				undrawn++
			case a.oldest.n > remembered:
				forgotten++
			}
		}
	}
	return undrawn, forgotten
}

// arrow draws an arrow.
func (w *writer) arrow(from, to flowEnd) {
	w.flows++
	w.event = traceformat.Event{Phase: traceformat.FlowBegin, Cat: traceformat.CatSignal, Name: "signal", PID: from.pid, TID: from.tid, Time: from.at, ID: w.flows}
	w.put()
	w.event.Phase, w.event.PID, w.event.TID, w.event.Time, w.event.BindEnclosing = traceformat.FlowEnd, to.pid, to.tid, to.at, true
	w.put()
}
