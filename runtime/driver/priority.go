package driver

// Priorities makes streams with priorities, if the two numbers of [Caps.PriorityRange] differ. When
// processors become free, blocks of the more urgent stream get them first. Running blocks are not
// interrupted. Priorities are hints, and copies and fills may ignore them.
type Priorities interface {
	// NewPriorityStream is like NewStream, but the stream has a priority, which is clamped to
	// [Caps.PriorityRange]. NewPriorityStream needs a bound thread.
	NewPriorityStream(priority int) (Stream, error)
}

// ClampPriority returns the nearest priority in the range, or 0 if there are no priorities.
func (c *Caps) ClampPriority(priority int) int {
	least, greatest := c.PriorityRange[0], c.PriorityRange[1]
	if least == greatest {
		return 0
	}
	return min(max(priority, greatest), least)
}
