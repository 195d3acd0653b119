package gpu

import (
	"cmp"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Grid is how many threads a launch has, and in what shape, how much dynamic shared memory a block of them has, and what the launch
// has besides. A zero dimension means one, so the zero Grid is one block of one thread. Only [GridFor] of no elements launches nothing.
type Grid struct {
	Blocks    [3]uint32
	Threads   [3]uint32   // of a block
	SharedMem uint32      // dynamic, bytes; with the kernel's own at most what a block of the device has
	Attrs     LaunchAttrs // none is as any launch

	// Begun is an event that the launch records when all its blocks have begun; nil is none. It is one of [Device.NewEvent], or of
	// [Device.AdoptEvent] if it notes no times, of the kernel's device; where that has no such events ([driver.Caps].LaunchEvents) the call is
	// [driver.ErrUnsupported], as it is in a recording. What waits for the event, as [Queue.WaitEvent] does, may run beside the kernel and does not
	// take its place: that is what it is for. It says nothing of what the kernel has written, the device takes it for advice, and the wait may last
	// until the kernel has ended. The record is issued with the launch ([Semaphore.WaitIssued]), which holds the event as [Queue.RecordEvent] does.
	// A launch of nothing records it as that does.
	Begun *SharedEvent

	none bool  // made for no elements: without blocks along the first dimension it launches nothing
	flaw error // of what it was made from, for the launch to return
}

// GridFor returns a grid with a thread for each of n elements, in blocks of so many threads, along the first dimension. The last
// block may have threads without an element: kernels compare their index with n. No elements launch nothing, and the launch
// signals; but a [Dispatch] with these Blocks launches one block. A negative n, no
// threads, or more blocks than can be counted are told by the launch, with [ErrArgument].
func GridFor(n, threads int) Grid {
	if n < 0 || threads <= 0 || uint64(threads) > math.MaxUint32 {
		return flawed(argument("grid", "%d elements in blocks of %d threads", n, threads))
	}
	blocks := n / threads
	if n%threads > 0 {
		blocks++
	}
	if uint64(blocks) > math.MaxUint32 {
		return flawed(argument("grid", "%d elements in blocks of %d threads are %d blocks: give each thread several elements", n, threads, blocks))
	}
	return Grid{Blocks: [3]uint32{uint32(blocks), 1, 1}, Threads: [3]uint32{uint32(threads), 1, 1}, none: n == 0}
}

// flawed returns a grid that no launch takes.
func flawed(err error) Grid {
	all := [3]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32} // for a Dispatch that is given these
	return Grid{Blocks: all, Threads: all, flaw: err}
}

// check checks a grid for a kernel, and makes dimensions that are zero one.
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
			return argument("dispatch", "a block of %v threads; the device takes %v", g.Threads, info.MaxBlock)
		}
		if n := info.MaxGrid[i]; n > 0 && uint64(g.Blocks[i]) > uint64(n) {
			return argument("dispatch", "a grid of %v blocks; the device takes %v", g.Blocks, info.MaxGrid)
		}
		if n := f.Cluster[i]; n > 1 && g.Blocks[i]%uint32(n) != 0 {
			return argument("dispatch", "a grid of %v blocks; kernel %s has clusters of %v", g.Blocks, k.name, f.Cluster)
		}
	}
	if n := k.maxShared(); uint64(f.SharedMem)+uint64(g.SharedMem) > n {
		return argument("dispatch", "%d bytes of dynamic shared memory and %d of kernel %s's own; the device has %d for a block",
			g.SharedMem, f.SharedMem, k.name, n)
	}
	most := k.maxThreads()
	if n := uint64(g.Threads[0]) * uint64(g.Threads[1]) * uint64(g.Threads[2]); n > uint64(most) && most > 0 {
		return argument("dispatch", "%d threads in a block; kernel %s takes %d", n, k.name, most)
	}
	if g.Attrs != (LaunchAttrs{}) {
		if err := g.checkAttrs(k); err != nil {
			return err
		}
	}
	if g.Begun != nil {
		return g.checkBegun(k)
	}
	return nil
}

// maxThreads returns how many threads a block of the kernel can have, 0 if the driver does not tell.
func (k *Kernel) maxThreads() int { return cmp.Or(k.info.MaxThreads, k.exe.dev.native.Info.MaxThreads) }

// maxShared returns how many bytes of shared memory a block can have, with the kernel's own; as good as no limit if the driver does not
// tell.
func (k *Kernel) maxShared() uint64 {
	info := &k.exe.dev.native.Info
	return cmp.Or(uint64(max(info.SharedMem, info.SharedOptIn)), math.MaxUint32)
}

// nothing reports whether a launch does nothing.
func (g *Grid) nothing() bool { return g.none && g.Blocks[0] == 0 }

// launch returns a driver's launch, without arguments.
func (g *Grid) launch(k *Kernel) driver.Launch {
	return driver.Launch{Function: k.fn, Grid: g.Blocks, Block: g.Threads, SharedMem: g.SharedMem, Attrs: g.Attrs}
}
