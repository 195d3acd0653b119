package hiprtc

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestVersionInName(t *testing.T) {
	for name, want := range map[string]dl.Version{
		"/opt/rocm/lib/libhiprtc.so.6.4.43484": 60_443_484,
		"libamdhip64.so.5.2.21153":             50_221_153,
		"libhiprtc.so.6":                       0,
		"libhiprtc.so":                         0,
		"libhiprtc.so.6.4.1234567":             0,
		"hiprtc0604.dll":                       0,
	} {
		if got := versionInName(name); got != want {
			t.Errorf("%q is %d, want %d", name, got, want)
		}
	}
}
