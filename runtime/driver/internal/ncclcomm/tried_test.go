//go:build linux && (amd64 || arm64) && !nogpu

package ncclcomm

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nccl"
)

// TestNoneIsReady checks the error if two files of NCCL or RCCL are found, and neither reports its
// version: it names both files, each with its own error.
func TestNoneIsReady(t *testing.T) {
	for _, v := range []string{"PUREGPU_NCCL_LIBRARY", "PUREGPU_RCCL_LIBRARY", "PUREGPU_LIBRARY_PATH"} {
		t.Setenv(v, "")
	}
	for name, open := range map[string]func(nccl.Options) *Library{"libnccl.so.2": NCCL, "librccl.so.1": RCCL} {
		dirs := testlib.Broken(t, "nccl", name, int(nccl.ErrorInternal))
		_, err := open(nccl.Options{Dirs: dirs}).get()
		if !errors.Is(err, nccl.ErrorInternal) || !strings.HasPrefix(err.Error(), "ncclGetVersion: nccl: ") {
			t.Fatalf("%s: %v", name, err)
		}
		for _, dir := range dirs {
			if !strings.Contains(err.Error(), "\n\t"+dir+"/"+name+" (Options.Dirs): ncclGetVersion: ") {
				t.Errorf("%v\ndoes not have %s", err, dir)
			}
		}
	}
}
