package gpu_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestWaitEnded polls with a context that has ended: the device is asked all the same, also about what is below the value.
func TestWaitEnded(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, wait := range map[string]func(p, other gpu.Point) error{
		"Wait":    func(p, _ gpu.Point) error { return p.Semaphore.Wait(ended, p.Value) },
		"WaitAll": func(p, other gpu.Point) error { return gpu.WaitAll(ended, other, p) },
		"WaitAny": func(p, _ gpu.Point) error { _, err := gpu.WaitAny(ended, p); return err },
	} {
		// poll waits until the device has done the work, and then polls.
		poll := func(t *testing.T, p, other gpu.Point) error {
			if err := wait(p, other); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, while the device stalls", err)
			}
			var err error
			for range 100 {
				time.Sleep(2 * time.Millisecond)
				if err = wait(p, other); !errors.Is(err, context.Canceled) {
					break
				}
			}
			return err
		}
		t.Run(name+" reached", func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 2)
				d.StallDevice(0)
				must(t, dev.Queue(0).Fill(gpu.Order{Signal: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}}, allocate(t, dev, 64).All(), []byte{1}))
				inFlight(t, dev, 1)
				time.AfterFunc(time.Millisecond, func() { d.ResumeDevice(0) })
				if err := poll(t, gpu.Point{Semaphore: s[0], Value: 1}, gpu.Point{Semaphore: s[1], Value: 1}); err != nil {
					t.Errorf("%v, though the work is done", err)
				}
			})
		})
		t.Run(name+" failed below", func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, other, s := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{}), semaphores(t, 2)
				d.StallDevice(0)
				d.StallDevice(1)
				must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, allocate(t, dev, 64).All(), []byte{1}))
				must(t, other.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 2)}, allocate(t, other, 64).All(), []byte{1}))
				inFlight(t, dev, 1)
				inFlight(t, other, 1)
				time.AfterFunc(time.Millisecond, func() { d.LoseDevice(0, nil) })
				if err := poll(t, gpu.Point{Semaphore: s[0], Value: 3}, gpu.Point{Semaphore: s[1], Value: 1}); !errors.Is(err, driver.ErrLost) {
					t.Errorf("%v, though a device is lost", err)
				}
				d.ResumeDevice(1)
			})
		})
	}
}
