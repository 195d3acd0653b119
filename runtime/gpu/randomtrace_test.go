package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// A graphTrace is the trace of a random graph. All methods may be called of nil, which is none.
type graphTrace struct {
	trace *trace.Trace
	mu    sync.Mutex
	data  []byte
}

func (g *graphTrace) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.data = append(g.data, p...)
	return len(p), nil
}

// newGraphTrace begins the trace of a graph, or of two in three.
func newGraphTrace(t *testing.T, r *rand.Rand) *graphTrace {
	times := r.IntN(4)
	if times == 3 {
		return nil
	}
	g := &graphTrace{}
	var err error
	g.trace, err = trace.Start(g, trace.Options{Times: gpu.TraceTimes(times)})
	must(t, err)
	return g
}

func (g *graphTrace) tracer() *gpu.Tracer {
	if g == nil {
		return nil
	}
	return g.trace.Tracer()
}

// simple are operations that are one submission each.
var simple = map[string]bool{"fill": true, "copy": true, "launch": true, "host call": true, "notify": true, "native": true, "update": true, "barrier": true,
	"fill of nothing": true, "write a value": true, "wait for a value": true, "download": true}

// check compares the trace of a graph, whose devices have been closed, with the graph: each submission is there once, with its waits and signals, and
// each slice and arrow belongs to one.
func (g *graphTrace) check(of *graph, left bool) {
	if g == nil {
		return
	}
	t := of.t
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
	r := traceformat.NewReader(bytes.NewReader(g.data))
	found := map[string][]traceformat.Args{}
	for {
		var e traceformat.Event
		if r.Next(&e) != nil {
			break
		}
		if e.Cat == traceformat.CatSubmission && e.Phase == traceformat.AsyncBegin && e.Args.Sub > 0 {
			found[e.Args.Label] = append(found[e.Args.Label], e.Args)
		}
	}
	for _, x := range of.nodes {
		all := found[x.order.Label]
		if !simple[x.what] || x.order.Label == "" || of.mode != sound {
			continue
		}
		if len(all) != 1 {
			t.Errorf("%s, %s: it has %d submissions in the trace: %v", x.order.Label, x.what, len(all), all)
			continue
		}
		a := all[0]
		if len(a.Waits) != len(x.order.Wait) || len(a.Signals) != 1 || a.Signals[0].Value != x.done.Value {
			t.Errorf("%s, %s: its waits are %v, and its signals %v; it was submitted with %v and %v", x.order.Label, x.what, a.Waits, a.Signals, x.order.Wait, x.order.Signal)
		}
		for i, w := range a.Waits {
			if w.Value != x.order.Wait[i].Value {
				t.Errorf("%s, %s: wait %d is %v, and was for %d", x.order.Label, x.what, i, w, x.order.Wait[i].Value)
			}
		}
	}
}

// inTrace makes of a scenario one that is traced, with times of commands. The trace must break no rule, whatever fails.
func inTrace(run func(context.Context, driver.Driver, int, bool) error) func(context.Context, driver.Driver, int, bool) error {
	return func(ctx context.Context, d driver.Driver, devices int, sound bool) error {
		g := &graphTrace{}
		tr, err := trace.Start(g, trace.Options{Times: gpu.CommandTimes})
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
			if !strings.HasPrefix(p.Text, "flow ") { // in a bubble everything takes no time, and slices of one moment are not told apart
				err = errors.Join(err, errors.New(p.String()))
			}
		}
		if stats := tr.Tracer().Stats(); uint64(rep.Submissions) > stats.Submissions || sound && uint64(rep.Submissions) != stats.Submissions {
			err = errors.Join(err, fmt.Errorf("%d submissions in the trace: %+v", rep.Submissions, stats))
		}
		return err
	}
}
