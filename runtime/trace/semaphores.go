package trace

import (
	"context"
	"runtime/pprof"
	rtrace "runtime/trace"
	"sync/atomic"
	"weak"

	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A numbered is a tracer's number for a semaphore. The Notes of a sema.Semaphore hold a list of
// such numbers, one for each tracer. The first of the list is the semaphore's observe.Semaphore.
type numbered struct {
	// weak, so that semaphores do not keep the records of unused tracers alive.
	tracer weak.Pointer[Tracer]
	id     uint64
	told   atomic.Bool              // the name, if the semaphore has one, has been recorded
	next   atomic.Pointer[numbered] // only entries of tracers no longer in use are removed
}

// used returns the first entry, from x on, whose tracer is still in use, and that tracer.
func (x *numbered) used() (*numbered, *Tracer) {
	for ; x != nil; x = x.next.Load() {
		if t := x.tracer.Value(); t != nil {
			return x, t
		}
	}
	return nil, nil
}

// number returns the tracer's number for a semaphore. It also records the semaphore's name, unless
// the tracer has a record of the name. The caller holds no lock of the semaphore.
func (t *Tracer) number(s *sema.Semaphore) uint64 {
	for {
		notes := s.Notes.Load()
		var first *numbered
		if notes != nil {
			first = (*notes).(*numbered)
		}
		for x := first; x != nil; x = x.next.Load() {
			if x.tracer == t.self {
				if !x.told.Load() && x.told.CompareAndSwap(false, true) && !t.tell(s, x.id) {
					x.told.Store(false) // try again the next time, when the ring may have room
				}
				return x.id
			}
		}
		add := &numbered{tracer: t.self, id: t.semaphores.Add(1)}
		last := add
		for x, _ := first.used(); x != nil; x, _ = x.next.Load().used() {
			last.next.Store(x)
			last = x
		}
		last.next.Store(nil)
		var now any = add
		s.Notes.CompareAndSwap(notes, &now)
	}
}

// tell records the name of a semaphore, if it has one. tell returns false if the ring is full.
func (t *Tracer) tell(s *sema.Semaphore, id uint64) bool {
	name := s.Name()
	return name == "" || t.put(&Record{Kind: KindName, Label: name, Signals: []Point{{Semaphore: id}}, Done: t.now()})
}

// point returns the record's form of a point.
func (t *Tracer) point(p sema.Point) Point { return Point{t.number(p.Semaphore), p.Value} }

// called records a call of a program's function. The call began at r.Submitted and ends now.
func (t *Tracer) called(r *Record) {
	r.Begun, r.Done = r.Submitted, t.now()
	r.Ended = r.Done
	t.push(r)
}

// points appends points to a list.
func (t *Tracer) points(list []Point, points []sema.Point) []Point {
	for _, p := range points {
		list = append(list, t.point(p))
	}
	return list
}

// Renamed makes every tracer record the semaphore's name at the next use of the semaphore.
func (x *numbered) Renamed() {
	for ; x != nil; x = x.next.Load() {
		x.told.Store(false)
	}
}

// Signalled records that the host has signalled the semaphore, or is about to fail it.
func (x *numbered) Signalled(s *sema.Semaphore, value uint64, err error) {
	for x, t := x.used(); x != nil; x, t = x.next.Load().used() {
		now, at := t.now(), [1]Point{{t.number(s), value}}
		t.push(&Record{Kind: KindSignal, Submitted: now, Done: now, Signals: at[:], Err: err})
	}
}

// A hostWait is an observe.Wait. It collects the record of one wait of the host.
type hostWait struct {
	tracer *Tracer
	rec    Record
	region *rtrace.Region
}

// Waits begins to record a wait for several points: for all of them, or for any one. Only the first
// tracer that is still in use records the wait.
func (x *numbered) Waits(ctx context.Context, all bool) observe.Wait {
	_, t := x.used()
	if t == nil {
		return nil
	}
	w, _ := t.waits.Get().(*hostWait)
	if w == nil {
		w = &hostWait{tracer: t}
	}
	w.rec = Record{Kind: KindWait, Op: "wait", Submitted: t.now(), Waits: w.rec.Waits[:0]}
	if !all {
		w.rec.Op = "wait for any"
	}
	w.region = rtrace.StartRegion(ctx, "gpu wait")
	return w
}

func (w *hostWait) For(p sema.Point) { w.rec.Waits = append(w.rec.Waits, w.tracer.point(p)) }

func (w *hostWait) Ended(err error) {
	w.region.End()
	t := w.tracer
	w.rec.Done, w.rec.Err = t.now(), err
	t.push(&w.rec)
	w.rec.Err, w.region = nil, nil
	t.waits.Put(w)
}

// Calls wraps fn, a function for OnReached, so that the first tracer that is still in use records
// the call of fn.
func (x *numbered) Calls(p sema.Point, fn func(error)) func(error) {
	_, t := x.used()
	if t == nil {
		return fn
	}
	return func(err error) {
		r := Record{Kind: KindCall, Op: "function", Timed: HostTime, Submitted: t.now(), Waits: []Point{t.point(p)}}
		defer t.called(&r)
		pprof.Do(context.Background(), pprof.Labels("gpu_op", "function", "gpu_semaphore", p.Semaphore.String()), func(context.Context) { fn(err) })
	}
}
