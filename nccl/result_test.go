package nccl

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestKnownErrorsAllocateNothing(t *testing.T) {
	var sink error
	known := 0
	for r := range Result(1000) {
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
		if !errors.Is(sink, r) || errors.Is(sink, r+1) || !errors.Is(fmt.Errorf("collective: %w", sink), r) {
			t.Errorf("%v is not %s alone", sink, r.Name())
		}
		if want := fmt.Sprintf("nccl: %s (%d): ", r.Name(), int32(r)); !strings.HasPrefix(sink.Error(), want) {
			t.Errorf("message %q, want it to begin with %q", sink, want)
		}
	}
	if known < 10 { // the number of codes in 2.30
		t.Errorf("%d codes are known, want 10 at the least", known)
	}
}

func TestUnknownErrorTellsItsNumber(t *testing.T) {
	for _, r := range []Result{77, 1234, -1} {
		err := r.asError()
		if want := fmt.Sprintf("nccl: unknown code %d", int32(r)); err.Error() != want || !errors.Is(err, r) {
			t.Errorf("message %q, want %q", err, want)
		}
	}
}

func TestEnumsPrint(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{Sum, "ncclSum"},
		{RedOp(99), "RedOp(99)"},
		{Float32, "ncclFloat32"},
		{DataType(99), "DataType(99)"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%T prints %q, want %q", c.v, got, c.want)
		}
	}
}
