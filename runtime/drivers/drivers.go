// Package drivers opens GPU drivers by name, chooses the best one that a machine has, and finds devices by the names that
// people have for them.
//
// Best is for programs that run on any GPU: it takes CUDA if that has a device, else HIP, and else the simulated GPU, about which it
// logs a warning. A program that is of no use on the simulated GPU says so by WithoutSim and gets an error instead. Whoever runs the
// program can choose by the environment variable PUREGPU_DRIVER, which is cuda, hip or sim.
//
// Where the environment variable PUREGPU_TRACE names a file, what devices of the drivers do is written there, as package
// [github.com/puregpu/puregpu/runtime/trace] says. The driver returned is then that package's, around the one that was opened; two drivers of a
// program have a file each.
package drivers

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/driver/hipdriver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/trace"
)

// Names of drivers.
const (
	CUDA = "cuda" // NVIDIA's GPUs
	HIP  = "hip"  // AMD's GPUs
	Sim  = "sim"  // GPUs made of Go, on every machine
)

// Errors of [Open] and [Best].
var (
	// ErrUnknown: a name is no driver's.
	ErrUnknown = errors.New("no such driver")

	// ErrNoGPU: no driver has a device, but for the simulated GPU, which [WithoutSim] has ruled out.
	ErrNoGPU = errors.New("no GPU can be used")
)

// An Option says more about a driver than its name. Options for drivers that are not opened do nothing.
type Option func(*options)

type options struct {
	cuda      cuda.Options
	hip       hip.Options
	nccl      nccl.Options
	rccl      nccl.Options
	nvrtc     nvrtc.Options
	nvjitlink nvjitlink.Options
	nvml      nvml.Options
	hiprtc    hiprtc.Options
	sim       simdriver.Config
	dirs      []string
	pools     bool
	noSim     bool
	logger    *slog.Logger
}

// WithCUDA says how to find the library of the CUDA driver.
func WithCUDA(opt cuda.Options) Option { return func(o *options) { o.cuda = opt } }

// WithHIP says how to find the library of the HIP runtime.
func WithHIP(opt hip.Options) Option { return func(o *options) { o.hip = opt } }

// WithNCCL says how to find NCCL, which the CUDA driver opens when a communicator is needed for the first time.
func WithNCCL(opt nccl.Options) Option { return func(o *options) { o.nccl = opt } }

// WithNVRTC says how to find NVRTC, which the CUDA driver opens when a program is compiled for the first time.
func WithNVRTC(opt nvrtc.Options) Option { return func(o *options) { o.nvrtc = opt } }

// WithNVJitLink says how to find nvJitLink, which the CUDA driver opens when sources are linked for the first time.
func WithNVJitLink(opt nvjitlink.Options) Option { return func(o *options) { o.nvjitlink = opt } }

// WithNVML says how to find NVML, which the CUDA driver opens when a link is asked for the first time.
func WithNVML(opt nvml.Options) Option { return func(o *options) { o.nvml = opt } }

// WithRCCL says how to find RCCL, which the HIP driver opens when a communicator is needed for the first time.
func WithRCCL(opt nccl.Options) Option { return func(o *options) { o.rccl = opt } }

// WithHIPRTC says how to find hipRTC, which the HIP driver opens when a program is compiled for the first time.
func WithHIPRTC(opt hiprtc.Options) Option { return func(o *options) { o.hiprtc = opt } }

// WithLibraryDirs has every library looked for in some folders before all other places, behind the folders of its own options:
// [dl.Options].Dirs. One may be a site-packages folder of Python with NVIDIA's wheels.
func WithLibraryDirs(dirs ...string) Option {
	return func(o *options) { o.dirs = append(o.dirs, dirs...) }
}

// WithHIPPools has the HIP driver use HIP's own memory pools where it can, as [hipdriver.WithPools] says. Without it the runtime's
// portable pools are used on HIP.
func WithHIPPools() Option { return func(o *options) { o.pools = true } }

// WithSim says what to simulate, the kernels before all: without it the simulated GPU has none.
func WithSim(c simdriver.Config) Option { return func(o *options) { o.sim = c } }

// WithoutSim has [Best] return an error where it would take the simulated GPU.
func WithoutSim() Option { return func(o *options) { o.noSim = true } }

// WithLogger has [Best] log to l. Without it, or if l is nil, it logs to [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

func collect(opts []Option) (o options) {
	for _, set := range opts {
		if set != nil {
			set(&o)
		}
	}
	if o.logger == nil {
		o.logger = slog.Default()
	}
	return o
}

// Open opens a driver by name. That it finds no devices is no error, but for HIP, which does not start without one:
// [hip.ErrorNoDevice]. Open blocks while the library's own start-up code runs, which may take long. It does not look at
// PUREGPU_DRIVER.
func Open(name string, opts ...Option) (driver.Driver, error) {
	return traced(collect(opts).open(name))
}

// traced has a driver traced, if the environment asks for that.
func traced(d driver.Driver, err error) (driver.Driver, error) {
	if err != nil {
		return nil, err
	}
	t, err := trace.FromEnv(nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("drivers: %w", err)
	case t == nil:
		return d, nil
	}
	return t.Driver(d), nil
}

func (o options) open(name string) (driver.Driver, error) {
	for _, opt := range []*dl.Options{&o.cuda, &o.hip, &o.nccl, &o.rccl, &o.nvrtc, &o.nvjitlink, &o.nvml, &o.hiprtc} {
		opt.Dirs = slices.Concat(opt.Dirs, o.dirs)
	}
	switch name {
	case CUDA:
		d, err := cudadriver.Open(o.cuda, cudadriver.WithNCCL(o.nccl), cudadriver.WithNVRTC(o.nvrtc), cudadriver.WithNVJitLink(o.nvjitlink), cudadriver.WithNVML(o.nvml))
		if err != nil {
			return nil, err // not d, which would be a driver that is nil
		}
		return d, nil
	case Sim:
		return simdriver.New(o.sim), nil
	case HIP:
		opts := []hipdriver.Option{hipdriver.WithRCCL(o.rccl), hipdriver.WithHIPRTC(o.hiprtc)}
		if o.pools {
			opts = append(opts, hipdriver.WithPools())
		}
		d, err := hipdriver.Open(o.hip, opts...)
		if err != nil {
			return nil, err // likewise
		}
		return d, nil
	}
	return nil, fmt.Errorf("drivers: %q: %w; use %q, %q or %q", name, ErrUnknown, CUDA, HIP, Sim)
}
