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
	"a value that is reached": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, o gpu.Order) {
		must(t, s.Signal(3))
		must(t, dev.Queue(0).Fill(o, allocate(t, dev, 64).All(), []byte{1}))
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
			dev, other := openDevice(t, d, 0, gpu.Options{Queues: 2, Spin: -1}), openDevice(t, d, 1, gpu.Options{Spin: -1})
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

// TestNotAboveInList has one submission signal a lower value of a semaphore after a higher one.
func TestNotAboveInList(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 2)
		down := func(s *gpu.Semaphore) gpu.Order {
			return gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 2}, {Semaphore: s, Value: 1}}}
		}
		must(t, dev.Queue(0).Fill(down(s[0]), allocate(t, dev, 64).All(), []byte{1}))
		if err := s[0].Wait(soon(t), 9); !errors.Is(err, gpu.ErrValue) {
			t.Error(err)
		}
		d.StallDevice(0) // and likewise if another one has passed both
		must(t, dev.Queue(0).Fill(down(s[1]), allocate(t, dev, 64).All(), []byte{1}))
		must(t, dev.Queue(1).Fill(gpu.Order{Signal: pts(s[1], 3)}, allocate(t, dev, 64).All(), []byte{1}))
		inFlight(t, dev, 2)
		d.ResumeDevice(0)
		if err := s[1].Wait(soon(t), 9); !errors.Is(err, gpu.ErrValue) {
			t.Error(err)
		}
	})
}
