package simdriver

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Priorities = (*device)(nil)

// maxCluster is the maximum number of blocks in a cluster.
const maxCluster = 16

// checkAttrs checks the attributes of a launch of f. The caller has checked the dimensions of the
// launch.
func (v *device) checkAttrs(f *function, l *driver.Launch) error {
	a, caps := &l.Attrs, &v.d.caps
	if *a == (driver.LaunchAttrs{}) {
		return nil
	}
	switch {
	case a.Cooperative && !caps.Cooperative:
		return fmt.Errorf("a cooperative launch: %w", driver.ErrUnsupported)
	case a.Cluster != [3]uint32{} && !caps.Clusters:
		return fmt.Errorf("clusters of %d blocks: %w", a.Cluster, driver.ErrUnsupported)
	case a.Dependent && !caps.DependentLaunch:
		return fmt.Errorf("a dependent launch: %w", driver.ErrUnsupported)
	case a.Carveout > 100:
		return fmt.Errorf("a carve-out of %d percent: %w", a.Carveout, ErrInvalidValue)
	}
	if a.Cluster != [3]uint32{} {
		n := uint64(1)
		grid, _ := l.Dims()
		for i, blocks := range a.ClusterDims() {
			if grid[i]%blocks != 0 {
				return fmt.Errorf("a grid of %d blocks is no multiple of clusters of %d: %w", l.Grid, a.Cluster, ErrInvalidValue)
			}
			if own := f.cluster[i]; own > 0 && uint64(own) != uint64(blocks) {
				return fmt.Errorf("clusters of %d blocks, but the kernel has clusters of %d: %w", a.Cluster, f.cluster, ErrInvalidValue)
			}
			if n *= uint64(blocks); n > maxCluster {
				return fmt.Errorf("clusters of %d blocks, more than %d: %w", a.Cluster, maxCluster, ErrInvalidValue)
			}
		}
	}
	if n := v.resident(f, l); a.Cooperative && l.Blocks() > n {
		return fmt.Errorf("a cooperative grid of %d blocks, but only %d can run concurrently: %w", l.Blocks(), n, ErrInvalidValue)
	}
	return nil
}

// relied reports whether a graph node with these attributes needs Caps.NodeAttrs.
func relied(a *driver.LaunchAttrs) bool { return a.Cooperative || a.Cluster != [3]uint32{} }

// clusterOf returns the cluster dimensions of a launch of f, or three ones if the launch has no
// clusters.
func (f *function) clusterOf(a *driver.LaunchAttrs) [3]uint32 {
	switch {
	case a.Cluster != [3]uint32{}:
		return a.ClusterDims()
	case f.cluster != [3]int{}:
		return [3]uint32{uint32(f.cluster[0]), uint32(f.cluster[1]), uint32(f.cluster[2])}
	}
	return [3]uint32{1, 1, 1}
}

// resident returns how many blocks of a launch of f the device can hold at once.
func (v *device) resident(f *function, l *driver.Launch) uint64 {
	_, block := l.Dims()
	return uint64(v.held(int(block[0])*int(block[1])*int(block[2]), f.shared+uint64(l.SharedMem)) * v.info.Processors)
}

// NewPriorityStream makes a stream with a priority, clamped to Caps.PriorityRange. The priority
// does not affect execution. [Executed] reports the priority.
func (v *device) NewPriorityStream(priority int) (driver.Stream, error) {
	if r := v.d.caps.PriorityRange; r[0] == r[1] {
		return 0, v.cannot(codeNewStream)
	}
	return v.newStream(v.d.caps.ClampPriority(priority))
}
