package gpu_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

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

func TestConformance(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	anywhere := hip // which is how HIP is from 5.6 on
	anywhere.SubmitAnywhere = true
	bare := driver.Caps{SubmitAnywhere: true} // nothing that can be done without
	for _, on := range []struct {
		name    string
		caps    driver.Caps
		devices int
		brief   bool
	}{
		{"cuda", cuda, 3, false},
		{"hip over 1 device", hip, 1, true}, // without what needs two
		{"hip over 2 devices", hip, 2, true},
		{"hip over 8 devices", hip, 8, false},
		{"hip from any thread", anywhere, 2, true},
		{"bare", bare, 3, false},
	} {
		if testing.Short() && on.name != "cuda" && on.devices != 2 {
			continue
		}
		if raceEnabled && on.name != "cuda" && on.name != "hip over 2 devices" { // whose goroutines are the others' too
			continue
		}
		t.Run(on.name, func(t *testing.T) {
			gputest.Run(t, func(t *testing.T) gputest.Harness {
				d := newSim(t, simdriver.Config{Devices: on.devices, Caps: &on.caps})
				binders := map[int]driver.Device{}
				return gputest.Harness{
					Driver:  d,
					Kernels: true,
					Comms:   on.caps.Comms,
					Brief:   on.brief || raceEnabled,
					Stall: func(device int) func() {
						d.StallDevice(device)
						return func() { d.ResumeDevice(device) }
					},
					Calls: callsOf(d),
					Current: func() any {
						if i, ok := d.Current(); ok {
							return i
						}
						return nil
					},
					SetCurrent: func(device int) {
						v := binders[device]
						if v == nil {
							var err error
							if v, err = d.Open(device); err != nil {
								t.Fatal(err)
							}
							binders[device] = v
							t.Cleanup(func() { closeBound(v) })
						}
						if err := v.Bind(); err != nil {
							t.Error(err)
						}
					},
				}
			})
		})
	}
}
