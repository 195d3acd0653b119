package scenarios

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A rig has the objects of a scenario.
type rig struct {
	*explore.T
	sim  *simdriver.Driver
	devs []*gpu.Device
	wg   sync.WaitGroup
}

// quick are options of devices whose waits park at once, so that schedules are short.
func quick() gpu.Options { return gpu.Options{Queues: 2, Events: 2, Spin: -1, Poll: -1} }

// pieces are the options of quick with little staging memory, so that transfers go in pieces.
func pieces() gpu.Options {
	o := quick()
	o.StageSize = 16
	return o
}

// cuda is the configuration of a simulated driver with the features of CUDA.
func cuda() simdriver.Config {
	caps := simdriver.CUDACaps()
	return simdriver.Config{Caps: &caps}
}

// settled chooses between the features of CUDA and of HIP, unless the configuration does.
func settled(x *explore.T, c simdriver.Config) simdriver.Config {
	if caps := simdriver.HIPCaps(); c.Caps == nil && x.Choose(2) == 1 {
		c.Caps = &caps
	}
	c.Strict = true
	return c
}

// open opens the devices of a simulated driver.
func open(x *explore.T, c simdriver.Config, o gpu.Options) *rig {
	x.Window(false)
	c = settled(x, c)
	r := &rig{T: x, sim: simdriver.New(c)}
	for i := range max(c.Devices, 1) {
		d, err := gpu.Open(r.sim, i, o)
		r.must(err)
		r.devs = append(r.devs, d)
	}
	x.Window(true)
	return r
}

func (r *rig) must(err error) {
	if err != nil {
		r.Fatalf("%v", err)
	}
}

// is ends the scenario unless err is nil or one of the given errors.
func (r *rig) is(err error, want ...error) {
	if err == nil {
		return
	}
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	r.Fatalf("%v", err)
}

// do runs a function concurrently.
func (r *rig) do(f func()) { r.wg.Go(f) }

func (r *rig) sem() *gpu.Semaphore {
	s, err := gpu.NewSemaphore(0)
	r.must(err)
	return s
}

func pts(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{s.At(v)} }

func (r *rig) alloc(d *gpu.Device, size uint64) *gpu.Buffer {
	b, err := d.Alloc(gpu.DeviceMem, size)
	r.must(err)
	return b
}

// wait waits for a point, which must be reached or fail within a minute.
func (r *rig) wait(s *gpu.Semaphore, v uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := s.Wait(ctx, v)
	if err != nil && ctx.Err() != nil {
		r.Fatalf("value %d is neither reached nor failed: %v", v, err)
	}
	return err
}

// fill fills a buffer and waits until that is done.
func (r *rig) fill(d *gpu.Device, b *gpu.Buffer, v byte) {
	s := r.sem()
	r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{v})))
	r.must(r.wait(s, 1))
}

// bytes downloads a buffer.
func (r *rig) bytes(q *gpu.Queue, b *gpu.Buffer) []byte {
	got := make([]byte, b.Size())
	s := r.sem()
	r.must(q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Download(got, b.All())))
	r.must(r.wait(s, 1))
	return got
}

// full reports bytes with wrong values.
func (r *rig) full(what string, got []byte, want byte) {
	if !bytes.Equal(got, bytes.Repeat([]byte{want}, len(got))) {
		r.Errorf("%s: %v, and not all %d", what, got, want)
	}
}

// end waits for all concurrent functions and closes the devices. Nothing may leak.
func (r *rig) end() {
	r.wg.Wait()
	for _, d := range r.devs {
		r.must(d.Close())
	}
	if left := r.sim.Leaks(); len(left) > 0 {
		r.Errorf("left behind: %q", left)
	}
}

// lose is end for scenarios that may lose devices. If closing a device fails, something may leak.
func (r *rig) lose() {
	r.wg.Wait()
	sound := true
	for _, d := range r.devs {
		if err := d.Close(); err != nil {
			r.is(err, driver.ErrLost, driver.ErrBusy, simdriver.ErrInjected, driver.ErrOutOfMemory)
			sound = false
		}
	}
	if left := r.sim.Leaks(); len(left) > 0 && sound {
		r.Errorf("left behind: %q", left)
	}
}

// patience is how long a scenario waits for something that must happen. Virtual time passes only
// while all goroutines wait. An ordinary test may run on a busy machine.
func patience() time.Duration {
	if explore.Explored() {
		return 2 * time.Second
	}
	return time.Minute
}

// settles waits until a condition holds.
func (r *rig) settles(what string, holds func() bool) {
	for end := time.Now().Add(patience()); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("%s: it does not", what)
		}
	}
}

// ends waits for a stream.
func (r *rig) ends(s *gpu.Stream) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := s.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		r.Fatalf("a stream has neither come to its end nor failed: %v", err)
	}
	return err
}
