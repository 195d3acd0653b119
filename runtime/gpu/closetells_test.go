package gpu_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// onEachLeaky is onEach for what leaves something behind, of which Close has to tell.
func onEachLeaky(t *testing.T, test func(t *testing.T, d *simdriver.Driver)) {
	for _, set := range capabilitySets() {
		t.Run(set.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := simdriver.New(simdriver.Config{Caps: &set.caps, Kernels: simKernels, Strict: true})
				test(t, d)
				d.LoseDevice(0, nil) // what is left ends
				d.ResumeDevice(0)
			})
		})
	}
}

// TestCloseTells has Close say what did not end, or is left behind.
func TestCloseTells(t *testing.T) {
	t.Run("B85 work that does not end", func(t *testing.T) {
		onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
			d.StallDevice(0)
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, allocate(t, dev, 64).All(), []byte{1}))
			inFlight(t, dev, 1)
			start := time.Now()
			err := dev.Close()
			if !errors.Is(err, gpu.ErrClosed) || !errors.Is(err, driver.ErrBusy) {
				t.Errorf("%v, though work did not end and its stream is left", err)
			}
			var all *gpu.CloseError
			if !errors.As(err, &all) || all.Submissions != 1 || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "did not end within") {
				t.Errorf("%v is not one line that says first that work did not end", err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if again := dev.Close(); again != err {
				t.Errorf("again: %v", again)
			}
		})
	})
	for name, ends := range map[string]bool{"B85 a stream that does not end": false, "B85 a stream that ends in time": true} {
		t.Run(name+" behind an event that could not be recorded", func(t *testing.T) {
			onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
				b := allocate(t, dev, 1<<20)
				d.StallDevice(0)
				d.Inject(simdriver.Fault{Op: simdriver.OpRecord, Device: simdriver.AnyDevice})
				must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, b.All(), []byte{1}))
				if err := s[0].Wait(soon(t), 1); !errors.Is(err, simdriver.ErrInjected) {
					t.Fatal(err)
				}
				if ends {
					time.AfterFunc(100*time.Millisecond, func() { d.ResumeDevice(0) })
				}
				err := dev.Close()
				switch {
				case ends && (err != nil || len(d.Leaks()) > 0):
					t.Errorf("%v; left behind: %v", err, d.Leaks())
				case !ends && !errors.Is(err, driver.ErrBusy):
					t.Errorf("%v, though a stream is left", err)
				}
			})
		})
	}
	t.Run("B85 nothing is left of a device that is lost", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			allocate(t, dev, 64)
			d.LoseDevice(0, nil)
			if _, err := dev.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestCloseFromFunction closes a device in a function that work of it releases.
func TestCloseFromFunction(t *testing.T) {
	for name, submit := range map[string]func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error{
		"a host call": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.HostCall(o, func() error { return nil })
		},
		"a host call that fails": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.HostCall(o, func() error { return errRandom })
		},
		"a host call that panics": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.HostCall(o, func() error { panic(errRandom) })
		},
		"a notification": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.Notify(o, func() {})
		},
		"an upload": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			return q.Upload(o, b.All(), make([]byte, b.Size()))
		},
		"an upload that is refused in part": func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			d.Inject(simdriver.Fault{Op: simdriver.OpUpload, N: 2})
			return q.Upload(o, b.All(), make([]byte, b.Size()))
		},
		"a download that is refused in part": func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			d.Inject(simdriver.Fault{Op: simdriver.OpDownload, N: 2})
			return q.Download(o, make([]byte, b.Size()), b.All())
		},
		"a fill": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			return q.Fill(o, b.All(), []byte{1})
		},
		"a fill that is refused": func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1})
			return q.Fill(o, b.All(), []byte{1})
		},
		"a barrier": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error { return q.Barrier(o) },
	} {
		t.Run("B121 "+name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, s := openDevice(t, d, 0, gpu.Options{StageSize: 1 << 20}), semaphores(t, 2)
				closed := make(chan error, 1)
				begin := make(chan time.Time, 1)
				s[1].OnReached(1, func(error) {
					begin <- time.Now()
					closed <- dev.Close()
				})
				must(t, submit(dev.Queue(0), d, order(s[0], 1, s[1], 1), allocate(t, dev, 5<<20)))
				must(t, s[0].Signal(1))
				if err := <-closed; err != nil {
					t.Error(err)
				}
				if took := time.Since(<-begin); took > time.Second {
					t.Errorf("it took %v", took)
				}
				if left := d.Leaks(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		})
	}
}
