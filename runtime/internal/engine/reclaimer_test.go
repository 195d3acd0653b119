package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A lastDriver frees memory and unloads code only after the channel lastDriver.gate has been
// closed. It stands for drivers that first wait for all work of the device.
type lastDriver struct {
	driver.Driver
	gate chan struct{}
	came chan struct{}
}

type lastDevice struct {
	driver.Device
	of *lastDriver
}

func (d *lastDriver) Open(i int) (driver.Device, error) {
	dev, err := d.Driver.Open(i)
	return &lastDevice{dev, d}, err
}

func (d *lastDevice) pass() {
	d.of.came <- struct{}{}
	<-d.of.gate
}

func (d *lastDevice) Free(m driver.Mem) error {
	d.pass()
	return d.Device.Free(m)
}

func (d *lastDevice) Unload(m driver.Module) error {
	d.pass()
	return d.Device.Unload(m)
}

// TestReclaimer blocks the reclaimer in a driver call that frees memory, while code waits to be
// unloaded. Parked work must still be issued.
func TestReclaimer(t *testing.T) {
	hip := simdriver.HIPCaps()
	d := &lastDriver{newSim(t, simdriver.Config{Caps: &hip}), make(chan struct{}), make(chan struct{}, 8)}
	dev := openDevice(t, d, 0, gpu.Options{})
	x, err := dev.Load(simdriver.Image("nothing"))
	must(t, err)
	unused, used, s := allocate(t, dev, 64), allocate(t, dev, 64), semaphores(t, 2)
	must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(used.All(), []byte{7})))
	must(t, unused.Close())
	<-d.came
	must(t, x.Close())
	must(t, s[0].Signal(1))
	must(t, s[1].Wait(minute(t), 1))
	must(t, dev.Queue(0).Submit(order(s[1], 1, s[1], 2), gpu.Fill(used.All(), []byte{8})))
	must(t, s[1].Wait(minute(t), 2))
	if n := dev.Stats().Buffers; n != 1 {
		t.Errorf("%d buffers", n)
	}
	close(d.gate)
	<-d.came // the driver has also been called for the second object
	must(t, dev.Close())
}

// TestHeldRecording blocks the reclaimer in the driver call that destroys a recording's graph.
// Parked work must still be issued.
func TestHeldRecording(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 2)
		b := allocate(t, dev, 64)
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
		must(t, err)
		for i := range uint64(8) {
			_, err := c.Add(gpu.Fill(b.Range(i, 1), []byte{1}))
			must(t, err)
		}
		must(t, c.End())
		must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{7})))
		d.SetLatency(simdriver.OpDestroyExec, time.Hour)
		start := time.Now() // all times are times of the synctest bubble
		must(t, c.Close())
		synctest.Wait()
		must(t, s[0].Signal(1))
		must(t, s[1].Wait(in(t, time.Minute), 1))
		if took := time.Since(start); took > time.Minute {
			t.Errorf("closing it and issuing the parked work took %v", took)
		}
		d.SetLatency(simdriver.OpDestroyExec, 0)
		if !caps.Graphs {
			must(t, dev.Close())
			return
		}
		must(t, dev.Shutdown(in(t, 2*time.Hour)))
	})
}
