package simdriver_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func comms(v driver.Device) driver.Comms { return v.(driver.Comms) }

// A cluster is a communicator with one stream per rank.
type cluster struct {
	d  *simdriver.Driver
	vs []driver.Device
	cs []driver.Comm
	ss []driver.Stream
}

// newCluster makes a communicator of n ranks on the devices of a new driver.
func newCluster(t testing.TB, n int, c simdriver.Config) *cluster {
	t.Helper()
	c.Devices = n
	d, vs := open(t, c)
	x := &cluster{d: d, vs: vs}
	id := must(comms(vs[0]).NewUniqueID())(t)
	for i, v := range vs {
		x.cs = append(x.cs, newComm(t, v, id, i, n))
		x.ss = append(x.ss, stream(t, v))
	}
	x.ready(t, x.cs...)
	return x
}

func newComm(t testing.TB, v driver.Device, id driver.UniqueID, rank, count int) driver.Comm {
	t.Helper()
	return must(comms(v).NewComm(driver.CommDesc{ID: id, Rank: rank, Count: count, Name: "test"}))(t)
}

// ready ends the test unless each rank's communicator is ready.
func (x *cluster) ready(t testing.TB, cs ...driver.Comm) {
	t.Helper()
	for i, c := range cs {
		if c != 0 && !must(comms(x.vs[i]).CommReady(c))(t) {
			t.Fatalf("rank %d is not ready", i)
		}
	}
}

// each calls f for each rank, concurrently.
func (x *cluster) each(t testing.TB, f func(i int, v driver.Comms) error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(x.vs))
	for i, v := range x.vs {
		all.Go(func() { errs[i] = f(i, comms(v)) })
	}
	all.Wait()
	check(t, errors.Join(errs...))
}

// collect submits operations to a rank's stream.
func (x *cluster) collect(i int, ops ...driver.CommOp) error {
	return comms(x.vs[i]).Collect(x.ss[i], x.cs[i], ops)
}

// record records an event in a rank's stream.
func (x *cluster) record(t testing.TB, i int) driver.Event {
	t.Helper()
	return record(t, x.vs[i], x.ss[i])
}

// hold stalls the devices while it calls f.
func (x *cluster) hold(t testing.TB, f func()) {
	t.Helper()
	for i := range x.vs {
		check(t, x.d.StallDevice(i))
	}
	f()
	for i := range x.vs {
		check(t, x.d.ResumeDevice(i))
	}
	x.d.Run()
}

// drain waits for the streams of all ranks.
func (x *cluster) drain(t testing.TB) {
	t.Helper()
	var ends []driver.Event
	for i := range x.vs {
		ends = append(ends, x.record(t, i))
	}
	x.d.Run()
	for i, e := range ends {
		check(t, wait(t, x.vs[i], e))
	}
}

// destroy destroys the ranks.
func (x *cluster) destroy(t testing.TB) {
	t.Helper()
	x.each(t, func(i int, v driver.Comms) error { return v.DestroyComm(x.cs[i]) })
}

// numbers allocates n elements of 4 bytes for each rank, in memory that the host can use. The first
// element is the rank's number.
func (x *cluster) numbers(t testing.TB, n int) []driver.Mem {
	t.Helper()
	var ms []driver.Mem
	for i, v := range x.vs {
		m := alloc(t, v, driver.ManagedMem, uint64(4*n))
		host[int32](m)[0] = int32(i)
		ms = append(ms, m)
	}
	return ms
}

// host returns memory as a slice that the host can use.
func host[T any](m driver.Mem) []T {
	return unsafe.Slice((*T)(m.Host), int(m.Size/uint64(unsafe.Sizeof(*new(T)))))
}

// broken ends the test unless CommError of each of the ranks returns the error want, and the
// error's text contains the parameter say.
func (x *cluster) broken(t testing.TB, want error, say string, ranks ...int) {
	t.Helper()
	for _, i := range ranks {
		refused(t, comms(x.vs[i]).CommError(x.cs[i]), want, say)
	}
}

// until returns the value that comes from done. It ends the test if the value does not come in
// time.
func until[T any](t testing.TB, done <-chan T) T {
	t.Helper()
	select {
	case x := <-done:
		return x
	case <-time.After(time.Minute):
		t.Fatal("the call does not end")
	}
	panic("unreachable")
}

// begin calls f on a new goroutine, and returns a channel with the result.
func begin[T any](f func() T) <-chan T {
	done := make(chan T, 1)
	go func() { done <- f() }()
	return done
}

func TestNewComm(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 3})
	v, w := comms(vs[0]), comms(vs[1])
	a, b := must(v.NewUniqueID())(t), must(w.NewUniqueID())(t)
	if a == b || a == (driver.UniqueID{}) || b == (driver.UniqueID{}) {
		t.Errorf("ids %x, %x", a, b)
	}
	other := must(comms(must(simdriver.New(simdriver.Config{}).Open(0))(t)).NewUniqueID())(t)
	for say, desc := range map[string]driver.CommDesc{
		"is zero":                     {Count: 1},
		"no":                          {ID: driver.UniqueID{1}, Count: 1},
		"cannot reach each other":     {ID: other, Count: 1},
		"rank 0 of 0":                 {ID: a},
		"rank 0 of 1025":              {ID: a, Count: 1025},
		"rank 2 of 2: invalid value":  {ID: a, Rank: 2, Count: 2},
		"rank -1 of 2: invalid value": {ID: a, Rank: -1, Count: 2},
	} {
		refused(t, second(v.NewComm(desc)), simdriver.ErrInvalidValue, say)
	}

	// One of two ranks has not joined yet.
	c := newComm(t, vs[0], a, 1, 2)
	if must(v.CommReady(c))(t) {
		t.Error("ready with one rank of two")
	}
	_, _, err := v.CommRank(c)
	refused(t, err, simdriver.ErrNotReady)
	refused(t, v.Collect(stream(t, vs[0]), c, nil), simdriver.ErrNotReady)
	refused(t, second(v.SplitComm(c, 0, 0)), simdriver.ErrNotReady)
	refused(t, second(v.ShrinkComm(c, []int{0}, false)), simdriver.ErrNotReady)
	refused(t, second(v.ShrinkComm(c, []int{0}, true)), simdriver.ErrNotReady)
	refused(t, second(v.RegisterComm(c, 0, 1)), simdriver.ErrNotReady)
	check(t, v.CommError(c))
	e := newComm(t, vs[1], a, 0, 2)
	for i, v := range []driver.Comms{v, w} {
		if !must(v.CommReady([]driver.Comm{c, e}[i]))(t) {
			t.Error("not ready")
		}
	}
	if r, n, err := v.CommRank(c); r != 1 || n != 2 || err != nil {
		t.Errorf("rank %d of %d, %v", r, n, err)
	}
	if n := d.Counters().Devices[0].Comms; n != 1 {
		t.Errorf("%d communicators", n)
	}
	refused(t, second(comms(vs[2]).NewComm(driver.CommDesc{ID: a, Count: 2})), simdriver.ErrInvalidValue, "was used already")
	refused(t, second(w.CommReady(c)), simdriver.ErrInvalidHandle, "belongs to device 0")
	check(t, v.DestroyComm(c))
	check(t, w.DestroyComm(e))
	refused(t, v.DestroyComm(c), simdriver.ErrInvalidHandle, "no such communicator")
	refused(t, v.AbortComm(c), simdriver.ErrInvalidHandle)
	refused(t, v.CommError(c), simdriver.ErrInvalidHandle)
	refused(t, second(v.NewComm(driver.CommDesc{ID: a, Count: 2})), simdriver.ErrInvalidValue, "was used already")
}

// TestNewCommConflicts checks that all ranks get an error if they give NewComm descriptions that
// conflict.
func TestNewCommConflicts(t *testing.T) {
	for say, descs := range map[string][]driver.CommDesc{
		"a count of 2, the first rank with 3":                {{Rank: 0, Count: 3}, {Rank: 1, Count: 2}, {Rank: 2, Count: 3}},
		"a count of 4":                                       {{Rank: 0, Count: 3}, {Rank: 3, Count: 4}, {Rank: 2, Count: 3}},
		"rank 1 was made twice, on device 0 and on device 1": {{Rank: 1, Count: 3}, {Rank: 1, Count: 3}, {Rank: 2, Count: 3}},
	} {
		_, vs := open(t, simdriver.Config{Devices: 3})
		id := must(comms(vs[0]).NewUniqueID())(t)
		var cs []driver.Comm
		for i, desc := range descs {
			cs = append(cs, newComm(t, vs[i], id, desc.Rank, desc.Count))
		}
		for i, c := range cs {
			refused(t, second(comms(vs[i]).CommReady(c)), simdriver.ErrMismatch, say)
			refused(t, comms(vs[i]).CommError(c), simdriver.ErrMismatch, say)
			check(t, comms(vs[i]).DestroyComm(c))
		}
		refused(t, second(comms(vs[0]).NewComm(driver.CommDesc{ID: id, Count: 3})), simdriver.ErrInvalidValue, "was used already")
	}
	_, vs := open(t, simdriver.Config{})
	id := must(comms(vs[0]).NewUniqueID())(t)
	for _, c := range []driver.Comm{newComm(t, vs[0], id, 0, 2), newComm(t, vs[0], id, 1, 2)} {
		refused(t, second(comms(vs[0]).CommReady(c)), simdriver.ErrMismatch, "ranks 0 and 1 are both on device 0")
		check(t, comms(vs[0]).AbortComm(c))
		check(t, comms(vs[0]).DestroyComm(c))
	}
}

// TestCommLatency checks that making a communicator takes the configured latency, and that ranks
// notice a death after the time given to KillComm.
func TestCommLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, vs := open(t, simdriver.Config{Devices: 2, Latency: map[simdriver.Op]time.Duration{
			simdriver.OpNewComm: time.Second, simdriver.OpSplitComm: time.Minute, simdriver.OpCollect: time.Hour,
		}})
		x := &cluster{d: d, vs: vs}
		start := time.Now()
		id := must(comms(vs[0]).NewUniqueID())(t)
		var kids []driver.Comm
		isReady := func(cs []driver.Comm, want bool) {
			t.Helper()
			for i, c := range cs {
				if got := must(comms(vs[i]).CommReady(c))(t); got != want {
					t.Errorf("ready %v", got)
				}
			}
		}
		for i, v := range vs {
			x.cs, x.ss = append(x.cs, newComm(t, v, id, i, 2)), append(x.ss, stream(t, v))
			isReady(x.cs, false)
			time.Sleep(2 * time.Second / 4)
		}
		time.Sleep(time.Second/2 - 1)
		isReady(x.cs, false)
		time.Sleep(time.Nanosecond)
		isReady(x.cs, true)
		for i, v := range vs {
			kids = append(kids, must(comms(v).SplitComm(x.cs[i], 0, 0))(t))
		}
		time.Sleep(time.Minute - 1)
		isReady(kids, false)
		time.Sleep(time.Nanosecond)
		isReady(kids, true)
		if took := time.Since(start); took != time.Minute+3*time.Second/2 {
			t.Errorf("took %v", took)
		}

		// The latency of a group begins when all ranks have reached the group.
		ms := x.numbers(t, 1)
		var ends []driver.Event
		for i := range vs {
			check(t, x.collect(i, sum(ms[i])))
			ends = append(ends, x.record(t, i))
			time.Sleep(time.Minute)
		}
		time.Sleep(58 * time.Minute)
		done := func(want bool) {
			t.Helper()
			synctest.Wait()
			for i, e := range ends {
				if got := must(vs[i].Query(e))(t); got != want {
					t.Errorf("done %v", got)
				}
			}
		}
		done(false)
		time.Sleep(time.Minute)
		done(true)

		// For a rank that is aborted, the latency ends early.
		for i := range vs {
			check(t, x.with(kids).collect(i, sum(ms[i])))
			ends[i] = x.record(t, i)
		}
		synctest.Wait()
		check(t, comms(vs[0]).AbortComm(kids[0]))
		synctest.Wait()
		if !must(vs[0].Query(ends[0]))(t) || must(vs[1].Query(ends[1]))(t) {
			t.Error("want the operation of the aborted rank done, and no other")
		}
		time.Sleep(time.Hour)
		done(true)

		// The remaining rank is durably blocked until it notices that the other rank is dead.
		check(t, x.collect(0, sum(ms[0])))
		end := x.record(t, 0)
		synctest.Wait()
		check(t, d.KillComm(x.cs[1], time.Minute))
		time.Sleep(time.Minute - 1)
		check(t, comms(vs[0]).CommError(x.cs[0]))
		time.Sleep(time.Nanosecond)
		x.broken(t, simdriver.ErrRankGone, "rank 1, on device 1: it was killed", 0)
		time.Sleep(time.Hour)
		if must(vs[0].Query(end))(t) {
			t.Error("done")
		}
		check(t, comms(vs[0]).AbortComm(x.cs[0]))
		synctest.Wait() // the abort takes effect without more time passing
		if !must(vs[0].Query(end))(t) {
			t.Error("not done")
		}
		for i, v := range vs {
			check(t, comms(v).DestroyComm(x.cs[i]))
			check(t, comms(v).DestroyComm(kids[i]))
			check(t, vs[i].DestroyStream(x.ss[i]))
		}
		for _, v := range vs {
			v.Close()
		}
	})
}

// TestAbort aborts a rank in every state, with operations in flight.
func TestAbort(t *testing.T) {
	for mode, c := range commModes {
		t.Run(mode, func(t *testing.T) {
			x := newCluster(t, 3, c)
			v, w := comms(x.vs[0]), comms(x.vs[1])
			ms := x.numbers(t, 1)
			mem := alloc(t, x.vs[0], driver.CommMem, 64)

			// Abort a rank before its communicator is made.
			id := must(v.NewUniqueID())(t)
			young, other := newComm(t, x.vs[0], id, 0, 3), newComm(t, x.vs[1], id, 1, 3)
			check(t, v.AbortComm(young))
			refused(t, second(v.CommReady(young)), simdriver.ErrAborted)
			refused(t, second(w.CommReady(other)), simdriver.ErrRankGone, "rank 0, on device 0: the communicator was aborted")
			late := newComm(t, x.vs[2], id, 2, 3)
			refused(t, second(comms(x.vs[2]).CommReady(late)), simdriver.ErrRankGone)
			check(t, v.DestroyComm(young))
			refused(t, second(w.CommReady(other)), simdriver.ErrRankGone)
			check(t, w.DestroyComm(other))
			check(t, comms(x.vs[2]).DestroyComm(late))

			// Abort a rank during a split.
			for _, parent := range []bool{false, true} {
				y := newCluster(t, 3, c)
				v, w := comms(y.vs[0]), comms(y.vs[1])
				kid := must(v.SplitComm(y.cs[0], 1, 0))(t)
				kid1 := must(w.SplitComm(y.cs[1], 1, 0))(t)
				if must(w.CommReady(kid1))(t) {
					t.Error("the child is ready too early")
				}
				if parent {
					check(t, v.AbortComm(y.cs[0]))
				} else {
					check(t, v.AbortComm(kid))
				}
				refused(t, second(v.CommReady(kid)), simdriver.ErrAborted)
				// Aborting the rank or its child aborts both.
				refused(t, v.CommError(y.cs[0]), simdriver.ErrAborted)
				refused(t, second(w.CommReady(kid1)), simdriver.ErrRankGone, "rank 0, on device 0")
				refused(t, second(comms(y.vs[2]).SplitComm(y.cs[2], driver.NoColor, 0)), simdriver.ErrRankGone)
				check(t, v.DestroyComm(kid))
				check(t, w.AbortComm(kid1))
				check(t, w.DestroyComm(kid1))
				y.destroy(t)
			}

			// Abort a rank with operations that wait for other ranks, and operations that have not
			// begun.
			var blocked <-chan error
			if c.LazyComms {
				blocked = begin(func() error { return x.collect(0, sum(ms[0])) })
			} else {
				check(t, x.collect(0, sum(ms[0])))
				check(t, x.collect(0, transfer(driver.Send, ms[0], 0, 0)))
				check(t, x.collect(0, sum(ms[0])))
			}
			e := x.record(t, 0)
			x.d.Run()
			if !c.LazyComms {
				pending(t, x.vs[0], e)
				refused(t, second(v.SplitComm(x.cs[0], 0, 0)), simdriver.ErrBusy)
				refused(t, second(v.ShrinkComm(x.cs[0], []int{1}, false)), simdriver.ErrBusy)
			}
			window := begin(func() error { return second(v.NewWindow(x.cs[0], mem.Ptr, 64, false)) })
			time.Sleep(time.Millisecond)
			check(t, until(t, begin(func() error { return v.AbortComm(x.cs[0]) })))
			check(t, v.AbortComm(x.cs[0]))
			refused(t, until(t, window), simdriver.ErrAborted)
			if blocked != nil {
				refused(t, until(t, blocked), simdriver.ErrAborted)
			}
			x.d.Run()
			check(t, wait(t, x.vs[0], e))

			// Most calls for the aborted rank return ErrAborted. DestroyComm still works.
			refused(t, x.collect(0, sum(ms[0])), simdriver.ErrAborted)
			refused(t, second(v.CommReady(x.cs[0])), simdriver.ErrAborted)
			refused(t, second(v.SplitComm(x.cs[0], 0, 0)), simdriver.ErrAborted)
			refused(t, second(v.ShrinkComm(x.cs[0], []int{1}, true)), simdriver.ErrAborted)
			refused(t, second(v.RegisterComm(x.cs[0], mem.Ptr, 64)), simdriver.ErrAborted)
			x.broken(t, simdriver.ErrAborted, "aborted", 0)
			x.broken(t, simdriver.ErrRankGone, "rank 0, on device 0: the communicator was aborted", 1, 2)
			refused(t, x.collect(1, sum(ms[1])), simdriver.ErrRankGone)
			check(t, v.DestroyComm(x.cs[0]))
			x.broken(t, simdriver.ErrRankGone, "rank 0", 1)
			for i := 1; i < 3; i++ {
				check(t, comms(x.vs[i]).AbortComm(x.cs[i]))
				check(t, comms(x.vs[i]).DestroyComm(x.cs[i]))
			}
		})
	}
}

// TestAbortWhileExecuting aborts ranks at random times. No call hangs, and no operation uses memory
// afterwards.
func TestAbortWhileExecuting(t *testing.T) {
	for round := range 30 {
		x := newCluster(t, 3, simdriver.Config{})
		ms := x.numbers(t, 1<<10)
		op := sum(driver.Mem{})
		op.Count = 1 << 10
		var all sync.WaitGroup
		for i := range x.vs {
			for range 20 {
				op := op
				op.Src, op.Dst = ms[i].Ptr, ms[i].Ptr
				check(t, x.collect(i, op))
			}
		}
		for i, v := range x.vs {
			all.Go(func() {
				time.Sleep(time.Duration(round*i) * 10 * time.Microsecond)
				if err := comms(v).AbortComm(x.cs[i]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for i, v := range x.vs {
			check(t, wait(t, v, x.record(t, i)))
			clear(host[int32](ms[i])) // the race detector reports this if an operation still uses the memory
			check(t, comms(v).DestroyComm(x.cs[i]))
			check(t, v.Free(ms[i]))
			v.Close()
		}
	}
}

// TestDestroyComm destroys idle ranks and ranks with operations in flight. It runs in a synctest
// bubble, to know when each call waits.
func TestDestroyComm(t *testing.T) { synctest.Test(t, destroyComm) }

func destroyComm(t *testing.T) {
	x := newCluster(t, 3, simdriver.Config{})
	ms := x.numbers(t, 1)
	check(t, comms(x.vs[1]).DestroyComm(x.cs[1]))
	check(t, comms(x.vs[0]).CommError(x.cs[0])) // destroying an idle rank is no error for the others
	check(t, x.collect(0, transfer(driver.Send, ms[0], 0, 2)))
	check(t, x.collect(2, transfer(driver.Recv, ms[2], 0, 0)))
	check(t, wait(t, x.vs[0], x.record(t, 0)))
	check(t, comms(x.vs[0]).CommError(x.cs[0]))
	check(t, x.collect(0, transfer(driver.Recv, ms[0], 0, 1)))
	synctest.Wait()
	x.broken(t, simdriver.ErrRankGone, "rank 1, on device 1, was destroyed; operations in flight of rank 0 need it", 0)
	check(t, comms(x.vs[2]).CommError(x.cs[2]))
	check(t, comms(x.vs[0]).AbortComm(x.cs[0]))

	// With a fault, DestroyComm destroys the rank at once, even with operations in flight.
	x = newCluster(t, 2, simdriver.Config{})
	ms = x.numbers(t, 1)
	check(t, x.collect(0, sum(ms[0])))
	e := x.record(t, 0)
	pending(t, x.vs[0], e)
	x.d.Inject(simdriver.Fault{Op: simdriver.OpDestroyComm, N: 1, Err: errTest})
	refused(t, comms(x.vs[0]).DestroyComm(x.cs[0]), errTest)
	check(t, wait(t, x.vs[0], e))
	x.broken(t, simdriver.ErrRankGone, "it was destroyed", 1)

	// DestroyComm waits for the other ranks to destroy theirs.
	for _, abort := range []bool{false, true} {
		x = newCluster(t, 2, simdriver.Config{LingerComms: true})
		done := begin(func() error { return comms(x.vs[0]).DestroyComm(x.cs[0]) })
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("the call did not wait: %v", err)
		default:
		}
		refused(t, comms(x.vs[0]).DestroyComm(x.cs[0]), simdriver.ErrInvalidHandle, "being destroyed already")
		if abort {
			check(t, comms(x.vs[0]).AbortComm(x.cs[0]))
			refused(t, until(t, done), simdriver.ErrAborted)
			x.broken(t, simdriver.ErrRankGone, "rank 0", 1)
		}
		check(t, comms(x.vs[1]).DestroyComm(x.cs[1]))
		if !abort {
			check(t, until(t, done))
		}
		if n := x.d.Counters().Devices[0].Comms; n != 0 {
			t.Errorf("%d communicators", n)
		}
	}
}

func TestKillComm(t *testing.T) {
	for mode, c := range commModes {
		t.Run(mode, func(t *testing.T) {
			x := newCluster(t, 3, c)
			v := comms(x.vs[2])
			ms := x.numbers(t, 1)
			if !c.LazyComms {
				for i := range 2 {
					check(t, x.collect(i, sum(ms[i])))
				}
			}
			mem := alloc(t, x.vs[2], driver.CommMem, 64)
			window := begin(func() error { return second(v.NewWindow(x.cs[2], mem.Ptr, 64, false)) })
			ends := []driver.Event{x.record(t, 0), x.record(t, 1)}
			time.Sleep(time.Millisecond)
			if cs := x.d.Comms(2); len(cs) != 1 || cs[0] != x.cs[2] {
				t.Errorf("communicators %v", cs)
			}
			check(t, x.d.KillComm(x.cs[2], -1))
			check(t, x.d.KillComm(x.cs[2], 0))
			refused(t, until(t, window), simdriver.ErrInjected, "it was killed")
			refused(t, x.collect(2, sum(ms[2])), simdriver.ErrInjected)
			x.broken(t, simdriver.ErrInjected, "it was killed", 2)
			x.d.Run()
			for i := range 2 {
				check(t, comms(x.vs[i]).CommError(x.cs[i]))
				if !c.LazyComms {
					pending(t, x.vs[i], ends[i])
				}
			}
			check(t, x.d.KillComm(x.cs[0], 0))
			x.d.Run()
			check(t, wait(t, x.vs[0], ends[0]))
			x.broken(t, simdriver.ErrRankGone, "rank 0", 1)
			for i, v := range x.vs {
				check(t, comms(v).AbortComm(x.cs[i]))
				check(t, comms(v).DestroyComm(x.cs[i]))
			}
			x.d.Run()
			check(t, wait(t, x.vs[1], ends[1]))
			if err := x.d.KillComm(x.cs[0], 0); !errors.Is(err, simdriver.ErrInvalidHandle) {
				t.Error(err)
			}
		})
	}
}

// TestCommLoseDevice loses devices while their ranks wait, in calls and in streams.
func TestCommLoseDevice(t *testing.T) {
	x := newCluster(t, 3, simdriver.Config{LazyComms: true})
	ms := x.numbers(t, 1)
	x.each(t, func(i int, _ driver.Comms) error { return x.collect(i, sum(ms[i])) })
	x.drain(t)
	check(t, x.collect(0, sum(ms[0])))
	check(t, x.collect(1, sum(ms[1])))
	e0, e1 := x.record(t, 0), x.record(t, 1)
	blocked := begin(func() error { return x.collect(1, transfer(driver.Send, ms[1], 0, 2)) })
	mem := alloc(t, x.vs[1], driver.CommMem, 64)
	window := begin(func() error { return second(comms(x.vs[1]).NewWindow(x.cs[1], mem.Ptr, 64, false)) })
	pending(t, x.vs[0], e0)
	check(t, x.d.LoseDevice(1, errTest))
	refused(t, until(t, blocked), driver.ErrLost)
	refused(t, until(t, window), driver.ErrLost)
	refused(t, second(x.vs[1].Query(e1)), driver.ErrLost)
	x.broken(t, driver.ErrLost, "test's own error", 1)
	x.broken(t, simdriver.ErrRankGone, "rank 1, because device 1 is lost: test's own error", 0, 2)
	pending(t, x.vs[0], e0)
	check(t, comms(x.vs[0]).AbortComm(x.cs[0]))
	check(t, wait(t, x.vs[0], e0))
	check(t, comms(x.vs[0]).DestroyComm(x.cs[0]))
	refused(t, x.vs[1].DestroyStream(x.ss[1]), driver.ErrLost)
	refused(t, comms(x.vs[1]).DestroyComm(x.cs[1]), driver.ErrLost)
	refused(t, comms(x.vs[1]).DestroyComm(x.cs[1]), simdriver.ErrInvalidHandle)
	check(t, comms(x.vs[2]).AbortComm(x.cs[2]))
	check(t, comms(x.vs[2]).DestroyComm(x.cs[2]))

	// An operation loses its device when it executes.
	x = newCluster(t, 2, simdriver.Config{Faults: []simdriver.Fault{{Op: simdriver.OpCollect, Device: 1, N: 1, AtExecution: true, Err: errTest}}})
	ms = x.numbers(t, 1)
	for i := range x.vs {
		check(t, x.collect(i, sum(ms[i])))
	}
	e := event(t, x.vs[0])
	for err := error(nil); err == nil; err = comms(x.vs[0]).CommError(x.cs[0]) {
		time.Sleep(time.Microsecond)
	}
	check(t, x.vs[0].Record(e, x.ss[0]))
	pending(t, x.vs[0], e)
	x.broken(t, simdriver.ErrRankGone, "test's own error", 0)
}

// TestCommClose closes a device with live communicators.
func TestCommClose(t *testing.T) {
	x := newCluster(t, 2, simdriver.Config{})
	v := comms(x.vs[0])
	ms := x.numbers(t, 1)
	mem := alloc(t, x.vs[0], driver.CommMem, 100)
	must(v.RegisterComm(x.cs[0], mem.Ptr, 100))(t)
	check(t, x.collect(0, sum(ms[0])))
	check(t, x.collect(1, sum(ms[1]), transfer(driver.Send, ms[1], 0, 0)))
	e := x.record(t, 1)
	c := x.d.Counters().Devices[0]
	if c.Comms != 1 || c.CommMemory != 1 || c.Allocations != 2 || c.Bytes != 100 || c.Calls[simdriver.OpCollect] != 1 || c.Calls[simdriver.OpNewComm] != 1 {
		t.Errorf("%+v", c)
	}
	say := []string{"communicator 0x", "registration 0x", "100 bytes of memory for communicators", "stream", "4 bytes of managed memory"}
	leaks := strings.Join(x.d.Leaks(), "; ")
	for _, s := range say {
		if !strings.Contains(leaks, s) {
			t.Errorf("Leaks does not say %q: %s", s, leaks)
		}
	}
	refused(t, x.vs[0].Close(), simdriver.ErrBusy, say...)
	if c := x.d.Counters().Devices[0]; c.Comms != 0 || c.CommMemory != 0 || c.Bytes != 0 {
		t.Errorf("%+v", c)
	}
	pending(t, x.vs[1], e)
	x.broken(t, simdriver.ErrRankGone, "rank 0, on device 0: the device is closed", 1)
	check(t, comms(x.vs[1]).AbortComm(x.cs[1]))
	check(t, wait(t, x.vs[1], e))

	// Close ends a DestroyComm that waits for other ranks.
	x = newCluster(t, 2, simdriver.Config{LingerComms: true})
	done := begin(func() error { return comms(x.vs[0]).DestroyComm(x.cs[0]) })
	time.Sleep(time.Millisecond)
	refused(t, x.vs[0].Close(), simdriver.ErrBusy, "communicator")
	refused(t, until(t, done), simdriver.ErrClosed)

	// A rank leaves the communicator if its stream is destroyed with operations that have begun.
	x = newCluster(t, 2, simdriver.Config{})
	ms = x.numbers(t, 1)
	check(t, x.collect(0, sum(ms[0])))
	pending(t, x.vs[0], x.record(t, 0))
	x.d.Inject(simdriver.Fault{Op: simdriver.OpDestroyStream, N: 1, Err: errTest})
	refused(t, x.vs[0].DestroyStream(x.ss[0]), errTest)
	for err := error(nil); err == nil; err = comms(x.vs[0]).CommError(x.cs[0]) {
		time.Sleep(time.Microsecond)
	}
	x.broken(t, simdriver.ErrRankGone, "rank 0", 1)
	check(t, comms(x.vs[0]).DestroyComm(x.cs[0]))
}

// TestCommsUnsupported tests devices without communicators, and devices that lack one call.
func TestCommsUnsupported(t *testing.T) {
	caps := simdriver.CUDACaps()
	if hip := simdriver.HIPCaps(); !caps.Comms || !hip.Comms {
		t.Error("no communicators")
	}
	caps.Comms = false
	_, vs := open(t, simdriver.Config{Caps: &caps})
	v := comms(vs[0])
	for _, err := range commCalls(v, 0, 0) {
		refused(t, err, driver.ErrUnsupported, "device 0")
	}
	refused(t, v.CommError(0), driver.ErrUnsupported)
	_, _, err := v.CommRank(0)
	refused(t, err, driver.ErrUnsupported)
	refused(t, second(vs[0].Alloc(driver.CommMem, 64)), driver.ErrUnsupported)

	x := newCluster(t, 2, simdriver.Config{Faults: []simdriver.Fault{{Op: simdriver.OpShrinkComm, Device: simdriver.AnyDevice, Err: driver.ErrUnsupported}}})
	for range 2 {
		refused(t, second(comms(x.vs[0]).ShrinkComm(x.cs[0], []int{1}, true)), driver.ErrUnsupported, "shrink comm")
	}
	check(t, comms(x.vs[0]).CommError(x.cs[0]))
	x.destroy(t)
}

// commCalls calls the methods of communicators that need a bound thread.
func commCalls(v driver.Comms, s driver.Stream, c driver.Comm) map[simdriver.Op]error {
	return map[simdriver.Op]error{
		simdriver.OpNewUniqueID:       second(v.NewUniqueID()),
		simdriver.OpNewComm:           second(v.NewComm(driver.CommDesc{})),
		simdriver.OpSplitComm:         second(v.SplitComm(c, 0, 0)),
		simdriver.OpShrinkComm:        second(v.ShrinkComm(c, nil, false)),
		simdriver.OpCommReady:         second(v.CommReady(c)),
		simdriver.OpAbortComm:         v.AbortComm(c),
		simdriver.OpDestroyComm:       v.DestroyComm(c),
		simdriver.OpCollect:           v.Collect(s, c, nil),
		simdriver.OpRegisterComm:      second(v.RegisterComm(c, 0, 0)),
		simdriver.OpNewWindow:         second(v.NewWindow(c, 0, 0, false)),
		simdriver.OpReleaseCommMemory: v.ReleaseCommMemory(c, 0),
		simdriver.OpCommStats:         second(v.(driver.CommSuspension).CommStats(c)),
		simdriver.OpSuspendComm:       v.(driver.CommSuspension).SuspendComm(c),
		simdriver.OpResumeComm:        v.(driver.CommSuspension).ResumeComm(c),
	}
}

// commScenario uses all calls of communicators on two devices, from one goroutine. It frees
// everything, whichever call fails.
func commScenario(d *simdriver.Driver) {
	var vs []driver.Device
	var ss [2]driver.Stream
	var cs, kids, rest [2]driver.Comm
	var ms [2]driver.Mem
	defer func() {
		for i, v := range vs {
			for _, c := range []driver.Comm{rest[i], kids[i], cs[i]} {
				if c != 0 {
					comms(v).AbortComm(c)
				}
			}
			if ss[i] != 0 {
				// A call that has failed says nothing about the work, so repeat the call.
				e, err := v.NewEvent()
				if err != nil {
					e, _ = v.NewEvent()
				}
				for err = v.Record(e, ss[i]); err != nil && !errors.Is(err, driver.ErrLost); err = v.Record(e, ss[i]) {
				}
				for done := false; !done && !errors.Is(err, driver.ErrLost); done, err = v.Query(e) {
					time.Sleep(10 * time.Microsecond)
				}
				v.DestroyEvent(e)
				v.DestroyStream(ss[i])
			}
			for _, c := range []driver.Comm{rest[i], kids[i], cs[i]} {
				if c != 0 {
					comms(v).DestroyComm(c)
				}
			}
			if ms[i].Size != 0 {
				v.Free(ms[i])
			}
		}
	}()
	var failed error
	both := func(f func(i int, v driver.Device) error) {
		for i := range vs {
			if failed == nil {
				failed = f(i, vs[i])
			}
		}
	}
	for i := range 2 {
		v, err := d.Open(i)
		if err != nil {
			return
		}
		vs = append(vs, v)
	}
	id, failed := comms(vs[0]).NewUniqueID()
	both(func(i int, v driver.Device) (err error) {
		cs[i], err = comms(v).NewComm(driver.CommDesc{ID: id, Rank: i, Count: 2})
		return err
	})
	both(func(i int, v driver.Device) error {
		if ok, err := comms(v).CommReady(cs[i]); !ok || err != nil {
			return errors.Join(err, errTest)
		}
		_, _, err := comms(v).CommRank(cs[i])
		return err
	})
	both(func(i int, v driver.Device) (err error) {
		if ss[i], err = v.NewStream(); err == nil {
			ms[i], err = v.Alloc(driver.CommMem, 64)
		}
		return err
	})
	both(func(i int, v driver.Device) error {
		h, err := comms(v).RegisterComm(cs[i], ms[i].Ptr, 64)
		if err == nil {
			err = comms(v).ReleaseCommMemory(cs[i], h)
		}
		if err == nil {
			_, err = comms(v).RegisterComm(cs[i], ms[i].Ptr, 64)
		}
		return err
	})
	both(func(i int, v driver.Device) error { return comms(v).Collect(ss[i], cs[i], []driver.CommOp{sum(ms[i])}) })
	both(func(i int, v driver.Device) (err error) {
		for {
			if err := comms(v).CommError(cs[i]); err != nil {
				return err
			}
			if kids[i], err = comms(v).SplitComm(cs[i], 0, 0); !errors.Is(err, simdriver.ErrBusy) {
				return err
			}
			time.Sleep(10 * time.Microsecond)
		}
	})
	both(func(i int, v driver.Device) error {
		if ok, err := comms(v).CommReady(kids[i]); !ok || err != nil {
			return errors.Join(err, errTest)
		}
		return nil
	})
	both(func(i int, v driver.Device) (err error) {
		rest[i], err = comms(v).ShrinkComm(kids[i], []int{1 - i}, true)
		return err
	})
}

// TestCommSweep runs a scenario repeatedly. Each time another call fails. No call hangs, and
// everything can be freed.
func TestCommSweep(t *testing.T) {
	for _, f := range []simdriver.Fault{{}, {Lost: true}, {AtExecution: true}} {
		for _, device := range []int{0, 1} {
			for n := uint64(1); ; n++ {
				f.N, f.Device = n, device
				d := simdriver.New(simdriver.Config{Devices: 2})
				i := d.Inject(f)
				until(t, begin(func() bool { commScenario(d); return true }))
				i.Remove()
				for _, leak := range d.Leaks() {
					if !strings.HasSuffix(leak, "is open") {
						t.Errorf("%+v: leaks %q", f, leak)
					}
				}
				for j := range 2 {
					v := must(d.Open(j))(t)
					v.Close()
					v.Close()
				}
				if i.Hits() == 0 {
					if n < 25 {
						t.Errorf("%d calls", n)
					}
					break
				}
			}
		}
	}
}
