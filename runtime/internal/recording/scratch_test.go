package recording_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// passing records two copies of 64 bytes: from a binding to scratch memory, and from there to
// another binding. Unless the parameter between is nil, a host call between the two copies calls
// it.
func passing(t testing.TB, dev *gpu.Device, m gpu.Mode, between func() error) *gpu.CommandBuffer {
	t.Helper()
	return passingBehind(t, dev, m, nil, between)
}

// passingBehind is like passing, with a host call in front, unless the parameter before is nil.
func passingBehind(t testing.TB, dev *gpu.Device, m gpu.Mode, before, between func() error) *gpu.CommandBuffer {
	t.Helper()
	c := commandBuffer(t, dev, m)
	if before != nil {
		recorded(t)(c.Add(gpu.HostCall(before)))
	}
	in, err := c.Binding()
	must(t, err)
	out, err := c.Binding()
	must(t, err)
	b, err := c.Scratch(64)
	must(t, err)
	recorded(t)(c.Add(gpu.Copy(b.All(), in.Range(0, 64))))
	recorded(t)(c.Add(gpu.Barrier()))
	if between != nil {
		recorded(t)(c.Add(gpu.HostCall(between)))
	}
	recorded(t)(c.Add(gpu.Copy(out.Range(0, 64), b.All())))
	must(t, c.End())
	return c
}

// eachScratch runs a test on each capability set, in a synctest bubble, with recordings of one part
// and of several.
func eachScratch(t *testing.T, test func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, record func(m gpu.Mode) *gpu.CommandBuffer)) {
	call := func() error { return nil }
	for what, calls := range map[string][2]func() error{"one part": {}, "three parts": {nil, call}, "a host call first": {call, nil}, "two host calls": {call, call}} {
		t.Run(what, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
				test(t, d, dev, func(m gpu.Mode) *gpu.CommandBuffer { return passingBehind(t, dev, m, calls[0], calls[1]) })
				must(t, dev.Close())
			})
		})
	}
}

// filled allocates 64 bytes and fills them with a value.
func filled(t testing.TB, dev *gpu.Device, v byte) *gpu.Buffer {
	t.Helper()
	b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{v})))
	must(t, s.Wait(minute(t), 1))
	return b
}

// holding checks the first and the last byte of a buffer of 64 bytes after some points.
func holding(t testing.TB, what string, b *gpu.Buffer, want byte, after ...gpu.Point) {
	t.Helper()
	if got := bytesOf(t, b.Device().Queue(0), b, after...); got[0] != want || got[63] != want {
		t.Errorf("%s: %d to %d, want %d", what, got[0], got[63], want)
	}
}

// TestScratchOrder executes a recording with scratch memory on several queues. Most executions wait
// for the one that is submitted next, and some fail.
func TestScratchOrder(t *testing.T) {
	eachScratch(t, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, record func(m gpu.Mode) *gpu.CommandBuffer) {
		for _, m := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
			const n = 12
			c, s, begin := record(m), semaphores(t, n), semaphores(t, 1)[0]
			var ins, outs []*gpu.Buffer
			doomed := semaphores(t, 1)[0]
			for i := range n { // most wait for the next execution
				ins, outs = append(ins, filled(t, dev, byte(i)+1)), append(outs, allocate(t, dev, 64))
				o := gpu.Order{Wait: pts(begin, 1), Signal: pts(s[i], 1)}
				if i+1 < n && i%4 != 2 {
					o.Wait = pts(s[i+1], 1)
				}
				if i%4 == 3 {
					o.Wait = append(o.Wait, gpu.Point{Semaphore: doomed, Value: 1})
				}
				must(t, dev.Queue(i).Submit(o, gpu.Execute(c, ins[i].All(), outs[i].All())))
			}
			must(t, begin.Signal(1))
			doomed.Fail(io.EOF)
			for i := range n {
				err := s[i].Wait(minute(t), 1)
				if i%4 == 3 {
					if !errors.Is(err, io.EOF) {
						t.Errorf("%d: %v", i, err)
					}
					continue
				}
				if i%4 != 2 || err != nil {
					must(t, err)
				}
				holding(t, "an execution", outs[i], byte(i)+1)
			}
		}
	})
}

// TestScratchAfterBroken executes a recording with scratch memory again after a failed execution.
// In one case the driver has refused the second copy of the failed execution while the first copy
// was in flight. In the other case the host call of the failed execution has failed.
func TestScratchAfterBroken(t *testing.T) {
	for _, between := range []func() error{nil, func() error { return io.ErrShortWrite }} {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
			fail := between != nil
			var call func() error
			if fail {
				call = func() error {
					if fail {
						fail = false
						return between()
					}
					return nil
				}
			}
			c := passing(t, dev, gpu.StreamMode, call)
			s, a, b, out := semaphores(t, 2), filled(t, dev, 1), filled(t, dev, 2), allocate(t, dev, 64)
			if between == nil {
				// This makes the execution's second copy fail.
				d.Inject(simdriver.Fault{Op: simdriver.OpCopy, N: 2, Err: io.ErrShortWrite})
				d.StallDevice(0)
			}
			must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c, a.All(), out.All())))
			if err := s[0].Wait(minute(t), 1); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("the first: %v", err)
			}
			must(t, dev.Queue(2).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(c, b.All(), out.All())))
			if between == nil {
				d.ResumeDevice(0)
			}
			must(t, s[1].Wait(minute(t), 1))
			holding(t, "the second", out, 2)
			must(t, dev.Close())
		})
	}
}

// TestScratchClosed closes a recording with scratch memory while executions of the recording
// overlap. The executions must complete, and their instances must be freed. Then the test loses the
// device while executions of another recording overlap. The executions of that recording must fail.
func TestScratchClosed(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
		held, begun := make(chan struct{}), atomic.Int32{}
		c := passing(t, dev, gpu.StreamMode, func() error { begun.Add(1); <-held; return nil })
		s, in, outs := semaphores(t, 3), filled(t, dev, 3), []*gpu.Buffer{allocate(t, dev, 64), allocate(t, dev, 64), allocate(t, dev, 64)}
		live := dev.Stats().Device.Live
		for i := range 2 {
			must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Execute(c, in.All(), outs[i].All())))
		}
		eventually(t, "both have begun", func() bool { return begun.Load() == 2 && dev.Stats().Device.Live == live+instanceBytes }, dev)
		must(t, c.Close())
		if err := dev.Queue(2).Submit(gpu.Order{}, gpu.Execute(c, in.All(), outs[2].All())); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a recording that is closed: %v", err)
		}
		close(held)
		must(t, s[0].Wait(minute(t), 1))
		must(t, s[1].Wait(minute(t), 1))
		holding(t, "the second", outs[1], 3)
		eventually(t, "the instances are freed", func() bool { return dev.Stats().Device.Live == live-instanceBytes }, dev)

		hangs := make(chan struct{})
		c = passing(t, dev, gpu.StreamMode, func() error { begun.Add(1); <-hangs; return nil })
		for i := range 3 {
			must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(s[i], 2)}, gpu.Execute(c, in.All(), outs[i].All())))
		}
		eventually(t, "all have begun", func() bool { return begun.Load() == 2+3 }, dev)
		d.LoseDevice(0, io.ErrClosedPipe)
		for i := range 3 {
			if i == 0 {
				close(hangs)
			}
			if err := s[i].Wait(minute(t), 2); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%d: %v", i, err)
			}
		}
		dev.Close()
	})
}

// TestScratchAll executes recordings with scratch memory on several goroutines at once. Each
// goroutine executes three recordings in one of six orders, and then the first of them again. All
// executions run on one queue, because they write the same outputs.
func TestScratchAll(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
		a, outs := filled(t, dev, 1), []*gpu.Buffer(nil)
		var all []*gpu.CommandBuffer
		for i, m := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode, gpu.StreamMode} {
			c := commandBuffer(t, dev, m)
			x, err := c.Scratch(uint64(64 * (i + 1)))
			must(t, err)
			recorded(t)(c.Add(gpu.Copy(x.Range(0, 64), a.All())))
			recorded(t)(c.Add(gpu.Barrier()))
			if i == 2 {
				recorded(t)(c.Add(gpu.HostCall(func() error { return nil })))
			}
			b := allocate(t, dev, 64)
			recorded(t)(c.Add(gpu.Copy(b.All(), x.Range(0, 64))))
			must(t, c.End())
			all, outs = append(all, c), append(outs, b)
		}
		s := semaphores(t, 20)
		var wg sync.WaitGroup
		for i, x := range s {
			wg.Go(func() {
				p, q, r := all[i%3], all[(i+1)%3], all[(i+2)%3]
				if i%2 == 0 {
					p, q = q, p
				}
				st := dev.Queue(0).NewStream()
				err := st.Do(gpu.Execute(p), gpu.Execute(q), gpu.Execute(r), gpu.Execute(p))
				if err == nil {
					err = dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{st.Point()}, Signal: pts(x, 1)}, gpu.Barrier())
				}
				if err != nil {
					t.Error(err)
					x.Fail(err)
				}
			})
		}
		wg.Wait()
		for _, x := range s {
			must(t, x.Wait(minute(t), 1))
		}
		for _, b := range outs {
			holding(t, "an output", b, 1)
		}
		must(t, dev.Close())
	})
}

// TestScratchCollectives executes a recording whose collectives use scratch memory on several
// ranks. On each rank some executions are delayed, so that later ones can begin first.
func TestScratchCollectives(t *testing.T) {
	for _, first := range []bool{false, true} { // whether the recording begins with a collective
		const n = 3
		d := newSim(t, simdriver.Config{Devices: n})
		g, comms := openCommunicators(t, d, n, collective.Options{})
		type rank struct {
			c    *gpu.CommandBuffer
			in   *gpu.Buffer
			outs []*gpu.Buffer
		}
		var ranks []*rank
		for i, ch := range comms {
			dev := g.Devices()[i]
			r := &rank{c: commandBuffer(t, dev, gpu.AutoMode), in: allocate(t, dev, 256)}
			x, err := r.c.Binding()
			must(t, err)
			y, err := r.c.Binding()
			must(t, err)
			var bufs []*gpu.Buffer
			for range 4 {
				b, err := r.c.Scratch(256)
				must(t, err)
				bufs = append(bufs, b)
			}
			from := x.Range(0, 256)
			if !first {
				recorded(t)(r.c.Add(gpu.Copy(bufs[0].All(), from)))
				recorded(t)(r.c.Add(gpu.Barrier()))
				from = bufs[0].All()
			}
			reduce := func(to *gpu.Buffer, from gpu.Range) {
				recorded(t)(r.c.Add(ch.Group(collective.AllReduce(to.All(), from, collective.Uint8, collective.Sum()))))
			}
			reduce(bufs[1], from) // the two collectives form one group, and run concurrently
			reduce(bufs[2], from)
			recorded(t)(r.c.Add(gpu.Copy(bufs[3].Range(0, 128), bufs[1].Range(0, 128))))
			recorded(t)(r.c.Add(gpu.Copy(bufs[3].Range(128, 128), bufs[2].Range(0, 128))))
			recorded(t)(r.c.Add(gpu.Barrier()))
			recorded(t)(r.c.Add(gpu.Copy(y.Range(0, 256), bufs[3].All())))
			if size, err := r.c.ScratchSize(); size != 3*256 || err != nil {
				t.Errorf("%d bytes, %v", size, err)
			}
			must(t, r.c.End())
			s := semaphores(t, 1)[0]
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(r.in.All(), []byte{byte(i) + 1})))
			must(t, s.Wait(minute(t), 1))
			ranks = append(ranks, r)
		}
		const executions = 6
		begin, done := semaphores(t, 1)[0], []gpu.Point(nil)
		for k := range executions {
			for i, r := range ranks {
				dev := g.Devices()[i]
				out, s := allocate(t, dev, 256), semaphores(t, 1)[0]
				o := gpu.Order{Signal: pts(s, 1)}
				if k%3 == i { // delay two executions, different ones on each rank
					o.Wait = pts(begin, 1)
				}
				must(t, dev.Queue(k).Submit(o, gpu.Execute(r.c, r.in.All(), out.All())))
				r.outs, done = append(r.outs, out), append(done, gpu.Point{Semaphore: s, Value: 1})
			}
		}
		must(t, begin.Signal(1))
		must(t, gpu.WaitAll(minute(t), done...))
		for i, r := range ranks {
			for k, out := range r.outs {
				if got := bytesOf(t, g.Devices()[i].Queue(0), out); !bytes.Equal(got, bytes.Repeat([]byte{6}, 256)) {
					t.Errorf("rank %d, execution %d: %d to %d", i, k, got[0], got[255])
				}
			}
		}
		// The executions of a rank whose communicator is aborted must fail, and not hang.
		s := semaphores(t, 2)
		must(t, g.Devices()[0].Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(ranks[0].c, ranks[0].in.All(), ranks[0].outs[0].All())))
		must(t, g.Devices()[0].Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(ranks[0].c, ranks[0].in.All(), ranks[0].outs[1].All())))
		comms[0].Abort(io.ErrNoProgress)
		for _, x := range s {
			if err := x.Wait(minute(t), 1); !errors.Is(err, io.ErrNoProgress) {
				t.Errorf("behind an abort: %v", err)
			}
		}
		for _, ch := range comms {
			ch.Close()
		}
	}
}

// TestScratchFaults makes driver calls of End fail. End and Execute must return the error, and
// nothing may leak.
func TestScratchFaults(t *testing.T) {
	for _, op := range []simdriver.Op{simdriver.OpAlloc, simdriver.OpInstantiate} {
		t.Run(string(op), func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev := openDevice(t, d, 0, gpu.Options{})
			c := commandBuffer(t, dev, gpu.GraphMode)
			b, err := c.Scratch(1 << 20)
			must(t, err)
			recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
			fault := d.Inject(simdriver.Fault{Op: op, Err: driver.ErrOutOfMemory})
			if err := c.End(); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("End: %v", err)
			}
			if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Execute(c)); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("Execute: %v", err)
			}
			fault.Remove()
			must(t, c.Close())
			eventually(t, "nothing is left", func() bool { return dev.Stats().Buffers == 0 && dev.Stats().Device.Live == 0 }, dev)
			must(t, dev.Shutdown(context.Background()))
		})
	}
}

// TestScratchAfterRefusal executes a recording with scratch memory again after an execution whose
// last part was refused, while the first part of that execution is in flight.
func TestScratchAfterRefusal(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Graphs {
			return // without graphs there is no GraphMode
		}
		dev, far := openDevice(t, d, 0, gpu.Options{Queues: 2}), openDevice(t, d, 1, gpu.Options{})
		c, in, out, s := commandBuffer(t, dev, gpu.GraphMode), filled(t, far, 5), filled(t, dev, 0), semaphores(t, 2)
		b, err := c.Scratch(64)
		must(t, err)
		recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
		recorded(t)(c.Add(gpu.Barrier()))
		// A copy from another device cannot be a node of a graph, so here the second part begins.
		recorded(t)(c.Add(gpu.Copy(b.All(), in.All())))
		recorded(t)(c.Add(gpu.Copy(out.All(), b.All())))
		must(t, c.End())
		d.Inject(simdriver.Fault{Op: simdriver.OpCopy, N: 1, Err: io.ErrShortWrite})
		d.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c)))
		if err := s[0].Wait(minute(t), 1); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("the first: %v", err)
		}
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(c)))
		d.ResumeDevice(0)
		must(t, s[1].Wait(minute(t), 1))
		must(t, dev.Close())
		must(t, far.Close())
	})
}
