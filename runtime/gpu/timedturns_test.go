package gpu_test

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestTimedTurns executes a recording with timestamps more than once, where executions come one after the other: in the order in which
// they can begin, whatever the order of the calls.
func TestTimedTurns(t *testing.T) {
	timed := func(t *testing.T, dev *gpu.Device, mode gpu.Mode, split bool) *gpu.CommandBuffer {
		t.Helper()
		c := commandBuffer(t, dev, mode)
		b, err := c.Binding()
		must(t, err)
		recorded(t)(c.Timestamp())
		recorded(t)(c.Fill(b.Range(0, 64), []byte{1}))
		recorded(t)(c.Barrier())
		if split {
			recorded(t)(c.HostCall(func() error { return nil }))
		}
		recorded(t)(c.Timestamp())
		must(t, c.End())
		return c
	}
	// own is memory of an execution's own: nothing else orders executions where events may be recorded anew.
	own := func(t *testing.T, dev *gpu.Device) gpu.Range { return allocate(t, dev, 64).All() }
	for name, mode := range map[string]gpu.Mode{"stream": gpu.StreamMode, "graph": gpu.GraphMode} {
		for how, split := range map[string]bool{"one part": false, "two parts": true} {
			each := func(t *testing.T, test func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer)) {
				onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
					if !caps.Timers {
						return // there are no timestamps
					}
					dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
					test(t, d, dev, timed(t, dev, mode, split))
				})
			}
			t.Run(name+", "+how+", the first waits for the second", func(t *testing.T) {
				each(t, func(t *testing.T, _ *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					s := semaphores(t, 3)
					must(t, dev.Queue(0).Execute(order(s[0], 1, s[1], 1), c, own(t, dev)))
					must(t, dev.Queue(1).Execute(gpu.Order{Wait: pts(s[2], 1), Signal: pts(s[0], 1)}, c, own(t, dev)))
					must(t, s[2].Signal(1))
					for i, x := range s[:2] {
						if err := x.Wait(soon(t), 1); err != nil {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			})
			t.Run(name+", "+how+", one that fails leaves its turn to the next", func(t *testing.T) {
				each(t, func(t *testing.T, _ *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					s := semaphores(t, 4)
					must(t, dev.Queue(0).Execute(order(s[0], 1, s[1], 1), c, own(t, dev)))
					must(t, dev.Queue(1).Execute(gpu.Order{Signal: pts(s[2], 1)}, c, own(t, dev)))
					must(t, dev.Queue(0).Execute(order(s[0], 2, s[3], 1), c, own(t, dev)))
					s[0].Fail(errRandom)
					must(t, s[2].Wait(soon(t), 1))
					for _, i := range []int{1, 3} {
						if err := s[i].Wait(soon(t), 1); !errors.Is(err, errRandom) {
							t.Errorf("%d: %v", i, err)
						}
					}
					must(t, dev.Queue(1).Execute(gpu.Order{Signal: pts(s[2], 2)}, c, own(t, dev)))
					must(t, s[2].Wait(soon(t), 2))
				})
			})
			t.Run(name+", "+how+", many at once", func(t *testing.T) {
				each(t, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					s := semaphores(t, 20)
					d.StallDevice(0)
					for i, x := range s {
						o := gpu.Order{Signal: pts(x, 1)}
						if i > 0 && i%3 == 0 {
							o.Wait = pts(s[i-1], 1)
						}
						must(t, dev.Queue(i).Execute(o, c, own(t, dev)))
					}
					d.ResumeDevice(0)
					for i, x := range s {
						if err := x.Wait(soon(t), 1); err != nil {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			})
			t.Run(name+", "+how+", as much a turn however many there are", func(t *testing.T) {
				each(t, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					const n = 100
					s := semaphores(t, n)
					d.StallDevice(0)
					for i, x := range s {
						must(t, dev.Queue(i).Execute(gpu.Order{Signal: pts(x, 1)}, c, own(t, dev)))
					}
					d.ResumeDevice(0)
					for _, x := range s {
						must(t, x.Wait(soon(t), 1))
					}
					if made := dev.Stats().Timepoints.Made; made > 4*n {
						t.Errorf("%d timepoints for %d executions", made, n)
					}
				})
			})
		}
	}
}
