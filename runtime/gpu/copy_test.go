package gpu_test

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestCopyOverlap checks that a copy within a buffer is refused if its ranges overlap, and accepted
// if they are adjacent or empty.
func TestCopyOverlap(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	b := allocate(t, dev, 64)
	for _, x := range []struct {
		dst, src, size uint64
		ok             bool
	}{{0, 16, 16, true}, {16, 0, 16, true}, {0, 0, 0, true}, {0, 0, 16, false}, {0, 15, 16, false}, {15, 0, 16, false}, {0, 1, 63, false}} {
		dst, src := b.Range(x.dst, x.size), b.Range(x.src, x.size)
		c := commandBuffer(t, dev, gpu.StreamMode)
		_, recorded := c.Add(gpu.Copy(dst, src))
		for name, err := range map[string]error{"queue": dev.Queue(0).Submit(gpu.Order{}, gpu.Copy(dst, src)), "stream": dev.Queue(0).NewStream().Copy(dst, src), "recording": recorded} {
			if x.ok && err != nil || !x.ok && !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("%s: %+v: %v", name, x, err)
			}
		}
		c.Close()
	}
}
