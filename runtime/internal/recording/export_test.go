package recording

import "math"

// MakeGraph makes the graph of the first part, if there is none.
func (c *Recording) MakeGraph() error { return c.makeGraph(c.instances.all[0], 0, nil, nil) }

// RoomFor calls roomFor of a recording that has 3 words of arguments and 2 references, and asks for
// math.MaxInt32-words more words and math.MaxInt32-refers more references.
func RoomFor(words, refers int) error {
	c := &Recording{args: make([]uint64, 3), refers: make([]reference, 2)}
	return c.roomFor(math.MaxInt32-words, math.MaxInt32-refers)
}
