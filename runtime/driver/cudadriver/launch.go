package cudadriver

import (
	"fmt"
	"sync"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Launch passes l.Args to CUDA as they are, because CUDA copies the arguments before the call
// returns.
func (d *device) Launch(s driver.Stream, l *driver.Launch) error {
	if s <= defaultStreams {
		return d.noStream("launch", s)
	}
	if l.Attrs != (driver.LaunchAttrs{}) || l.Begun != 0 {
		return d.launchEx(s, l)
	}
	grid, block := l.Dims()
	err := d.submit(func() error {
		return d.lib.LaunchKernel(cuda.Function(l.Function), grid[0], grid[1], grid[2], block[0], block[1], block[2],
			l.SharedMem, cuda.Stream(s), l.Args, nil)
	})
	if err != nil {
		return d.fail("launch", err, "%s, in stream %#x", l.String(), uintptr(s))
	}
	return nil
}

// carveouts is the first release for which launches use the attribute for a carve-out. Headers have
// the attribute since 12.5, but no driver of 12.5 or 12.6 was available for a test. The attribute
// is a hint, which must not make a launch fail.
const carveouts = 12080

// launchEvents is the first release whose launches can record an event when all blocks have begun.
const launchEvents = 12030

// dependent is the first major compute capability whose kernels can wait for preceding kernels.
const dependent = 9

// A launchParams holds a launch or node with attributes in C's form. The bindings need launchParams
// on the heap, so a sync.Pool, launchRoom, recycles them.
type launchParams struct {
	config cuda.LaunchConfig
	attrs  [6]cuda.LaunchAttribute
	node   [1]cuda.GraphNode
	edge   [1]cuda.GraphEdgeData
}

var launchRoom = sync.Pool{New: func() any { return new(launchParams) }}

// drop returns the parameters to launchRoom.
func (p *launchParams) drop() {
	*p = launchParams{}
	launchRoom.Put(p)
}

// launchEx is Launch for a launch with attributes or with Begun.
func (d *device) launchEx(s driver.Stream, l *driver.Launch) error {
	err := d.lacksAttrs(&l.Attrs)
	if err == nil && l.Begun != 0 && !d.caps.LaunchEvents {
		err = fmt.Errorf("an event for the beginning of a launch: the driver has CUDA %s, and this needs CUDA %s: %w",
			cuda.FormatVersion(d.lib.Version()), cuda.FormatVersion(launchEvents), driver.ErrUnsupported)
	}
	if err != nil {
		return d.fail("launch", err, "%s", l.String())
	}
	if !d.hasLaunchEx { // lacksAttrs has refused all attributes but hints
		plain := *l
		plain.Attrs = driver.LaunchAttrs{}
		return d.Launch(s, &plain)
	}
	p := launchRoom.Get().(*launchParams)
	defer p.drop()
	attrs := d.attributes(p.attrs[:0], &l.Attrs)
	if l.Begun != 0 {
		attrs = append(attrs, cuda.LaunchAttribute{Id: cuda.LaunchAttributeLaunchCompletionEvent})
		attrs[len(attrs)-1].Value.LaunchCompletionEvent().Event = cuda.Event(l.Begun)
	}
	grid, block := l.Dims()
	p.config = cuda.LaunchConfig{
		GridDimX: grid[0], GridDimY: grid[1], GridDimZ: grid[2],
		BlockDimX: block[0], BlockDimY: block[1], BlockDimZ: block[2],
		SharedMemBytes: l.SharedMem, HStream: cuda.Stream(s),
		Attrs: &p.attrs[0], NumAttrs: uint32(len(attrs)),
	}
	if err := d.submit(func() error { return d.lib.LaunchKernelEx(&p.config, cuda.Function(l.Function), l.Args, nil) }); err != nil {
		return d.fail("launch", err, "%s, in stream %#x", l.String(), uintptr(s))
	}
	return nil
}

// attributes appends the attributes of a launch in C's form, without hints that the driver does not
// know.
func (d *device) attributes(to []cuda.LaunchAttribute, a *driver.LaunchAttrs) []cuda.LaunchAttribute {
	add := func(id cuda.LaunchAttributeID) *cuda.LaunchAttributeValue {
		to = append(to, cuda.LaunchAttribute{Id: id})
		return &to[len(to)-1].Value
	}
	if n := a.ClusterDims(); n != [3]uint32{} {
		*add(cuda.LaunchAttributeClusterDimension).ClusterDim() = cuda.LaunchAttributeValueClusterDim{X: n[0], Y: n[1], Z: n[2]}
	}
	if a.Cooperative {
		*add(cuda.LaunchAttributeCooperative).Cooperative() = 1
	}
	if a.Dependent {
		*add(cuda.LaunchAttributeProgrammaticStreamSerialization).ProgrammaticStreamSerializationAllowed() = 1
	}
	if a.Priority != 0 {
		*add(cuda.LaunchAttributePriority).Priority() = int32(a.Priority)
	}
	if a.Carveout != 0 && d.hasCarveout {
		*add(cuda.LaunchAttributePreferredSharedMemoryCarveout).SharedMemCarveout() = uint32(max(a.Carveout, 0))
	}
	return to
}

// lacksAttrs returns an error if a launch needs a feature that the device lacks.
func (d *device) lacksAttrs(a *driver.LaunchAttrs) error {
	lacks := func(what string) error {
		if !d.hasLaunchEx {
			return fmt.Errorf("%s: the driver has CUDA %s, and launch attributes need CUDA %s: %w",
				what, cuda.FormatVersion(d.lib.Version()), cuda.FormatVersion(clusters), driver.ErrUnsupported)
		}
		return fmt.Errorf("%s on %s: %w", what, d.info.Arch, driver.ErrUnsupported)
	}
	switch {
	case a.Cooperative && !d.caps.Cooperative:
		return lacks("a cooperative launch")
	case a.Cluster != [3]uint32{} && !d.caps.Clusters:
		return lacks("clusters of blocks")
	case a.Dependent && !d.caps.DependentLaunch:
		return lacks("a dependent launch")
	}
	return nil
}

// maxCluster returns the maximum number of blocks in a cluster of a kernel, or 0 if that number is
// unknown.
func (d *device) maxCluster(f cuda.Function) int {
	p := launchRoom.Get().(*launchParams)
	defer p.drop()
	p.config = cuda.LaunchConfig{GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1}
	n, err := d.lib.OccupancyMaxPotentialClusterSize(f, &p.config)
	if err != nil {
		return 0
	}
	return int(n)
}
