package gpu_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// total returns the sum of f over all devices of a driver.
func total(d *simdriver.Driver, f func(simdriver.DeviceCounters) int) (n int) {
	for _, c := range d.Counters().Devices {
		n += f(c)
	}
	return n
}

// TestOpenGroup checks OpenGroup and NewGroup when a call of the driver fails, when the devices
// have no access to each other, and without devices.
func TestOpenGroup(t *testing.T) {
	const devices = 4
	eachCaps(t, "a failed one closes the others", func(t *testing.T, caps driver.Caps) {
		for _, op := range []simdriver.Op{simdriver.OpOpen, simdriver.OpBind, simdriver.OpNewStream, simdriver.OpNewEvent, simdriver.OpEnablePeer} {
			d := newSim(t, simdriver.Config{Devices: devices, Caps: &caps})
			i := d.Inject(simdriver.Fault{Op: op, Device: 2, N: 1})
			g, err := gpu.OpenGroup(d, gpu.Options{Queues: 2})
			if g != nil || !errors.Is(err, simdriver.ErrInjected) || i.Hits() != 1 {
				t.Errorf("%s: %v", op, err)
			}
			opened := total(d, func(c simdriver.DeviceCounters) int { return int(c.Calls[simdriver.OpOpen]) })
			closed := total(d, func(c simdriver.DeviceCounters) int { return int(c.Calls[simdriver.OpClose]) })
			if op == simdriver.OpOpen {
				opened--
			}
			if opened != closed {
				t.Errorf("%s: %d devices were opened and %d closed", op, opened, closed)
			}
			if n := total(d, func(c simdriver.DeviceCounters) int { return c.Streams + c.Events }); n != 0 {
				t.Errorf("%s: %d objects are left", op, n)
			}
		}
	})
	eachCaps(t, "a device is lost while the others get access", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Devices: 2, Caps: &caps})
		a, b := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		d.Inject(simdriver.Fault{Op: simdriver.OpEnablePeer, Device: 1, Lost: true, N: 1})
		if _, err := gpu.NewGroup(a, b); !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
		s := semaphores(t, 2)
		must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Barrier())) // a stays open
		must(t, s[0].Wait(minute(t), 1))
		if err := b.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Barrier()); !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
	})
	eachCaps(t, "hardware without a path", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Devices: 2, Caps: &caps, Apart: true})
		g, err := gpu.OpenGroup(d, gpu.Options{})
		must(t, err)
		defer g.Close()
		pools, err := g.NewPools(gpu.PoolOptions{})
		must(t, err)
		a, b, s := allocate(t, g.Devices()[0], 64), allocate(t, g.Devices()[1], 64), semaphores(t, 1)[0]
		must(t, g.Devices()[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(a.All(), []byte{5})))
		must(t, g.Devices()[1].Queue(0).Submit(order(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		if got := bytesOf(t, g.Devices()[1].Queue(0), b, pts(s, 2)...); got[63] != 5 {
			t.Errorf("%v arrived", got)
		}
		for _, p := range pools {
			must(t, p.Close())
		}
	})
	t.Run("no devices", func(t *testing.T) {
		if _, err := gpu.OpenGroup(newSim(t, simdriver.Config{Devices: -1}), gpu.Options{}); !errors.Is(err, gpu.ErrArgument) {
			t.Error(err)
		}
		d := newSim(t, simdriver.Config{})
		d.Inject(simdriver.Fault{Op: simdriver.OpDevices, Device: simdriver.AnyDevice})
		if _, err := gpu.OpenGroup(d, gpu.Options{}); !errors.Is(err, simdriver.ErrInjected) {
			t.Error(err)
		}
	})
}

// TestPeersOfGroups checks that a kernel can use another device's memory if the two devices are in
// a group, and cannot if they are not.
func TestPeersOfGroups(t *testing.T) {
	eachCaps(t, "a kernel", func(t *testing.T, caps driver.Caps) {
		for _, grouped := range []bool{true, false} {
			d := newSim(t, simdriver.Config{Devices: 2, Caps: &caps})
			a, b := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			if grouped {
				_, err := gpu.NewGroup(a, b)
				must(t, err)
			}
			x, err := a.Load(simdriver.Image("words"))
			must(t, err)
			k, err := x.Kernel("words")
			must(t, err)
			s := semaphores(t, 2)
			dst, src := allocate(t, b, 64), allocate(t, a, 64)
			must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(src.All(), []byte{9})))
			must(t, a.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Launch(k, gpu.GridFor(16, 16), uint64(16), dst, src)))
			err = s[1].Wait(minute(t), 1)
			var access *simdriver.AccessError
			switch {
			case grouped && err == nil:
				if got := bytesOf(t, b.Queue(0), dst); got[63] != 9 {
					t.Errorf("%v arrived", got)
				}
			case grouped || !errors.As(err, &access) || !access.Apart:
				t.Errorf("grouped %t: %v", grouped, err)
			}
		}
	})
}

// TestGroupFailures makes calls of a group fail on one device. Load and NewPools must then release
// the modules and pools of the other devices, and Close must still close all devices.
func TestGroupFailures(t *testing.T) {
	eachCaps(t, "code", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Devices: 3, Caps: &caps})
		g, err := gpu.OpenGroup(d, gpu.Options{})
		must(t, err)
		defer g.Close()
		d.Inject(simdriver.Fault{Op: simdriver.OpLoad, Device: 1, N: 1})
		if all, err := g.Load(simdriver.Image("words")); all != nil || !errors.Is(err, simdriver.ErrInjected) {
			t.Error(err)
		}
		eventually(t, "the code is unloaded", func() bool {
			return total(d, func(c simdriver.DeviceCounters) int { return c.Modules }) == 0
		})
		all, err := g.Load(simdriver.Image("words"))
		must(t, err)
		if len(all) != 3 {
			t.Errorf("%d executables", len(all))
		}
	})
	for _, op := range []simdriver.Op{simdriver.OpNewPool, simdriver.OpSetPoolAttr, simdriver.OpAccessPool} {
		t.Run("pools, "+string(op), func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 3})
			g, err := gpu.OpenGroup(d, gpu.Options{})
			must(t, err)
			defer g.Close()
			d.Inject(simdriver.Fault{Op: op, Device: 1, N: 1})
			if all, err := g.NewPools(gpu.PoolOptions{}); all != nil || !errors.Is(err, simdriver.ErrInjected) {
				t.Error(err)
			}
			eventually(t, "the pools are gone", func() bool {
				return total(d, func(c simdriver.DeviceCounters) int { return c.Pools }) == 0
			})
		})
	}
	t.Run("close", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 3})
		g, err := gpu.OpenGroup(d, gpu.Options{})
		must(t, err)
		d.Inject(simdriver.Fault{Op: simdriver.OpDestroyStream, Device: 1, N: 1})
		if err := g.Close(); !errors.Is(err, simdriver.ErrInjected) {
			t.Error(err)
		}
		if n := total(d, func(c simdriver.DeviceCounters) int { return int(c.Calls[simdriver.OpClose]) }); n != 3 {
			t.Errorf("%d devices are closed", n)
		}
	})
}

// TestAcross copies between devices of two drivers. It injects a fault into one device, closes one
// device during the copy, and copies in both directions at once.
func TestAcross(t *testing.T) {
	const stage, size = 4096, 10*4096 + 5
	type side struct {
		d *simdriver.Driver
		v *gpu.Device
		b *gpu.Buffer
	}
	setup := func(t *testing.T, caps driver.Caps) (x, y side) {
		for _, s := range []*side{&x, &y} {
			s.d = newSim(t, simdriver.Config{Caps: &caps})
			s.v = openDevice(t, s.d, 0, gpu.Options{StageSize: stage})
			s.b = allocate(t, s.v, size)
		}
		return x, y
	}
	for name, f := range map[string]simdriver.Fault{
		"a download": {Op: simdriver.OpDownload, N: 5},
		"an upload":  {Op: simdriver.OpUpload, N: 5},
		"an event":   {Op: simdriver.OpRecord, N: 7},
		"memory":     {Op: simdriver.OpAlloc, OOM: true},
		"the device": {Op: simdriver.OpRecord, N: 7, Lost: true},
		"its work":   {Op: simdriver.OpRecord, N: 7, Lost: true, AtExecution: true},
	} {
		eachCaps(t, "B80 B117 fails: "+name, func(t *testing.T, caps driver.Caps) {
			// If here is true, the fault is in the device of the queue, otherwise in the other
			// device.
			for _, here := range []bool{true, false} {
				for _, up := range []bool{true, false} {
					x, y := setup(t, caps)
					bad, good, dst, src := x, y, x, y
					if !here {
						bad, good = y, x
					}
					if !up {
						dst, src = y, x
					}
					i := bad.d.Inject(f)
					s := semaphores(t, 2)
					must(t, x.v.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Copy(dst.b.All(), src.b.All())))
					err := s[0].Wait(minute(t), 1)
					if err == nil && i.Hits() > 0 {
						t.Errorf("here %t, up %t: it has not failed", here, up)
					}
					if lost := errors.Is(err, driver.ErrLost); i.Hits() > 0 && lost != f.Lost {
						t.Errorf("here %t, up %t: %v", here, up, err)
					}
					// The device without the fault still works.
					must(t, good.v.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(good.b.All(), []byte{1})))
					must(t, s[1].Wait(minute(t), 1))
				}
			}
		})
	}
	eachCaps(t, "B81 B86 a side is closed in the middle", func(t *testing.T, caps driver.Caps) {
		for _, here := range []bool{true, false} {
			// If stalled is true, the device that is closed is stalled, otherwise the other device.
			for _, stalled := range []bool{true, false} {
				x, y := setup(t, caps)
				s := semaphores(t, 1)[0]
				closing, other := x, y
				if !here {
					closing, other = y, x
				}
				held := closing
				if !stalled {
					held = other
				}
				held.d.StallDevice(0)
				must(t, x.v.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Copy(y.b.All(), x.b.All())))
				eventually(t, "the copy is under way", func() bool {
					return held.v.Stats().InFlight > 0 || x.v.Stats().InFlight > 0
				})
				closed := make(chan error)
				go func() { closed <- closing.v.Close() }()
				eventually(t, "closing has begun", func() bool { return closing.v.Queue(0).Flush() != nil })
				held.d.ResumeDevice(0)
				must(t, <-closed)
				if err := s.Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("here %t, stalled %t: %v", here, stalled, err)
				}
				if got := bytesOf(t, other.v.Queue(0), other.b); len(got) != size {
					t.Errorf("%d bytes", len(got))
				}
			}
		}
	})
	eachCaps(t, "B87 both directions at once, repeatedly", func(t *testing.T, caps driver.Caps) {
		x, y := setup(t, caps)
		s := semaphores(t, 2)
		must(t, x.v.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(x.b.All(), []byte{1})))
		must(t, y.v.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(y.b.All(), []byte{2})))
		a, b := allocate(t, x.v, size), allocate(t, y.v, size)
		for v := uint64(1); v < 20; v++ {
			must(t, x.v.Queue(0).Submit(order(s[0], v, s[0], v+1), gpu.Copy(b.All(), x.b.All())))
			must(t, y.v.Queue(0).Submit(order(s[1], v, s[1], v+1), gpu.Copy(a.All(), y.b.All())))
		}
		if got := bytesOf(t, x.v.Queue(0), a, pts(s[1], 20)...); !bytes.Equal(got, bytes.Repeat([]byte{2}, size)) {
			t.Errorf("%v", got[:8])
		}
		if got := bytesOf(t, y.v.Queue(0), b, pts(s[0], 20)...); !bytes.Equal(got, bytes.Repeat([]byte{1}, size)) {
			t.Errorf("%v", got[:8])
		}
	})
}

// TestGroupLoadsInParallel makes each device take an hour to load code. Loading on four devices
// must take exactly one hour. The time is that of the synctest bubble.
func TestGroupLoadsInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdriver.New(simdriver.Config{Devices: 4, Kernels: simKernels})
		g, err := gpu.OpenGroup(d, gpu.Options{})
		must(t, err)
		d.SetLatency(simdriver.OpLoad, time.Hour)
		start := time.Now()
		all, err := g.Load(simdriver.Image("saxpy"))
		must(t, err)
		if took := time.Since(start); took != time.Hour {
			t.Errorf("%d devices have loaded in %v", len(all), took)
		}
		d.SetLatency(simdriver.OpLoad, 0)
		for _, x := range all {
			must(t, x.Close())
		}
		must(t, g.Close())
	})
}
