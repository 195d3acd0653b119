//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/nvrtc"
)

// TestNoneIsReady tries two files of each library. Neither file works. The error names both files,
// each with its own error.
func TestNoneIsReady(t *testing.T) {
	for _, c := range []struct {
		table, name string
		code        int
		is          error
		begins      string
		open        func(dirs []string) error
	}{
		{"nvrtc", "libnvrtc.so.12", int(nvrtc.ErrorInternalError), nvrtc.ErrorInternalError, "nvrtcVersion: nvrtc: ", func(dirs []string) error {
			_, err := openNVRTC(nvrtc.Options{Dirs: dirs})()
			return err
		}},
		{"nvjitlink", "libnvJitLink.so.12", int(nvjitlink.ErrorInternal), nvjitlink.ErrorInternal, "nvJitLinkVersion: nvjitlink: ", func(dirs []string) error {
			_, err := openNVJitLink(nvjitlink.Options{Dirs: dirs})()
			return err
		}},
		{"nvml", "libnvidia-ml.so.1", int(nvml.ErrorUnknown), nvml.ErrorUnknown, "start NVML: nvml: ", func(dirs []string) error {
			_, err := openNVML(nvml.Options{Dirs: dirs})()
			return err
		}},
	} {
		t.Run(c.table, func(t *testing.T) {
			for _, v := range []string{"PUREGPU_NVRTC_LIBRARY", "PUREGPU_NVJITLINK_LIBRARY", "PUREGPU_NVML_LIBRARY", "PUREGPU_LIBRARY_PATH"} {
				t.Setenv(v, "")
			}
			dirs := testlib.Broken(t, c.table, c.name, c.code)
			err := c.open(dirs)
			if err == nil {
				t.Skip("the library of this machine's CUDA was found after the two, and works")
			}
			if !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), c.begins) {
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
