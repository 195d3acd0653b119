package libcall_test

import (
	"errors"
	"io"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// TestMakeRoom checks that MakeRoom destroys plans when there would be more than MostPlans.
func TestMakeRoom(t *testing.T) {
	plans, destroyed := make(map[int]int), make(map[int]bool)
	for i := range libcall.MostPlans + 10 {
		if err := libcall.MakeRoom(plans, func(p int) error { destroyed[p] = true; return nil }); err != nil {
			t.Fatal(err)
		}
		plans[i] = i
	}
	if len(plans) != libcall.MostPlans || len(destroyed) != 10 {
		t.Errorf("%d plans are kept, %d destroyed", len(plans), len(destroyed))
	}
	for p := range destroyed {
		if _, ok := plans[p]; ok {
			t.Errorf("plan %d is destroyed and kept", p)
		}
	}
	if err := libcall.MakeRoom(plans, func(int) error { return io.EOF }); err != io.EOF {
		t.Errorf("a plan that cannot be destroyed: %v", err)
	}
}

// part is a plan that notes that it was closed.
type part struct{ closed int }

func (p *part) Close() error { p.closed++; return nil }

// TestParts checks that Close closes the parts that are open, once, and that Add closes a part that
// comes too late.
func TestParts(t *testing.T) {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := libcall.For("x", dev)
	if err != nil {
		t.Fatal(err)
	}
	var parts, others libcall.Parts
	open, removed, late, lost := new(part), new(part), new(part), new(part)
	if err := errors.Join(parts.Add(d, open), parts.Add(d, removed)); err != nil {
		t.Fatal(err)
	}
	parts.Remove(removed)
	if err := errors.Join(parts.Close(), parts.Close()); err != nil {
		t.Fatal(err)
	}
	if err := parts.Add(d, late); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a part added after Close: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	if err := others.Add(d, lost); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a part of a closed device: %v", err)
	}
	if open.closed != 1 || removed.closed != 0 || late.closed != 1 || lost.closed != 1 {
		t.Errorf("closed %d, %d, %d and %d times", open.closed, removed.closed, late.closed, lost.closed)
	}
}
