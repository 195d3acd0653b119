package recording_test

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/recording"
)

// TestGraphOfClosedDevice makes the graph of a recording after the device was closed. An execution
// that became ready before the device was closed may still try to make the graph. Closing has
// destroyed the recording, so the call must return ErrClosed.
func TestGraphOfClosedDevice(t *testing.T) {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err1 := dev.Alloc(gpu.DeviceMem, 8)
	cmd, err2 := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	c := (*recording.Recording)(cmd)
	scratch, err := cmd.Scratch(8)
	_, err1 = cmd.Add(gpu.Fill(scratch.All(), []byte{1}))
	_, err2 = cmd.Add(gpu.Copy(b.All(), scratch.All()))
	_, err3 := cmd.Timestamp()
	if err := errors.Join(err, err1, err2, err3, cmd.End(), c.MakeGraph(), dev.Close()); err != nil {
		t.Fatal(err)
	}
	if err := c.MakeGraph(); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("the graph of a closed device: %v", err)
	}
}

// TestRoomFor checks that a recording refuses more words of arguments or references than an int32
// can count.
func TestRoomFor(t *testing.T) {
	if err := recording.RoomFor(3, 2); err != nil {
		t.Error(err)
	}
	for _, less := range [][2]int{{2, 2}, {3, 1}} {
		if err := recording.RoomFor(less[0], less[1]); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%v: %v", less, err)
		}
	}
}

// TestExecuteClosed closes a recording after Execute has checked that it is open, and before the
// submission holds it. The execution must be refused.
func TestExecuteClosed(t *testing.T) {
	d, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := d.NewCommandBuffer(gpu.CommandOptions{})
	if err == nil {
		_, err = cmd.Add(gpu.Fill(b.All(), []byte{1}))
	}
	if err := errors.Join(err, cmd.End()); err != nil {
		t.Fatal(err)
	}
	c := (*recording.Recording)(cmd)
	if err := errors.Join(c.Executable(), cmd.Close()); err != nil {
		t.Fatal(err)
	}
	var p recording.Part
	step := c.AddSteps(nil, nil, nil, false)[0]
	p.SetRun(step)
	if err := p.Set(new(engine.Submission), step, nil, nil); !errors.Is(err, gpu.ErrClosed) {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
