package driver

// Priorities has streams with priorities, if the two numbers of [Caps.PriorityRange] differ. When
// processors become free, blocks of the more urgent stream get them first; running blocks are not
// interrupted. It is a hint, and copies and fills need not follow it.
type Priorities interface {
	// NewPriorityStream is NewStream for a stream with a priority, clamped to the range. Creating.
	NewPriorityStream(priority int) (Stream, error)
}

// ClampPriority returns the nearest priority in the range; 0 if there are no priorities.
func (c *Caps) ClampPriority(priority int) int {
	least, greatest := c.PriorityRange[0], c.PriorityRange[1]
	if least == greatest {
		return 0
	}
	return min(max(priority, greatest), least)
}
