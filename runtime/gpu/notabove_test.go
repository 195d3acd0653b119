package gpu_test

import (
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// mistakes are the ways in which work on a device comes to signal a value that is not above the semaphore's. Each submits the work to a
// device that stalls; the semaphore's value is 1 or more when it is over. What other signals the work has fail as well.
var mistakes = map[string]func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order){
	"a value that is reached while the work is parked": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		gate := semaphores(t, 1)[0]
		o.Wait = pts(gate, 1)
		must(t, dev.Queue(0).Fill(o, allocate(t, dev, 64).All(), []byte{1}))
		must(t, s.Signal(3))
		must(t, gate.Signal(1))
	},
	"a value that the host passes meanwhile": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		must(t, dev.Queue(0).Fill(o, allocate(t, dev, 64).All(), []byte{1}))
		must(t, s.Signal(3))
	},
	"a value that the host reaches meanwhile": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		must(t, dev.Queue(0).Fill(o, allocate(t, dev, 64).All(), []byte{1}))
		must(t, s.Signal(1))
	},
	"a value twice": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		must(t, dev.Queue(1).Fill(gpu.Order{Signal: pts(s, 1)}, allocate(t, dev, 64).All(), []byte{1}))
		must(t, dev.Queue(0).Fill(o, allocate(t, dev, 64).All(), []byte{1}))
	},
}

// TestNotAbove, of B83, has work on a device signal a value that is not above the semaphore's: its signals fail, and whoever waits
// for a later value, or asks, finds out when the work is over.
func TestNotAbove(t *testing.T) {
	for mistake, submit := range mistakes {
		run := func(t *testing.T, d *simdriver.Driver, waits func(t *testing.T, other *gpu.Device, s *gpu.Semaphore) <-chan error) {
			dev, other := openDevice(t, d, 0, gpu.Options{Queues: 2, Spin: -1, Poll: -1}), openDevice(t, d, 1, gpu.Options{Spin: -1, Poll: -1})
			s := semaphores(t, 2)
			d.StallDevice(0)
			submit(t, dev, s[0], gpu.Order{Signal: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}})
			ended := waits(t, other, s[0])
			inFlight(t, dev, map[bool]int{true: 2, false: 1}[mistake == "a value twice"])
			time.Sleep(time.Second) // of the bubble: waiters that are to park have
			d.ResumeDevice(0)
			ends(t, ended, gpu.ErrValue)
			if mistake == "a value twice" { // either of the two may have been first
				return
			}
			if err := s[1].Wait(soon(t), 1); !errors.Is(err, gpu.ErrValue) {
				t.Errorf("another signal of the work: %v", err)
			}
		}
		for name, wait := range waiters {
			t.Run(mistake+"; "+name, func(t *testing.T) {
				onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
					run(t, d, func(t *testing.T, other *gpu.Device, s *gpu.Semaphore) <-chan error { return wait(t, other, s, 9) })
				})
			})
		}
		t.Run(mistake+"; a query", func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				run(t, d, func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore) <-chan error {
					ended := make(chan error, 1)
					go func() {
						var err error
						for ctx := soon(t); err == nil && ctx.Err() == nil; _, err = s.Query() {
							time.Sleep(time.Millisecond)
						}
						ended <- err
					}()
					return ended
				})
			})
		})
	}
}
