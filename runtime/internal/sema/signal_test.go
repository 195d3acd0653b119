package sema_test

import (
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestLongChain releases a chain in which each signal releases the next. The stack must not grow
// with the length of the chain.
func TestLongChain(t *testing.T) {
	n := 100_000
	if raceEnabled { // the race detector is slow, and finds no more in a longer chain
		n = 10_000
	}
	// A recursion over 100,000 links would take more stack than 1 MiB.
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	// chain links the semaphore first to a new semaphore, the new semaphore to another, and so on.
	// It returns the last semaphore.
	chain := func(t *testing.T, first *gpu.Semaphore, links int) *gpu.Semaphore {
		t.Helper()
		for range links {
			next, err := gpu.NewSemaphore(0)
			must(t, err)
			first.Link(1, next, 1)
			first = next
		}
		return first
	}
	start := func(t *testing.T) (first, last *gpu.Semaphore) {
		first = semaphores(t, 1)[0]
		return first, chain(t, first, n)
	}
	open := func(t *testing.T) (*simdriver.Driver, *gpu.Queue) {
		d := newSim(t, simdriver.Config{Devices: 1})
		return d, openDevice(t, d, 0, gpu.Options{}).Queue(0)
	}
	t.Run("B50 signalled by the host", func(t *testing.T) {
		first, last := start(t)
		must(t, first.Signal(1))
		must(t, last.Wait(minute(t), 1))
	})
	t.Run("B50 failed, closed", func(t *testing.T) {
		first, last := start(t)
		first.Fail(io.EOF)
		if err := last.Wait(minute(t), 1); err != io.EOF {
			t.Error(err)
		}
		first, last = start(t)
		must(t, first.Close())
		if err := last.Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("B50 the middle has failed, or is past the value", func(t *testing.T) {
		first, last := start(t)
		last = chain(t, last, n)
		last.Fail(io.EOF)
		must(t, first.Signal(1))
		if err := last.Wait(minute(t), 1); err != io.EOF {
			t.Error(err)
		}
		first, past := start(t)
		must(t, past.Signal(1))
		last = chain(t, past, 1)
		past.Link(2, last, 2)
		must(t, first.Signal(1))
		if err := last.Wait(minute(t), 2); !errors.Is(err, gpu.ErrValue) {
			t.Error(err)
		}
	})
	t.Run("B50 signalled by a device", func(t *testing.T) {
		_, q := open(t)
		first, last := start(t)
		must(t, q.Submit(gpu.Order{Signal: pts(first, 1)}, gpu.Fill(allocate(t, q.Device(), 64).All(), []byte{1})))
		must(t, last.Wait(minute(t), 1))
	})
	t.Run("B50 failed by a lost device", func(t *testing.T) {
		d, q := open(t)
		first, last := start(t)
		d.StallDevice(0)
		must(t, q.Submit(gpu.Order{Signal: pts(first, 1)}, gpu.Fill(allocate(t, q.Device(), 64).All(), []byte{1})))
		d.LoseDevice(0, nil)
		if err := last.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
	})
	t.Run("B50 with work between the links", func(t *testing.T) {
		_, q := open(t)
		first := semaphores(t, 1)[0]
		last := first
		for range n / 10 {
			next := semaphores(t, 1)[0]
			must(t, q.Submit(order(last, 1, next, 1), gpu.Barrier()))
			last = chain(t, next, 1)
		}
		must(t, first.Signal(1))
		must(t, last.Wait(minute(t), 1))
	})
	t.Run("B50 work alone, signalled or failed", func(t *testing.T) {
		for _, err := range []error{nil, io.EOF} {
			_, q := open(t)
			first := semaphores(t, 1)[0]
			last := first
			for range n / 10 {
				next := semaphores(t, 1)[0]
				must(t, q.Submit(order(last, 1, next, 1), gpu.Barrier()))
				last = next
			}
			if err != nil {
				first.Fail(err)
			} else {
				must(t, first.Signal(1))
			}
			if got := last.Wait(minute(t), 1); !errors.Is(got, err) {
				t.Error(got)
			}
		}
	})
	t.Run("B50 work between links when its device closes, is lost", func(t *testing.T) {
		for _, lose := range []bool{false, true} {
			d, q := open(t)
			last := semaphores(t, 1)[0]
			for range n / 10 {
				next := semaphores(t, 1)[0]
				must(t, q.Submit(order(last, 1, next, 1), gpu.Barrier()))
				last = chain(t, next, 1)
			}
			if lose {
				d.LoseDevice(0, nil)
				q.Flush()
			}
			q.Device().Close()
			if err := last.Wait(minute(t), 1); err == nil {
				t.Error("no failure")
			}
		}
	})
}

// TestRuns makes one or two streams signal many values of one semaphore. Much of this work is
// retired together. The semaphore must reach the last value, or fail if a value is signalled twice.
func TestRuns(t *testing.T) {
	type signal struct {
		queue int
		value uint64
	}
	interleaved := func(n int) (list []signal) {
		for v := range uint64(n) {
			list = append(list, signal{int(v) % 2, v + 1})
		}
		return list
	}
	for name, c := range map[string]struct {
		list []signal
		bad  []int // nil, or the indexes (in list) of two signals of one value: one fails
	}{
		"one stream":            {list: []signal{{0, 1}, {0, 2}, {0, 3}, {0, 5}, {0, 9}}},
		"interleaved":           {list: interleaved(300)},
		"one above the other":   {list: []signal{{0, 1}, {0, 2}, {1, 3}, {1, 4}}},
		"backwards on a stream": {list: []signal{{0, 5}, {0, 3}, {0, 4}, {0, 6}}},
		"a value twice":         {list: []signal{{0, 1}, {0, 2}, {0, 3}, {1, 2}}, bad: []int{1, 3}},
		"the last one twice":    {list: []signal{{0, 1}, {0, 2}, {0, 3}, {1, 3}}, bad: []int{2, 3}},
		"twice on a stream":     {list: []signal{{0, 1}, {0, 2}, {0, 2}, {1, 7}}, bad: []int{1, 2}},
	} {
		for first := range 2 {
			eachCaps(t, "B5 B83 "+name+", "+[]string{"the first stream before", "the second stream before"}[first], func(t *testing.T, caps driver.Caps) {
				d := newSim(t, simdriver.Config{Caps: &caps})
				dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
				b, s, host := allocate(t, dev, 64), semaphores(t, 1)[0], semaphores(t, 1)[0]
				streams := d.Streams(0)
				var own []*gpu.Semaphore
				count, last := [2]uint64{}, uint64(0)
				d.StallDevice(0)
				for i, x := range c.list {
					o := gpu.Order{Signal: pts(s, x.value)}
					if slices.Contains(c.bad, i) {
						own = append(own, semaphores(t, 1)[0])
						o.Signal = append(o.Signal, gpu.Point{Semaphore: own[len(own)-1], Value: 1})
					}
					must(t, dev.Queue(x.queue).Submit(o, gpu.Fill(b.Range(uint64(x.queue), 1), []byte{1})))
					count[x.queue]++
					last = max(last, x.value)
				}
				ends := semaphores(t, 2)
				for i := range ends {
					must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(ends[i], 1)}, gpu.Fill(b.Range(uint64(i), 1), []byte{2})))
				}
				must(t, dev.Queue(0).Submit(order(s, last, host, 1), gpu.HostCall(func() error { return nil })))
				eventually(t, "all is issued", func() bool { return dev.Stats().InFlight == len(c.list)+2 }, dev)
				d.StallStream(streams[1-first])
				d.ResumeDevice(0)
				// Wait until all work of one stream has been retired.
				must(t, ends[first].Wait(minute(t), 1))
				d.ResumeStream(streams[1-first])
				must(t, ends[1-first].Wait(minute(t), 1))
				v, err := s.Query()
				if len(c.bad) == 0 {
					if v != last || err != nil {
						t.Errorf("at %d, %v; want %d", v, err, last)
					}
					must(t, host.Wait(minute(t), 1))
					return
				}
				if !errors.Is(err, gpu.ErrValue) {
					t.Errorf("at %d, %v; one value was signalled twice", v, err)
				}
				failed := 0
				for _, own := range own {
					if err := own.Wait(minute(t), 1); errors.Is(err, gpu.ErrValue) {
						failed++
					} else if err != nil {
						t.Error(err)
					}
				}
				if failed != 1 {
					t.Errorf("%d of the two submissions with the same value have failed", failed)
				}
			})
		}
	}
	eachCaps(t, "B29 B120 waiters of values inside a run are released with it", func(t *testing.T, caps driver.Caps) {
		const n = 200
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
		d.StallDevice(0)
		for v := range uint64(n) {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, v+1)}, gpu.Fill(b.All(), []byte{1})))
		}
		told := make(chan error, 2*n)
		for v := range uint64(n) {
			s.OnReached(v+1, func(err error) { told <- err })
		}
		d.ResumeDevice(0)
		for range n {
			must(t, <-told)
		}
		if len(told) > 0 {
			t.Error("the function was called twice")
		}
	})
	eachCaps(t, "B83 a value that the host has passed fails inside a run", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		b, s, end := allocate(t, dev, 64), semaphores(t, 1)[0], semaphores(t, 1)[0]
		d.StallDevice(0)
		for v := range uint64(10) {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, v+1)}, gpu.Fill(b.All(), []byte{1})))
		}
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(end, 1)}, gpu.Fill(b.All(), []byte{1})))
		eventually(t, "all is issued", func() bool { return dev.Stats().InFlight == 11 }, dev)
		must(t, s.Signal(4))
		d.ResumeDevice(0)
		must(t, end.Wait(minute(t), 1))
		if v, err := s.Query(); v != 4 || !errors.Is(err, gpu.ErrValue) {
			t.Errorf("at %d, %v", v, err)
		}
	})
}

// mistakes are the ways in which work on a device can signal a value that is not above the
// semaphore's value. The device is stalled. Each function submits work with the order o, which
// signals value 1 of s, and lets the host or other work signal s too.
var mistakes = map[string]func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order){
	"a value that is reached while the work is parked": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		gate := semaphores(t, 1)[0]
		o.Wait = pts(gate, 1)
		must(t, dev.Queue(0).Submit(o, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, s.Signal(3))
		must(t, gate.Signal(1))
	},
	"a value that the host passes meanwhile": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		must(t, dev.Queue(0).Submit(o, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, s.Signal(3))
	},
	"a value that the host reaches meanwhile": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		must(t, dev.Queue(0).Submit(o, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, s.Signal(1))
	},
	"a value twice": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, dev.Queue(0).Submit(o, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
	},
}

// TestNotAbove tests B83: work signals a value that is not above the semaphore's value. The work's
// signals must fail. Waits for a later value, and queries of the semaphore, must get the error when
// the work has completed.
func TestNotAbove(t *testing.T) {
	for mistake, submit := range mistakes {
		run := func(t *testing.T, d *simdriver.Driver, waits func(t *testing.T, other *gpu.Device, s *gpu.Semaphore) <-chan error) {
			dev, other := openDevice(t, d, 0, gpu.Options{Queues: 2, Spin: -1, Poll: -1}), openDevice(t, d, 1, gpu.Options{Spin: -1, Poll: -1})
			s := semaphores(t, 2)
			d.StallDevice(0)
			submit(t, dev, s[0], gpu.Order{Signal: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}})
			ended := waits(t, other, s[0])
			inFlight(t, dev, map[bool]int{true: 2, false: 1}[mistake == "a value twice"])
			time.Sleep(time.Second) // time of the synctest bubble: the waiters have parked by now
			d.ResumeDevice(0)
			ends(t, ended, gpu.ErrValue)
			if mistake == "a value twice" { // either of the two signals may be the one that fails
				return
			}
			if err := s[1].Wait(minute(t), 1); !errors.Is(err, gpu.ErrValue) {
				t.Errorf("another signal of the work: %v", err)
			}
		}
		for name, wait := range waiters {
			t.Run(mistake+"; "+name, func(t *testing.T) {
				onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
					run(t, d, func(t *testing.T, other *gpu.Device, s *gpu.Semaphore) <-chan error { return wait(t, other, s, 9) })
				})
			})
		}
		t.Run(mistake+"; a query", func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				run(t, d, func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore) <-chan error {
					ended := make(chan error, 1)
					go func() {
						var err error
						for ctx := minute(t); err == nil && ctx.Err() == nil; _, err = s.Query() {
							time.Sleep(time.Millisecond)
						}
						ended <- err
					}()
					return ended
				})
			})
		})
	}
}
