package gputest

import (
	"errors"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// tells returns able, which says whether the device supports a query, and checks err, the error of
// the query. If able is false, err must be ErrUnsupported. If able is true and err is not nil,
// tells ends the test.
func (e *env) tells(what string, able bool, err error) bool {
	e.Helper()
	if !able {
		if !errors.Is(err, driver.ErrUnsupported) {
			e.Errorf("%s of a device that does not tell: %v", what, err)
		}
		return false
	}
	e.must(err)
	return true
}

var facts = []test{
	{name: "B149 a device's facts are plausible", run: func(e *env) {
		i := e.devs[0].Info()
		e.Logf("%+v", i)
		least, greatest := e.devs[0].PriorityRange()
		e.Logf("priorities from %d to %d", least, greatest)
		if least < greatest || least < 0 || greatest > 0 {
			e.Errorf("priorities from %d to %d do not include the default 0", least, greatest)
		}
		if i.Name == "" || i.Memory == 0 || i.Processors <= 0 || i.WarpSize <= 0 || i.MaxThreads < i.WarpSize || i.SharedOptIn < i.SharedMem {
			e.Error("this is no GPU")
		}
		if i.NUMANode < -1 || i.Major < 0 || i.Minor < 0 || i.Clock <= 0 || i.MemoryClock < 0 || i.MemoryBus < 0 || i.L2 < 0 || i.CopyEngines < 0 {
			e.Error("a number is none that can be")
		}
		if i.ProcessorThreads < i.MaxThreads || i.ProcessorBlocks <= 0 || i.Registers <= 0 || i.ProcessorRegisters < i.Registers || i.ProcessorSharedMem < i.SharedOptIn {
			e.Error("a multiprocessor does not hold the largest block")
		}
	}},
	{name: "B149 free memory, queried concurrently", run: func(e *env) {
		d, able := e.devs[0], e.caps(0).MemInfo
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 10 {
					free, total, err := d.MemInfo()
					switch {
					case !able && errors.Is(err, driver.ErrUnsupported):
					case err != nil || !able:
						e.Errorf("memory: %d of %d bytes, %v", free, total, err)
					case total < d.Info().Memory/2 || free > total:
						e.Errorf("%d of %d bytes are free, and the device has %d", free, total, d.Info().Memory)
					}
				}
			})
		}
		all.Wait()
	}},
	{name: "B150 a device's link to itself, and missing links", run: func(e *env) {
		d := e.devs[0]
		l, err := d.Link(d)
		if e.tells("link", e.caps(0).Links, err) && (l.Kind != driver.LinkSelf || l.Rank != 0) {
			e.Errorf("to itself: %+v", l)
		}
		for _, none := range []*gpu.Device{nil, new(gpu.Device)} {
			if l, err := d.Link(none); l != (driver.Link{}) || !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("to none: %+v, %v", l, err)
			}
		}
		closed, err := gpu.Open(e.h.Driver, 0, gpu.Options{})
		e.must(err)
		e.must(closed.Close())
		for _, try := range []func() (driver.Link, error){func() (driver.Link, error) { return d.Link(closed) }, func() (driver.Link, error) { return closed.Link(d) }} {
			if l, err := try(); l != (driver.Link{}) || !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("of a closed device: %+v, %v", l, err)
			}
		}
	}},
	{name: "B150 links between any two devices, in both directions", devices: every, run: func(e *env) {
		able := e.caps(0).Links
		e.pairs(func(a, b *gpu.Device) {
			there, err := a.Link(b)
			if !e.tells("link", able, err) {
				return
			}
			back, err := b.Link(a)
			e.must(err)
			e.Logf("from %d to %d: %+v", a.Info().Index, b.Info().Index, there)
			if there.Kind != back.Kind {
				e.Errorf("there it is of kind %v, and back of %v", there.Kind, back.Kind)
			}
			if there.Kind == driver.LinkSelf || there.Rank < -1 || there.Hops < 0 || there.Kind == driver.LinkNone && (there.Atomics || there.Arrays) {
				e.Errorf("%+v cannot be", there)
			}
		})
	}},
	{name: "B151 blocks per multiprocessor, and the best block size", kernels: true, run: func(e *env) {
		able, info := e.caps(0).Occupancy, e.devs[0].Info()
		for _, code := range []struct {
			image []byte
			name  string
		}{{kernels.Basic, "words"}, {kernels.Basic, "index"}, {tabled, "ids"}} {
			k := e.kernel(code.image, code.name)
			own, most := k.Info().SharedMem, k.Info().MaxThreads
			blocks := func(threads, shared int) int {
				n, err := k.Occupancy(threads, shared)
				if !e.tells("occupancy", able, err) {
					return 0
				}
				if n <= 0 || n > info.ProcessorBlocks || n*threads > info.ProcessorThreads || n*(own+shared) > info.ProcessorSharedMem {
					e.Errorf("%d blocks of %d threads with %d bytes of shared memory, %d of them %s's own, on a multiprocessor with %d blocks, %d threads and %d bytes",
						n, threads, own+shared, own, k.Name(), info.ProcessorBlocks, info.ProcessorThreads, info.ProcessorSharedMem)
				}
				return n
			}
			for _, shared := range []int{0, 1, 5000, max(info.SharedOptIn, info.SharedMem) - own} {
				best := 0
				for threads := info.WarpSize; threads <= most; threads += info.WarpSize {
					best = max(best, threads*blocks(threads, shared))
				}
				blocks(1, shared)
				for _, limit := range []int{0, 1, info.WarpSize + 1, most, 1 << 30} {
					threads, grid, err := k.BlockSize(shared, limit)
					if !e.tells("block size", able, err) {
						continue
					}
					if threads <= 0 || threads > most || limit > 0 && threads > limit {
						e.Errorf("%s: blocks of %d threads, with %d bytes of shared memory and a limit of %d", k.Name(), threads, shared, limit)
						continue
					}
					held := blocks(threads, shared)
					if grid != held*info.Processors {
						e.Errorf("%s: a grid of %d blocks, and %d multiprocessors hold %d each", k.Name(), grid, info.Processors, held)
					}
					if (limit == 0 || limit >= most) && threads*held < best {
						e.Errorf("%s: %d blocks of %d threads, and %d threads can be held", k.Name(), held, threads, best)
					}
				}
			}
			for name, c := range map[string][2]int{
				"too many threads": {info.MaxThreads + 1, 0}, "far too many threads": {1 << 30, 0},
				"too much shared memory": {32, max(info.SharedOptIn, info.SharedMem) - own + 1}, "far too much": {32, 1<<31 - 1},
			} {
				n, err := k.Occupancy(c[0], c[1])
				if e.tells(name, able, err) && n != 0 {
					e.Errorf("%s: %d blocks", name, n)
				}
			}
			threads, grid, err := k.BlockSize(1<<30, 0)
			if e.tells("block size", able, err) && (threads != 0 || grid != 0) {
				e.Errorf("%d blocks of %d threads that cannot be launched", grid, threads)
			}
			for _, c := range [][2]int{{0, 0}, {-1, 0}, {32, -1}} {
				if n, err := k.Occupancy(c[0], c[1]); n != 0 || !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("%d threads, %d bytes: %d, %v", c[0], c[1], n, err)
				}
			}
			for _, c := range [][2]int{{-1, 0}, {0, -1}} {
				if threads, grid, err := k.BlockSize(c[0], c[1]); threads != 0 || grid != 0 || !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("%d bytes, at most %d threads: %d, %d, %v", c[0], c[1], threads, grid, err)
				}
			}
		}
	}},
	{name: "B151 occupancy of a kernel whose code is closed", kernels: true, run: func(e *env) {
		x, err := e.devs[0].Load(kernels.Basic)
		e.must(err)
		k, err := x.Kernel("words")
		e.must(err)
		e.must(x.Close())
		if e.caps(0).Occupancy {
			if n, err := k.Occupancy(32, 0); n != 0 || !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("%d, %v", n, err)
			}
			if n, m, err := k.BlockSize(0, 0); n != 0 || m != 0 || !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("%d, %d, %v", n, m, err)
			}
		}
	}},
}
