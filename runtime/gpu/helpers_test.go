package gpu_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func pts(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

func order(w *gpu.Semaphore, wv uint64, s *gpu.Semaphore, sv uint64) gpu.Order {
	return gpu.Order{Wait: pts(w, wv), Signal: pts(s, sv)}
}

func semaphores(t testing.TB, n int) (all []*gpu.Semaphore) {
	t.Helper()
	for range n {
		s, err := gpu.NewSemaphore(0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func openDevice(t testing.TB, d driver.Driver, i int, o gpu.Options) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(d, i, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func allocate(t testing.TB, d *gpu.Device, size uint64) *gpu.Buffer {
	t.Helper()
	b, err := d.Alloc(gpu.DeviceMem, size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func minute(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon returns a context that ends when something that should not block has.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A capabilitySet is what the devices of some driver can do.
type capabilitySet struct {
	name string
	caps driver.Caps
}

// capabilitySets are those of the drivers that there are, and one with nothing that a driver can do without.
func capabilitySets() []capabilitySet {
	return []capabilitySet{
		{"cuda", simdriver.CUDACaps()},
		{"hip", simdriver.HIPCaps()},
		{"hip with its pools", hipPoolCaps()},
		{"bare", driver.Caps{}},
	}
}

// hipPoolCaps are what HIP from 6.2 on can do with its own pools.
func hipPoolCaps() driver.Caps {
	caps := simdriver.HIPCaps()
	caps.Cooperative, caps.Pools, caps.PoolsByStream = true, true, true
	return caps
}

// onEach runs a test on simulated devices of each capability set, in a bubble: what hangs is found out at once.
func onEach(t *testing.T, devices int, test func(t *testing.T, d *simdriver.Driver, caps driver.Caps)) {
	for _, set := range capabilitySets() {
		t.Run(set.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, newSim(t, simdriver.Config{Devices: devices, Caps: &set.caps}), set.caps)
			})
		})
	}
}

// inFlight waits until a device has so many submissions in flight.
func inFlight(t testing.TB, dev *gpu.Device, n int) {
	t.Helper()
	eventually(t, "the work is in flight", func() bool { return dev.Stats().InFlight == n }, dev)
}

// simKernels stand for those of testdata/kernels.
var simKernels = map[string]simdriver.Kernel{
	"nothing": simdriver.MustKernel(func(*simdriver.Grid, uint64) {}),
	"saxpy": simdriver.MustKernel(func(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) {
		n = min(n, g.Size())
		xs, err := simdriver.View[float32](g, x, int(n))
		ys, err2 := simdriver.View[float32](g, y, int(n))
		if errors.Join(err, err2) == nil {
			for i := range xs {
				ys[i] += a * xs[i]
			}
		}
	}),
	"index": simdriver.MustKernel(func(g *simdriver.Grid, n uint64, first, step uint32, out driver.Ptr) {
		n = min(n, g.Size())
		if w, err := simdriver.View[uint32](g, out, int(n)); err == nil {
			for i := range w {
				w[i] = uint32(i)*step + first
			}
		}
	}),
	"words": simdriver.MustKernel(func(g *simdriver.Grid, n uint64, dst, src driver.Ptr) {
		n = min(n, g.Size())
		to, err := simdriver.View[uint32](g, dst, int(n))
		from, err2 := simdriver.View[uint32](g, src, int(n))
		if errors.Join(err, err2) == nil {
			copy(to, from)
		}
	}),
	"values": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, small uint8, vector [3]float32, pair kernelPair, wide complex128, flag uint8) {
		if w, err := simdriver.View[float64](g, out, 9); err == nil {
			copy(w, []float64{float64(small), float64(vector[0]), float64(vector[1]), float64(vector[2]), float64(pair.A), float64(pair.B),
				real(wide), imag(wide), float64(flag)})
		}
	}),
	"attrs": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr) {
		if w, err := simdriver.View[launched](g, out, 1); err == nil {
			w[0] = launched{w[0].Times + 1, g.Cluster, oneIf(g.Attrs.Cooperative), oneIf(g.Attrs.Dependent), int32(g.Attrs.Priority), int32(g.Attrs.Carveout)}
		}
	}),
	"stamp": simdriver.MustKernel(func(g *simdriver.Grid, dst, src driver.Ptr) {
		to, err := simdriver.View[uint32](g, dst, 2)
		from, err2 := simdriver.View[uint32](g, src, 2)
		if errors.Join(err, err2) == nil {
			a := g.Attrs
			a.Cluster = g.Cluster
			to[0], to[1] = from[0]+stampOf(a), from[1]
		}
	}),
	"tensor": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, small uint8, m [16]uint64, last uint32) {
		if w, err := simdriver.View[uint64](g, out, 18); err == nil {
			w[0], w[17] = uint64(small), uint64(last)
			copy(w[1:], m[:])
		}
	}),
	"meet": simdriver.MustKernel(func(g *simdriver.Grid, rounds uint32, counter, out driver.Ptr) {
		n, err := simdriver.View[uint32](g, counter, 1)
		w, err2 := simdriver.View[uint32](g, out, int(g.Blocks[0]))
		if errors.Join(err, err2) == nil {
			n[0] += rounds * g.Blocks[0]
			for i := range w {
				w[i] = n[0]
			}
		}
	}),
	"ring": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr) {
		if w, err := simdriver.View[[2]uint32](g, out, int(g.Blocks[0])); err == nil {
			n := g.Cluster[0]
			for i := range g.Blocks[0] {
				w[i] = [2]uint32{1000 + i/n*n + (i+1)%n, n}
			}
		}
	}),
	"lead": simdriver.MustKernel(func(g *simdriver.Grid, flags, out driver.Ptr, value uint32) {
		f, err := simdriver.View[uint32](g, flags, 2)
		w, err2 := simdriver.View[uint32](g, out, int(g.Threads[0]))
		if errors.Join(err, err2) == nil {
			f[1] = f[0]
			for i := range w {
				w[i] = value + uint32(i)
			}
		}
	}),
	"follow": simdriver.MustKernel(func(g *simdriver.Grid, flags, out, in driver.Ptr) {
		f, err := simdriver.View[uint32](g, flags, 1)
		w, err2 := simdriver.View[uint32](g, out, int(g.Threads[0]))
		r, err3 := simdriver.View[uint32](g, in, int(g.Threads[0]))
		if errors.Join(err, err2, err3) == nil {
			f[0] = 1
			for i := range w {
				w[i] = r[i] + 1
			}
		}
	}),
	"params": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, all [4094]uint64, last uint32) {
		if w, err := simdriver.View[uint64](g, out, 3); err == nil {
			copy(w, []uint64{all[0], all[4093], uint64(last)})
		}
	}),
	"most": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, all [4093]uint64, last uint32) {
		if w, err := simdriver.View[uint64](g, out, 4094); err == nil {
			w[copy(w, all[:])] = uint64(last)
		}
	}),
	"ids": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr) {
		blocks := g.Blocks[0] * g.Blocks[1] * g.Blocks[2]
		w, err := simdriver.View[[4]uint32](g, out, int(blocks))
		if err != nil {
			return
		}
		for t := range g.All() {
			if t.Thread == ([3]uint32{}) {
				b := t.Block
				w[(b[2]*g.Blocks[1]+b[1])*g.Blocks[0]+b[0]] = [4]uint32{b[0], b[1], b[2], g.Threads[0] * g.Threads[1] * g.Threads[2]}
			}
		}
	}),
}

// A launched is what the kernel "attrs" notes of its launches.
type launched struct {
	Times                  uint32
	Cluster                [3]uint32
	Cooperative, Dependent uint32
	Priority, Carveout     int32
}

// stampOf makes one number of the attributes that the kernel "stamp" sees, and adds: all but the priority, which graphs do not take.
func stampOf(a gpu.LaunchAttrs) uint32 {
	return 1 + a.Cluster[0] + a.Cluster[1]<<4 + a.Cluster[2]<<8 + oneIf(a.Cooperative)<<12 + oneIf(a.Dependent)<<13 +
		uint32(a.Carveout)<<16
}

// oneIf returns 1 if something is so.
func oneIf(set bool) uint32 {
	if set {
		return 1
	}
	return 0
}

// A kernelPair is a struct that a kernel takes.
type kernelPair struct {
	A int8
	B int64
}

// newSim makes a simulated driver and checks at the end of the test that everything was given back.
func newSim(t testing.TB, c simdriver.Config) *simdriver.Driver {
	c.Strict = true
	c.Kernels = simKernels
	d := simdriver.New(c)
	t.Cleanup(func() {
		for _, name := range d.Leaks() {
			t.Errorf("left behind: %s", name)
		}
		d.Kill() // a device that waits for others was left as it is
	})
	return d
}

// closeBound closes a device on a thread to which it is bound.
func closeBound(v driver.Device) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends with the goroutine
		v.Bind()
		v.Close()
	}()
	<-done
}

// callsOf counts a device's calls for the suite.
func callsOf(d *simdriver.Driver) func(device int, op string) uint64 {
	return func(device int, op string) uint64 { return d.Counters().Devices[device].Calls[simdriver.Op(op)] }
}

// submitted counts a device's calls that give streams something to do.
func submitted(d *simdriver.Driver, device int) (n uint64) {
	for _, op := range []simdriver.Op{simdriver.OpRecord, simdriver.OpStreamWait, simdriver.OpFill, simdriver.OpCopy, simdriver.OpUpload, simdriver.OpDownload, simdriver.OpLaunch} {
		n += calls(d, device, op)
	}
	return n
}

// in returns a context for a time.
func in(t testing.TB, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// calls counts a device's calls of an operation.
func calls(d *simdriver.Driver, device int, op simdriver.Op) uint64 {
	return d.Counters().Devices[device].Calls[op]
}

// alloca allocates.
func alloca(t testing.TB, q *gpu.Queue, o gpu.Order, p *gpu.Pool, size uint64) *gpu.Buffer {
	t.Helper()
	b, err := q.Alloca(o, p, size)
	must(t, err)
	return b
}

// eachCaps runs a test for every kind of driver.
func eachCaps(t *testing.T, name string, f func(t *testing.T, caps driver.Caps)) {
	for kind, caps := range bothCaps() {
		t.Run(name+", "+kind, func(t *testing.T) {
			now := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, now) })
			f(t, caps)
		})
	}
}

// eventually asks until something is so. If it gives up it tells what is in flight on the devices.
func eventually(t testing.TB, what string, so func() bool, devices ...*gpu.Device) {
	t.Helper()
	ctx := minute(t)
	for pause := time.Microsecond; !so(); pause = min(2*pause, time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%s: it does not happen\n%s", what, gpu.Dump(devices...))
		}
		time.Sleep(pause) // in a bubble of testing/synctest no time passes otherwise, also for those who ask the device
	}
}

// bytesOf downloads a buffer.
func bytesOf(t testing.TB, q *gpu.Queue, b *gpu.Buffer, after ...gpu.Point) []byte {
	t.Helper()
	data, s := make([]byte, b.Size()), semaphores(t, 1)[0]
	must(t, q.Download(gpu.Order{Wait: after, Signal: pts(s, 1)}, data, b.All()))
	must(t, s.Wait(minute(t), 1))
	return data
}
