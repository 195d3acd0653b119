package gpu_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// given deallocates memory that work may still use whose signals have failed, or which comes after what has, and has the pool say
// that there is none: b is all of it.
func given(t *testing.T, q *gpu.Queue, p *gpu.Pool, b *gpu.Buffer) {
	t.Helper()
	must(t, q.Dealloca(gpu.Order{}, b))
	full(t, q, p)
}

// TestMishap deallocates memory after a failure that says nothing about the work which uses it: that may be in a stream still.
func TestMishap(t *testing.T) {
	t.Run("B125 work behind a lost device signals the same semaphore", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		lost, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		s := semaphores(t, 1)[0]
		d.StallDevice(0)
		must(t, lost.Queue(0).Fill(gpu.Order{Signal: pts(s, 1)}, allocate(t, lost, 64).All(), []byte{1}))
		p, all := whole(t, dev)
		b := alloca(t, dev.Queue(1), gpu.Order{}, p, all)
		must(t, dev.Queue(0).Fill(order(s, 1, s, 2), b.All(), []byte{1}))
		d.LoseDevice(0, nil)
		if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Fatal(err)
		}
		given(t, dev.Queue(1), p, b)
	})
	for name, use := range map[string]func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order){
		"a part of an operation": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 2})
			must(t, q.Fill(o, b.All(), []byte{1, 1, 1, 1, 3, 3, 3, 3}))
		},
		"a part of a transfer in pieces": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			d.Inject(simdriver.Fault{Op: simdriver.OpUpload, N: 2})
			must(t, q.Upload(o, b.All(), make([]byte, b.Size())))
		},
		"other work that was to signal the same semaphore": func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, b *gpu.Buffer, o gpu.Order) {
			must(t, q.Fill(o, b.All(), []byte{1}))
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1})
			must(t, q.Fill(gpu.Order{Signal: pts(o.Signal[0].Semaphore, 2)}, allocate(t, q.Device(), 64).All(), []byte{1}))
		},
	} {
		t.Run("B125 the driver has refused "+name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2, StageSize: 4096}), semaphores(t, 1)[0]
			p, all := whole(t, dev)
			b, stream := alloca(t, dev.Queue(1), gpu.Order{}, p, all), d.Streams(0)[0]
			must(t, d.StallStream(stream))
			use(t, d, dev.Queue(0), b, gpu.Order{Signal: pts(s, 1)})
			if err := s.Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
				t.Fatal(err)
			}
			given(t, dev.Queue(1), p, b)
			must(t, d.ResumeStream(stream))
			unused(t, p) // though nobody asks
		})
	}
	t.Run("B125 the library keeps the thread", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stuck, inside := make(chan struct{}), make(chan struct{}, 1)
			d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{})}
			d.collect = func(*stubbornDevice, driver.Stream, driver.Comm, []driver.CommOp) error {
				inside <- struct{}{}
				<-stuck
				return errors.New("much too late")
			}
			d.abort = func(*stubbornDevice, driver.Comm) error { return errors.New("the library does not want to") }
			g, err := gpu.OpenGroup(d, gpu.Options{})
			must(t, err)
			chans, err := g.NewChannels(minute(t), gpu.ChannelOptions{})
			must(t, err)
			dev, s := g.Devices()[0], semaphores(t, 1)[0]
			p, all := whole(t, dev)
			b := alloca(t, dev.Queue(0), gpu.Order{}, p, all)
			must(t, chans[0].Submit(t.Context(), gpu.Order{Signal: pts(s, 1)}, sum(b)))
			<-inside
			chans[0].Abort(nil)
			chans[0].Close()
			if err := s.Wait(minute(t), 1); !errors.Is(err, gpu.ErrAborted) {
				t.Error(err)
			}
			given(t, dev.Queue(0), p, b)
			close(stuck)
			synctest.Wait()
			g.Close()
		})
	})
}

// TestCoveredFails aborts a group after which work comes that needs not wait for it: its stream has done so before.
func TestCoveredFails(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	g, chans := openChannels(t, d, 1, gpu.ChannelOptions{})
	dev, s := g.Devices()[0], semaphores(t, 3)
	q, streams, x := dev.Queue(0), d.Streams(0), allocate(t, dev, 64)
	must(t, d.StallStream(streams[len(streams)-1]))
	must(t, chans[0].Submit(t.Context(), gpu.Order{Signal: pts(s[0], 1)}, gpu.SendReceive(x.All(), x.All(), gpu.Float32, -1, -1)))
	eventually(t, "it is issued", func() bool { return dev.Stats().InFlight == 1 })
	must(t, q.Fill(order(s[0], 1, s[1], 1), x.All(), []byte{1}))
	must(t, q.Fill(order(s[0], 1, s[2], 1), x.All(), []byte{1}))
	chans[0].Abort(nil)
	must(t, d.ResumeStream(streams[len(streams)-1]))
	for i, s := range s {
		if err := s.Wait(minute(t), 1); !errors.Is(err, gpu.ErrAborted) {
			t.Errorf("semaphore %d: %v", i, err)
		}
	}
}
