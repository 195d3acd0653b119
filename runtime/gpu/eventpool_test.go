package gpu_test

import (
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestEventsForMany has many goroutines find the pool of events empty at the same time. They make events once for all of them, and not
// each for itself.
func TestEventsForMany(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const n = 100
		dev := openDevice(t, d, 0, gpu.Options{Events: 8})
		b, s := allocate(t, dev, 64), semaphores(t, n)
		must(t, d.StallDevice(0)) // so that no event is free again
		d.SetLatency(simdriver.OpNewEvent, 100*time.Microsecond)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if err := dev.Queue(0).Fill(gpu.Order{Signal: pts(s[i], 1)}, b.All(), []byte{1}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute) // where a thread issues, it makes events until then
		if made := dev.Stats().Events.Made; made > 4*n || dev.Stats().InFlight != n {
			t.Errorf("%d events for %d submissions, of which %d are in flight", made, n, dev.Stats().InFlight)
		}
		must(t, d.ResumeDevice(0))
		for i := range n {
			must(t, s[i].Wait(soon(t), 1))
		}
	})
}
