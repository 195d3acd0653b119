package simdriver_test

import (
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// order runs operations on four streams. In each round one stream begins to wait for the stream
// before it. order returns the order of execution.
func order(t *testing.T, seed uint64) []simdriver.Executed {
	var got []simdriver.Executed
	d := simdriver.New(simdriver.Config{Deterministic: true, Seed: seed, OnExecute: func(e simdriver.Executed) { got = append(got, e) }})
	v := must(d.Open(0))(t)
	var ss []driver.Stream
	for range 4 {
		ss = append(ss, stream(t, v))
	}
	m := alloc(t, v, driver.DeviceMem, 64)
	n := 0
	for round := range 10 {
		for i, s := range ss {
			check(t, v.Fill(s, m.Ptr, 1, 1, 64))
			e := record(t, v, s)
			n += 2
			if i == round%4 {
				check(t, v.StreamWait(ss[(i+1)%4], e))
				n++
			}
		}
	}
	if len(got) != 0 {
		t.Fatal("executed without a step")
	}
	if ran := d.Run(); ran != n || d.Step() {
		t.Fatalf("executed %d of %d", ran, n)
	}
	v.Close()
	seen := make(map[driver.Stream]uint64)
	for _, e := range got {
		if seen[e.Stream]++; e.Seq != seen[e.Stream] {
			t.Fatalf("%+v out of order", e)
		}
	}
	return got
}

func TestDeterministic(t *testing.T) {
	orders := make(map[string]bool)
	for seed := range uint64(20) {
		a, b := order(t, seed), order(t, seed)
		if !slices.Equal(a, b) {
			t.Errorf("seed %d gives two orders", seed)
		}
		s := ""
		for _, e := range a {
			s += string(rune('a' + e.Stream&0xfffff))
		}
		orders[s] = true
	}
	if len(orders) < 15 {
		t.Errorf("20 seeds made %d orders", len(orders))
	}
}

// TestStepCollect checks the steps of a collective.
func TestStepCollect(t *testing.T) {
	var got []simdriver.Executed
	x := newCluster(t, 2, simdriver.Config{Deterministic: true, OnExecute: func(e simdriver.Executed) { got = append(got, e) }})
	ms := x.numbers(t, 1)
	check(t, x.collect(0, sum(ms[0])))
	if !x.d.Step() || x.d.Step() || len(got) != 0 { // the group begins, and waits for the other rank
		t.Errorf("executed %v", got)
	}
	check(t, x.d.StallStream(x.ss[0])) // cannot stop the operation, which has begun
	check(t, x.collect(1, sum(ms[1])))
	if n := x.d.Run(); n != 2 || host[int32](ms[0])[0] != 1 {
		t.Errorf("%d steps", n)
	}
	want := []simdriver.Executed{
		// The rank that begins last ends in the same step.
		{Device: 1, Stream: x.ss[1], Seq: 1, Op: simdriver.OpCollect},
		{Device: 0, Stream: x.ss[0], Seq: 1, Op: simdriver.OpCollect},
	}
	if !slices.Equal(got, want) {
		t.Errorf("executed %v", got)
	}
}

func TestStep(t *testing.T) {
	d, vs := open(t, simdriver.Config{Deterministic: true, Devices: 2})
	v, w := vs[0], vs[1]
	a, b := stream(t, v), stream(t, w)
	if d.Step() {
		t.Error("a step without work")
	}
	e := record(t, v, a)
	check(t, w.StreamWait(b, e))
	last := record(t, w, b)
	done := func(v driver.Device, e driver.Event) bool { return must(v.Query(e))(t) }
	if done(v, e) {
		t.Error("done without a step")
	}
	check(t, d.StallStream(a))
	if d.Step() {
		t.Error("a step while one stream is stalled and the other waits")
	}
	check(t, d.ResumeStream(a))
	for i, want := range [][2]bool{{true, false}, {true, false}, {true, true}} {
		if !d.Step() || done(v, e) != want[0] || done(w, last) != want[1] {
			t.Errorf("step %d: %v, %v", i, done(v, e), done(w, last))
		}
	}
	check(t, v.Fill(a, 0, 0, 1, 1))
	e = record(t, v, a)
	check(t, w.StreamWait(b, e))
	if n := d.Run(); n != 1 {
		t.Errorf("%d steps", n)
	}
	refused(t, second(v.Query(e)), driver.ErrLost)
	check(t, w.DestroyStream(b)) // the stream waits for the lost device

	d, _ = open(t, simdriver.Config{})
	if d.Step() || d.Run() != 0 {
		t.Error("a concurrent driver takes steps")
	}
}
