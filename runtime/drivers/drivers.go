// Package drivers opens GPU drivers by name, chooses the best one that a machine has, and finds devices by the names that
// people have for them.
package drivers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/driver/hipdriver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// Names of drivers.
const (
	CUDA = "cuda" // NVIDIA's GPUs
	HIP  = "hip"  // AMD's GPUs
	Sim  = "sim"  // GPUs made of Go, on every machine
)

// ErrUnknown is the error for a name that is no driver's.
var ErrUnknown = errors.New("no such driver")

// An Option says more about a driver than its name. Options for drivers that are not opened do nothing.
type Option func(*options)

type options struct {
	cuda cuda.Options
	hip  hip.Options
	sim  simdriver.Config
}

// WithCUDA says how to find the library of the CUDA driver.
func WithCUDA(opt cuda.Options) Option { return func(o *options) { o.cuda = opt } }

// WithHIP says how to find the library of the HIP runtime.
func WithHIP(opt hip.Options) Option { return func(o *options) { o.hip = opt } }

// WithSim says what to simulate, the kernels before all: without it the simulated GPU has none.
func WithSim(c simdriver.Config) Option { return func(o *options) { o.sim = c } }

func collect(opts []Option) (o options) {
	for _, set := range opts {
		set(&o)
	}
	return o
}

// Open opens a driver by name. That it finds no devices is no error, but for HIP, which does not start without one:
// [hip.ErrorNoDevice].
func Open(name string, opts ...Option) (driver.Driver, error) {
	o := collect(opts)
	switch name {
	case CUDA:
		d, err := cudadriver.Open(o.cuda)
		if err != nil {
			return nil, err // not d, which would be a driver that is nil
		}
		return d, nil
	case Sim:
		return simdriver.New(o.sim), nil
	case HIP:
		d, err := hipdriver.Open(o.hip)
		if err != nil {
			return nil, err // likewise
		}
		return d, nil
	}
	return nil, fmt.Errorf("drivers: %q: %w; use %q, %q or %q", name, ErrUnknown, CUDA, HIP, Sim)
}

// Best returns the CUDA driver if it has a device, and otherwise the simulated GPU, which every machine has. The HIP driver
// is there for those who ask for it by name. The reason is for people: which driver it is, and why. A line of it is enough for a log; the lines after the first say more.
func Best(opts ...Option) (d driver.Driver, reason string) {
	d, err := Open(CUDA, opts...)
	if err != nil {
		return simulated(opts, "CUDA cannot be used", err)
	}
	devices, err := d.Devices()
	switch {
	case err != nil:
		return simulated(opts, "CUDA cannot be used", err)
	case len(devices) == 0:
		return simulated(opts, "the CUDA driver finds no device; nvidia-smi lists those that the machine has, and CUDA_VISIBLE_DEVICES may hide them", nil)
	}
	names := make([]string, len(devices))
	for i, info := range devices {
		names[i] = info.Name
	}
	return d, fmt.Sprintf("the CUDA driver has %s", strings.Join(names, ", "))
}

func simulated(opts []Option, why string, err error) (driver.Driver, string) {
	reason := "the simulated GPU, because " + why
	if err != nil {
		reason += ": " + err.Error()
	}
	return simdriver.New(collect(opts).sim), reason
}
