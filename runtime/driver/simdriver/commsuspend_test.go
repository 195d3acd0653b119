package simdriver_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// suspensions returns the suspension calls of a device.
func suspensions(v driver.Comms) driver.CommSuspension { return v.(driver.CommSuspension) }

func suspend(v driver.Comms, c driver.Comm) error { return suspensions(v).SuspendComm(c) }
func resume(v driver.Comms, c driver.Comm) error  { return suspensions(v).ResumeComm(c) }

// newPlainCluster makes a communicator of n ranks with Plain. Each rank takes 1 MiB.
func newPlainCluster(t testing.TB, n int, c simdriver.Config) *cluster {
	t.Helper()
	c.Devices, c.CommMemory = n, 1<<20
	d, vs := open(t, c)
	x := &cluster{d: d, vs: vs}
	id := must(comms(vs[0]).NewUniqueID())(t)
	for i, v := range vs {
		x.cs = append(x.cs, must(comms(v).NewComm(driver.CommDesc{ID: id, Rank: i, Count: n, Plain: true}))(t))
		x.ss = append(x.ss, stream(t, v))
	}
	x.ready(t, x.cs...)
	return x
}

// free returns the free memory of a rank's device.
func (x *cluster) free(t testing.TB, i int) uint64 {
	t.Helper()
	free, _, err := x.vs[i].(driver.MemInfo).MemInfo()
	check(t, err)
	return free
}

func (x *cluster) stats(t testing.TB, i int) driver.CommStats {
	t.Helper()
	return must(suspensions(comms(x.vs[i])).CommStats(x.cs[i]))(t)
}

func TestSuspendComm(t *testing.T) {
	x := newPlainCluster(t, 3, simdriver.Config{})
	before := x.free(t, 1)
	if s := x.stats(t, 1); s != (driver.CommStats{Suspendable: 1 << 20}) {
		t.Errorf("it has %+v", s)
	}
	m := alloc(t, x.vs[0], driver.CommMem, 4096)
	h := must(comms(x.vs[0]).RegisterComm(x.cs[0], m.Ptr, 4096))(t)
	for range 2 {
		x.each(t, func(i int, v driver.Comms) error { return suspend(v, x.cs[i]) })
		if s, free := x.stats(t, 1), x.free(t, 1); !s.Suspended || s.Suspendable != 1<<20 || free != before+1<<20 {
			t.Errorf("suspended it has %+v, and %d bytes are free, %d before", s, free, before)
		}
		v := comms(x.vs[0])
		refused(t, x.collect(0, driver.CommOp{}), simdriver.ErrSuspended, "ResumeComm")
		refused(t, suspend(v, x.cs[0]), simdriver.ErrSuspended)
		refused(t, second(v.SplitComm(x.cs[0], 0, 0)), simdriver.ErrSuspended)
		refused(t, second(v.RegisterComm(x.cs[0], m.Ptr, 4096)), simdriver.ErrSuspended)
		refused(t, v.ReleaseCommMemory(x.cs[0], h), simdriver.ErrSuspended)
		check(t, v.CommError(x.cs[0]))
		if r, n, err := v.CommRank(x.cs[0]); r != 0 || n != 3 || err != nil {
			t.Errorf("rank %d of %d, %v", r, n, err)
		}
		x.each(t, func(i int, v driver.Comms) error { return resume(v, x.cs[i]) })
		refused(t, resume(v, x.cs[0]), simdriver.ErrInvalidValue, "not suspended")
		if s, free := x.stats(t, 1), x.free(t, 1); s.Suspended || free != before {
			t.Errorf("resumed it has %+v, and %d bytes are free, %d before", s, free, before)
		}
		x.sums(t, 3, 3, 3)
	}
	x.each(t, func(i int, v driver.Comms) error { return suspend(v, x.cs[i]) })
	x.destroy(t) // DestroyComm first resumes both ranks
	if free := x.free(t, 1); free != before+1<<20 {
		t.Errorf("%d bytes are free at the end, %d before", free, before)
	}
}

// TestSuspendCommErrors suspends ranks that are not plain, or have operations in flight, and a rank
// while the other rank makes no call or a different call.
func TestSuspendCommErrors(t *testing.T) {
	x := newCluster(t, 2, simdriver.Config{})
	refused(t, suspend(comms(x.vs[0]), x.cs[0]), driver.ErrUnsupported, "CommDesc.Plain")
	check(t, comms(x.vs[0]).CommError(x.cs[0]))
	x.destroy(t)

	x = newPlainCluster(t, 2, simdriver.Config{})
	x.hold(t, func() {
		a := alloc(t, x.vs[0], driver.DeviceMem, 64)
		op := driver.CommOp{Kind: driver.AllReduce, Type: driver.Int32, Src: a.Ptr, Dst: a.Ptr, Count: 1}
		b := alloc(t, x.vs[1], driver.DeviceMem, 64)
		other := op
		other.Src, other.Dst = b.Ptr, b.Ptr
		check(t, errors.Join(x.collect(0, op), x.collect(1, other)))
		refused(t, suspend(comms(x.vs[0]), x.cs[0]), simdriver.ErrBusy, "in flight")
	})
	x.drain(t)
	x.destroy(t)

	x = newPlainCluster(t, 2, simdriver.Config{}) // the other rank does not call SuspendComm
	v, w := comms(x.vs[0]), comms(x.vs[1])
	done := begin(func() error { return suspend(v, x.cs[0]) })
	check(t, v.AbortComm(x.cs[0]))
	refused(t, until(t, done), simdriver.ErrAborted)
	check(t, w.AbortComm(x.cs[1]))
	x.destroy(t)

	x = newPlainCluster(t, 2, simdriver.Config{}) // the other rank makes another call
	v, w = comms(x.vs[0]), comms(x.vs[1])
	done = begin(func() error { return suspend(v, x.cs[0]) })
	for x.d.Counters().Devices[0].Calls[simdriver.OpSuspendComm] == 0 {
		runtime.Gosched()
	}
	m := alloc(t, x.vs[1], driver.CommMem, 4096)
	first := second(w.NewWindow(x.cs[1], m.Ptr, 4096, false))
	if err := errors.Join(first, until(t, done)); !errors.Is(err, simdriver.ErrMismatch) {
		t.Errorf("ranks that make different calls: %v", err)
	}
	check(t, errors.Join(v.AbortComm(x.cs[0]), w.AbortComm(x.cs[1])))
	x.destroy(t)
}

// TestResumeCommOutOfMemory makes and resumes communicators without enough memory.
func TestResumeCommOutOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newPlainCluster(t, 2, simdriver.Config{Memory: 4 << 20})
		x.each(t, func(i int, v driver.Comms) error { return suspend(v, x.cs[i]) })
		m := alloc(t, x.vs[0], driver.DeviceMem, 4<<20)
		v, w := comms(x.vs[0]), comms(x.vs[1])
		done := begin(func() error { return resume(w, x.cs[1]) })
		synctest.Wait() // w must wait before v fails: later w would find v's rank dead
		refused(t, resume(v, x.cs[0]), driver.ErrOutOfMemory)
		refused(t, w.CommError(x.cs[1]), simdriver.ErrRankGone)
		check(t, w.AbortComm(x.cs[1]))
		refused(t, until(t, done), simdriver.ErrAborted)
		x.destroy(t)

		id := must(v.NewUniqueID())(t)
		c := newComm(t, x.vs[0], id, 0, 1)
		refused(t, second(v.CommReady(c)), driver.ErrOutOfMemory)
		refused(t, v.CommError(c), driver.ErrOutOfMemory)
		check(t, errors.Join(v.DestroyComm(c), x.vs[0].Free(m)))
		if free := x.free(t, 0); free != 4<<20 {
			t.Errorf("%d bytes are free at the end", free)
		}
	})
}

// TestDestroySuspended destroys a suspended rank. The call waits until the other rank resumes, or
// until the destroyed rank is aborted.
func TestDestroySuspended(t *testing.T) {
	for what, f := range map[string]func(x *cluster) error{
		"the other one resumes": func(x *cluster) error { return resume(comms(x.vs[1]), x.cs[1]) },
		"it is aborted":         func(x *cluster) error { return comms(x.vs[0]).AbortComm(x.cs[0]) },
	} {
		t.Run(what, func(t *testing.T) {
			x := newPlainCluster(t, 2, simdriver.Config{})
			x.each(t, func(i int, v driver.Comms) error { return suspend(v, x.cs[i]) })
			done := begin(func() error { return comms(x.vs[0]).DestroyComm(x.cs[0]) })
			for x.d.Counters().Devices[0].Calls[simdriver.OpDestroyComm] == 0 {
				runtime.Gosched()
			}
			check(t, f(x))
			if err := until(t, done); err != nil && !errors.Is(err, simdriver.ErrAborted) {
				t.Errorf("destroy: %v", err)
			}
			check(t, errors.Join(comms(x.vs[1]).AbortComm(x.cs[1]), comms(x.vs[1]).DestroyComm(x.cs[1])))
			if n := x.d.Counters().Devices[0].Comms; n != 0 {
				t.Errorf("%d ranks are left", n)
			}
		})
	}
}
