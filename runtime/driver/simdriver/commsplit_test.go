package simdriver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// with returns a copy of x with the communicators cs.
func (x *cluster) with(cs []driver.Comm) *cluster {
	y := *x
	y.cs = cs
	return &y
}

// sums checks that an AllReduce of the ranks' numbers leaves want[i] on device i.
func (x *cluster) sums(t testing.TB, want ...int32) {
	t.Helper()
	ms := x.numbers(t, 1)
	x.each(t, func(i int, v driver.Comms) error {
		if x.cs[i] == 0 {
			return nil
		}
		return x.collect(i, sum(ms[i]))
	})
	x.drain(t)
	for i, m := range ms {
		if got := host[int32](m)[0]; got != want[i] {
			t.Errorf("device %d has %d, want %d", i, got, want[i])
		}
	}
}

func TestSplitComm(t *testing.T) {
	for mode, c := range commModes {
		t.Run(mode, func(t *testing.T) {
			x := newCluster(t, 5, c)
			kids := make([]driver.Comm, 5)
			split := []struct {
				color, key int
				rank, of   int
			}{{7, 5, 2, 3}, {2, 0, 0, 1}, {7, 5, 1, 3}, {driver.NoColor, 0, 0, 0}, {7, -3, 0, 3}}
			split[0].rank, split[2].rank = 1, 2 // ranks with equal keys stay in order
			for i, v := range x.vs {
				kids[i] = must(comms(v).SplitComm(x.cs[i], split[i].color, split[i].key))(t)
				if i < 4 && kids[0] != 0 && must(comms(x.vs[0]).CommReady(kids[0]))(t) {
					t.Error("ready before all have called")
				}
			}
			if kids[3] != 0 {
				t.Error("a rank without a color gets a child")
			}
			y := x.with(kids)
			y.ready(t, kids...)
			for i, want := range split {
				if kids[i] == 0 {
					continue
				}
				if r, n, err := comms(x.vs[i]).CommRank(kids[i]); r != want.rank || n != want.of || err != nil {
					t.Errorf("rank %d of %d, want %+v; %v", r, n, want, err)
				}
			}
			y.sums(t, 6, 1, 6, 3, 6)
			x.sums(t, 10, 10, 10, 10, 10) // the original communicator still works

			refused(t, second(comms(x.vs[0]).SplitComm(x.cs[0], -2, 0)), simdriver.ErrInvalidValue, "color -2")
			y.each(t, func(i int, v driver.Comms) error {
				if kids[i] == 0 {
					return nil
				}
				return v.DestroyComm(kids[i])
			})
			x.destroy(t)
		})
	}
}

func TestShrinkComm(t *testing.T) {
	for mode, c := range commModes {
		t.Run(mode, func(t *testing.T) {
			x := newCluster(t, 4, c)
			v := comms(x.vs[1])
			for say, exclude := range map[string][]int{
				"rank 4":          {0, 4},
				"rank -1":         {-1},
				"excludes itself": {0, 1},
				"excluded twice":  {2, 0, 2},
				"no rank is":      {},
			} {
				refused(t, second(v.ShrinkComm(x.cs[1], exclude, false)), simdriver.ErrInvalidValue, say)
			}
			kids := make([]driver.Comm, 4)
			shrink := func(i int, exclude []int, abort bool) {
				kids[i] = must(comms(x.vs[i]).ShrinkComm(x.cs[i], exclude, abort))(t)
			}
			// ShrinkComm does not involve the excluded ranks 0 and 2. So they may call SplitComm,
			// the next call of all ranks, before ranks 1 and 3 call ShrinkComm.
			again := make([]driver.Comm, 4)
			split := func(i int) { again[i] = must(comms(x.vs[i]).SplitComm(x.cs[i], 0, 0))(t) }
			split(2)
			shrink(1, []int{2, 0}, false)
			split(0)
			split(1)
			if must(v.CommReady(kids[1]))(t) {
				t.Error("ready before all have called")
			}
			shrink(3, []int{0, 2}, false)
			split(3)
			y, z := x.with(kids), x.with(again)
			y.ready(t, kids...)
			z.ready(t, again...)
			if r, n, err := comms(x.vs[3]).CommRank(kids[3]); r != 1 || n != 2 || err != nil {
				t.Errorf("rank %d of %d, %v", r, n, err)
			}
			y.sums(t, 0, 4, 2, 4)
			z.sums(t, 6, 6, 6, 6)
			x.sums(t, 6, 6, 6, 6)
		})
	}
}

// TestShrinkAbort calls ShrinkComm with abort to exclude a dead rank, while operations of the other
// ranks hang.
func TestShrinkAbort(t *testing.T) {
	for mode, c := range commModes {
		for _, mismatch := range []bool{false, true} {
			if c.LazyComms && mismatch {
				continue
			}
			t.Run(mode, func(t *testing.T) {
				x := newCluster(t, 4, c)
				ms := x.numbers(t, 4)
				x.sums(t, 6, 6, 6, 6)
				var ends []driver.Event
				x.hold(t, func() {
					for i := range 3 {
						op := sum(ms[i])
						if i == 0 && mismatch {
							op.Count = 2
						}
						check(t, x.collect(i, op))
						ends = append(ends, x.record(t, i))
					}
				})
				check(t, x.d.KillComm(x.cs[3], 0))
				pending(t, x.vs[0], ends[0])
				if !mismatch {
					refused(t, second(comms(x.vs[0]).ShrinkComm(x.cs[0], []int{3}, false)), simdriver.ErrRankGone)
				} else {
					pending(t, x.vs[1], ends[1])
					pending(t, x.vs[2], ends[2])
					x.broken(t, simdriver.ErrMismatch, "a count of", 0, 1, 2)
				}
				kids := make([]driver.Comm, 4)
				for i := range 3 {
					kids[i] = must(comms(x.vs[i]).ShrinkComm(x.cs[i], []int{3}, true))(t)
					if ok, err := comms(x.vs[0]).CommReady(kids[0]); ok != (i == 2) || err != nil {
						t.Errorf("ready %v, %v", ok, err)
					}
				}
				x.d.Run()
				for i, e := range ends {
					check(t, wait(t, x.vs[i], e))
					refused(t, x.collect(i, sum(ms[i])), simdriver.ErrAborted)
				}
				y := x.with(kids)
				y.ready(t, kids...)
				y.sums(t, 3, 3, 3, 3)
				x.destroy(t)
				y.sums(t, 3, 3, 3, 3)
			})
		}
	}
}

// TestShrinkOneByOne calls ShrinkComm with abort on one rank after another. The excluded rank then
// sees an error. A rank that has not yet called ShrinkComm sees an error only if the first rank's
// new communicator has ended by then.
func TestShrinkOneByOne(t *testing.T) {
	for how, end := range map[string]func(x *cluster, kid driver.Comm) error{
		"all come":                    nil,
		"it is aborted":               func(x *cluster, kid driver.Comm) error { return comms(x.vs[0]).AbortComm(kid) },
		"it is destroyed":             func(x *cluster, kid driver.Comm) error { return comms(x.vs[0]).DestroyComm(kid) },
		"the rank's process has died": func(x *cluster, kid driver.Comm) error { return x.d.KillComm(kid, 0) },
		"the rank's device is lost":   func(x *cluster, kid driver.Comm) error { return x.d.LoseDevice(0, nil) },
	} {
		t.Run(how, func(t *testing.T) {
			x := newCluster(t, 3, simdriver.Config{})
			shrink := func(i int) driver.Comm {
				t.Helper()
				return must(comms(x.vs[i]).ShrinkComm(x.cs[i], []int{2}, true))(t)
			}
			kids := []driver.Comm{shrink(0), 0}
			check(t, comms(x.vs[1]).CommError(x.cs[1]))
			x.broken(t, simdriver.ErrRankGone, "rank 0", 2)
			if end != nil {
				check(t, end(x, kids[0]))
				x.broken(t, simdriver.ErrRankGone, "rank 0", 1)
				return
			}
			kids[1] = shrink(1)
			x.ready(t, kids...)
			check(t, comms(x.vs[0]).DestroyComm(x.cs[0]))
			check(t, comms(x.vs[0]).CommError(kids[0]))
			check(t, comms(x.vs[1]).CommError(kids[1]))
		})
	}
}

// TestMakingErrors tests SplitComm when another rank leaves, makes a different call, or disagrees
// about an operation.
func TestMakingErrors(t *testing.T) {
	t.Run("gone", func(t *testing.T) {
		for how, f := range map[string]func(x *cluster) error{
			"the communicator was aborted": func(x *cluster) error { return comms(x.vs[2]).AbortComm(x.cs[2]) },
			"it was killed":                func(x *cluster) error { return x.d.KillComm(x.cs[2], 0) },
			"before it called split comm":  func(x *cluster) error { return comms(x.vs[2]).DestroyComm(x.cs[2]) },
			"device 2 is lost":             func(x *cluster) error { return x.d.LoseDevice(2, nil) },
			"the device is closed": func(x *cluster) error {
				if err := x.vs[2].Close(); !errors.Is(err, simdriver.ErrBusy) {
					return err
				}
				return nil
			},
		} {
			x := newCluster(t, 3, simdriver.Config{})
			kid := must(comms(x.vs[0]).SplitComm(x.cs[0], 0, 0))(t)
			if ok, err := comms(x.vs[0]).CommReady(kid); ok || err != nil {
				t.Errorf("ready %v, %v", ok, err)
			}
			check(t, f(x))
			refused(t, second(comms(x.vs[0]).CommReady(kid)), simdriver.ErrRankGone, how)
			refused(t, comms(x.vs[0]).CommError(kid), simdriver.ErrRankGone, how)
			check(t, comms(x.vs[0]).DestroyComm(kid))
		}
	})
	t.Run("mismatch", func(t *testing.T) {
		for say, f := range map[string]func(x *cluster, c driver.Comms, h driver.Comm) error{
			"rank 1 calls shrink comm without [2], and rank 0 split comm": func(x *cluster, c driver.Comms, h driver.Comm) error {
				return second(c.ShrinkComm(h, []int{2}, false))
			},
			"rank 1 calls new window of 64 bytes, symmetric, and rank 0 split comm": func(x *cluster, c driver.Comms, h driver.Comm) error {
				return second(c.NewWindow(h, alloc(t, x.vs[1], driver.CommMem, 64).Ptr, 64, true))
			},
		} {
			x := newCluster(t, 3, simdriver.Config{})
			kid := must(comms(x.vs[0]).SplitComm(x.cs[0], 0, 0))(t)
			refused(t, f(x, comms(x.vs[1]), x.cs[1]), simdriver.ErrMismatch, say)
			x.broken(t, simdriver.ErrMismatch, say, 0, 1, 2)
			refused(t, second(comms(x.vs[0]).CommReady(kid)), simdriver.ErrMismatch, say)
			refused(t, second(comms(x.vs[2]).SplitComm(x.cs[2], 0, 0)), simdriver.ErrMismatch)
			check(t, comms(x.vs[0]).DestroyComm(kid))
			if n := x.d.Counters().Devices[1].Comms; n != 1 {
				t.Errorf("%d communicators", n)
			}
		}
		// If the other ranks disagree about an operation, the communicator that rank 0 is making
		// fails too.
		x := newCluster(t, 3, simdriver.Config{})
		ms := x.numbers(t, 4)
		kid := must(comms(x.vs[0]).SplitComm(x.cs[0], 0, 0))(t)
		wide := sum(ms[2])
		wide.Count = 2
		x.hold(t, func() {
			check(t, x.collect(1, sum(ms[1])))
			check(t, x.collect(2, wide))
		})
		for err := error(nil); err == nil; err = comms(x.vs[0]).CommError(x.cs[0]) {
			time.Sleep(time.Microsecond)
		}
		refused(t, second(comms(x.vs[0]).CommReady(kid)), simdriver.ErrMismatch, "a count of")
	})
	t.Run("a child destroyed before it is made", func(t *testing.T) {
		x := newCluster(t, 2, simdriver.Config{LingerComms: true})
		kid := must(comms(x.vs[0]).SplitComm(x.cs[0], 0, 0))(t)
		check(t, comms(x.vs[0]).DestroyComm(kid))
		refused(t, comms(x.vs[0]).CommError(x.cs[0]), simdriver.ErrAborted, "was aborted")
		refused(t, second(comms(x.vs[1]).SplitComm(x.cs[1], 0, 0)), simdriver.ErrRankGone, "rank 0, on device 0")
		for i := range x.vs { // the second DestroyComm does not wait for the first rank, which was aborted
			check(t, comms(x.vs[i]).DestroyComm(x.cs[i]))
		}
	})
}
