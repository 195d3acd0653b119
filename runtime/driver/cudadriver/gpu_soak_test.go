package cudadriver

import (
	"flag"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

var soakFor = flag.Duration("cudadriver.soak", 2*time.Second, "how long to allocate and deallocate memory of the GPU at random")

// TestGPUSoakPool soaks the driver's pool for two thirds of the time and the portable pool for the
// rest.
func TestGPUSoakPool(t *testing.T) {
	keep := openGPU(t)
	for _, x := range []struct {
		name     string
		portable bool
		time     time.Duration
	}{{"native", false, *soakFor * 2 / 3}, {"portable", true, *soakFor / 3}} {
		t.Run("B90 B98 "+x.name, func(t *testing.T) {
			d, err := New(keep.lib)
			if err != nil {
				t.Fatal(err)
			}
			dev, err := gpu.Open(d, 0, gpu.Options{Queues: 8})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			p, err := dev.NewPool(gpu.PoolOptions{Portable: x.portable})
			if err != nil {
				t.Fatal(err)
			}
			gputest.SoakPool(t, p, x.time)
		})
	}
}
