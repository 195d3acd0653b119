package gpu

import (
	"errors"
	"math"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestGraphOfClosedDevice has a device be closed, which gives its recordings back, when an execution has been found fit to issue.
func TestGraphOfClosedDevice(t *testing.T) {
	dev, err := Open(simdriver.New(simdriver.Config{}), 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err1 := dev.Alloc(DeviceMem, 8)
	c, err2 := dev.NewCommandBuffer(CommandOptions{Mode: GraphMode})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	scratch, err := c.Alloca(8)
	_, err1 = c.Fill(scratch.All(), []byte{1})
	_, err2 = c.Copy(b.All(), scratch.All())
	_, err3 := c.Timestamp()
	if err := errors.Join(err, err1, err2, err3, c.End(), c.makeGraph(c.blocks[0], 0, nil), dev.Close()); err != nil {
		t.Fatal(err)
	}
	if err := c.makeGraph(c.blocks[0], 0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("the graph of a closed device: %v", err)
	}
}

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

// TestExecuteClosed closes a recording when Execute has looked whether it is closed, and has not held it yet: the execution is refused.
func TestExecuteClosed(t *testing.T) {
	checkLeaks(t)
	d, err := Open(simdriver.New(simdriver.Config{}), 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.NewCommandBuffer(CommandOptions{})
	if err == nil {
		_, err = c.Fill(b.All(), []byte{1})
	}
	if err := errors.Join(err, c.End()); err != nil {
		t.Fatal(err)
	}
	parts, err := c.executable()
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	s := newSemaphore(t, 0)
	if err := d.Queue(0).executeSteps(Order{Signal: []Point{{s, 1}}}, c.addSteps(nil, parts), nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
