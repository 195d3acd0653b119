package hip

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestKnownErrorsAllocateNothing(t *testing.T) {
	var sink error
	known := 0
	for r := range Result(2000) {
		if strings.HasPrefix(r.Name(), "Result(") {
			continue
		}
		known++
		if n := testing.AllocsPerRun(10, func() { sink = r.asError() }); n != 0 {
			t.Errorf("%s allocates %v times", r.Name(), n)
		}
		if r == Success {
			if sink != nil {
				t.Errorf("success is the error %v", sink)
			}
			continue
		}
		if !errors.Is(sink, r) || errors.Is(sink, r+1) || !errors.Is(fmt.Errorf("launch: %w", sink), r) {
			t.Errorf("%v is not %s alone", sink, r.Name())
		}
		if want := fmt.Sprintf("hip: %s (%d)", r.Name(), int32(r)); !strings.HasPrefix(sink.Error(), want) || !strings.HasPrefix(r.Name(), "hipError") {
			t.Errorf("message %q, want it to begin with %q", sink, want)
		}
	}
	if known < 70 {
		t.Errorf("only %d codes are known", known)
	}
}

func TestUnknownErrorTellsItsNumber(t *testing.T) {
	for _, r := range []Result{12345, -1} {
		err := r.asError()
		if want := fmt.Sprintf("hip: unknown code %d", int32(r)); err.Error() != want || !errors.Is(err, r) || errors.Is(err, ErrorUnknown) {
			t.Errorf("message %q, want %q", err, want)
		}
	}
}

func TestEnumsPrint(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{DeviceAttributeWarpSize, "hipDeviceAttributeWarpSize"},
		{DeviceAttribute(1 << 20), "DeviceAttribute(1048576)"},
		{MemcpyKind(99), "MemcpyKind(99)"},
		{MemcpyHostToDevice, "hipMemcpyHostToDevice"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%T prints %q, want %q", c.v, got, c.want)
		}
	}
}
