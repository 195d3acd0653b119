package simdriver_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestAdopt adopts streams, and checks their priorities and the results of Capturing.
func TestAdopt(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v := vs[0].(interface {
		driver.Device
		driver.Adopter
		driver.Priorities
		driver.Capturer
		driver.Graphs
	})
	plain, urgent := stream(t, v), must(v.NewPriorityStream(-3))(t)
	for s, want := range map[driver.Stream]int{plain: 0, urgent: -3} {
		for range 2 {
			if got := must(v.AdoptStream(s))(t); got != want {
				t.Errorf("priority %d, want %d", got, want)
			}
		}
	}
	_, err := v.AdoptStream(stream(t, vs[1]))
	refused(t, err, simdriver.ErrInvalidHandle, "belongs to device 1")
	_, err = v.AdoptStream(0)
	refused(t, err, simdriver.ErrInvalidHandle)
	captures := func(want bool) {
		t.Helper()
		if got := must(v.Capturing(plain))(t); got != want {
			t.Errorf("captures %v, want %v", got, want)
		}
	}
	captures(false)
	check(t, v.BeginCapture(plain))
	captures(true)
	check(t, v.DestroyGraph(must(v.EndCapture(plain))(t)))
	captures(false)
	_, err = v.Capturing(0)
	refused(t, err, simdriver.ErrInvalidHandle)
	for op, call := range map[simdriver.Op]func() error{
		simdriver.OpAdoptStream: func() error { _, err := v.AdoptStream(plain); return err },
		simdriver.OpCapturing:   func() error { _, err := v.Capturing(plain); return err },
	} {
		d.Inject(simdriver.Fault{Op: op, Device: 0, N: 1})
		refused(t, call(), simdriver.ErrInjected, string(op))
		check(t, call())
	}
	_, vs = open(t, simdriver.Config{Caps: &driver.Caps{}})
	none := vs[0].(driver.Adopter)
	_, err = none.AdoptStream(stream(t, vs[0]))
	refused(t, err, driver.ErrUnsupported)
	_, err = none.Capturing(stream(t, vs[0]))
	refused(t, err, driver.ErrUnsupported)
}
