package engine_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
)

// TestFailedBehind has a goroutine retire two operations of a stream, and blocks the goroutine
// before it gives the signals of the first operation. The second operation has failed. Meanwhile
// another goroutine retires an operation of another stream, which waited for the second operation.
// The waiting operation must fail too.
func TestFailedBehind(t *testing.T) {
	checkLeaks(t)
	sim := simdriver.New(simdriver.Config{Devices: 2})
	var devs [2]*gpu.Device
	var mem [2]*gpu.Buffer
	for i := range devs {
		d, err := gpu.Open(sim, i, gpu.Options{Queues: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		if mem[i], err = d.Alloc(gpu.DeviceMem, 64); err != nil {
			t.Fatal(err)
		}
		devs[i] = d
	}
	lost, sound, fails, after := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
	fill := func(dev, queue int, wait *gpu.Semaphore, signal *gpu.Semaphore) {
		t.Helper()
		o := gpu.Order{Signal: []gpu.Point{signal.At(1)}}
		if wait != nil {
			o.Wait = []gpu.Point{wait.At(1)}
		}
		if err := devs[dev].Queue(queue).Submit(o, gpu.Fill(mem[dev].All(), []byte{1})); err != nil {
			t.Fatal(err)
		}
	}
	fill(0, 0, nil, lost)
	fill(1, 0, nil, sound)
	fill(1, 0, lost, fails)
	fill(1, 1, fails, after)
	for sim.Counters().Devices[0].Pending+sim.Counters().Devices[1].Pending > 0 { // no goroutine polls
		runtime.Gosched()
	}
	sim.LoseDevice(0, nil)
	if _, err := devs[0].Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
		t.Fatalf("the device is not lost: %v", err)
	}
	one, other, done := timeline(devs[1].Queue(0)), timeline(devs[1].Queue(1)), make(chan bool)
	taken := func() bool {
		taken := true
		one.InFlightAt(2, func(*engine.Submission) { taken = false })
		return taken
	}
	lockOf(sound).Lock() // blocks the goroutine that signals sound
	go func() { done <- one.Poll(2, 1) }()
	for !taken() {
		runtime.Gosched()
	}
	go func() { done <- other.Poll(1, 1) }()
	for range 1000 {
		runtime.Gosched()
	}
	lockOf(sound).Unlock()
	<-done
	<-done
	for _, s := range []*gpu.Semaphore{fails, after} {
		if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("%v; want the loss", err)
		}
	}
	if err := sound.Wait(minute(t), 1); err != nil {
		t.Error(err)
	}
}
