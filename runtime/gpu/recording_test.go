package gpu

import (
	"errors"
	"math"
	"testing"
)

// TestRoomFor records more than there are numbers for.
func TestRoomFor(t *testing.T) {
	c := &CommandBuffer{args: make([]uint64, 3), refers: make([]reference, 2)}
	if err := c.roomFor(math.MaxInt32-3, math.MaxInt32-2); err != nil {
		t.Error(err)
	}
	for _, more := range [][2]int{{math.MaxInt32 - 2, 0}, {0, math.MaxInt32 - 1}} {
		if err := c.roomFor(more[0], more[1]); !errors.Is(err, ErrArgument) {
			t.Errorf("%v more: %v", more, err)
		}
	}
}
