package drivers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// TestTraced checks that a driver opened by Open or Best traces its devices to the file that
// PUREGPU_TRACE names, and that Best fails if the file cannot be made.
func TestTraced(t *testing.T) {
	t.Setenv("PUREGPU_DRIVER", "sim")
	// The trace file stays open. On platforms that cannot remove open files, T.TempDir would fail
	// to remove the directory.
	dir, err := os.MkdirTemp("", "traced")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, open := range map[string]func() (*gpu.Device, error){
		"open": func() (*gpu.Device, error) {
			d, err := drivers.Open(drivers.Sim)
			if err != nil {
				return nil, err
			}
			return gpu.Open(d, 0, gpu.Options{})
		},
		"best": func() (*gpu.Device, error) {
			d, err := drivers.Best()
			if err != nil {
				return nil, err
			}
			return gpu.Open(d, 0, gpu.Options{})
		},
	} {
		file := filepath.Join(dir, name+".json")
		t.Setenv(trace.Variable, file)
		dev, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if err := dev.Queue(0).Submit(gpu.Order{}, gpu.HostCall(func() error { return nil }).Label("traced")); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		data, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer data.Close()
		rep, err := traceformat.Check(data)
		if err != nil || len(rep.Problems) > 0 || rep.Submissions != 1 || rep.Cut {
			t.Errorf("%+v, %v", rep, err)
		}
	}
	t.Setenv(trace.Variable, filepath.Join(t.TempDir(), "no", "such.json"))
	if d, err := drivers.Best(); d != nil || err == nil || !strings.Contains(err.Error(), trace.Variable) {
		t.Errorf("a file that cannot be made: %v", err)
	}
}
