package driver

// Priorities is what a [Device] implements besides where the two numbers of [Caps.PriorityRange] differ: streams some of whose kernels
// go first. When processors become free the device gives them to blocks of the more urgent stream; what runs is not interrupted. It
// is a wish, and copies and fills need not follow it.
type Priorities interface {
	// NewPriorityStream is NewStream for a stream with a priority. One outside of the range counts as the nearest in it. Creating.
	NewPriorityStream(priority int) (Stream, error)
}

// ClampPriority returns the priority in the range that is the nearest to another one; 0 where there are none.
func (c *Caps) ClampPriority(priority int) int {
	least, greatest := c.PriorityRange[0], c.PriorityRange[1]
	if least == greatest {
		return 0
	}
	return min(max(priority, greatest), least)
}
