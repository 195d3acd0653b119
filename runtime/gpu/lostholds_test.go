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

// TestLostHoldsUp has a queue stuck behind a lost device, and another one of the same device behind that, by what only the driver
// knows: it fails, or is done, and does not hang, and the device is lost as a whole.
func TestLostHoldsUp(t *testing.T) {
	begin := func(t *testing.T) (d *simdriver.Driver, stuck, other *gpu.Queue, s []*gpu.Semaphore) {
		d = newSim(t, simdriver.Config{Devices: 2})
		lost, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		s = semaphores(t, 5)
		d.StallDevice(0)
		must(t, lost.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, allocate(t, lost, 64).All(), []byte{1}))
		return d, dev.Queue(0), dev.Queue(1), s
	}
	end := func(t *testing.T, s *gpu.Semaphore) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		err := s.Wait(ctx, 1)
		if ctx.Err() != nil {
			t.Fatal("neither reached nor failed")
		}
		if err != nil && !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
	}
	t.Run("B81 launches of the same graph", func(t *testing.T) {
		d, stuck, other, s := begin(t)
		b, c := allocate(t, stuck.Device(), 64), commandBuffer(t, stuck.Device(), gpu.GraphMode)
		recorded(t)(c.Fill(b.All(), []byte{1}))
		must(t, c.End())
		must(t, stuck.Execute(order(s[0], 1, s[1], 1), c))
		must(t, other.Execute(gpu.Order{Signal: pts(s[2], 1)}, c))
		d.LoseDevice(0, nil)
		end(t, s[1])
		end(t, s[2])
		if err := other.Execute(gpu.Order{Signal: pts(s[3], 1)}, c); !errors.Is(err, driver.ErrLost) {
			t.Errorf("what comes later: %v", err)
		}
	})
	t.Run("B81 memory of a driver's pool", func(t *testing.T) {
		d, stuck, other, s := begin(t)
		p := newPool(t, stuck.Device(), gpu.PoolOptions{MaxSize: 1 << 16})
		a := alloca(t, stuck, gpu.Order{Signal: pts(s[1], 1)}, p, 1<<16)
		must(t, stuck.Dealloca(order(s[0], 1, s[2], 1), a))
		alloca(t, other, gpu.Order{Signal: pts(s[3], 1)}, p, 1<<16)
		d.LoseDevice(0, nil)
		end(t, s[2])
		end(t, s[3])
		if _, err := other.Alloca(gpu.Order{Signal: pts(s[4], 1)}, p, 1<<16); !errors.Is(err, driver.ErrLost) {
			t.Errorf("another one: %v", err)
		}
	})
}
