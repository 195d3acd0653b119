package gpu_test

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestRecover loses a device with work in flight, parked and in a recording, closes it, opens it again, and goes on with a new semaphore.
func TestRecover(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		bystander := openDevice(t, d, 1, gpu.Options{})
		for range 3 {
			dev, err := gpu.Open(d, 0, gpu.Options{})
			must(t, err)
			s, b := semaphores(t, 4), allocate(t, dev, 5<<20)
			must(t, dev.Queue(0).Upload(gpu.Order{Signal: pts(s[0], 1)}, b.All(), make([]byte, b.Size())))
			must(t, s[0].Wait(soon(t), 1))
			d.StallDevice(0) // until all is submitted
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, Device: 0, N: 2, AtExecution: true})
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 2)}, b.All(), []byte{1}))
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s[1], 1)}, b.All(), []byte{1}))
			must(t, dev.Queue(0).Download(gpu.Order{Wait: pts(s[1], 1), Signal: pts(s[2], 1)}, make([]byte, b.Size()), b.All()))
			must(t, dev.Queue(0).Fill(order(semaphores(t, 1)[0], 1, s[3], 1), b.All(), []byte{1}))
			d.ResumeDevice(0)
			for _, s := range s[1:] {
				if err := s.Wait(soon(t), 1); !errors.Is(err, driver.ErrLost) || !errors.Is(err, simdriver.ErrInjected) {
					t.Errorf("%v; want the loss", err)
				}
			}
			must(t, dev.Close())

			if dev, err = gpu.Open(d, 0, gpu.Options{}); err != nil {
				t.Fatalf("open again: %v", err)
			}
			again := semaphores(t, 1)[0]
			b = allocate(t, dev, 64)
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(again, 1)}, b.All(), []byte{7}))
			if got := bytesOf(t, dev.Queue(0), b, gpu.Point{Semaphore: again, Value: 1}); got[0] != 7 || got[63] != 7 {
				t.Errorf("memory has %d", got)
			}
			must(t, dev.Close())
		}
		b := allocate(t, bystander, 64)
		must(t, bystander.Queue(0).Fill(gpu.Order{}, b.All(), []byte{3}))
		if got := bytesOf(t, bystander.Queue(0), b); got[0] != 3 {
			t.Errorf("memory of the other device has %d", got)
		}
	})
}
