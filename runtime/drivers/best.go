package drivers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// variable is the environment variable that names the driver for Best.
const variable = "PUREGPU_DRIVER"

// Best opens the best driver that has a device: CUDA, else HIP, else the simulated GPU.
//
// If Best takes the simulated GPU, it logs a warning, in one line, that says why it could not take
// a GPU. At level debug it logs the full error of each driver that cannot be used. With
// [WithoutSim] Best returns an error instead, which is [ErrNoGPU] and has the errors of the
// drivers.
//
// If the environment variable PUREGPU_DRIVER is set to cuda, hip or sim, Best opens only that
// driver and logs nothing. If that driver is unusable or has no device, the error says why. For any
// other name the error is [ErrUnknown].
//
// Best blocks as [Open] does.
func Best(opts ...Option) (driver.Driver, error) { return traced(collect(opts).best()) }

func (o options) best() (driver.Driver, error) {
	if name := secureenv.Get(variable); name != "" {
		d, err := o.chosen(name)
		if err != nil {
			return nil, fmt.Errorf("drivers: the environment variable %s is %q: %w", variable, name, err)
		}
		return d, nil
	}
	var errs []error
	var why []slog.Attr
	for _, name := range []string{CUDA, HIP} {
		d, err := o.withDevice(name)
		if err == nil {
			return d, nil
		}
		o.logger.Debug("puregpu: a driver cannot be used", "driver", name, "error", err)
		line, _, _ := strings.Cut(err.Error(), "\n")
		errs, why = append(errs, err), append(why, slog.String(name, strings.TrimPrefix(line, name+": ")))
		if errors.Is(err, dl.ErrUnsupported) {
			break // this build cannot load libraries, so HIP would fail too
		}
	}
	if o.noSim {
		return nil, fmt.Errorf("drivers: %w\n%w", ErrNoGPU, errors.Join(errs...))
	}
	o.logger.LogAttrs(context.Background(), slog.LevelWarn, "puregpu: no GPU can be used, simulating one", why...)
	return o.open(Sim)
}

// chosen opens the driver that PUREGPU_DRIVER names.
func (o options) chosen(name string) (driver.Driver, error) {
	switch name {
	case CUDA, HIP:
		return o.withDevice(name)
	case Sim:
		if o.noSim {
			return nil, fmt.Errorf("%w: this program does not run on the simulated one", ErrNoGPU)
		}
		return o.open(Sim)
	}
	return nil, fmt.Errorf("%w; use %s, %s or %s, or leave it empty for the best", ErrUnknown, CUDA, HIP, Sim)
}

// withDevice opens a driver, and returns an error if it has no device.
func (o options) withDevice(name string) (driver.Driver, error) {
	d, err := o.open(name)
	if err != nil {
		return nil, err
	}
	devices, err := d.Devices()
	if err != nil {
		return nil, err
	}
	if len(devices) == 0 {
		if why, ok := d.(interface{ NoDevice() error }); ok {
			return nil, why.NoDevice()
		}
		return nil, cuda.ErrorNoDevice // never: CUDA has NoDevice, and HIP does not start without a device
	}
	return d, nil
}
