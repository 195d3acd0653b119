package growing_test

import (
	"math/bits"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const page = 2 << 20

var (
	eventually = testkit.Eventually
	minute     = testkit.Minute
	must       = testkit.Must
	newSim     = testkit.NewSim
	openDevice = testkit.OpenDevice
)

// reserve reserves memory with some bytes mapped. The memory is closed with the device.
func reserve(t testing.TB, dev *gpu.Device, max, size uint64, o growing.Options) *growing.Memory {
	t.Helper()
	m, err := growing.Reserve(dev, max, o)
	must(t, err)
	must(t, m.Grow(size))
	return m
}

// needsSharing skips a test where the simulated GPU cannot map pages twice.
func needsSharing(t *testing.T) {
	if runtime.GOOS != "linux" || bits.UintSize < 64 {
		t.Skip("the simulated GPU cannot share pages on this platform")
	}
}

// mapped returns how many bytes of pages a device has.
func mapped(d *simdriver.Driver, device int) uint64 { return d.Counters().Devices[device].PageBytes }

// content reads memory after all work of a stream.
func content(t testing.TB, s *gpu.Stream, r gpu.Range) []byte {
	t.Helper()
	data := make([]byte, r.Size)
	must(t, s.Do(gpu.Download(data, r)))
	must(t, s.Wait(minute(t)))
	return data
}
