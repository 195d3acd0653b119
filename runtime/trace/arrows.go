package trace

import (
	"slices"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// arrows finds for each wait what signalled it, and draws an arrow between the two slices. It remembers the last signals, and the last waits whose
// signals have not come, up to a number of each; an arrow between what is further apart than that is missing.
type arrows struct {
	signals map[uint64][]signalled // by semaphore, in the order in which they came
	waits   map[uint64][]waiting
	oldest  ring // of signals
	first   ring // of waits
}

// A flowEnd is where an arrow begins or ends, and by how much that may be off.
type flowEnd struct {
	pid, tid   int64
	at, within traceformat.Time
}

// before reports whether something there can have released what is at another place. Records come in no order between devices and the host, so that a
// signal of a higher value may come before the one that did.
func (e flowEnd) before(to flowEnd) bool { return e.at-e.within <= to.at+to.within }

type signalled struct {
	value uint64
	age   int
	from  flowEnd
}

type waiting struct {
	value uint64
	age   int
	to    flowEnd
}

func (s signalled) since() int { return s.age }
func (s waiting) since() int   { return s.age }

// A ring is the semaphores of the last entries of a map, of which the oldest goes when there are too many.
type ring struct {
	of []uint64
	n  int // entries there have ever been, by which they are numbered
}

const remembered = 1 << 15

func (a *arrows) init() {
	a.signals, a.waits = map[uint64][]signalled{}, map[uint64][]waiting{}
}

// remember adds an entry of the ring to a map.
func remember[T interface{ since() int }](m map[uint64][]T, r *ring, semaphore uint64, entry T) {
	m[semaphore] = append(m[semaphore], entry)
	if r.n++; len(r.of) < remembered {
		r.of = append(r.of, semaphore)
		return
	}
	at := (r.n - 1) % remembered
	old := r.of[at]
	r.of[at] = semaphore
	if list := m[old]; len(list) > 0 && list[0].since() <= r.n-remembered { // else it has gone before
		if m[old] = list[1:]; len(list) == 1 {
			delete(m, old)
		}
	}
}

// signal notes signals, and draws the arrows to waits that have come before.
func (a *arrows) signal(w *writer, points []gpu.TracePoint, from flowEnd) {
	for _, p := range points {
		remember(a.signals, &a.oldest, p.Semaphore, signalled{p.Value, a.oldest.n + 1, from})
		if list := a.waits[p.Semaphore]; len(list) > 0 {
			list = slices.DeleteFunc(list, func(x waiting) bool {
				if x.value > p.Value || !from.before(x.to) {
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

// wait draws the arrows to a slice that waited, from the lowest signals that were enough.
func (a *arrows) wait(w *writer, points []gpu.TracePoint, to flowEnd) {
	for _, p := range points {
		best := -1
		list := a.signals[p.Semaphore]
		for i := range list {
			if list[i].value >= p.Value && list[i].from.before(to) && (best < 0 || list[i].value < list[best].value) {
				best = i
			}
		}
		if best >= 0 {
			w.arrow(list[best].from, to)
			continue
		}
		if p.Value == 0 {
			continue
		}
		remember(a.waits, &a.first, p.Semaphore, waiting{p.Value, a.first.n + 1, to})
	}
}

// arrow draws one.
func (w *writer) arrow(from, to flowEnd) {
	w.flows++
	w.event = traceformat.Event{Phase: traceformat.FlowBegin, Cat: traceformat.CatSignal, Name: "signal", PID: from.pid, TID: from.tid, Time: from.at, ID: w.flows}
	w.put()
	w.event.Phase, w.event.PID, w.event.TID, w.event.Time, w.event.BindEnclosing = traceformat.FlowEnd, to.pid, to.tid, to.at, true
	w.put()
}
