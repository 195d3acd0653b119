package memory_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestImportHostReadOnly makes the driver refuse to pin memory read-only. The runtime must then pin
// the memory for reading and writing, and ImportHostReadOnly must fail only if that fails too.
func TestImportHostReadOnly(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	broken, worse := errors.New("broken"), errors.New("worse")
	mem := []byte("memory")
	d.Inject(simdriver.Fault{Op: simdriver.OpRegister, N: 1, Err: broken})
	b, err := dev.ImportHostReadOnly(mem, nil)
	must(t, err)
	if got := bytesOf(t, dev.Queue(0), b); string(got) != string(mem) {
		t.Errorf("%q", got)
	}
	if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("Fill = %v", err)
	}
	must(t, b.Close())
	d.Inject(simdriver.Fault{Op: simdriver.OpRegister, N: 1, Err: broken})
	d.Inject(simdriver.Fault{Op: simdriver.OpRegister, N: 2, Err: worse})
	if b, err := dev.ImportHostReadOnly(make([]byte, 64<<10)[:8], nil); b != nil || !errors.Is(err, broken) {
		t.Errorf("ImportHostReadOnly = %v, %v", b, err)
	}
	must(t, dev.Close())
}

// TestRegister checks that an import registers and unregisters the program's memory once. It also
// checks that code stays loaded while a variable's buffer is open, and that native objects are made
// and destroyed on threads on which their device is current.
func TestRegister(t *testing.T) {
	count := func(t *testing.T, d *simdriver.Driver, registered, unregistered uint64) {
		t.Helper()
		if r, u := calls(d, 0, simdriver.OpRegister), calls(d, 0, simdriver.OpUnregister); r != registered || u != unregistered {
			t.Errorf("%d times registered and %d times unregistered, want %d and %d", r, u, registered, unregistered)
		}
	}
	for name, callback := range map[string]bool{"without a callback": false, "with a callback": true} {
		eachCaps(t, "B97 memory is unregistered once, "+name, func(t *testing.T, caps driver.Caps) {
			d := newSim(t, simdriver.Config{Caps: &caps})
			dev := openDevice(t, d, 0, gpu.Options{})
			freed := make(chan struct{}, 9)
			var fn func()
			if callback {
				fn = func() { freed <- struct{}{} }
			}
			var bufs []*gpu.Buffer
			for range 3 {
				b, err := dev.ImportHost(make([]byte, 100), fn)
				must(t, err)
				bufs = append(bufs, b)
			}
			count(t, d, 3, 0)
			s := semaphores(t, 1)[0]
			d.StallDevice(0)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(bufs[0].All(), []byte{1})))
			must(t, bufs[0].Close()) // in use by work in flight
			must(t, bufs[1].Close()) // not used
			eventually(t, "one is unregistered", func() bool { return calls(d, 0, simdriver.OpUnregister) == 1 })
			d.ResumeDevice(0)
			must(t, s.Wait(minute(t), 1))
			eventually(t, "two are unregistered", func() bool { return calls(d, 0, simdriver.OpUnregister) == 2 })
			must(t, dev.Close())
			count(t, d, 3, 3)
			for _, b := range bufs {
				must(t, b.Close())
			}
			count(t, d, 3, 3)
			if callback {
				for range 3 {
					<-freed
				}
			}
			if len(freed) > 0 {
				t.Error("the function was called too often")
			}
		})
	}
	eachCaps(t, "B97 an import is refused if host memory cannot be registered", func(t *testing.T, caps driver.Caps) {
		caps.HostRegister = false
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		b, err := dev.ImportHost(make([]byte, 8), func() { t.Error("called") })
		if b != nil || !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("ImportHost = %v, %v", b, err)
		}
		if b, err = dev.ImportHost(nil, nil); err != nil {
			t.Errorf("an import of nothing: %v", err)
		}
		must(t, b.Close())
		count(t, d, 0, 0)
	})
	eachCaps(t, "B97 a failed import leaks nothing", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		d.Inject(simdriver.Fault{Op: simdriver.OpRegister, N: 1})
		if b, err := dev.ImportHost(make([]byte, 8), func() { t.Error("called") }); b != nil || !errors.Is(err, simdriver.ErrInjected) {
			t.Errorf("ImportHost = %v, %v", b, err)
		}
		if st := dev.Stats(); st.Buffers != 0 {
			t.Errorf("%+v", st)
		}
		count(t, d, 1, 0)
	})
	eachCaps(t, "B95 code is unloaded with the last of its variables and launches", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		x, err := dev.Load(simdriver.Image("words", "table=64"))
		must(t, err)
		b, err := x.Global("table")
		must(t, err)
		s := semaphores(t, 1)[0]
		must(t, x.Close())
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, s.Wait(minute(t), 1))
		if n := calls(d, 0, simdriver.OpUnload); n != 0 {
			t.Errorf("%d modules unloaded, and a variable is used", n)
		}
		must(t, b.Close())
		eventually(t, "it is unloaded", func() bool { return calls(d, 0, simdriver.OpUnload) == 1 })
		x, err = dev.Load(simdriver.Image("words", "table=64"))
		must(t, err)
		_, err = x.Global("table") // the buffer of a variable, which only closing the device frees
		must(t, err)
		must(t, dev.Close())
		if n := calls(d, 0, simdriver.OpUnload); n != 2 {
			t.Errorf("%d modules unloaded", n)
		}
	})
	t.Run("B118 B119 native calls that make or destroy objects come from threads on which the device is current", func(t *testing.T) {
		if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
			t.Skip("threads cannot be told apart")
		}
		for name, caps := range bothCaps() {
			// newSim makes a strict driver, which checks the current device.
			d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
			w := &watched{Driver: d, t: t, name: name}
			var devs []*gpu.Device
			for i := range 2 {
				devs = append(devs, openDevice(t, w, i, gpu.Options{Queues: 2, Events: 1, StageSize: 4096}))
			}
			s, x, y := semaphores(t, 1)[0], semaphores(t, 1)[0], semaphores(t, 1)[0]
			bufs := []*gpu.Buffer{allocate(t, devs[0], 16384), allocate(t, devs[1], 16384), allocate(t, devs[0], 64)}
			told := make(chan error, 1)
			s.OnReached(50, func(err error) {
				if err == nil {
					err = devs[0].Queue(0).Submit(gpu.Order{Signal: pts(x, 1)}, gpu.Fill(bufs[2].All(), []byte{1}))
				}
				told <- err
			})
			for v := range uint64(100) {
				i := v % 2
				must(t, devs[i].Queue(int(v/2)).Submit(gpu.Order{Wait: pts(s, v), Signal: pts(s, v+1)}, gpu.Copy(bufs[i].All(), bufs[1-i].All())))
			}
			must(t, devs[0].Queue(0).Submit(order(s, 100, s, 101), gpu.Upload(bufs[0].All(), make([]byte, 16384))))
			must(t, devs[1].Queue(0).Submit(order(s, 101, s, 102), gpu.HostCall(func() error {
				return devs[1].Queue(1).Submit(gpu.Order{Signal: pts(y, 1)}, gpu.Download(make([]byte, 64), bufs[1].Range(0, 64)))
			})))
			must(t, s.Wait(minute(t), 102))
			must(t, <-told)
			must(t, gpu.WaitAll(minute(t), gpu.Point{Semaphore: x, Value: 1}, gpu.Point{Semaphore: y, Value: 1}))
			for _, dev := range devs {
				must(t, dev.Close())
			}
		}
	})
}

// A watched is a driver that checks that the right device is current when events are made, and when
// events and streams are destroyed.
type watched struct {
	*simdriver.Driver
	t    testing.TB
	name string
}

func (w *watched) Open(i int) (driver.Device, error) {
	v, err := w.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return &watchedDevice{v, w, i}, nil
}

type watchedDevice struct {
	driver.Device
	w     *watched
	index int
}

func (v *watchedDevice) look(op string) {
	if at, ok := v.w.Current(); ok && at != v.index || !ok {
		v.w.t.Errorf("%s: %s on device %d, with %d current (%v)", v.w.name, op, v.index, at, ok)
	}
}

func (v *watchedDevice) NewEvent() (driver.Event, error) {
	v.look("new event")
	return v.Device.NewEvent()
}

func (v *watchedDevice) DestroyEvent(e driver.Event) error {
	v.look("destroy event")
	return v.Device.DestroyEvent(e)
}

func (v *watchedDevice) DestroyStream(s driver.Stream) error {
	v.look("destroy stream")
	return v.Device.DestroyStream(s)
}

// TestLentMemoryIsGivenBackUnasked closes imported memory that work still uses: issued work, parked
// work, or work of another device. The function of the import must be called soon after that work,
// although nobody waits for the work.
func TestLentMemoryIsGivenBackUnasked(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		_, err := gpu.NewGroup(dev, other)
		if err != nil && !errors.Is(err, driver.ErrUnsupported) {
			t.Fatal(err)
		}
		own := allocate(t, dev, 64)
		for what, submit := range map[string]func(b *gpu.Buffer, host *gpu.Semaphore) error{
			"issued": func(b *gpu.Buffer, _ *gpu.Semaphore) error {
				return dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1}))
			},
			"parked": func(b *gpu.Buffer, host *gpu.Semaphore) error {
				return dev.Queue(0).Submit(gpu.Order{Wait: pts(host, 1)}, gpu.Fill(b.All(), []byte{1}))
			},
			"another device's": func(b *gpu.Buffer, _ *gpu.Semaphore) error {
				return other.Queue(0).Submit(gpu.Order{}, gpu.Copy(allocate(t, other, 64).All(), b.All()))
			},
		} {
			host, back := semaphores(t, 1)[0], make(chan struct{})
			b, err := interop.ImportPointer(dev, own.Ptr(), 64, func() { close(back) })
			must(t, err)
			must(t, d.StallDevice(0))
			must(t, d.StallDevice(1))
			must(t, submit(b, host))
			must(t, b.Close())
			synctest.Wait()
			select {
			case <-back:
				t.Errorf("%s: it is given back before the work is over", what)
			default:
			}
			must(t, host.Signal(1))
			must(t, d.ResumeDevice(0))
			must(t, d.ResumeDevice(1))
			select {
			case <-back:
			case <-minute(t).Done():
				t.Errorf("%s: it is not given back", what)
			}
		}
	})
}
