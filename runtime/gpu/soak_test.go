package gpu_test

import (
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

func TestSoakPool(t *testing.T) {
	d := 300 * time.Millisecond
	if *soak {
		d = time.Minute
	}
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	for name, x := range map[string]struct {
		caps *driver.Caps
		o    gpu.PoolOptions
	}{
		"the driver's pool":         {&cuda, gpu.PoolOptions{}},
		"portable":                  {&hip, gpu.PoolOptions{}},
		"portable, from any thread": {&cuda, gpu.PoolOptions{Portable: true}},
	} {
		t.Run("B90 B98 "+name, func(t *testing.T) {
			dev := openDevice(t, newSim(t, simdriver.Config{Caps: x.caps}), 0, gpu.Options{Queues: 8})
			p, err := dev.NewPool(x.o)
			must(t, err)
			gputest.SoakPool(t, p, d)
		})
	}
}
