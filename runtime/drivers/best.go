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

// Best opens the best driver that has a device: CUDA, or HIP, which it opens only if CUDA has no device, or the simulated GPU, which
// every machine has.
//
// If it takes the simulated GPU, Best logs a warning that has an attribute for each other driver, with the reason in one line; why a
// driver cannot be used it logs in full at level debug. With [WithoutSim] it returns an error instead, which is [ErrNoGPU] and
// what each driver returned.
//
// The environment variable PUREGPU_DRIVER, unless empty, names the driver to take: cuda, hip or sim. Then no other is opened, nothing
// is logged, and if that driver cannot be used, or has no device, the error says why. A name that is no driver's is [ErrUnknown].
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
			break // this build can load no library
		}
	}
	if o.noSim {
		return nil, fmt.Errorf("drivers: %w\n%w", ErrNoGPU, errors.Join(errs...))
	}
	o.logger.LogAttrs(context.Background(), slog.LevelWarn, "puregpu: no GPU can be used, simulating one", why...)
	return o.open(Sim)
}

// chosen opens the driver that the environment names.
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
		return nil, cuda.ErrorNoDevice // HIP does not open without a device
	}
	return d, nil
}
