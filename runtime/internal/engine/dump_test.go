package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestDump checks the dump of a stalled device and of a device that waits for it, also while
// mutexes are held.
func TestDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simdriver.New(simdriver.Config{Devices: 2})
		var devs [2]*gpu.Device
		var mem [2]gpu.Range
		for i := range devs {
			devs[i] = openDevice(t, sim, i, gpu.Options{Queues: 1})
			mem[i] = allocate(t, devs[i], 8).All()
		}
		must(t, sim.StallDevice(0))
		s, nobody := semaphores(t, 1)[0], semaphores(t, 1)[0]
		must(t, devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(mem[0], []byte{1})))
		must(t, devs[1].Queue(0).Submit(order(s, 1, s, 2), gpu.Fill(mem[1], []byte{1})))
		must(t, devs[1].Queue(0).Submit(gpu.Order{Wait: pts(nobody, 7)}, gpu.Fill(mem[1], []byte{1})))
		wants := func(what string, parts ...string) {
			t.Helper()
			got := dump(devs[:]...)
			for _, part := range parts {
				if !strings.Contains(got, part) {
					t.Errorf("%s: there is no %q in\n%s", what, part, got)
				}
			}
		}
		wants("stalled", "Simulated GPU 0", "queue 0 of Simulated GPU 0: issued 1, marked 1, passed 0", "1: fill, recorded true", "after 1 of queue 0 of Simulated GPU 0 (passed 0)",
			"signals 2 (now 0)", "1 parked", "parked: fill on queue 0 of Simulated GPU 1", "to reach 7")
		timeline(devs[1].Queue(0)).Locked(func() error {
			wants("with a mutex held", "its mu is held", "a mutex of the device is held")
			return nil
		})
		lockOf(nobody).Lock()
		wants("with a mutex held", "Semaphore.mu is held")
		lockOf(nobody).Unlock()
		must(t, sim.ResumeDevice(0))
	})
}

// TestDumpManyParked checks that the dump of 33 parked operations lists 32 and says that there are
// more, and that the dump of 32 does not.
func TestDumpManyParked(t *testing.T) {
	dev := openDevice(t, simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	mem, nobody := allocate(t, dev, 8).All(), semaphores(t, 1)[0]
	for n := 1; n <= 33; n++ {
		must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(nobody, 1)}, gpu.Fill(mem, []byte{1})))
		got := dump(dev)
		if listed, more := strings.Count(got, "parked: fill"), strings.Contains(got, "parked: and more"); listed != min(n, 32) || more != (n > 32) {
			t.Errorf("%d parked operations: %d are listed, and more: %v", n, listed, more)
		}
	}
}
