package collective_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestCollectives runs the conformance suite's tests of collectives with simulated communicators
// that connect lazily, or whose close waits for the other ranks.
func TestCollectives(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	for name, c := range map[string]simdriver.Config{
		"lazy":           {Devices: 4, Caps: &cuda, LazyComms: true},
		"lingering":      {Devices: 2, Caps: &cuda, LingerComms: true, CommMemory: 1 << 20},
		"lazy, like HIP": {Devices: 2, Caps: &hip, LazyComms: true, LingerComms: true},
	} {
		t.Run(name, func(t *testing.T) {
			gputest.RunCollectives(t, func(t *testing.T) gputest.Harness {
				d := newSim(t, c)
				return gputest.Harness{Driver: d, Comms: true, Calls: callsOf(d), Brief: true}
			})
		})
	}
}

// reduceAll submits an all-reduce on all ranks. It returns a semaphore for each rank, which is at 1
// when the rank's part is done.
func reduceAll(t *testing.T, comms []*collective.Communicator, bufs []*gpu.Buffer) (done []*gpu.Semaphore) {
	t.Helper()
	done = semaphores(t, len(comms))
	for i, c := range comms {
		must(t, submitGroup(c, gpu.Order{Signal: pts(done[i], 1)}, collective.AllReduce(bufs[i].All(), bufs[i].All(), collective.Float32, collective.Sum())))
	}
	return done
}

// TestDeadRank checks that an all-reduce fails on all other ranks if one rank dies: when the
// library reports the dead rank, when only the timeout finds it, and when the dead rank's device is
// lost.
func TestDeadRank(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		for _, way := range []struct {
			name   string
			notice time.Duration
			lose   bool
		}{{"told", time.Millisecond, false}, {"not told", -1, false}, {"with its device", 0, true}} {
			t.Run(fmt.Sprintf("%d ranks, %s", n, way.name), func(t *testing.T) {
				rounds, limit := 20, time.Minute
				if n == 2 || raceEnabled {
					rounds = 5
				}
				if way.notice < 0 { // the library does not report the dead rank, so only the timeout finds it
					rounds, limit = 5, 200*time.Millisecond
				}
				for round := range rounds {
					d := newSim(t, simdriver.Config{Devices: n})
					g, comms := openCommunicators(t, d, n, collective.Options{Timeout: limit})
					var bufs []*gpu.Buffer
					for _, dev := range g.Devices() {
						bufs = append(bufs, allocate(t, dev, 4096))
					}
					dead := round % n
					must(t, d.StallDevice(dead)) // so that no rank can finish the all-reduce
					done := reduceAll(t, comms, bufs)
					if way.lose {
						must(t, d.LoseDevice(dead, errors.New("fell off the bus")))
					} else {
						must(t, d.KillComm(d.Comms(dead)[0], way.notice))
					}
					must(t, d.ResumeDevice(dead))
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					for i, s := range done {
						err := s.Wait(ctx, 1)
						if i != dead && err == nil || ctx.Err() != nil {
							t.Fatalf("round %d, rank %d of %d with rank %d dead: %v", round, i, n, dead, err)
						}
						var of *collective.Error
						if i != dead && !errors.As(err, &of) {
							t.Errorf("rank %d: %v is not a communicator's failure", i, err)
						}
					}
					cancel()
					for i, c := range comms { // no close may hang, although one rank is dead
						if err := c.Close(); err != nil && !(way.lose && i == dead) {
							t.Errorf("close of rank %d: %v", i, err)
						}
					}
					g.Close() // returns the loss of the device, if any
				}
			})
		}
	}
}

// TestCollectAllocs tests B142: submitting collectives repeatedly allocates no Go memory.
func TestCollectAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := newSim(t, simdriver.Config{})
	g, comms := openCommunicators(t, d, 1, collective.Options{Timeout: time.Minute})
	b := allocate(t, g.Devices()[0], 4096)
	s := semaphores(t, 1)[0]
	ctx := minute(t)
	v := uint64(0)
	one := func() {
		w, sig := [1]gpu.Point{{Semaphore: s, Value: v}}, [1]gpu.Point{{Semaphore: s, Value: v + 1}}
		err := comms[0].Device().Queue(0).Submit(gpu.Order{Wait: w[:], Signal: sig[:]}, comms[0].GroupContext(ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.PreMulSum(2)), collective.AllGather(b.All(), b.All(), collective.Uint8)))
		if v++; err != nil {
			t.Fatal(err)
		}
		for { // poll, because Wait may allocate a Go channel
			if now, err := s.Query(); now == v || err != nil {
				break
			}
			runtime.Gosched()
		}
	}
	for range 200 {
		one()
	}
	if n := testing.AllocsPerRun(200, one); n != 0 {
		t.Errorf("%v allocations a submission", n)
	}
}

// TestGroupSizes submits and records groups of up to 5 operations, which fit in an Op, and longer
// groups. Each use of an Op must do each operation once.
func TestGroupSizes(t *testing.T) {
	g, comms := openCommunicators(t, newSim(t, simdriver.Config{}), 1, collective.Options{Timeout: time.Minute})
	dev := g.Devices()[0]
	for _, n := range []int{1, 5, 6, 20} {
		b := allocate(t, dev, uint64(n))
		var ops []collective.Operation
		for i := range n {
			part := b.Range(uint64(i), 1)
			ops = append(ops, collective.AllReduce(part, part, collective.Uint8, collective.PreMulSum(float64(i+2))))
		}
		op := comms[0].Group(ops...)
		clear(ops) // the Op has its own copy
		c := commandBuffer(t, dev, gpu.StreamMode)
		recorded(t)(c.Add(op))
		must(t, c.End())
		s := dev.Queue(0).NewStream()
		must(t, s.Do(gpu.Fill(b.All(), []byte{1}), op, gpu.Execute(c)))
		must(t, s.Wait(minute(t)))
		for i, got := range bytesOf(t, dev.Queue(0), b) {
			if got != byte((i+2)*(i+2)) {
				t.Errorf("%d operations: byte %d is %d", n, i, got)
			}
		}
	}
}

// TestNoComms checks that calls that need communicators return ErrUnsupported if the driver has
// none.
func TestNoComms(t *testing.T) {
	caps := simdriver.CUDACaps()
	caps.Comms = false
	d := newSim(t, simdriver.Config{Caps: &caps})
	dev := openDevice(t, d, 0, gpu.Options{})
	if _, err := collective.NewID(dev); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("an id: %v", err)
	}
	if _, err := collective.New(t.Context(), dev, collective.Options{ID: collective.ID{1}, Count: 1}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a communicator: %v", err)
	}
	if _, err := dev.Alloc(gpu.CommMem, 64); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("memory: %v", err)
	}
}

// TestMismatch checks that an all-reduce with different sizes on two ranks fails on both.
func TestMismatch(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	g, comms := openCommunicators(t, d, 2, collective.Options{})
	done := semaphores(t, 2)
	for i, c := range comms {
		b := allocate(t, g.Devices()[i], 64)
		r := b.Range(0, uint64(32+32*i))
		must(t, c.Device().Queue(0).Submit(gpu.Order{Signal: pts(done[i], 1)}, c.GroupContext(t.Context(), collective.AllReduce(r, r, collective.Float32, collective.Sum()))))
	}
	for i, s := range done {
		if err := s.Wait(minute(t), 1); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// TestFaults runs scenario twice for each driver call, and makes the call fail. In one of the two
// runs the device is also lost with the call. Short and race tests try every seventh call. No run
// may hang, nothing may leak, and every signal must be reached or fail.
func TestFaults(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	for name, caps := range map[string]*driver.Caps{"like CUDA": &cuda, "like HIP": &hip} {
		t.Run(name, func(t *testing.T) {
			step := uint64(1)
			if testing.Short() || raceEnabled {
				step = 7
			}
			d := newSim(t, simdriver.Config{Devices: 2, Caps: caps})
			if err := scenario(minute(t), d, true); err != nil {
				t.Fatal(err)
			}
			calls := d.Calls()
			for _, lost := range []bool{false, true} {
				for n := uint64(1); n <= calls; n += step {
					d := newSim(t, simdriver.Config{Devices: 2, Caps: caps, Faults: []simdriver.Fault{{Device: simdriver.AnyDevice, N: n, Lost: lost}}})
					if err := scenario(minute(t), d, false); err != nil {
						t.Fatalf("call %d of %d, lost %v: %v", n, calls, lost, err)
					}
				}
			}
		})
	}
}

// scenario uses many features of communicators on two devices. If sound is true, no driver call
// fails, and scenario returns the first error. If sound is false, it returns an error only if a
// signal is neither reached nor fails.
func scenario(ctx context.Context, d driver.Driver, sound bool) error {
	opt := gpu.Options{Events: 2, Spin: -1, Poll: -1}
	g, err := gpu.OpenGroup(d, opt)
	if err != nil {
		return failing(sound, err)
	}
	defer g.Close()
	making, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	limit := 30 * time.Millisecond
	if sound {
		limit = time.Minute
	}
	comms, err := collective.NewAll(making, g.Devices(), collective.Options{Timeout: limit})
	if err != nil {
		return failing(sound, err)
	}
	plain, err := collective.NewAll(making, g.Devices(), collective.Options{Timeout: limit, Plain: true})
	if err != nil {
		return failing(sound, err)
	}
	var mu sync.Mutex
	var signals []*gpu.Semaphore
	var first error
	note := func(err error) bool {
		mu.Lock()
		defer mu.Unlock()
		if err != nil && first == nil {
			first = err
		}
		return err == nil
	}
	sem := func() *gpu.Semaphore {
		s, _ := gpu.NewSemaphore(0)
		mu.Lock()
		defer mu.Unlock()
		signals = append(signals, s)
		return s
	}
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() {
			dev, rest := g.Devices()[i], plain[i]
			defer rest.Abort(nil)
			b, err := dev.Alloc(gpu.CommMem, 64)
			if !note(err) {
				c.Abort(err) // otherwise the other rank waits until its timeout
				return
			}
			defer b.Close()
			all := b.All()
			sum := collective.AllReduce(all, all, collective.Float32, collective.Sum())
			at := sem()
			note(dev.Queue(0).Submit(gpu.Order{Signal: pts(at, 1)}, gpu.Fill(all, []byte{1})))
			note(c.Device().Queue(0).Submit(order(at, 1, at, 2), c.GroupContext(ctx, sum, collective.SendReceive(all, all, collective.Uint8, -1, -1))))
			if cb, err := dev.NewCommandBuffer(gpu.CommandOptions{}); note(err) {
				cb.Add(c.Group(sum))
				cb.Add(gpu.Copy(b.Range(0, 4), b.Range(8, 4)))
				cb.Add(c.Group(sum))
				if note(cb.End()) {
					note(dev.Queue(0).Submit(order(at, 2, at, 3), gpu.Execute(cb)))
				} else {
					at.Fail(errors.New("no recording"))
				}
				cb.Close()
			} else {
				at.Fail(err)
			}
			if !note(at.Wait(ctx, 3)) {
				c.Abort(nil)
				return
			}
			split, cancel := context.WithTimeout(ctx, max(limit, 50*time.Millisecond))
			defer cancel()
			if part, err := c.Split(split, 0, 0); note(err) {
				s := sem()
				note(part.Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 3)}, part.GroupContext(ctx, sum)))
				note(s.Wait(ctx, 3))
				if m, err := part.Register(b); note(err) {
					note(m.Close())
				}
				note(part.Close())
			}
			if !note(rest.Suspend(split)) {
				return
			}
			_, err = rest.Stats()
			if note(err) && note(rest.Resume(split)) {
				s := sem()
				note(rest.Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 3)}, rest.GroupContext(ctx, sum)))
				note(s.Wait(ctx, 3))
			}
			if note(rest.Suspend(split)) {
				note(rest.Shutdown(split))
			}
		})
	}
	wg.Wait()
	for i, s := range signals {
		if err := s.Wait(ctx, 3); ctx.Err() != nil {
			return fmt.Errorf("signal %d never ends: %w\n%s", i, err, dump(g.Devices()...))
		}
	}
	if sound {
		return errors.Join(first, g.Close())
	}
	return nil
}

func failing(sound bool, err error) error {
	if sound {
		return err
	}
	return nil
}

// TestRandomGroups submits groups on several ranks. Each group waits for nothing, for the host or
// for work of a queue. In some rounds the ranks suspend and resume the communicator. In some rounds
// one rank is aborted or closed, or its device is closed. Every group must end. If no rank is
// aborted or closed, and no device is closed, every group must end without an error.
func TestRandomGroups(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		seed := uint64(time.Now().UnixNano()) + uint64(round)
		r := rand.New(rand.NewPCG(seed, 0))
		n := 2 + r.IntN(3)
		how, whom := r.IntN(4), r.IntN(n)
		c := simdriver.Config{Devices: n, LazyComms: r.IntN(2) == 0, LingerComms: how == 0 || how == 3}
		if r.IntN(2) == 0 {
			caps := simdriver.HIPCaps()
			c.Caps = &caps
		}
		d := newSim(t, c)
		var indices []int
		for i := range n {
			indices = append(indices, i)
		}
		g, err := gpu.OpenGroup(d, gpu.Options{Queues: 2}, indices...)
		must(t, err)
		rest := r.IntN(40) // the ranks suspend before the group with this number; never if it is 20 or more
		comms, err := collective.NewAll(minute(t), g.Devices(), collective.Options{Timeout: time.Second, Plain: rest < 20})
		must(t, err)
		const groups = 20
		host := semaphores(t, 1)[0]
		done := make([][]*gpu.Semaphore, n)
		waits := make([]int, groups) // how each group waits, the same on all ranks
		for i := range waits {
			waits[i] = r.IntN(3)
		}
		var wg sync.WaitGroup
		for i, ch := range comms {
			done[i] = semaphores(t, groups)
			b := allocate(t, g.Devices()[i], 256)
			pace := rand.New(rand.NewPCG(seed, uint64(i+1)))
			wg.Go(func() {
				for k, s := range done[i] {
					if k == rest {
						ctx := in(t, 10*time.Second)
						err := ch.Suspend(ctx)
						if err == nil {
							err = ch.Resume(ctx)
						}
						if how == 3 && err != nil {
							t.Errorf("seed %d, rank %d of %d: %v", seed, i, n, err)
						}
					}
					var o gpu.Order
					switch o.Signal = pts(s, 1); {
					case waits[k] == 1:
						o.Wait = pts(host, uint64(k+1))
					case waits[k] == 2 && k > 0:
						link, _ := gpu.NewSemaphore(0)
						g.Devices()[i].Queue(k).Submit(gpu.Order{Wait: pts(done[i][k-1], 1), Signal: pts(link, 1)}, gpu.Fill(b.Range(0, 4), []byte{byte(k)}))
						o.Wait = pts(link, 1)
					}
					submitGroup(ch, o, collective.AllReduce(b.Range(64, 64), b.Range(64, 64), collective.Int32, collective.Max()))
					// This sleep and the next two only vary the interleavings. The test passes
					// without them.
					time.Sleep(time.Duration(pace.IntN(100)) * time.Microsecond)
				}
			})
		}
		wg.Go(func() {
			for k := range groups {
				host.Signal(uint64(k + 1))
				time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
			}
		})
		wg.Go(func() {
			time.Sleep(time.Duration(seed%3000) * time.Microsecond)
			switch how {
			case 0:
				comms[whom].Abort(nil)
			case 1:
				comms[whom].Close()
			case 2:
				g.Devices()[whom].Close()
			}
		})
		wg.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		for i := range done {
			for k, s := range done[i] {
				err := s.Wait(ctx, 1)
				if ctx.Err() != nil {
					t.Fatalf("seed %d, how %d, rank %d of %d, group %d: does not end: %v\n%s", seed, how, i, n, k, err, dump(g.Devices()...))
				}
				if how == 3 && err != nil {
					t.Errorf("seed %d, rank %d of %d, group %d: %v", seed, i, n, k, err)
				}
			}
		}
		cancel()
		if err := g.Close(); err != nil {
			t.Fatalf("seed %d, how %d, whom %d of %d, %+v: %v", seed, how, whom, n, c, err)
		}
	}
}

// TestRanks runs gputest.CheckRank on all ranks of communicators with 1 and 3 ranks.
func TestRanks(t *testing.T) {
	for _, n := range []int{1, 3} {
		_, comms := openCommunicators(t, newSim(t, simdriver.Config{Devices: n}), n, collective.Options{})
		var wg sync.WaitGroup
		for i, c := range comms {
			wg.Go(func() {
				t.Run(fmt.Sprintf("rank %d of %d", i, n), func(t *testing.T) { gputest.CheckRank(t, in(t, 5*time.Minute), c) })
			})
		}
		wg.Wait()
	}
}

// TestPoolOfRegisteredMemory checks that an all-reduce works on memory of a pool that was made over
// a registered buffer.
func TestPoolOfRegisteredMemory(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	g, comms := openCommunicators(t, d, 2, collective.Options{})
	done := semaphores(t, 2)
	got := make([][]byte, 2)
	for i, c := range comms {
		dev := g.Devices()[i]
		slab, err := dev.Alloc(gpu.CommMem, 1<<20)
		must(t, err)
		_, err = c.Register(slab)
		must(t, err)
		pool, err := dev.NewPool(gpu.PoolOptions{Over: slab})
		must(t, err)
		q, s := dev.Queue(0), done[i]
		b, err := testkit.AllocIn(q, gpu.Order{Signal: pts(s, 1)}, pool, 64)
		must(t, err)
		got[i] = make([]byte, 64)
		must(t, q.Submit(order(s, 1, s, 2), gpu.Fill(b.All(), []byte{byte(i + 1)})))
		must(t, c.Device().Queue(0).Submit(order(s, 2, s, 3), c.GroupContext(t.Context(), collective.AllReduce(b.All(), b.All(), collective.Uint8, collective.Sum()))))
		must(t, q.Submit(order(s, 3, s, 4), gpu.Download(got[i], b.All())))
		must(t, q.Submit(order(s, 4, s, 5), gpu.Free(b)))
	}
	for i, s := range done {
		must(t, s.Wait(minute(t), 5))
		if got[i][0] != 3 || got[i][63] != 3 {
			t.Errorf("rank %d has %v", i, got[i])
		}
	}
}
