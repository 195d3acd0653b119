package engine_test

import (
	"errors"
	"io"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestBarriers checks that barriers make no native calls and delay only work that waits for them. A
// barrier must fail if the work that it waits for fails, or if the barrier's device is lost. Close
// must wait for the work that barriers wait for.
func TestBarriers(t *testing.T) {
	eachCaps(t, "B52 a barrier after one piece of work makes no native call and delays no stream", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		b, s, x := allocate(t, dev, 64), semaphores(t, 3), semaphores(t, 1)[0]
		d.StallStream(d.Streams(0)[0])
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.Range(0, 8), []byte{1})))
		eventually(t, "the fill is issued, and somebody has asked for it", func() bool {
			s[0].Query()
			return calls(d, 0, simdriver.OpRecord) == 1
		})
		before := submitted(d, 0)
		for v := range uint64(100) {
			must(t, dev.Queue(1).Submit(gpu.Order{Wait: pts(s[0], v+1), Signal: []gpu.Point{{Semaphore: s[0], Value: v + 2}, {Semaphore: s[1], Value: v + 1}}}, gpu.Barrier()))
		}
		// This barrier waits for the same work twice.
		must(t, dev.Queue(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[0], Value: 101}, {Semaphore: s[1], Value: 100}}, Signal: pts(s[2], 1)}, gpu.Barrier()))
		eventually(t, "the barriers are issued", func() bool { st := dev.Stats(); return st.Parked == 0 && st.InFlight == 102 }, dev)
		if n := submitted(d, 0) - before; n != 0 {
			t.Errorf("%d native calls", n)
		}
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(x, 1)}, gpu.Fill(b.Range(8, 8), []byte{2})))
		must(t, x.Wait(minute(t), 1))
		if v, err := s[2].Query(); v != 0 || err != nil {
			t.Errorf("at %d, %v before the work is done", v, err)
		}
		d.ResumeStream(d.Streams(0)[0])
		must(t, s[2].Wait(minute(t), 1))
		if v, err := s[1].Query(); v != 100 || err != nil {
			t.Errorf("at %d, %v", v, err)
		}
	})
	eachCaps(t, "B52 a barrier after reached points makes no native call", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		s := semaphores(t, 2)
		must(t, s[0].Signal(1))
		for v := range uint64(10) {
			must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], v+1), gpu.Barrier()))
			must(t, s[1].Wait(minute(t), v+1))
		}
		if n := submitted(d, 0); n != 0 {
			t.Errorf("%d native calls", n)
		}
	})
	eachCaps(t, "B75 a barrier that joins streams delays only work after it", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
		b, s := allocate(t, dev, 64), semaphores(t, 5)
		streams := d.Streams(0)
		d.StallStream(streams[0])
		d.StallStream(streams[1])
		for i := range 2 {
			must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Fill(b.Range(uint64(8*i), 8), []byte{1})))
		}
		must(t, dev.Queue(2).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}, Signal: pts(s[2], 1)}, gpu.Barrier()))
		// This fill waits for nothing, not even for the barrier.
		must(t, dev.Queue(2).Submit(gpu.Order{Signal: pts(s[3], 1)}, gpu.Fill(b.Range(16, 8), []byte{1})))
		must(t, dev.Queue(0).Submit(order(s[2], 1, s[4], 1), gpu.Fill(b.Range(24, 8), []byte{1})))
		eventually(t, "all is issued", func() bool { return dev.Stats().InFlight == 5 }, dev)
		if n := calls(d, 0, simdriver.OpStreamWait); n != 1 { // only for the last fill
			t.Errorf("%d waits, want 1", n)
		}
		d.ResumeStream(streams[0])
		must(t, s[0].Wait(minute(t), 1))
		if v, err := s[2].Query(); v != 0 || err != nil {
			t.Errorf("at %d, %v when one of two waits is reached", v, err)
		}
		d.ResumeStream(streams[1])
		for i := range s {
			must(t, s[i].Wait(minute(t), 1))
		}
	})
	eachCaps(t, "B78 B81 barriers after failed work, and of a lost device", func(t *testing.T, caps driver.Caps) {
		for _, lost := range []int{0, 1} {
			d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
			work, barriers := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			b, s, x := allocate(t, work, 64), semaphores(t, 1)[0], semaphores(t, 2)
			d.StallDevice(0)
			must(t, work.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
			for v := range uint64(100) {
				must(t, barriers.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x[0], Value: v}}, Signal: pts(x[0], v+1)}, gpu.Barrier()))
			}
			must(t, work.Queue(0).Submit(order(x[0], 100, x[1], 1), gpu.Barrier()))
			eventually(t, "all is issued", func() bool { return work.Stats().InFlight == 2 && barriers.Stats().InFlight == 100 }, work, barriers)
			d.LoseDevice(lost, nil)
			if lost == 1 {
				// This call finds the loss.
				if _, err := barriers.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
					t.Errorf("Alloc = %v", err)
				}
				d.ResumeDevice(0)
				must(t, s.Wait(minute(t), 1))
			}
			for i := range x {
				if err := x[i].Wait(minute(t), 100); !errors.Is(err, driver.ErrLost) {
					t.Errorf("device %d lost: semaphore %d: %v", lost, i, err)
				}
			}
		}
	})
	eachCaps(t, "B85 Close waits for the work before barriers, also on other devices", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
		work, barriers := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		b, s, x := allocate(t, work, 64), semaphores(t, 1)[0], semaphores(t, 1)[0]
		d.StallDevice(0)
		must(t, work.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, barriers.Queue(0).Submit(order(s, 1, x, 1), gpu.Barrier()))
		eventually(t, "all is issued", func() bool { return work.Stats().InFlight == 1 && barriers.Stats().InFlight == 1 }, work, barriers)
		closed := make(chan error, 1)
		go func() { closed <- barriers.Close() }()
		eventually(t, "closing has begun", func() bool { return barriers.Queue(0).Flush() != nil })
		d.ResumeDevice(0)
		must(t, <-closed)
		if v, err := x.Query(); v != 1 || err != nil {
			t.Errorf("at %d, %v", v, err)
		}
	})
	eachCaps(t, "B106 a launch for no elements is a barrier, and asks nothing of its arguments", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
		code, err := dev.Load(simdriver.Image("nothing"))
		must(t, err)
		kernel, err := code.Kernel("nothing")
		must(t, err)
		type args struct{ At gpu.Range }
		k, err := gpu.Typed[args](kernel)
		must(t, err)
		b, s, host, x := allocate(t, dev, 64), semaphores(t, 2), semaphores(t, 1)[0], semaphores(t, 1)[0]
		pool, err := dev.NewPool(gpu.PoolOptions{Portable: true})
		must(t, err)
		later, err := testkit.AllocIn(dev.Queue(0), gpu.Order{Wait: pts(host, 1)}, pool, 64)
		must(t, err)
		d.StallDevice(0)
		for i := range s { // the launch waits for both fills
			must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Fill(b.Range(uint64(8*i), 8), []byte{1})))
		}
		must(t, dev.Queue(2).Submit(gpu.Order{Wait: []gpu.Point{s[0].At(1), s[1].At(1)}, Signal: pts(x, 1)}, k.Launch(gpu.GridFor(0, 64), args{later.All()})))
		d.ResumeDevice(0)
		must(t, x.Wait(minute(t), 1))
		if n := calls(d, 0, simdriver.OpLaunch); n != 0 {
			t.Errorf("%d launches", n)
		}
		must(t, host.Signal(1))
	})
	eachCaps(t, "B78 a chain of 100,000 barriers fails as one", func(t *testing.T, caps driver.Caps) {
		const n = 100_000
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		host, s := semaphores(t, 1)[0], semaphores(t, n)
		must(t, dev.Queue(0).Submit(order(host, 1, s[0], 1), gpu.Barrier()))
		for i := range n - 1 {
			must(t, dev.Queue(0).Submit(order(s[i], 1, s[i+1], 1), gpu.Barrier()))
		}
		host.Fail(io.EOF)
		if err := s[n-1].Wait(minute(t), 1); !errors.Is(err, io.EOF) {
			t.Errorf("the last: %v", err)
		}
		eventually(t, "nothing is left", func() bool { st := dev.Stats(); return st.Parked+st.InFlight == 0 }, dev)
	})
}

// submitted counts the device's native calls that record an event, make a stream wait, fill, copy,
// upload, download or launch.
func submitted(d *simdriver.Driver, device int) (n uint64) {
	for _, op := range []simdriver.Op{simdriver.OpRecord, simdriver.OpStreamWait, simdriver.OpFill, simdriver.OpCopy, simdriver.OpUpload, simdriver.OpDownload, simdriver.OpLaunch} {
		n += calls(d, device, op)
	}
	return n
}
