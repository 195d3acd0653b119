package testkit

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// OpenChannels opens a group with a channel over all of it, and closes it at the end of the test.
func OpenChannels(t *testing.T, d driver.Driver, n int, o gpu.ChannelOptions) (*gpu.Group, []*gpu.Channel) {
	t.Helper()
	CheckLeaks(t)
	var indices []int
	for i := range n {
		indices = append(indices, i)
	}
	g, chans := NewGroupChannels(t, d, gpu.Options{}, o, indices...)
	t.Cleanup(func() { Must(t, g.Close()) })
	return g, chans
}

// NewGroupChannels opens a group and makes its channels. The caller closes the group.
func NewGroupChannels(t *testing.T, d driver.Driver, o gpu.Options, of gpu.ChannelOptions, indices ...int) (*gpu.Group, []*gpu.Channel) {
	t.Helper()
	g, err := gpu.OpenGroup(d, o, indices...)
	Must(t, err)
	chans, err := g.NewChannels(Minute(t), of)
	Must(t, err)
	return g, chans
}

// Sum is an all-reduce of a buffer in place.
func Sum(b *gpu.Buffer) gpu.Collective {
	return gpu.AllReduce(b.All(), b.All(), gpu.Float32, gpu.Sum())
}
