//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

func TestTimers(t *testing.T) {
	for release, name := range map[dl.Version]string{13000: "cuEventElapsedTime_v2", 12060: "cuEventElapsedTime"} {
		f := newFake(t, release)
		d := f.device()
		if !d.Caps().Timers {
			t.Errorf("%+v", d.Caps())
		}
		from, err := d.NewTimer()
		ok(t, err)
		to, err := d.NewTimer()
		ok(t, err)
		ok(t, d.Record(from, stream0))
		ok(t, d.Record(to, stream0))
		took, err := d.Elapsed(from, to+1)
		if ok(t, err); took != 1500*time.Microsecond {
			t.Errorf("%v", took)
		}
		f.Set(name, int(cuda.ErrorNotReady))
		if took, err := d.Elapsed(from, to); took != 0 || !errors.Is(err, cuda.ErrorNotReady) {
			t.Errorf("%v, %v", took, err)
		}
		ok(t, d.DestroyEvent(from))
		f.Want("cuEventCreate(0)", "cuEventCreate(0)", "cuEventRecord(0xe000, 0x5000)", "cuEventRecord(0xe000, 0x5000)",
			name+"(0xe000, 0xe001)", name+"(0xe000, 0xe000)", "cuEventDestroy_v2(0xe000)")
	}
}
