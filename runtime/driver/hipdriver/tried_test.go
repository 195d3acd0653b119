//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/testlib"
)

// TestNoneIsReady opens HIP and then hipRTC from two files, neither of which works. The error must
// name both files, each with its own error.
func TestNoneIsReady(t *testing.T) {
	for _, v := range []string{"PUREGPU_HIP_LIBRARY", "PUREGPU_HIPRTC_LIBRARY", "PUREGPU_LIBRARY_PATH"} {
		t.Setenv(v, "")
	}
	for _, c := range []struct {
		table, name string
		code        int
		is          error
		open        func(dirs []string) error
	}{
		{"hip", "libamdhip64.so.6", int(hip.ErrorUnknown), hip.ErrorUnknown, func(dirs []string) error {
			_, err := Open(hip.Options{Dirs: dirs})
			return err
		}},
		{"hiprtc", "libhiprtc.so.6", int(hiprtc.ErrorInternalError), hiprtc.ErrorInternalError, func(dirs []string) error {
			_, err := openHIPRTC(hiprtc.Options{Dirs: dirs})()
			return err
		}},
	} {
		t.Run(c.table, func(t *testing.T) {
			dirs := testlib.Broken(t, c.table, c.name, c.code)
			err := c.open(dirs)
			if err == nil {
				t.Skip("the search goes on to a library of this machine, which works")
			}
			if !errors.Is(err, c.is) {
				t.Fatalf("%v", err)
			}
			for _, dir := range dirs {
				if !strings.Contains(err.Error(), "\n\t"+dir+"/"+c.name+" (Options.Dirs): ") {
					t.Errorf("%v\ndoes not have %s", err, dir)
				}
			}
		})
	}
}
