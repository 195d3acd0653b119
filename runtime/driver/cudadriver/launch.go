package cudadriver

import (
	"fmt"
	"sync"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Launch passes Args as they are: the driver copies what they point to before it returns.
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

// carveouts is the release from which on a launch says how much shared memory a processor is to have. Headers have the attribute since 12.5, but no
// driver before this one was at hand to see it taken, and a wish must not fail a launch.
const carveouts = 12080

// launchEvents is the release from which on a launch can record an event when all its blocks have begun.
const launchEvents = 12030

// dependent is the major compute capability from which on kernels can wait for those in front of them.
const dependent = 9

// A launchParams has in C's form what a launch, or a node of a graph, has with attributes. The bindings want it on the heap, where
// launchRoom keeps some for the next call.
type launchParams struct {
	config cuda.LaunchConfig
	attrs  [6]cuda.LaunchAttribute
	node   [1]cuda.GraphNode
	edge   [1]cuda.GraphEdgeData
}

var launchRoom = sync.Pool{New: func() any { return new(launchParams) }}

// drop gives the room back.
func (p *launchParams) drop() {
	*p = launchParams{}
	launchRoom.Put(p)
}

// launchEx is Launch for a launch with attributes.
func (d *device) launchEx(s driver.Stream, l *driver.Launch) error {
	err := d.lacksAttrs(&l.Attrs)
	if err == nil && l.Begun != 0 && !d.caps.LaunchEvents {
		err = fmt.Errorf("an event when a launch has begun: the driver is of CUDA %s, and it takes CUDA %s: %w",
			cuda.FormatVersion(d.lib.Version()), cuda.FormatVersion(launchEvents), driver.ErrUnsupported)
	}
	if err != nil {
		return d.fail("launch", err, "%s", l.String())
	}
	if !d.hasLaunchEx { // and there are only wishes
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

// attributes appends the attributes of a launch in C's form, without wishes of which the driver knows nothing.
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

// lacksAttrs returns an error for what a kernel relies on and the device does not have.
func (d *device) lacksAttrs(a *driver.LaunchAttrs) error {
	lacks := func(what string) error {
		if !d.hasLaunchEx {
			return fmt.Errorf("%s: the driver, of CUDA %s, cannot launch with attributes, which takes CUDA %s: %w",
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

// maxCluster returns how many blocks a cluster of a kernel can have at the most, 0 if the driver does not tell.
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
