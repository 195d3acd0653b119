package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/trace"
)

// A graphTrace is the trace of a random graph, or a tracer without a trace. A nil graphTrace is
// neither, and its methods may be called.
type graphTrace struct {
	trace *trace.Trace
	ring  *smallRing // used instead of trace, or nil
	level string     // which times are traced
	mu    sync.Mutex // protects data
	data  []byte     // what trace has written
}

func (g *graphTrace) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.data = append(g.data, p...)
	return len(p), nil
}

// newGraphTrace starts a trace, or makes a tracer without a trace, or returns nil.
func newGraphTrace(t *testing.T, r *rand.Rand) *graphTrace {
	times := r.IntN(5)
	switch times {
	case 3:
		return nil
	case 4:
		return &graphTrace{ring: newSmallRing(t, r)}
	}
	g := &graphTrace{level: [...]string{"submissions", "commands", "none"}[times]}
	var err error
	g.trace, err = trace.Start(g, trace.Options{Logger: slog.New(slog.DiscardHandler), Times: trace.Times(times)})
	must(t, err)
	return g
}

func (g *graphTrace) tracer() *trace.Tracer {
	if g == nil {
		return nil
	}
	if g.ring != nil {
		return g.ring.tracer
	}
	return g.trace.Tracer()
}

// small returns the ring, or nil.
func (g *graphTrace) small() *smallRing {
	if g == nil {
		return nil
	}
	return g.ring
}

// simple lists the operations (node.what) that are always one submission.
var simple = map[string]bool{"fill": true, "copy": true, "launch": true, "host call": true, "notify": true, "native": true, "update": true, "barrier": true,
	"fill of nothing": true, "write a value": true, "wait for a value": true, "download": true}

// slicesOf has the operations of simple that must have a slice in the trace, each with the category
// of the slice.
var slicesOf = map[string]string{"fill": traceformat.CatDevice, "copy": traceformat.CatDevice, "launch": traceformat.CatDevice, "native": traceformat.CatDevice,
	"update": traceformat.CatDevice, "write a value": traceformat.CatDevice, "wait for a value": traceformat.CatDevice, "host call": traceformat.CatCall}

// A tracedSub is a submission in a trace.
type tracedSub struct {
	given          traceformat.Args // written at submission
	seen           traceformat.Args // written at completion, if ended is true
	done           traceformat.Time
	ended          bool
	device, called int // numbers of the submission's slices with category CatDevice and with CatCall
}

// A place is a position in the trace where arrows end.
type place struct {
	pid, tid int64
	at       traceformat.Time
}

// A tracedGraph is a trace that readGraph has read.
type tracedGraph struct {
	subs               map[uint64]*tracedSub
	slices             []traceformat.Event
	arrows             map[place]int // number of arrows that end at each place
	undrawn, forgotten uint64        // numbers of missing arrows, as the trace counts them
}

func readGraph(data []byte) *tracedGraph {
	g := &tracedGraph{subs: map[uint64]*tracedSub{}, arrows: map[place]int{}}
	r := traceformat.NewReader(bytes.NewReader(data))
	for {
		var e traceformat.Event
		if r.Next(&e) != nil {
			return g
		}
		switch {
		case e.Cat == traceformat.CatSubmission && e.Name != traceformat.NameParked:
			x := g.subs[e.ID]
			if x == nil {
				x = &tracedSub{}
				g.subs[e.ID] = x
			}
			if e.Phase == traceformat.AsyncBegin {
				x.given = e.Args
			} else {
				x.seen, x.done, x.ended = e.Args, e.Time, true
			}
		case e.Phase == traceformat.Complete:
			g.slices = append(g.slices, e)
			if x := g.subs[e.Args.Sub]; x != nil && e.Cat == traceformat.CatDevice {
				x.device++
			} else if x != nil && e.Cat == traceformat.CatCall {
				x.called++
			}
		case e.Phase == traceformat.FlowEnd:
			g.arrows[place{e.PID, e.TID, e.Time}]++
		case e.Cat == traceformat.CatArrows:
			g.undrawn, g.forgotten = e.Args.Undrawn, e.Args.Forgotten
		}
	}
}

// checkSlices checks that each submission has at most one slice. A submission that was done later
// than it was issued, and succeeded, must have a slice, or the trace must say that its times are
// missing. With level "none" no submission needs a slice.
func (g *tracedGraph) checkSlices(t *testing.T, level string, stats trace.TracerStats, left bool) {
	untimed := uint64(0)
	for id, x := range g.subs {
		if x.seen.Untimed {
			untimed++
		}
		switch n := x.device + x.called; {
		case !x.ended:
			t.Errorf("submission %d, %s: the trace does not say when it was done", id, x.given.Op)
		case n > 1, n > 0 && x.seen.Untimed:
			t.Errorf("submission %d, %s: it has %d slices of the device and %d of the host; its times are missing: %v", id, x.given.Op, x.device, x.called, x.seen.Untimed)
		case n == 0 && !x.seen.Untimed && x.seen.Error == "" && x.seen.Issued < x.done && level != "none":
			t.Errorf("submission %d, %s: it has no slice", id, x.given.Op)
		}
	}
	// If Close left native objects to the driver, records may come after the end of the trace.
	if untimed != stats.Untimed && !left {
		t.Errorf("of %d submissions times are missing, and of %d in the trace", stats.Untimed, untimed)
	}
	if stats.UntimedCommands > 0 && level != "commands" {
		t.Errorf("times of %d commands are missing, and none were to be noted", stats.UntimedCommands)
	}
}

// checkArrows checks the number of arrows that end at the waits of slices. An arrow must end at
// each wait for a point whose signal has a slice, or the trace must count that arrow as not drawn.
// The signal of a point is the lowest signal that reaches the point's value. A submission's own
// signals do not count for its waits. Waits for 0 and failed waits of the host have no arrow. A
// wait for any of several points may have arrows. So may a wait whose signal has no slice, if a
// higher signal has one: a signal is recorded after it was given, so the records of the higher
// signal and of the wait may come first.
func (g *tracedGraph) checkArrows(t *testing.T) {
	type signal struct {
		value uint64
		sub   uint64 // the submission that signals, or 0 for a call of the program
		slice bool   // that submission or call has a slice
	}
	signals := map[uint64][]signal{} // by semaphore
	add := func(points []traceformat.Point, sub uint64, slice bool) {
		for _, p := range points {
			signals[p.Semaphore] = append(signals[p.Semaphore], signal{p.Value, sub, slice})
		}
	}
	has := map[uint64]bool{} // submissions that have a slice
	for i := range g.slices {
		switch e := &g.slices[i]; {
		case g.subs[e.Args.Sub] != nil:
			has[e.Args.Sub] = has[e.Args.Sub] || e.Cat != traceformat.CatCommand
		case e.Name == "signal":
			add(e.Args.Signals, 0, true)
		}
	}
	for id, x := range g.subs {
		if x.seen.Error == "" {
			add(x.given.Signals, id, has[id])
		}
	}
	for _, list := range signals {
		slices.SortFunc(list, func(a, b signal) int { return cmp.Compare(a.value, b.value) })
	}
	// find reports whether an arrow must, and whether it may, end at a wait of the submission sub
	// for p.
	find := func(p traceformat.Point, sub uint64) (needed, allowed bool) {
		if p.Value == 0 {
			return false, false
		}
		lowest := true
		for _, s := range signals[p.Semaphore] {
			if s.value >= p.Value && (sub == 0 || s.sub != sub) {
				needed = needed || lowest && s.slice
				allowed = allowed || s.slice
				lowest = false
			}
		}
		return needed, allowed
	}
	due, free := map[place]int{}, map[place]int{} // numbers of arrows that must end at a place, and of others that may
	for i := range g.slices {
		e := &g.slices[i]
		waits, at, count := e.Args.Waits, place{e.PID, e.TID, e.Time}, due
		if x := g.subs[e.Args.Sub]; x != nil && e.Cat != traceformat.CatCommand {
			waits = x.given.Waits
		}
		if e.Cat == traceformat.CatWait {
			at.at = max(e.Time, e.Time+e.Dur-1)
			if e.Args.Error != "" {
				waits = nil
			} else if e.Name != "wait" {
				count = free
			}
		}
		for _, p := range waits {
			switch needed, allowed := find(p, e.Args.Sub); {
			case needed:
				count[at]++
			case allowed:
				free[at]++
			}
		}
	}
	// An arrow that may end at a place can hide a missing one that must.
	missing, hidden, there := 0, 0, 0
	for at, n := range due {
		missing += max(n-g.arrows[at], 0)
		hidden += min(n, free[at], g.arrows[at])
	}
	for at, n := range g.arrows {
		there += n
		if n > due[at]+free[at] {
			t.Errorf("%d arrows end at %v, where there are %d waits for something that was signalled", n, at, due[at]+free[at])
		}
	}
	if g.undrawn < uint64(missing) || g.undrawn > uint64(missing+hidden) || g.forgotten > 0 {
		t.Errorf("there are %d arrows, and %d more waits for something that was signalled; the trace says that %d are not drawn, and %d forgotten", there, missing,
			g.undrawn, g.forgotten)
	}
}

// check checks the trace or the ring after the devices have been closed. A trace must be valid. It
// must be complete, unless records were dropped or Close has left objects to the driver (left is
// true). In mode sound, a complete trace must have each labelled node whose operation is in the map
// simple once, with the node's waits and signals.
func (g *graphTrace) check(of *graph, left bool) {
	if g == nil {
		return
	}
	t := of.t
	if g.ring != nil {
		if err := g.ring.check(of); err != nil {
			t.Error(err)
		}
		return
	}
	must(t, g.trace.Close())
	stats := g.tracer().Stats()
	rep, err := traceformat.Check(bytes.NewReader(g.data))
	must(t, err)
	for _, p := range rep.Problems {
		t.Errorf("the trace: %v", p)
	}
	switch {
	case stats.Dropped > 0:
		t.Logf("%d records of the trace were dropped", stats.Dropped)
		return
	case uint64(rep.Submissions) != stats.Submissions && !left:
		t.Errorf("the trace has %d submissions of %d", rep.Submissions, stats.Submissions)
	}
	in := readGraph(g.data)
	in.checkSlices(t, g.level, stats, left)
	in.checkArrows(t)
	found := map[string][]*tracedSub{}
	for _, x := range in.subs {
		found[x.given.Label] = append(found[x.given.Label], x)
	}
	for _, x := range of.nodes {
		all := found[x.label]
		if !simple[x.what] || x.label == "" || of.mode != sound {
			continue
		}
		if len(all) != 1 {
			t.Errorf("%s, %s: it has %d submissions in the trace", x.label, x.what, len(all))
			continue
		}
		a := all[0].given
		switch of := slicesOf[x.what]; {
		case of == traceformat.CatDevice && g.level != "none" && all[0].device == 0 && !all[0].seen.Untimed, of == traceformat.CatCall && all[0].called == 0:
			t.Errorf("%s, %s: it has no slice", x.label, x.what)
		}
		if len(a.Waits) != len(x.order.Wait) || len(a.Signals) != 1 || a.Signals[0].Value != x.done.Value {
			t.Errorf("%s, %s: its waits are %v, and its signals %v; it was submitted with %v and %v", x.label, x.what, a.Waits, a.Signals, x.order.Wait, x.order.Signal)
		}
		for i, w := range a.Waits {
			if w.Value != x.order.Wait[i].Value {
				t.Errorf("%s, %s: wait %d is %v, and was for %d", x.label, x.what, i, w, x.order.Wait[i].Value)
			}
		}
	}
}

// inTrace returns a scenario that runs the given scenario with a trace, including the times of
// commands. The returned scenario fails if the trace is not valid.
func inTrace(run func(context.Context, driver.Driver, int, bool) error) func(context.Context, driver.Driver, int, bool) error {
	return func(ctx context.Context, d driver.Driver, devices int, sound bool) error {
		g := &graphTrace{}
		// 4096 records are enough for a scenario. Allocating the default number takes longer than
		// the scenario.
		tr, err := trace.Start(g, trace.Options{Logger: slog.New(slog.DiscardHandler), Times: trace.CommandTimes, Records: 1 << 12})
		if err != nil {
			return err
		}
		err = run(ctx, tr.Driver(d), devices, sound)
		err = errors.Join(err, tr.Close())
		rep, err2 := traceformat.Check(bytes.NewReader(g.data))
		if err2 != nil {
			return errors.Join(err, err2)
		}
		for _, p := range rep.Problems {
			// In a synctest bubble no time passes between two calls, so Check cannot tell which of
			// the slices at one moment an arrow belongs to.
			if !strings.HasPrefix(p.Text, "flow ") {
				err = errors.Join(err, errors.New(p.String()))
			}
		}
		stats := tr.Tracer().Stats()
		if stats.Dropped > 0 {
			err = errors.Join(err, fmt.Errorf("no room for all records: %+v", stats))
		}
		if uint64(rep.Submissions) > stats.Submissions || sound && uint64(rep.Submissions) != stats.Submissions {
			err = errors.Join(err, fmt.Errorf("%d submissions in the trace: %+v", rep.Submissions, stats))
		}
		return err
	}
}
