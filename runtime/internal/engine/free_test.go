package engine_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A telling supplies the point for an Order.Free: value 1 of a semaphore of its own.
type telling struct {
	t testing.TB
	s *gpu.Semaphore
}

func newTelling(t testing.TB) *telling { return &telling{t, semaphores(t, 1)[0]} }

func (f *telling) points() []gpu.Point { return pts(f.s, 1) }

// soon fails the test if the point is not signalled within a minute.
func (f *telling) soon() {
	f.t.Helper()
	if err := f.s.Wait(minute(f.t), 1); err != nil {
		f.t.Fatal("the point of Free is not signalled: ", err)
	}
}

// yet fails the test if the point has been signalled or has failed.
func (f *telling) yet() {
	f.t.Helper()
	if n, err := f.s.Query(); n != 0 || err != nil {
		f.t.Fatal("the point of Free is signalled while the device may use the memory: ", n, err)
	}
}

// TestFree checks that the points of Order.Free are signalled when the operation no longer uses its
// memory, whether the operation's signals are reached or fail. The points of Order.Free must not be
// signalled if the call returns an error.
func TestFree(t *testing.T) {
	const piece = 4096
	for name, size := range map[string]int{"staged": 64, "in pieces": 5 * piece} {
		t.Run("B148 a download whose semaphore was failed by hand, "+name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{StageSize: piece})
				b, q, s, f := allocate(t, dev, uint64(size)), dev.Queue(0), semaphores(t, 2), newTelling(t)
				must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{7})))
				must(t, s[0].Wait(minute(t), 1))
				must(t, d.StallDevice(0))
				got := make([]byte, size)
				o := gpu.Order{Signal: pts(s[1], 1), Free: f.points()}
				must(t, q.Submit(o, gpu.Download(got, b.All())))
				eventually(t, "the device has a part of it", func() bool { return dev.Stats().InFlight > 0 }, dev)
				s[1].Fail(io.EOF)
				f.yet()
				must(t, d.ResumeDevice(0))
				f.soon()
				if !bytes.Equal(got, bytes.Repeat([]byte{7}, size)) {
					t.Error("it went on, and has not written all")
				}
			})
		})
	}
	t.Run("B148 an import that the device writes to", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			if !caps.HostRegister {
				t.Skip("no imports")
			}
			mem, s, f := make([]byte, 4096), semaphores(t, 1)[0], newTelling(t)
			b, err := dev.ImportHost(mem, nil)
			must(t, err)
			must(t, d.StallDevice(0))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1), Free: f.points()}, gpu.Fill(b.All(), []byte{1})))
			s.Fail(io.EOF)
			f.yet()
			must(t, d.ResumeDevice(0))
			f.soon()
			mem[0] = 2 // the program may use the slice again
			must(t, b.Close())
		})
	})
	t.Run("B148 reached, not run, and refused", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			b, q, s := allocate(t, dev, 64), dev.Queue(0), semaphores(t, 3)
			reached, passed, called, failed, refused := newTelling(t), newTelling(t), newTelling(t), newTelling(t), newTelling(t)
			must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1), Free: reached.points()}, gpu.UploadCopy(b.All(), make([]byte, 64))))
			must(t, q.Submit(gpu.Order{Wait: pts(s[0], 1), Free: passed.points()}, gpu.Barrier()))
			must(t, q.Submit(gpu.Order{Wait: pts(s[0], 1), Free: called.points()}, gpu.HostCall(func() error { called.yet(); return io.EOF })))
			must(t, q.Submit(gpu.Order{Wait: pts(s[1], 1), Free: failed.points()}, gpu.Upload(b.All(), make([]byte, 64))))
			failed.yet()
			s[1].Fail(io.EOF)
			for _, f := range []*telling{reached, passed, called, failed} {
				f.soon()
			}
			if err := q.Submit(gpu.Order{Free: refused.points()}, gpu.Download(make([]byte, 65), b.All())); !errors.Is(err, gpu.ErrArgument) {
				t.Error(err)
			}
			if err := q.Submit(gpu.Order{Wait: pts(s[2], 2), Signal: pts(s[2], 1), Free: refused.points()}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrValue) {
				t.Error(err)
			}
			if err := q.Submit(gpu.Order{Free: make([]gpu.Point, 1)}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrArgument) {
				t.Error(err)
			}
			must(t, s[0].Wait(minute(t), 1))
			must(t, q.Submit(gpu.Order{Free: newTelling(t).points()}, gpu.Free(alloca(t, q, gpu.Order{Free: newTelling(t).points()}, nil, 64))))
			must(t, dev.Close())
			if err := q.Submit(gpu.Order{Free: refused.points()}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrClosed) {
				t.Error(err)
			}
			refused.yet()
		})
	})
	for name, size := range map[string]int{"staged": 64, "in pieces": 5 * piece} {
		t.Run("B148 on a lost device, when it is closed, "+name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{StageSize: piece})
				b, s, f := allocate(t, dev, uint64(size)), semaphores(t, 1)[0], newTelling(t)
				must(t, d.StallDevice(0))
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1), Free: f.points()}, gpu.Download(make([]byte, size), b.All())))
				eventually(t, "the device has it", func() bool { return dev.Stats().InFlight > 0 }, dev)
				must(t, d.LoseDevice(0, nil))
				if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
					t.Error(err)
				}
				eventually(t, "it is given up", func() bool { return dev.Stats().InFlight == 0 }, dev)
				time.Sleep(time.Millisecond)
				f.yet()
				dev.Close()
				f.soon()
			})
		})
	}
	t.Run("B148 a transfer with a piece that the driver refused", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{StageSize: piece})
			b, s, f := allocate(t, dev, 5*piece), semaphores(t, 1)[0], newTelling(t)
			must(t, d.StallDevice(0))
			d.Inject(simdriver.Fault{Op: simdriver.OpUpload, N: 2})
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1), Free: f.points()}, gpu.Upload(b.All(), make([]byte, 5*piece))))
			if err := s.Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
			f.yet()
			must(t, d.ResumeDevice(0))
			f.soon()
		})
	})
	t.Run("B148 a copy to another driver, with a refused piece", func(t *testing.T) {
		d, other := newSim(t, simdriver.Config{}), newSim(t, simdriver.Config{})
		dev, there := openDevice(t, d, 0, gpu.Options{StageSize: piece}), openDevice(t, other, 0, gpu.Options{StageSize: piece / 4})
		from, to, s, f := allocate(t, dev, 2*piece), allocate(t, there, 2*piece), semaphores(t, 1)[0], newTelling(t)
		must(t, other.StallDevice(0))
		other.Inject(simdriver.Fault{Op: simdriver.OpUpload, N: 2})
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1), Free: f.points()}, gpu.Copy(to.All(), from.All())))
		if err := s.Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		f.yet()
		must(t, other.ResumeDevice(0))
		f.soon()
	})
	t.Run("B148 a recording in several parts signals after all parts", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			b, q, s := allocate(t, dev, 64), dev.Queue(0), semaphores(t, 2)
			for i, end := range []error{nil, io.EOF} {
				f, c := newTelling(t), commandBuffer(t, dev, gpu.AutoMode)
				recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
				recorded(t)(c.Add(gpu.Barrier()))
				recorded(t)(c.Add(gpu.HostCall(func() error { f.yet(); return end })))
				recorded(t)(c.Add(gpu.Barrier()))
				recorded(t)(c.Add(gpu.Fill(b.All(), []byte{2})))
				must(t, c.End())
				must(t, q.Submit(gpu.Order{Signal: pts(s[i], 1), Free: f.points()}, gpu.Execute(c)))
				f.soon()
				if err := s[i].Wait(minute(t), 1); !errors.Is(err, end) {
					t.Error(err)
				}
			}
		})
	})
}

// TestFreeOfPartRefused executes a recording with two parts. A communicator refuses the second
// part. The points of Order.Free must be signalled when the first part has completed.
func TestFreeOfPartRefused(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	g, comms := openCommunicators(t, d, 1, collective.Options{})
	dev := g.Devices()[0]
	b, c, s, f := allocate(t, dev, 64), commandBuffer(t, dev, gpu.StreamMode), semaphores(t, 1), newTelling(t)
	recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
	recorded(t)(c.Add(gpu.Barrier()))
	recorded(t)(c.Add(comms[0].Group(sum(b))))
	must(t, c.End())
	must(t, comms[0].Close())
	must(t, d.StallDevice(0))
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1), Free: f.points()}, gpu.Execute(c)))
	if err := s[0].Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
		t.Error(err)
	}
	f.yet()
	must(t, d.ResumeDevice(0))
	f.soon()
}
