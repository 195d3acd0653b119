package testkit

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// OpenCommunicators opens the first n devices as a group, and makes a communicator over all of
// them. At the end of the test it closes the group.
func OpenCommunicators(t *testing.T, d driver.Driver, n int, o collective.Options) (*gpu.Group, []*collective.Communicator) {
	t.Helper()
	CheckLeaks(t)
	var indices []int
	for i := range n {
		indices = append(indices, i)
	}
	g, comms := NewCommunicators(t, d, gpu.Options{}, o, indices...)
	t.Cleanup(func() { Must(t, g.Close()) })
	return g, comms
}

// NewCommunicators opens a group and makes a communicator over all of its devices. The caller
// closes the group.
func NewCommunicators(t *testing.T, d driver.Driver, o gpu.Options, of collective.Options, indices ...int) (*gpu.Group, []*collective.Communicator) {
	t.Helper()
	g, err := gpu.OpenGroup(d, o, indices...)
	Must(t, err)
	comms, err := collective.NewAll(Minute(t), g.Devices(), of)
	Must(t, err)
	return g, comms
}

// Sum returns an all-reduce in place that sums the float32 numbers of a buffer.
func Sum(b *gpu.Buffer) collective.Operation {
	return collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum())
}
