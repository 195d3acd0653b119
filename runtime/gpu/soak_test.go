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
	for name, caps := range map[string]*driver.Caps{"the driver's pool": &cuda, "portable": &hip} {
		t.Run("B90 B98 "+name, func(t *testing.T) {
			dev := openDevice(t, newSim(t, simdriver.Config{Caps: caps}), 0, gpu.Options{Queues: 8})
			p, err := dev.NewPool(gpu.PoolOptions{})
			must(t, err)
			gputest.SoakPool(t, p, d)
		})
	}
}
