package gpu_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// words loads the kernel "words".
func words(t testing.TB, dev *gpu.Device) *gpu.Kernel {
	t.Helper()
	x, err := dev.Load(simdriver.Image("words"))
	must(t, err)
	k, err := x.Kernel("words")
	must(t, err)
	return k
}

func TestMemInfo(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		free, total, err := dev.MemInfo()
		if !caps.MemInfo {
			if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "Simulated GPU 0 does not tell how much memory is free") {
				t.Errorf("%d, %d, %v", free, total, err)
			}
			return
		}
		must(t, err)
		b := allocate(t, dev, 4096)
		if now, same, err := dev.MemInfo(); now != free-4096 || same != total || total != dev.Info().Memory || err != nil {
			t.Errorf("%d of %d bytes are free, %v; before 4096 were allocated %d of %d", now, same, err, free, total)
		}
		must(t, b.Close())
	})
}

func TestLink(t *testing.T) {
	t.Run("B150 links come from the driver, and drivers have none between them", func(t *testing.T) {
		pcie := driver.Link{Kind: driver.LinkPCIe, Rank: 1, Hops: 2, Arrays: true}
		d := newSim(t, simdriver.Config{Devices: 2, Links: func(from, to int) driver.Link { return pcie }})
		a, b := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		if l, err := a.Link(b); l != pcie || err != nil {
			t.Errorf("%+v, %v", l, err)
		}
		again := openDevice(t, d, 0, gpu.Options{})
		if l, err := a.Link(again); l.Kind != driver.LinkSelf || err != nil {
			t.Errorf("the same device, opened again: %+v, %v", l, err)
		}
		other := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
		if l, err := a.Link(other); l != (driver.Link{Kind: driver.LinkNone, Rank: -1}) || err != nil {
			t.Errorf("a device of another driver: %+v, %v", l, err)
		}
	})
	t.Run("B150 a device closes after the driver has answered a query", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 2, Latency: map[simdriver.Op]time.Duration{simdriver.OpLink: time.Second}})
			a, b := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			answered := make(chan error, 1)
			go func() {
				_, err := a.Link(b)
				answered <- err
			}()
			synctest.Wait() // the goroutine is inside the driver
			must(t, b.Close())
			synctest.Wait() // until the goroutine has sent its result
			select {
			case err := <-answered:
				must(t, err)
			default:
				t.Error("the device has closed before")
			}
		})
	})
}

func TestOccupancy(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		k := words(t, dev)
		if !caps.Occupancy {
			if _, err := k.Occupancy(64, 0); !errors.Is(err, driver.ErrUnsupported) {
				t.Error(err)
			}
			if _, _, err := k.BlockSize(0, 0); !errors.Is(err, driver.ErrUnsupported) {
				t.Error(err)
			}
			return
		}
		for _, c := range []struct{ shared, most, threads, held int }{
			{0, 0, 1024, 2},
			{0, 1024, 1024, 2},
			{0, 1000, 512, 4},      // 4 blocks have 2048 threads; 3 blocks of 672 have fewer
			{0, 100, 64, 32},       // 32 blocks have 2048 threads; 21 blocks of 96 have fewer
			{0, 40, 40, 32},        // 32 blocks are the limit; smaller blocks have fewer threads
			{0, 20, 20, 32},        // less than a warp
			{50 << 10, 0, 1024, 2}, // shared memory for exactly two blocks
			{51 << 10, 0, 1024, 1},
			{97 << 10, 0, 0, 0},
		} {
			threads, blocks, err := k.BlockSize(c.shared, c.most)
			if threads != c.threads || blocks != c.held*dev.Info().Processors || err != nil {
				t.Errorf("%d bytes and at most %d threads: %d blocks of %d, %v; want %d a multiprocessor, of %d", c.shared, c.most, blocks, threads, err, c.held, c.threads)
			}
		}
	})
}

// TestFactsFail makes queries of the driver fail, first with an injected error and then because the
// device is lost. If the driver supports the queries, they must return these errors.
func TestFactsFail(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		k := words(t, dev)
		asks := map[simdriver.Op]func() error{
			simdriver.OpMemInfo:   func() error { _, _, err := dev.MemInfo(); return err },
			simdriver.OpLink:      func() error { _, err := dev.Link(dev); return err },
			simdriver.OpOccupancy: func() error { _, _, err := k.BlockSize(0, 0); return err },
		}
		for op, ask := range asks {
			d.Inject(simdriver.Fault{Op: op, N: 1, Err: errHostCall})
			if err := ask(); caps.MemInfo && (!errors.Is(err, errHostCall) || !strings.HasPrefix(err.Error(), "gpu: "+string(op))) {
				t.Errorf("%s: %v", op, err)
			}
		}
		must(t, d.LoseDevice(0, errHostCall))
		for op, ask := range asks {
			if err := ask(); caps.MemInfo && !errors.Is(err, driver.ErrLost) {
				// Whichever query comes first finds the loss.
				t.Errorf("%s of a device that is lost: %v", op, err)
			}
		}
		if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Barrier()); caps.MemInfo && !errors.Is(err, driver.ErrLost) {
			t.Errorf("then: %v", err)
		}
	})
}
