package gpu_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A recordHook calls a function before each event that is recorded in a stream.
type recordHook struct {
	driver.Driver
	before func(driver.Stream)
}

func (h *recordHook) Open(i int) (driver.Device, error) {
	d, err := h.Driver.Open(i)
	return &hookedRecords{d, h}, err
}

type hookedRecords struct {
	driver.Device
	hook *recordHook
}

func (d *hookedRecords) Record(e driver.Event, s driver.Stream) error {
	if d.hook.before != nil {
		d.hook.before(s)
	}
	return d.Device.Record(e, s)
}

// TestNearDeps has work come after its own stream's and that of several others, one of which has to have an event put behind it.
// Meanwhile another one is given more work, with a value that would do for a wait as well.
func TestNearDeps(t *testing.T) {
	const size = 1 << 20 // more than is brief
	sim := newSim(t, simdriver.Config{Caps: &driver.Caps{SubmitAnywhere: true}})
	hook := &recordHook{Driver: sim}
	dev := openDevice(t, hook, 0, gpu.Options{Queues: 4})
	streams, s := sim.Streams(0), semaphores(t, 7)
	own, twice, unmarked, high := dev.Queue(0), dev.Queue(1), dev.Queue(2), dev.Queue(3)
	value, first, more, other, near, last, end := s[0], s[1], s[2], s[3], s[4], s[5], s[6]
	big := func() *gpu.Buffer { return allocate(t, dev, size) }
	from, to, rest := big(), big(), big()

	must(t, own.Fill(gpu.Order{}, from.All(), []byte{0}))
	must(t, twice.Fill(gpu.Order{Signal: pts(first, 1)}, big().All(), []byte{1}))
	must(t, high.Fill(gpu.Order{Signal: pts(value, 10)}, big().All(), []byte{1}))
	must(t, unmarked.Fill(gpu.Order{Signal: pts(other, 1)}, big().Range(0, 8), []byte{1}))
	must(t, own.Fill(gpu.Order{Signal: pts(near, 1)}, rest.Range(0, 8), []byte{1}))
	eventually(t, "all is executed, and nobody has asked", func() bool { return sim.Counters().Devices[0].Pending == 0 })
	hooked := false
	hook.before = func(in driver.Stream) {
		if !hooked && in == streams[2] {
			hooked = true // stands for somebody else who submits now
			must(t, sim.StallStream(streams[1]))
			must(t, twice.Fill(gpu.Order{Signal: append(pts(value, 9), pts(more, 1)...)}, from.All(), []byte{1}))
		}
	}
	wait := append(append(append(pts(near, 1), pts(first, 1)...), pts(value, 8)...), pts(other, 1)...)
	must(t, own.Fill(gpu.Order{Wait: wait, Signal: pts(last, 1)}, rest.Range(0, 8), []byte{2}))
	if !hooked {
		t.Fatal("no event was put behind the work that had none")
	}
	must(t, last.Wait(minute(t), 1))
	if v, err := more.Query(); v != 0 || err != nil {
		t.Errorf("at %d, %v, while the stream that has the work is stalled", v, err)
	}
	must(t, own.Copy(gpu.Order{Wait: pts(more, 1), Signal: pts(end, 1)}, to.All(), from.All()))
	must(t, sim.ResumeStream(streams[1]))
	got := make([]byte, size)
	must(t, own.Download(gpu.Order{Wait: pts(end, 1), Signal: pts(end, 2)}, got, to.All()))
	must(t, end.Wait(minute(t), 2))
	if got[0] != 1 {
		t.Errorf("what waits for it has read %d", got[0])
	}
}
