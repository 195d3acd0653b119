package trace

import (
	"cmp"
	"math"
	"slices"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// arrows finds for each wait what signalled it, and draws an arrow between the two slices. It remembers the last signals, and the last waits whose
// signals have not come, up to a number of each; an arrow between what is further apart than that is missing, and what was let go of is counted.
type arrows struct {
	signals map[uint64][]signalled // by semaphore, by value
	waits   map[uint64][]waiting
	oldest  ring // of signals
	first   ring // of waits

	let uint64 // waits that were let go of, and had no arrow then
}

// A flowEnd is where an arrow begins or ends, and the earliest time at which the signal can have been, or the latest of the wait's end: clocks of devices are
// known only so well. A pid of 0 says that what signalled has no slice: then there is no arrow.
type flowEnd struct {
	pid, tid  int64
	at, limit traceformat.Time
	sub       uint64 // the number of the submission, or 0
}

// same reports whether both ends are of one submission. A submission does not release itself.
func (e flowEnd) same(to flowEnd) bool { return e.sub != 0 && e.sub == to.sub }

// hidden reports whether what signalled has no slice.
func (e flowEnd) hidden() bool { return e.pid == 0 }

// before reports whether something there can have released what is at another place. Records come in no order between devices and the host, so that a
// signal of a higher value may come before the one that did.
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
	any   bool // others of its wait may have been enough
}

func (s signalled) since() int { return s.age }
func (s waiting) since() int   { return s.age }
func (s signalled) at() uint64 { return s.value }
func (s waiting) at() uint64   { return s.value }

// An entry of a map has a value and an age.
type entry interface {
	since() int
	at() uint64
}

// A ring is the semaphores of the last entries of a map, of which the oldest goes when there are too many.
type ring struct {
	of []uint64
	n  int // entries there have ever been, by which they are numbered
}

const remembered = 1 << 15

func (a *arrows) init() {
	a.signals, a.waits = map[uint64][]signalled{}, map[uint64][]waiting{}
}

// remember adds an entry of the ring to a map, whose lists are ordered by value, and returns the one that was let go of for it, if one was.
func remember[T entry](m map[uint64][]T, r *ring, semaphore uint64, x T) (let T, gone bool) {
	list := append(m[semaphore], x)
	for i := len(list) - 1; i > 0 && list[i-1].at() > x.at(); i-- { // mostly it is the highest
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
	if i < 0 { // it has gone before
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

// signal notes signals, and draws the arrows to waits that have come before.
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

// hides reports whether what released a wait has no slice, as far as is known: the first signal that is enough, which is below a limit.
func (a *arrows) hides(x waiting, limit uint64) bool {
	list := a.signals[x.semaphore]
	at := enough(list, x.value)
	for at < len(list) && list[at].from.same(x.to) {
		at++
	}
	return at < len(list) && list[at].value < limit && list[at].from.hidden()
}

// wait draws the arrows to a slice that waited, for all of the points or any of them, from the lowest signals that were enough.
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
			at = len(list) // a lower signal may yet come that has a slice
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

// enough returns where the signals of at least a value begin.
func enough(list []signalled, value uint64) int {
	at, _ := slices.BinarySearchFunc(list, value, func(x signalled, value uint64) int { return cmp.Compare(x.value, value) })
	return at
}

// missing returns how many waits have no arrow so far, though it is known what signalled: undrawn are those that it was not before, by the times that the two
// have, and forgotten those of which one of the two may have been let go of. Of a wait for any, and of what was signalled by something that has no slice, nothing is
// missing.
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

// arrow draws one.
func (w *writer) arrow(from, to flowEnd) {
	w.flows++
	w.event = traceformat.Event{Phase: traceformat.FlowBegin, Cat: traceformat.CatSignal, Name: "signal", PID: from.pid, TID: from.tid, Time: from.at, ID: w.flows}
	w.put()
	w.event.Phase, w.event.PID, w.event.TID, w.event.Time, w.event.BindEnclosing = traceformat.FlowEnd, to.pid, to.tid, to.at, true
	w.put()
}
