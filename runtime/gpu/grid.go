package gpu

import (
	"cmp"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/recording"
)

// A Grid is the shape of a launch, with its dynamic shared memory and other attributes. A zero
// dimension means one, so the zero Grid is one block of one thread. A Grid that [GridFor] returns
// for no elements launches nothing.
type Grid struct {
	Blocks    [3]uint32
	Threads   [3]uint32   // the shape of a block
	SharedMem uint32      // dynamic shared memory in bytes; the device limits the sum of dynamic and static
	Attrs     LaunchAttrs // the zero value means no attributes

	none bool  // GridFor made the Grid for no elements: the launch does nothing, unless Blocks[0] was changed from 0
	flaw error // the error for invalid arguments of GridFor; every launch returns it
}

// GridFor returns a one-dimensional grid with a thread for each of n elements, in blocks of the
// given number of threads. The last block may have threads without an element, so kernels must
// compare their index with n. If n is 0, the launch runs no kernel, and gives its signals after its
// waits. If n is negative, threads is not positive or too large, or there are too many blocks, the
// error of the launch is [ErrArgument].
func GridFor(n, threads int) Grid {
	if n < 0 || threads <= 0 || uint64(threads) > math.MaxUint32 {
		return flawed(errs.Argument("grid", "%d elements in blocks of %d threads", n, threads))
	}
	blocks := n / threads
	if n%threads > 0 {
		blocks++
	}
	if uint64(blocks) > math.MaxUint32 {
		return flawed(errs.Argument("grid", "%d elements in blocks of %d threads are %d blocks: give each thread several elements", n, threads, blocks))
	}
	return Grid{Blocks: [3]uint32{uint32(blocks), 1, 1}, Threads: [3]uint32{uint32(threads), 1, 1}, none: n == 0}
}

// flawed returns a grid that every launch refuses.
func flawed(err error) Grid {
	// These dimensions are refused even if a program copies only the exported fields of the Grid.
	all := [3]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32}
	return Grid{Blocks: all, Threads: all, flaw: err}
}

// check checks a grid for a kernel, and replaces zero dimensions by one. If the launch does
// nothing, check leaves Blocks as they are.
func (g *Grid) check(k *Kernel) error {
	if g.flaw != nil {
		return g.flaw
	}
	info, f := &k.exe.dev.native.Info, &k.info
	nothing := g.nothing()
	for i, b := range g.Threads {
		g.Threads[i] = max(b, 1)
		if !nothing {
			g.Blocks[i] = max(g.Blocks[i], 1)
		}
		if n := info.MaxBlock[i]; n > 0 && uint64(b) > uint64(n) {
			return errs.Argument("launch", "a block of %v threads; the device takes %v", g.Threads, info.MaxBlock)
		}
		if n := info.MaxGrid[i]; n > 0 && uint64(g.Blocks[i]) > uint64(n) {
			return errs.Argument("launch", "a grid of %v blocks; the device takes %v", g.Blocks, info.MaxGrid)
		}
		if n := f.Cluster[i]; n > 1 && g.Blocks[i]%uint32(n) != 0 {
			return errs.Argument("launch", "a grid of %v blocks; kernel %s has clusters of %v", g.Blocks, k.name, f.Cluster)
		}
	}
	if n := k.maxShared(); uint64(f.SharedMem)+uint64(g.SharedMem) > n {
		return errs.Argument("launch", "%d bytes of dynamic shared memory and %d of kernel %s's own; the device has %d for a block",
			g.SharedMem, f.SharedMem, k.name, n)
	}
	most := k.maxThreads()
	if n := uint64(g.Threads[0]) * uint64(g.Threads[1]) * uint64(g.Threads[2]); n > uint64(most) && most > 0 {
		return errs.Argument("launch", "%d threads in a block; kernel %s takes %d", n, k.name, most)
	}
	if g.Attrs != (LaunchAttrs{}) {
		if err := g.checkAttrs(k); err != nil {
			return err
		}
	}
	return nil
}

// maxThreads returns how many threads a block of the kernel can have, or 0 if the driver does not
// report it.
func (k *Kernel) maxThreads() int { return cmp.Or(k.info.MaxThreads, k.exe.dev.native.Info.MaxThreads) }

// maxShared returns how many bytes of shared memory a block can have, static and dynamic. If the
// driver does not report it, maxShared returns math.MaxUint32.
func (k *Kernel) maxShared() uint64 {
	info := &k.exe.dev.native.Info
	return cmp.Or(uint64(max(info.SharedMem, info.SharedOptIn)), math.MaxUint32)
}

// limits returns the limits for a parameter that sets the blocks of the grid. The grid must have
// been checked.
func (g *Grid) limits(k *Kernel) recording.GridLimits {
	l := recording.GridLimits{Max: k.exe.dev.native.Info.MaxGrid}
	for i := range l.Multiple {
		l.Multiple[i] = max(1, g.Attrs.Cluster[i], uint32(k.info.Cluster[i]))
	}
	if g.Attrs.Cooperative {
		l.Resident, _ = g.resident(k)
	}
	return l
}

// nothing reports whether a launch with the grid does nothing.
func (g *Grid) nothing() bool { return g.none && g.Blocks[0] == 0 }

// launch returns the driver's launch, without arguments.
func (g *Grid) launch(k *Kernel) driver.Launch {
	return driver.Launch{Function: k.fn, Grid: g.Blocks, Block: g.Threads, SharedMem: g.SharedMem, Attrs: g.Attrs}
}
