package recording_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// instanceBytes is the size of the memory of an instance, for a recording that has called
// Scratch(64) once.
const instanceBytes = 256

// instanceModes are modes for graphMode.
var instanceModes = map[string]gpu.Mode{"calls": gpu.StreamMode, "graph": gpu.AutoMode}

// graphMode returns m, or GraphMode in place of AutoMode if the device has graphs. AutoMode makes
// no graph of a short recording.
func graphMode(m gpu.Mode, caps driver.Caps) gpu.Mode {
	if caps.Graphs && m == gpu.AutoMode {
		return gpu.GraphMode
	}
	return m
}

// eachInstance runs a test in each mode and on each capability set. c is a recording made by the
// function passing. The function instances returns the number of instances made since its first
// call. It computes the number from the live device memory, so after that first call the test must
// not allocate or free other memory.
func eachInstance(t *testing.T, between func() error, test func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer, instances func() int)) {
	for name, m := range instanceModes {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{Queues: 4})
				live := uint64(0)
				test(t, d, dev, passing(t, dev, graphMode(m, caps), between), func() int {
					now := dev.Stats().Device.Live
					if live == 0 {
						live = now
					}
					return int(now-live) / instanceBytes
				})
				must(t, dev.Close())
			})
		})
	}
}

// TestInstanceOfOrder executes a recording 1,000 times in a row, ahead of the device, on one queue
// and then on two queues joined by waits. All executions must use one instance.
func TestInstanceOfOrder(t *testing.T) {
	eachInstance(t, nil, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer, instances func() int) {
		s, in, out := semaphores(t, 2), filled(t, dev, 7), allocate(t, dev, 64)
		instances()
		d.StallDevice(0)
		for i := range uint64(1000) {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], i+1)}, gpu.Execute(c, in.All(), out.All())))
		}
		for i := range uint64(1000) {
			o := order(s[1], i, s[1], i+1)
			if i == 0 {
				o.Wait = pts(s[0], 1000)
			}
			must(t, dev.Queue(int(1+i%2)).Submit(o, gpu.Execute(c, in.All(), out.All())))
		}
		eventually(t, "all are issued", func() bool { return dev.Stats().Parked == 0 }, dev)
		if n := instances(); n != 0 {
			t.Errorf("%d instances more", n)
		}
		d.ResumeDevice(0)
		holding(t, "the output", out, 7, gpu.Point{Semaphore: s[1], Value: 1000})
	})
}

// TestInstanceOfParked submits executions of a recording that are parked. Each begins when the
// previous one has ended or failed. No execution may have an instance before it begins, and one
// instance must suffice.
func TestInstanceOfParked(t *testing.T) {
	var calls atomic.Int32
	eachInstance(t, func() error {
		if calls.Add(1)%3 == 0 {
			return io.ErrNoProgress
		}
		return nil
	}, func(t *testing.T, _ *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer, instances func() int) {
		begin, in, out := semaphores(t, 1)[0], filled(t, dev, 7), allocate(t, dev, 64)
		instances()
		before := gpu.Point{Semaphore: begin, Value: 1}
		for i := range 30 {
			s, next := semaphores(t, 1)[0], semaphores(t, 1)[0]
			must(t, dev.Queue(i%4).Submit(gpu.Order{Wait: []gpu.Point{before}, Signal: pts(s, 1)}, gpu.Execute(c, in.All(), out.All())))
			// Signal next whether the execution succeeds or fails.
			s.OnReached(1, func(error) { next.Signal(1) })
			before = gpu.Point{Semaphore: next, Value: 1}
		}
		if n := instances(); n != 0 {
			t.Errorf("%d instances more of parked executions", n)
		}
		must(t, begin.Signal(1))
		must(t, before.Semaphore.Wait(minute(t), 1))
		if n := instances(); n != 0 {
			t.Errorf("%d more instances for executions that run one after the other", n)
		}
	})
}

// TestInstancesOfOverlap executes a recording on several queues at once. There must be as many
// instances as queues, and the instances must be reused. If there is no memory for another
// instance, only the execution that needs it may fail.
func TestInstancesOfOverlap(t *testing.T) {
	eachInstance(t, nil, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer, instances func() int) {
		const queues = 3
		s := semaphores(t, queues+1)
		var ins, outs []*gpu.Buffer
		for i := range queues + 1 {
			ins, outs = append(ins, filled(t, dev, byte(i+1))), append(outs, allocate(t, dev, 64))
		}
		instances()
		at := uint64(0)
		for range 3 {
			d.StallDevice(0)
			for range 20 {
				at++
				for i := range queues {
					must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(s[i], at)}, gpu.Execute(c, ins[i].All(), outs[i].All())))
				}
			}
			eventually(t, "all are issued", func() bool { return dev.Stats().InFlight == 20*queues }, dev)
			if n := instances(); n != queues-1 {
				t.Errorf("%d instances more", n)
			}
			fault := d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, Err: driver.ErrOutOfMemory})
			x := semaphores(t, 1)[0]
			must(t, dev.Queue(queues).Submit(gpu.Order{Signal: pts(x, 1)}, gpu.Execute(c, ins[queues].All(), outs[queues].All())))
			err := x.Wait(minute(t), 1)
			if !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "all 3 instances") || !strings.Contains(err.Error(), "allocate 256 bytes") {
				t.Errorf("without memory for an instance: %v", err)
			}
			o := order(s[0], at, x, 1) // can take the instance of the execution that it waits for
			x = semaphores(t, 1)[0]
			o.Signal = pts(x, 1)
			must(t, dev.Queue(queues).Submit(o, gpu.Execute(c, ins[queues].All(), outs[queues].All())))
			fault.Remove()
			d.ResumeDevice(0)
			for i := range queues {
				holding(t, "an output", outs[i], byte(i+1), gpu.Point{Semaphore: s[i], Value: at})
			}
			holding(t, "the output of one in order", outs[queues], queues+1, gpu.Point{Semaphore: x, Value: 1})
		}
		live := dev.Stats().Device.Live
		must(t, c.Close())
		eventually(t, "the instances are freed", func() bool { return dev.Stats().Device.Live == live-queues*instanceBytes }, dev)
	})
}

// TestInstancesOfCallers executes a recording many times, and blocks the host call in the middle of
// each execution. Each execution that has begun must have an instance of its own.
func TestInstancesOfCallers(t *testing.T) {
	var held atomic.Pointer[chan struct{}]
	eachInstance(t, func() error { <-*held.Load(); return nil }, func(t *testing.T, _ *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer, instances func() int) {
		const n = 10
		gate := make(chan struct{})
		held.Store(&gate)
		s, in := semaphores(t, n), filled(t, dev, 9)
		var outs []*gpu.Buffer
		for range s {
			outs = append(outs, allocate(t, dev, 64))
		}
		instances()
		for i, x := range s {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(x, 1)}, gpu.Execute(c, in.All(), outs[i].All())))
		}
		eventually(t, "all have begun", func() bool { return instances() == n-1 }, dev)
		close(gate)
		for i := range n {
			holding(t, "an output", outs[i], 9, gpu.Point{Semaphore: s[i], Value: 1})
		}
	})
}

// TestTimedInstance executes a recording with timestamps many times on two queues, with a driver
// that can record a pending event again. The executions must use two instances, and Elapsed must
// return a time.
func TestTimedInstance(t *testing.T) {
	for name, m := range map[string]gpu.Mode{"calls": gpu.StreamMode, "graph": gpu.GraphMode} {
		t.Run(name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
			s, c := semaphores(t, 3), commandBuffer(t, dev, m)
			b, err := c.Binding()
			must(t, err)
			outs := []gpu.Range{allocate(t, dev, 64).All(), allocate(t, dev, 64).All()}
			from := recorded(t)(c.Timestamp())
			f := recorded(t)(c.Add(gpu.Fill(b.Range(0, 64), []byte{1}), from))
			to := recorded(t)(c.Timestamp(f))
			must(t, c.End())
			if _, err := c.Elapsed(from, to); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("before the first execution: %v", err)
			}
			timers := calls(d, 0, simdriver.OpNewTimer)
			d.StallDevice(0)
			for range 100 {
				for i, x := range s[:2] {
					must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(x, 1)}, gpu.Execute(c, outs[i])))
					s[i] = semaphores(t, 1)[0]
				}
			}
			if n := calls(d, 0, simdriver.OpNewTimer) - timers; n != 2 {
				t.Errorf("%d events more", n)
			}
			must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Execute(c, outs[1])))
			d.ResumeDevice(0)
			must(t, s[2].Wait(minute(t), 1))
			if took, err := c.Elapsed(from, to); took < 0 || err != nil {
				t.Errorf("%v, %v", took, err)
			}
		})
	}
}

// TestNativeInstances executes a recording on three queues at once. The recording has a native
// function that uses scratch memory. Two of the executions are parked at first. Each must have an
// instance of its own.
func TestNativeInstances(t *testing.T) {
	for name, m := range instanceModes {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				if !caps.Native {
					return
				}
				dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
				c := commandBuffer(t, dev, graphMode(m, caps))
				b, err := c.Scratch(64)
				must(t, err)
				out, err := c.Binding()
				must(t, err)
				f := recorded(t)(c.Add(gpu.Native("", func(n gpu.NativeCall) error { return n.Device.Fill(n.Stream, n.Ptrs[0], 5, 1, 64) }, b.All())))
				recorded(t)(c.Add(gpu.Copy(out.Range(0, 64), b.All()), f))
				must(t, c.End())
				s, begin := semaphores(t, 3), semaphores(t, 1)[0]
				var outs []*gpu.Buffer
				d.StallDevice(0)
				for i, x := range s {
					outs = append(outs, allocate(t, dev, 64))
					o := gpu.Order{Signal: pts(x, 1)}
					if i > 0 {
						o.Wait = pts(begin, 1)
					}
					must(t, dev.Queue(i).Submit(o, gpu.Execute(c, outs[i].All())))
				}
				live := dev.Stats().Device.Live
				must(t, begin.Signal(1))
				eventually(t, "three overlap", func() bool { return dev.Stats().Device.Live == live+2*instanceBytes }, dev)
				d.ResumeDevice(0)
				for i, x := range s {
					holding(t, "an output", outs[i], 5, gpu.Point{Semaphore: x, Value: 1})
				}
				must(t, dev.Close())
			})
		})
	}
}
