package drivers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

func TestOpen(t *testing.T) {
	d, err := drivers.Open(drivers.Sim, drivers.WithSim(simdriver.Config{Devices: 3}))
	if err != nil {
		t.Fatal(err)
	}
	if infos, err := d.Devices(); d.Name() != "sim" || len(infos) != 3 || err != nil {
		t.Errorf("driver %s has %d devices, %v; want sim, 3", d.Name(), len(infos), err)
	}
	if i, err := drivers.Find(d, "2"); i != 2 || err != nil {
		t.Errorf("found device %d, %v; want 2", i, err)
	}

	if d, err := drivers.Open("CUDA"); d != nil || !errors.Is(err, drivers.ErrUnknown) || !strings.Contains(err.Error(), `"cuda", "hip" or "sim"`) {
		t.Errorf("an unknown name: %v, %v", d, err)
	}
}

// missing returns an option that names a CUDA library that does not exist.
func missing(t *testing.T) drivers.Option {
	return drivers.WithCUDA(cuda.Options{Path: t.TempDir() + "/absent.so"})
}

func TestOpenCUDA(t *testing.T) {
	d, err := drivers.Open(drivers.CUDA, missing(t))
	if d != nil || !errors.Is(err, dl.ErrNotFound) && !errors.Is(err, dl.ErrUnsupported) {
		t.Errorf("a missing library: %v, %v", d, err)
	}
}

func TestOpenHIP(t *testing.T) {
	d, err := drivers.Open(drivers.HIP, drivers.WithHIP(hip.Options{Path: t.TempDir() + "/absent.so"}))
	if d != nil || !errors.Is(err, dl.ErrNotFound) && !errors.Is(err, dl.ErrUnsupported) {
		t.Errorf("a missing library: %v, %v", d, err)
	} else if errors.Is(err, dl.ErrNotFound) && (!strings.Contains(err.Error(), "/absent.so") || !strings.Contains(err.Error(), "install ROCm's HIP runtime")) {
		t.Errorf("the error does not say what is missing: %v", err)
	}
	// Whether HIP opens depends on this machine.
	d, err = drivers.Open("hip")
	switch {
	case err == nil:
		if infos, err := d.Devices(); d.Name() != "hip" || len(infos) == 0 || err != nil {
			t.Errorf("driver %s has %d devices, %v", d.Name(), len(infos), err)
		}
	case d != nil:
		t.Errorf("a driver with the error %v", err)
	case errors.Is(err, hip.ErrorNoDevice):
		t.Log(err)
		if !strings.HasPrefix(err.Error(), "hip: init: the HIP runtime in /") || !strings.Contains(err.Error(), ", finds no AMD GPU: ") {
			t.Errorf("the error does not say which library finds no device: %v", err)
		}
	case errors.Is(err, dl.ErrNotFound), errors.Is(err, dl.ErrNotLoadable), errors.Is(err, dl.ErrTooOld), errors.Is(err, dl.ErrUnsupported):
		t.Log(err)
	default:
		t.Error(err)
	}
}
