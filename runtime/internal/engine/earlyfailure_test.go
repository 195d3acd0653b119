package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// given frees b, which is all the memory of the pool p, and checks that p does not allocate the
// memory again: the stream may still run work that uses the memory, even if the signals of that
// work have failed.
func given(t *testing.T, q *gpu.Queue, p *gpu.Pool, b *gpu.Buffer) {
	t.Helper()
	must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
	full(t, q, p)
}

// TestMishap checks that memory is not allocated again while a stream may use it, although the
// signals of the work have failed: because a device was lost, the driver refused a call, or the
// program failed the semaphore. Memory that such work does not use must be freed as usual.
func TestMishap(t *testing.T) {
	t.Run("B125 work after a lost device's signals the same semaphore", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		lost, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		s := semaphores(t, 1)[0]
		d.StallDevice(0)
		must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
		p, all := whole(t, dev)
		b := alloca(t, dev.Queue(1), gpu.Order{}, p, all)
		must(t, dev.Queue(0).Submit(order(s, 1, s, 2), gpu.Fill(b.All(), []byte{1})))
		d.LoseDevice(0, nil)
		if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Fatal(err)
		}
		// The device dev is about to be lost, because it waits for the lost device. The memory must
		// not be allocated again, neither before nor after the loss of dev.
		if err := dev.Queue(1).Submit(gpu.Order{}, gpu.Free(b)); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
		again := semaphores(t, 1)[0]
		_, err := testkit.AllocIn(dev.Queue(1), gpu.Order{Signal: pts(again, 1)}, p, all)
		if err == nil {
			err = again.Wait(minute(t), 1)
		}
		if !errors.Is(err, driver.ErrLost) && !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("the memory is allocated again: %v", err)
		}
		eventually(t, "the device that waits for the lost one is lost as well", func() bool { return dev.Stats().Lost }, dev)
	})
	for name, use := range map[string]func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order){
		"a part of an operation": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 2})
			must(t, q.Submit(o, gpu.Fill(b.All(), []byte{1, 1, 1, 1, 3, 3, 3, 3})))
		},
		"a part of a transfer in pieces": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			d.Inject(simdriver.Fault{Op: simdriver.OpUpload, N: 2})
			must(t, q.Submit(o, gpu.Upload(b.All(), make([]byte, b.Size()))))
		},
		"a part of native work": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			must(t, q.Submit(o, gpu.Native("", func(n gpu.NativeCall) error {
				return errors.Join(n.Device.Fill(n.Stream, n.Ptrs[0], 1, 1, 64), simdriver.ErrInjected)
			}, b.All())))
		},
		"a part of a recording that is bound to it": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			c := commandBuffer(t, q.Device(), gpu.StreamMode)
			x, err := c.Binding()
			must(t, err)
			recorded(t)(c.Add(gpu.Fill(x.Range(0, 8), []byte{1})))
			recorded(t)(c.Add(gpu.Fill(x.Range(8, 8), []byte{1})))
			must(t, c.End())
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 2})
			must(t, q.Submit(o, gpu.Execute(c, b.All())))
			must(t, c.Close())
		},
		"a part of a recording in which another one has it": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			inner, c := commandBuffer(t, q.Device(), gpu.StreamMode), commandBuffer(t, q.Device(), gpu.StreamMode)
			recorded(t)(inner.Add(gpu.Fill(b.Range(0, 8), []byte{1})))
			must(t, inner.End())
			recorded(t)(c.Add(gpu.Execute(inner)))
			recorded(t)(c.Add(gpu.Execute(inner)))
			must(t, c.End())
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 2})
			must(t, q.Submit(o, gpu.Execute(c)))
			must(t, inner.Close())
			must(t, c.Close())
		},
		"other work that was to signal the same semaphore": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			must(t, q.Submit(o, gpu.Fill(b.All(), []byte{1})))
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1})
			must(t, q.Submit(gpu.Order{Signal: pts(o.Signal[0].Semaphore, 2)}, gpu.Fill(allocate(t, q.Device(), 64).All(), []byte{1})))
		},
	} {
		t.Run("B125 the driver has refused "+name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2, StageSize: 4096}), semaphores(t, 1)[0]
			p, all := whole(t, dev)
			b, stream := allocated(t, dev.Queue(1), p, all), d.Streams(0)[0]
			must(t, d.StallStream(stream))
			use(t, d, dev.Queue(0), b, gpu.Order{Signal: pts(s, 1)})
			if err := s.Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
				t.Fatal(err)
			}
			given(t, dev.Queue(1), p, b)
			must(t, d.ResumeStream(stream))
			unused(t, p) // the memory must become free although nobody waits for the work that used it
		})
	}
	t.Run("B90 memory that such work does not use is freed as its free says", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 3)
		p, all := whole(t, dev)
		d.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		s[0].Fail(io.EOF)
		b := alloca(t, dev.Queue(1), gpu.Order{}, p, all)
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, dev.Queue(1).Submit(gpu.Order{}, gpu.Free(b)))
		b = alloca(t, dev.Queue(1), gpu.Order{Signal: pts(s[2], 1)}, p, all)
		d.ResumeDevice(0)
		must(t, s[2].Wait(minute(t), 1))
		must(t, dev.Queue(1).Submit(gpu.Order{}, gpu.Free(b)))
	})
	for name, use := range map[string]func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore){
		"before it was issued": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore) {
			w := semaphores(t, 1)[0]
			must(t, dev.Queue(0).Submit(order(w, 1, s, 1), gpu.Fill(b.All(), []byte{1})))
			s.Fail(io.EOF)
			must(t, w.Signal(1))
			eventually(t, "it is issued", func() bool { return dev.Stats().InFlight > 0 })
		},
		"during a transfer in pieces": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore) {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Upload(b.All(), make([]byte, b.Size()))))
			eventually(t, "a piece is issued", func() bool { return dev.Stats().InFlight > 0 })
			s.Fail(io.EOF)
		},
		"before the first piece of a transfer": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore) {
			w := semaphores(t, 1)[0]
			must(t, dev.Queue(0).Submit(order(w, 1, s, 1), gpu.Upload(b.All(), make([]byte, b.Size()))))
			s.Fail(io.EOF)
			must(t, w.Signal(1))
			eventually(t, "a piece is issued", func() bool { return dev.Stats().InFlight > 0 })
		},
		"during an execution of several parts": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore) {
			c := commandBuffer(t, dev, gpu.StreamMode)
			x, err := c.Binding()
			must(t, err)
			recorded(t)(c.Add(gpu.Fill(x.Range(0, 8), []byte{1})))
			recorded(t)(c.Add(gpu.Barrier()))
			recorded(t)(c.Add(gpu.HostCall(func() error { return nil })))
			must(t, c.End())
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c, b.All())))
			eventually(t, "a part is issued", func() bool { return dev.Stats().InFlight > 0 })
			s.Fail(io.EOF)
			must(t, c.Close())
		},
	} {
		t.Run("B125 a program fails the semaphore of work "+name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2, StageSize: 4096}), semaphores(t, 1)[0]
			p, all := whole(t, dev)
			b, stream := allocated(t, dev.Queue(1), p, all), d.Streams(0)[0]
			must(t, d.StallStream(stream))
			use(t, dev, b, s)
			given(t, dev.Queue(1), p, b)
			must(t, d.ResumeStream(stream))
			unused(t, p)
		})
	}
	t.Run("B125 a program fails the semaphore of native work that is being issued", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 1)[0]
		p, all := whole(t, dev)
		b, inside, goes, issued := allocated(t, dev.Queue(1), p, all), make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			issued <- dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Native("", func(gpu.NativeCall) error {
				close(inside)
				<-goes
				return nil
			}, b.All()))
		}()
		<-inside
		s.Fail(io.EOF)
		given(t, dev.Queue(1), p, b)
		close(goes)
		must(t, <-issued)
		unused(t, p)
	})
	t.Run("B125 a program fails the semaphore of a copy that is being issued", func(t *testing.T) {
		hook := &uploadHook{Driver: newSim(t, simdriver.Config{})}
		dev, s := openDevice(t, hook, 0, gpu.Options{Queues: 2}), semaphores(t, 1)[0]
		p, all := whole(t, dev)
		b := alloca(t, dev.Queue(1), gpu.Order{}, p, all)
		hook.before = func() {
			s.Fail(io.EOF)
			given(t, dev.Queue(1), p, b)
		}
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.UploadCopy(b.Range(0, 64), make([]byte, 64))))
		unused(t, p)
	})
	t.Run("B125 a program fails the semaphore of a group that the library keeps", func(t *testing.T) {
		goes, inside := make(chan struct{}), make(chan struct{}, 1)
		d := &commHook{Driver: newSim(t, simdriver.Config{})}
		d.collect = func(v *commHookDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
			inside <- struct{}{}
			<-goes
			return v.Comms.Collect(s, c, ops)
		}
		g, comms := newCommunicators(t, d, gpu.Options{}, collective.Options{})
		dev, s := g.Devices()[0], semaphores(t, 1)[0]
		p, all := whole(t, dev)
		b := alloca(t, dev.Queue(0), gpu.Order{}, p, all)
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), sum(b))))
		<-inside
		s.Fail(io.EOF)
		given(t, dev.Queue(0), p, b)
		close(goes)
		unused(t, p)
		must(t, g.Close())
	})
	t.Run("B125 a program has failed the semaphore of a transfer, and a piece is being issued", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		hook := &uploadHook{Driver: d}
		dev, s := openDevice(t, hook, 0, gpu.Options{Queues: 2, StageSize: 4096}), semaphores(t, 2)
		p, all := whole(t, dev)
		b, once := alloca(t, dev.Queue(1), gpu.Order{}, p, all), new(sync.Once)
		hook.before = func() { once.Do(func() { given(t, dev.Queue(1), p, b) }) }
		must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Upload(b.All(), make([]byte, all))))
		s[1].Fail(io.EOF)
		must(t, s[0].Signal(1))
		unused(t, p)
	})
	t.Run("B125 such work of another device is found complete without polling", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		dev, other, s := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{}), semaphores(t, 1)[0]
		p, all := whole(t, dev)
		b := alloca(t, dev.Queue(0), gpu.Order{}, p, all)
		must(t, d.StallDevice(1))
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Copy(b.Range(0, 64), allocate(t, other, 64).All())))
		s.Fail(io.EOF)
		given(t, dev.Queue(0), p, b)
		must(t, d.ResumeDevice(1))
		unused(t, p)
	})
	for name, use := range map[string]func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, s *gpu.Semaphore){
		"it is deallocated with a semaphore that has failed": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, s *gpu.Semaphore) {
			must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Free(b)))
		},
		"the driver has refused other work whose semaphore had failed": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, s *gpu.Semaphore) {
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1})
			must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, q.Device(), 64).All(), []byte{1})))
			must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
		},
	} {
		t.Run("B90 memory of a recording is freed as its free says where "+name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 2)
			p, all := whole(t, dev)
			q, c := dev.Queue(0), commandBuffer(t, dev, gpu.StreamMode)
			b := alloca(t, q, gpu.Order{}, p, all)
			recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
			must(t, c.End())
			s[0].Fail(io.EOF)
			use(t, d, q, b, s[0])
			b = alloca(t, q, gpu.Order{Signal: pts(s[1], 1)}, p, all)
			must(t, s[1].Wait(minute(t), 1))
			must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
			must(t, c.Close())
		})
	}
	t.Run("B125 the library keeps the thread", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stuck, inside := make(chan struct{}), make(chan struct{}, 1)
			d := &commHook{Driver: simdriver.New(simdriver.Config{})}
			d.collect = func(*commHookDevice, driver.Stream, driver.Comm, []driver.CommOp) error {
				inside <- struct{}{}
				<-stuck
				return errors.New("much too late")
			}
			d.abort = func(*commHookDevice, driver.Comm) error { return errors.New("the library does not want to") }
			g, comms := newCommunicators(t, d, gpu.Options{}, collective.Options{})
			dev, s := g.Devices()[0], semaphores(t, 1)[0]
			p, all := whole(t, dev)
			b := alloca(t, dev.Queue(0), gpu.Order{}, p, all)
			must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), sum(b))))
			<-inside
			comms[0].Abort(nil)
			comms[0].Close()
			if err := s.Wait(minute(t), 1); !errors.Is(err, collective.ErrAborted) {
				t.Error(err)
			}
			given(t, dev.Queue(0), p, b)
			close(stuck)
			synctest.Wait()
			g.Close()
		})
	})
}

// An uploadHook is a driver that calls uploadHook.before ahead of each upload.
type uploadHook struct {
	driver.Driver
	before func()
}

func (h *uploadHook) Open(i int) (driver.Device, error) {
	d, err := h.Driver.Open(i)
	return &hookedUploads{d, h}, err
}

type hookedUploads struct {
	driver.Device
	hook *uploadHook
}

func (d *hookedUploads) Upload(s driver.Stream, dst driver.Ptr, src unsafe.Pointer, n uint64) error {
	d.hook.before()
	return d.Device.Upload(s, dst, src, n)
}

// TestCoveredFails checks that work fails if it waits for a group that is aborted, also if the work
// makes no native wait because earlier work in its stream has made one.
func TestCoveredFails(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	g, comms := openCommunicators(t, d, 1, collective.Options{})
	dev, s := g.Devices()[0], semaphores(t, 3)
	q, streams, x := dev.Queue(0), d.Streams(0), allocate(t, dev, 64)
	must(t, d.StallStream(streams[len(streams)-1]))
	must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, comms[0].GroupContext(t.Context(), collective.SendReceive(x.All(), x.All(), collective.Float32, -1, -1))))
	eventually(t, "it is issued", func() bool { return dev.Stats().InFlight == 1 }, dev)
	must(t, q.Submit(order(s[0], 1, s[1], 1), gpu.Fill(x.All(), []byte{1})))
	must(t, q.Submit(order(s[0], 1, s[2], 1), gpu.Fill(x.All(), []byte{1})))
	comms[0].Abort(nil)
	must(t, d.ResumeStream(streams[len(streams)-1]))
	for i, s := range s {
		if err := s.Wait(minute(t), 1); !errors.Is(err, collective.ErrAborted) {
			t.Errorf("semaphore %d: %v", i, err)
		}
	}
}

type writerFunc func(p []byte, at int64) (int, error)

func (f writerFunc) WriteAt(p []byte, at int64) (int, error) { return f(p, at) }

type readerFunc func(p []byte, at int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// TestPinnedMemory fails transfers in pieces while the device still has to copy some of the pieces.
// Until the device has copied these pieces, their pinned memory must not be used for other
// transfers.
func TestPinnedMemory(t *testing.T) {
	const piece = 4096
	setup := func(t *testing.T, caps driver.Caps) (d *simdriver.Driver, q *gpu.Queue, a, b *gpu.Buffer) {
		d = newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{StageSize: piece})
		a, b = allocate(t, dev, 3*piece), allocate(t, dev, piece)
		s := semaphores(t, 1)[0]
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(a.All(), []byte{0x11})))
		must(t, s.Wait(minute(t), 1))
		d.StallDevice(0)
		return d, dev.Queue(0), a, b
	}
	eachCaps(t, "B87 a piece that the driver refuses", func(t *testing.T, caps driver.Caps) {
		d, q, a, b := setup(t, caps)
		s, x := semaphores(t, 1)[0], semaphores(t, 1)[0]
		d.Inject(simdriver.Fault{Op: simdriver.OpDownload, N: 2})
		must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.WriteTo(writerFunc(func(p []byte, at int64) (int, error) { return len(p), nil }), 0, a.All())))
		if err := s.Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
			t.Errorf("Wait = %v", err)
		}
		must(t, q.Submit(gpu.Order{Signal: pts(x, 1)}, gpu.UploadCopy(b.All(), bytes.Repeat([]byte{0x77}, piece))))
		d.ResumeDevice(0)
		if got := bytesOf(t, q, b, pts(x, 1)...); !bytes.Equal(got, bytes.Repeat([]byte{0x77}, piece)) {
			t.Errorf("the update wrote %#x", got[0])
		}
	})
	for name, end := range map[string]func(){"panics": func() { panic("no more") }, "ends its goroutine": runtime.Goexit} {
		eachCaps(t, "B87 B110 a reader that "+name, func(t *testing.T, caps driver.Caps) {
			d, q, a, b := setup(t, caps)
			s, x := semaphores(t, 1)[0], semaphores(t, 1)[0]
			must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.ReadFrom(a.All(), readerFunc(func(p []byte, at int64) (int, error) {
				if at > 0 {
					end()
				}
				return copy(p, bytes.Repeat([]byte{0x22}, piece)), nil
			}), 0)))
			if err := s.Wait(minute(t), 1); err == nil {
				t.Error("it has not failed")
			}
			must(t, q.Submit(gpu.Order{Signal: pts(x, 1)}, gpu.UploadCopy(b.All(), bytes.Repeat([]byte{0x77}, piece))))
			d.ResumeDevice(0)
			if got := bytesOf(t, q, a, pts(x, 1)...); got[0] != 0x22 || got[piece-1] != 0x22 || got[piece] != 0x11 {
				t.Errorf("the first piece is %#x, and the second %#x", got[0], got[piece])
			}
		})
	}
}

// TestBroken checks that refused work fails with the driver's error. If the stream has received a
// part of the work, the memory must not be freed before the stream has passed that part.
func TestBroken(t *testing.T) {
	t.Run("B80 B87 work that the stream has received in part keeps its memory", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			b, s := allocate(t, dev, 1<<20), semaphores(t, 3)
			d.StallDevice(0)
			d.Inject(simdriver.Fault{Op: simdriver.OpRecord, N: 1})
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{2})))
			for i := range 2 {
				if err := s[i].Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
					t.Errorf("semaphore %d: %v", i, err)
				}
			}
			must(t, b.Close())
			synctest.Wait() // gives other goroutines the time to free the memory
			if n := calls(d, 0, simdriver.OpFree); n != 0 || dev.Stats().Buffers != 1 {
				t.Errorf("%d frees while the device may write", n)
			}
			c := allocate(t, dev, 64)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(c.All(), []byte{3})))
			d.ResumeDevice(0)
			must(t, s[2].Wait(minute(t), 1))
			synctest.Wait()
			if n := dev.Stats().Buffers; n != 1 {
				t.Errorf("%d buffers, of which one is in use", n)
			}
		})
	})
	t.Run("B80 B86 B87 so does work whose end in the stream is unknown, until the device is closed", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			b, s := allocate(t, dev, 1<<20), semaphores(t, 2)
			d.StallDevice(0)
			d.Inject(simdriver.Fault{Op: simdriver.OpRecord, N: 1})
			d.Inject(simdriver.Fault{Op: simdriver.OpRecord, N: 2})
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			if err := s[0].Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
				t.Error(err)
			}
			if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{2})); !errors.Is(err, driver.ErrLost) {
				t.Errorf("behind work that nobody can wait for: %v", err)
			}
			must(t, b.Close())
			synctest.Wait()
			if n := calls(d, 0, simdriver.OpFree); n != 0 || dev.Stats().Buffers != 1 {
				t.Errorf("%d frees while the device may write", n)
			}
			d.ResumeDevice(0)
			must(t, dev.Close())
			if n := calls(d, 0, simdriver.OpFree); n != 1 {
				t.Errorf("%d frees when the device was closed", n)
			}
		})
	})
	eachCaps(t, "B77 B80 B82 refused work fails its signals with the driver's error, and nothing else", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		x, err := dev.Load(kernels.Basic)
		must(t, err)
		k, err := x.Kernel("words")
		must(t, err)
		b := allocate(t, dev, 64)
		ptr, q := b.Ptr(), dev.Queue(0)
		for op, c := range map[simdriver.Op]struct {
			name   string
			submit func(o gpu.Order) error
		}{
			simdriver.OpFill:     {"fill", func(o gpu.Order) error { return q.Submit(o, gpu.Fill(b.All(), []byte{1})) }},
			simdriver.OpCopy:     {"copy", func(o gpu.Order) error { return q.Submit(o, gpu.Copy(b.Range(0, 8), b.Range(8, 8))) }},
			simdriver.OpLaunch:   {"launch", func(o gpu.Order) error { return q.Submit(o, gpu.Launch(k, gpu.Grid{}, uint64(1), ptr, ptr)) }},
			simdriver.OpUpload:   {"upload", func(o gpu.Order) error { return q.Submit(o, gpu.UploadCopy(b.All(), make([]byte, 64))) }},
			simdriver.OpDownload: {"download", func(o gpu.Order) error { return q.Submit(o, gpu.Download(make([]byte, 64), b.All())) }},
		} {
			for _, oom := range []bool{true, false} {
				s := semaphores(t, 4)
				cause := errors.New("out of spare parts")
				d.Inject(simdriver.Fault{Op: op, N: 1, Err: cause, OOM: oom})
				must(t, c.submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}}))
				must(t, dev.Queue(1).Submit(order(s[1], 1, s[2], 1), gpu.Fill(b.All(), []byte{9})))
				for i := range 3 {
					err := s[i].Wait(minute(t), 1)
					var se *gpu.SubmitError
					var de *driver.Error
					if !errors.Is(err, cause) || !errors.As(err, &se) || se.Op != c.name || !errors.As(err, &de) || de.Op != string(op) || errors.Is(err, driver.ErrOutOfMemory) != oom || errors.Is(err, driver.ErrLost) {
						t.Errorf("%s, semaphore %d: %v", op, i, err)
					}
				}
				must(t, c.submit(gpu.Order{Signal: pts(s[3], 1)}))
				must(t, s[3].Wait(minute(t), 1))
			}
		}
	})
}

// TestLostParked checks that the loss of a device fails its parked work and its transfers,
// whichever call finds the loss. The test also makes transfers for which there is no pinned memory.
func TestLostParked(t *testing.T) {
	for op, provoke := range map[simdriver.Op]func(dev *gpu.Device, x *gpu.Module, b *gpu.Buffer) error{
		simdriver.OpAlloc: func(dev *gpu.Device, x *gpu.Module, b *gpu.Buffer) error {
			_, err := dev.Alloc(gpu.DeviceMem, 64)
			return err
		},
		simdriver.OpLoad: func(dev *gpu.Device, x *gpu.Module, b *gpu.Buffer) error {
			_, err := dev.Load(kernels.Basic)
			return err
		},
		simdriver.OpFunction: func(dev *gpu.Device, x *gpu.Module, b *gpu.Buffer) error { _, err := x.Kernel("words"); return err },
		simdriver.OpGlobal:   func(dev *gpu.Device, x *gpu.Module, b *gpu.Buffer) error { _, err := x.Global("table"); return err },
		simdriver.OpRegister: func(dev *gpu.Device, x *gpu.Module, b *gpu.Buffer) error {
			_, err := dev.ImportHost(make([]byte, 8), nil)
			return err
		},
	} {
		eachCaps(t, "B81 a call of "+string(op)+" that loses the device fails what it has", func(t *testing.T, caps driver.Caps) {
			d := newSim(t, simdriver.Config{Caps: &caps})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
			x, err := dev.Load(simdriver.Image("words", "table=64"))
			must(t, err)
			b, s := allocate(t, dev, 64), semaphores(t, 5)
			d.StallDevice(0)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(0).Submit(order(s[4], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(1).Submit(order(s[4], 2, s[2], 1), gpu.Barrier()))
			must(t, dev.Queue(1).Submit(order(s[4], 3, s[3], 1), gpu.HostCall(func() error { t.Error("called"); return nil })))
			eventually(t, "the first is issued", func() bool { return dev.Stats().InFlight == 1 }, dev)
			d.Inject(simdriver.Fault{Op: op, N: 1, Lost: true})
			if err := provoke(dev, x, b); !errors.Is(err, driver.ErrLost) {
				t.Errorf("the call: %v", err)
			}
			for i := range 4 { // s[1], s[2] and s[3] need s[4], which is never signalled
				if err := s[i].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
					t.Errorf("semaphore %d: %v", i, err)
				}
			}
			if v, err := s[4].Query(); v != 0 || err != nil {
				t.Errorf("the host's semaphore: %d, %v", v, err)
			}
			eventually(t, "nothing is left", func() bool { st := dev.Stats(); return st.InFlight+st.Parked == 0 }, dev)
		})
	}
	eachCaps(t, "B81 no pinned memory because the device is lost", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		b, s := allocate(t, dev, 64), semaphores(t, 2)
		d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, N: 1, Lost: true})
		if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.UploadCopy(b.All(), make([]byte, 64))); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Update = %v", err)
		}
		if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Download(make([]byte, 64), b.All())); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Download = %v", err)
		}
		for i := range s {
			if err := s[i].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("semaphore %d: %v", i, err)
			}
		}
	})
	eachCaps(t, "B82 no pinned memory", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{StageSize: 4096})
		b, s := allocate(t, dev, 3*4096), semaphores(t, 2)
		d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, N: 1, OOM: true})
		if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.UploadCopy(b.Range(0, 64), make([]byte, 64))); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("Update = %v", err)
		}
		if v, err := s[0].Query(); v != 0 || err != nil {
			t.Errorf("its signal is at %d, %v", v, err)
		}
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.UploadCopy(b.Range(0, 64), make([]byte, 64))))
		d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, N: 1, OOM: true})
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Upload(b.All(), make([]byte, 3*4096))))
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("the upload: %v", err)
		}
		must(t, s[0].Wait(minute(t), 1))
	})
	eachCaps(t, "B81 B108 a transfer in pieces ends with its device", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
		dev, other := openDevice(t, d, 0, gpu.Options{StageSize: 4096}), openDevice(t, d, 1, gpu.Options{StageSize: 4096})
		b, s := allocate(t, dev, 8*4096), semaphores(t, 4)
		d.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Upload(b.All(), make([]byte, 8*4096))))
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.WriteTo(writerFunc(func(p []byte, at int64) (int, error) { return 0, io.EOF }), 0, b.All())))
		must(t, dev.Queue(0).Submit(order(s[1], 1, s[2], 1), gpu.Notify(func() { t.Error("called") })))
		must(t, other.Queue(0).Submit(order(s[2], 1, s[3], 1), gpu.Barrier()))
		eventually(t, "pieces are on their way", func() bool { return dev.Stats().InFlight >= 4 }, dev)
		d.LoseDevice(0, nil)
		for i := range s {
			if err := s[i].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("semaphore %d: %v", i, err)
			}
		}
		must(t, other.Queue(0).Flush())
		if err := dev.Queue(0).Flush(); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Flush = %v", err)
		}
	})
}

// TestElided checks that work fails if it is ordered after work of a lost device, also if it makes
// no native wait of its own.
func TestElided(t *testing.T) {
	eachCaps(t, "B78 B81 work without a native wait fails with the work that it depends on", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
		lost, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		a, b, s := allocate(t, lost, 64), allocate(t, other, 64), semaphores(t, 6)
		must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1})))
		// This fill makes the stream wait for an event.
		must(t, other.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.Range(0, 16), []byte{1})))
		// This fill comes behind that wait, in the same stream.
		must(t, other.Queue(0).Submit(order(s[1], 1, s[2], 1), gpu.Fill(b.Range(16, 16), []byte{2})))
		// This fill comes behind these two fills, in another stream.
		must(t, other.Queue(1).Submit(order(s[2], 1, s[3], 1), gpu.Fill(b.Range(32, 16), []byte{3})))
		// Queue 1 has waited for s[2], which comes after s[1]. So this fill may need no native
		// wait.
		must(t, other.Queue(1).Submit(order(s[1], 1, s[4], 1), gpu.Fill(b.Range(48, 16), []byte{4})))
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[5], 1)}, gpu.Fill(b.Range(0, 0), []byte{5})))
		eventually(t, "both devices are through", func() bool {
			c := d.Counters()
			return c.Devices[0].Calls[simdriver.OpFill] == 1 && c.Devices[1].Calls[simdriver.OpFill] == 4 && c.Devices[0].Pending+c.Devices[1].Pending == 0
		})
		d.LoseDevice(0, nil) // most likely the host has not queried any event yet
		if _, err := lost.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Alloc = %v", err)
		}
		ctx := minute(t)
		if s[0].Wait(ctx, 1) == nil {
			t.Skip("the host knew that the work was done")
		}
		for i := range 5 {
			if err := s[i].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("semaphore %d: %v", i, err)
			}
		}
		must(t, s[5].Wait(ctx, 1))
	})
}

// TestLostEvents checks that a device does not use an event again while the stream of a lost device
// may wait for it.
func TestLostEvents(t *testing.T) {
	t.Run("B79 B81 the other one does not use them again", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Caps: &driver.Caps{}, Devices: 2})
		lost, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Events: 1})
		a, b, s, x := allocate(t, lost, 64), allocate(t, other, 64), semaphores(t, 2), semaphores(t, 1)[0]
		d.StallDevice(0)
		must(t, lost.Queue(0).Submit(gpu.Order{}, gpu.Fill(a.All(), []byte{1})))
		d.StallDevice(1)
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, lost.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(a.All(), []byte{2})))
		eventually(t, "all is issued", func() bool { return lost.Stats().InFlight == 2 }, lost)
		d.ResumeDevice(1)
		must(t, s[0].Wait(minute(t), 1))
		pending := d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, Device: 0, N: 1, Lost: true})
		defer pending.Remove()
		if _, err := lost.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Alloc = %v", err)
		}
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Wait = %v", err)
		}
		made := other.Stats().Events
		for v := range uint64(50) {
			must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(x, v+1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, x.Wait(minute(t), v+1))
		}
		if st := other.Stats().Events; st.Free >= st.Made {
			t.Errorf("%+v, and %+v before: the event that the lost device waits for has come back", st, made)
		}
	})
}

// TestStrategies checks Wait, WaitAny and WaitAll with different values of Options.Spin and
// Options.Poll.
func TestStrategies(t *testing.T) {
	for name, o := range map[string]gpu.Options{
		"usual": {}, "park at once": {Spin: -1, Poll: -1}, "spin only": {Spin: 1 << 62, Poll: -1}, "ask only": {Spin: -1, Poll: 1 << 62}, "both": {Spin: 1 << 62, Poll: 1 << 62}, "a little": {Spin: 1, Poll: 1},
	} {
		eachCaps(t, "B40 "+name, func(t *testing.T, caps driver.Caps) {
			d := newSim(t, simdriver.Config{Caps: &caps})
			o.Queues = 2
			dev := openDevice(t, d, 0, o)
			b, s, host := allocate(t, dev, 64), semaphores(t, 4), semaphores(t, 1)[0]
			ctx := minute(t)
			d.StallDevice(0)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.Range(0, 8), []byte{1})))
			must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.Range(8, 8), []byte{1})))
			must(t, dev.Queue(1).Submit(order(host, 1, s[2], 1), gpu.Fill(b.Range(16, 8), []byte{1})))
			stopped, stop := context.WithCancel(ctx)
			stop()
			for _, i := range []int{0, 1, 2, 3} {
				if err := s[i].Wait(stopped, 1); !errors.Is(err, context.Canceled) {
					t.Errorf("a poll of semaphore %d: %v", i, err)
				}
			}
			later, stop := context.WithCancel(ctx)
			type answer struct {
				what string
				i    int
				err  error
			}
			got := make(chan answer, 8)
			go func() {
				err := s[0].Wait(later, 1)
				got <- answer{"interrupted", 0, err}
			}()
			eventually(t, "somebody waits", func() bool { stop(); return len(got) > 0 })
			if a := <-got; !errors.Is(a.err, context.Canceled) {
				t.Errorf("interrupted: %v", a.err)
			}
			go func() {
				i, err := gpu.WaitAny(ctx, gpu.Point{Semaphore: s[3], Value: 1}, gpu.Point{Semaphore: s[2], Value: 1})
				got <- answer{"any", i, err}
			}()
			go func() {
				err := gpu.WaitAll(ctx, gpu.Point{Semaphore: s[0], Value: 1}, gpu.Point{Semaphore: s[1], Value: 1}, gpu.Point{Semaphore: host, Value: 1})
				got <- answer{"all", 0, err}
			}()
			d.ResumeDevice(0)
			must(t, s[0].Wait(ctx, 1))
			must(t, host.Signal(1))
			for range 2 {
				if a := <-got; a.err != nil || a.what == "any" && a.i != 1 {
					t.Errorf("%s: %d, %v", a.what, a.i, a.err)
				}
			}
			go func() {
				_, err := gpu.WaitAny(ctx, gpu.Point{Semaphore: s[3], Value: 1}, gpu.Point{Semaphore: s[0], Value: 5})
				got <- answer{"failed", 0, err}
			}()
			s[3].Fail(io.EOF)
			if a := <-got; a.err != io.EOF {
				t.Errorf("failed: %v", a.err)
			}
			d.LoseDevice(0, nil)
			dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 2)}, gpu.Fill(b.All(), []byte{1}))
			if err := s[0].Wait(ctx, 2); !errors.Is(err, driver.ErrLost) {
				t.Errorf("lost: %v", err)
			}
		})
	}
}

// A commHook is a driver that calls commHook.collect for each group of collectives, and
// commHook.abort to abort a communicator. If commHook.abort is nil, the simulated driver aborts the
// communicator.
type commHook struct {
	*simdriver.Driver
	collect func(v *commHookDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error
	abort   func(v *commHookDevice, c driver.Comm) error
}

type commHookDevice struct {
	driver.Device
	driver.Comms
	d *commHook
}

func (d *commHook) Open(i int) (driver.Device, error) {
	v, err := d.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return &commHookDevice{v, v.(driver.Comms), d}, nil
}

// Caps returns only the features that the wrapper has.
func (v *commHookDevice) Caps() driver.Caps {
	return driver.Caps{Comms: true, RerecordEvents: v.Device.Caps().RerecordEvents}
}

func (v *commHookDevice) Collect(s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
	return v.d.collect(v, s, c, ops)
}

func (v *commHookDevice) AbortComm(c driver.Comm) error {
	if v.d.abort != nil {
		return v.d.abort(v, c)
	}
	return v.Comms.AbortComm(c)
}
