package gpu_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// heldCalls are calls that the driver may hold for long: in its compiler, its allocator, or while it pins memory.
var heldCalls = []struct {
	name string
	op   simdriver.Op // of the driver, that takes long
	call func(x *heldStand) error
}{
	{"load", simdriver.OpLoad, func(x *heldStand) error {
		code, err := x.dev.Load(simdriver.Image("nothing"))
		return errors.Join(err, code.Close())
	}},
	{"kernel", simdriver.OpFunction, func(x *heldStand) error {
		_, err := x.code.Kernel("nothing")
		return err
	}},
	{"global", simdriver.OpGlobal, func(x *heldStand) error {
		b, err := x.code.Global("table")
		return errors.Join(err, b.Close())
	}},
	{"alloc", simdriver.OpAlloc, func(x *heldStand) error {
		b, err := x.dev.Alloc(gpu.DeviceMem, 64)
		return errors.Join(err, b.Close())
	}},
	{"import", simdriver.OpRegister, func(x *heldStand) error {
		b, err := x.dev.ImportHost(make([]byte, 64), nil)
		return errors.Join(err, b.Close())
	}},
	{"timestamp", simdriver.OpNewTimer, func(x *heldStand) error {
		c, err := x.dev.NewCommandBuffer(gpu.CommandOptions{})
		if err == nil {
			_, err = c.Timestamp()
		}
		return errors.Join(err, c.Close())
	}},
	{"peers", simdriver.OpEnablePeer, func(x *heldStand) error {
		_, err := gpu.NewGroup(x.dev, x.other)
		return err
	}},
}

type heldStand struct {
	dev, other *gpu.Device
	code       *gpu.Executable
	b          *gpu.Buffer
}

func newHeldStand(t *testing.T, d *simdriver.Driver, opt gpu.Options) *heldStand {
	x := &heldStand{dev: openDevice(t, d, 0, opt), other: openDevice(t, d, 1, gpu.Options{})}
	code, err := x.dev.Load(simdriver.Image("nothing", "table=64"))
	must(t, err)
	x.code, x.b = code, allocate(t, x.dev, 64)
	return x
}

// TestHeldCalls has the driver hold calls of programs: what is parked begins and ends meanwhile, once it is released.
func TestHeldCalls(t *testing.T) {
	for _, held := range heldCalls {
		t.Run(held.name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				x := newHeldStand(t, d, gpu.Options{})
				s, returned := semaphores(t, 2), make(chan error, 1)
				for i := range uint64(100) {
					must(t, x.dev.Queue(0).Fill(order(s[0], 1, s[1], i+1), x.b.Range(i%64, 1), []byte{1}))
				}
				d.SetLatency(held.op, time.Hour)
				go func() { returned <- held.call(x) }()
				synctest.Wait()
				if len(returned) > 0 { // the device cannot do it
					if err := <-returned; err != nil && !errors.Is(err, driver.ErrUnsupported) {
						t.Error(err)
					}
					return
				}
				must(t, s[0].Signal(1))
				must(t, s[1].Wait(in(t, time.Minute), 100))
				if len(returned) > 0 {
					t.Error("the fills have waited for the call")
				}
				must(t, <-returned)
				d.SetLatency(held.op, 0)
				must(t, x.dev.Close())
			})
		})
	}
}

// TestHeldWhileClosing closes a device while the driver holds a call: nothing is given back before that has returned.
func TestHeldWhileClosing(t *testing.T) {
	for _, held := range heldCalls {
		t.Run(held.name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				x := newHeldStand(t, d, gpu.Options{})
				returned := make(chan error, 1)
				d.SetLatency(held.op, 5*time.Second)
				go func() { returned <- held.call(x) }()
				synctest.Wait()
				must(t, x.dev.Close())
				<-returned
			})
		})
	}
}

// TestManyCallsAtOnce has more goroutines allocate than may be in the driver at a time.
func TestManyCallsAtOnce(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const n = 1000
		dev, made := openDevice(t, d, 0, gpu.Options{}), make(chan error, n)
		d.SetLatency(simdriver.OpAlloc, time.Second)
		start := time.Now()
		for range n {
			go func() {
				b, err := dev.Alloc(gpu.DeviceMem, 64)
				made <- errors.Join(err, b.Close())
			}()
		}
		for range n {
			must(t, <-made)
		}
		if took := time.Since(start); took < n/100*time.Second { // of the bubble
			t.Errorf("it took %v, so that each may have had a thread of its own", took)
		}
		d.SetLatency(simdriver.OpAlloc, 0)
		must(t, dev.Close())
	})
}
