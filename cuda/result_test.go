package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// known returns the codes in the table.
func known() []Result {
	var rs []Result
	for r := range Result(2000) {
		if !strings.HasPrefix(r.Name(), "Result(") {
			rs = append(rs, r)
		}
	}
	return rs
}

func TestKnownErrorsAllocateNothing(t *testing.T) {
	rs := known()
	if len(rs) < 90 {
		t.Fatalf("only %d codes are known", len(rs))
	}
	var sink error
	for _, r := range rs {
		if n := testing.AllocsPerRun(10, func() { sink = r.asError() }); n != 0 {
			t.Errorf("%s allocates %v times", r.Name(), n)
		}
		if r == Success {
			if sink != nil {
				t.Errorf("success is the error %v", sink)
			}
			continue
		}
		if !errors.Is(sink, r) || !errors.Is(fmt.Errorf("launch: %w", sink), r) {
			t.Errorf("%v is not %s", sink, r.Name())
		}
		if errors.Is(sink, r+1) {
			t.Errorf("%v is the next code too", sink)
		}
		if got, want := sink.Error(), fmt.Sprintf("cuda: %s (%d)", r.Name(), int32(r)); !strings.HasPrefix(got, want) || !strings.HasPrefix(r.Name(), "CUDA_ERROR_") {
			t.Errorf("message %q, want it to begin with %q", got, want)
		}
	}
}

func TestUnknownErrorTellsItsNumber(t *testing.T) {
	for _, r := range []Result{12345, -1} {
		err := r.asError()
		if want := fmt.Sprintf("cuda: unknown code %d", int32(r)); err.Error() != want {
			t.Errorf("message %q, want %q", err, want)
		}
		if !errors.Is(err, r) || errors.Is(err, ErrorUnknown) || r.Meaning() != "" {
			t.Errorf("%v is another error", err)
		}
	}
}

func TestCheck(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		word uint64
		err  error
		want error
	}{
		{0, nil, nil},
		{0, failed, failed},
		{600, failed, failed},
		{600, nil, ErrorNotReady},
		{0x7fff_0000_0258, nil, ErrorNotReady}, // C leaves the upper half of the word undefined
		{0x7fff_0000_0000, nil, nil},
	} {
		if got := check(uintptr(c.word), c.err); got != c.want {
			t.Errorf("check(%#x, %v) = %v, want %v", c.word, c.err, got, c.want)
		}
	}
}

func TestEnumsPrint(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{ComputeModeExclusiveProcess, "CU_COMPUTEMODE_EXCLUSIVE_PROCESS"},
		{ComputeMode(77), "ComputeMode(77)"},
		{DeviceAttributeWarpSize, "CU_DEVICE_ATTRIBUTE_WARP_SIZE"},
		{DeviceAttribute(1 << 20), "DeviceAttribute(1048576)"},
		{MemLocationTypeDevice, "CU_MEM_LOCATION_TYPE_DEVICE"},
		{LogLevelError, "CU_LOG_LEVEL_ERROR"},
		{LogLevel(9), "LogLevel(9)"},
		{GraphNodeTypeKernel, "CU_GRAPH_NODE_TYPE_KERNEL"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%T(%d) prints %q, want %q", c.v, c.v, got, c.want)
		}
	}
}

func TestFormatVersion(t *testing.T) {
	for v, want := range map[dl.Version]string{11020: "11.2", 12000: "12.0", 12050: "12.5", 13000: "13.0", 10010: "10.1"} {
		if got := FormatVersion(v); got != want {
			t.Errorf("FormatVersion(%d) = %q, want %q", v, got, want)
		}
	}
}
