package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func TestSubmitSignal(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		sim := simdriver.New(simdriver.Config{Strict: true})
		dev, err := gpu.Open(sim, 0, gpu.Options{Spin: -1, Poll: -1})
		if err != nil {
			x.Fatalf("%v", err)
		}
		b, err := dev.Alloc(gpu.DeviceMem, 64)
		if err != nil {
			x.Fatalf("%v", err)
		}
		s, _ := gpu.NewSemaphore(0)
		go s.Signal(1)
		if err := dev.Queue(0).Fill(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}}, Signal: []gpu.Point{{Semaphore: s, Value: 2}}}, b.All(), []byte{1}); err != nil {
			x.Fatalf("%v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Wait(ctx, 2); err != nil {
			x.Fatalf("%v", err)
		}
		if err := b.Close(); err != nil {
			x.Fatalf("%v", err)
		}
		if err := dev.Close(); err != nil {
			x.Fatalf("%v", err)
		}
		if l := sim.Leaks(); len(l) > 0 {
			x.Errorf("left: %q", l)
		}
	})
}
