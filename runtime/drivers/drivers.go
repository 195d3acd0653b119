// Package drivers opens GPU drivers by name, chooses the best one of a machine, and finds devices
// by number, UUID or PCI address.
//
// Use [Best] in programs that run on any GPU: it takes CUDA if CUDA has a device, else HIP, and
// else the simulated GPU, with a warning in the log. With [WithoutSim] Best returns an error
// instead of the simulated GPU. The user can choose the driver with the environment variable
// PUREGPU_DRIVER: cuda, hip or sim.
//
// If the environment variable PUREGPU_TRACE names a file, the returned driver writes a trace of its
// devices to that file; see package [github.com/puregpu/puregpu/runtime/trace]. Two drivers of a
// program write two files. Without PUREGPU_TRACE, if an NVIDIA profiler has set
// NVTX_INJECTION64_PATH, the returned driver shows the profiler the labels of GPU work; see package
// [github.com/puregpu/puregpu/runtime/trace/nvtxtrace].
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
	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/driver/hipdriver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/trace"
	"github.com/puregpu/puregpu/runtime/trace/nvtxtrace"
)

// Names of drivers.
const (
	CUDA = "cuda" // NVIDIA's GPUs
	HIP  = "hip"  // AMD's GPUs
	Sim  = "sim"  // simulated GPUs in Go, on every machine
)

// Errors of [Open] and [Best].
var (
	// ErrUnknown is the error of an unknown driver name.
	ErrUnknown = errors.New("unknown driver")

	// ErrNoGPU is the error of [Best] if only the simulated GPU is left, and [WithoutSim] excludes
	// it.
	ErrNoGPU = errors.New("no GPU can be used")
)

// An Option configures a driver, or [Best]. Options for drivers that are not opened do nothing.
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

// WithCUDA sets the options for the library of the CUDA driver.
func WithCUDA(opt cuda.Options) Option { return func(o *options) { o.cuda = opt } }

// WithHIP sets the options for the library of the HIP runtime.
func WithHIP(opt hip.Options) Option { return func(o *options) { o.hip = opt } }

// WithNCCL sets the options for NCCL, which the CUDA driver opens when a call first needs NCCL.
func WithNCCL(opt nccl.Options) Option { return func(o *options) { o.nccl = opt } }

// WithNVRTC sets the options for NVRTC, which the CUDA driver opens when a Compiler is first asked
// for.
func WithNVRTC(opt nvrtc.Options) Option { return func(o *options) { o.nvrtc = opt } }

// WithNVJitLink sets the options for nvJitLink, which the CUDA driver opens when a Linker is first
// asked for.
func WithNVJitLink(opt nvjitlink.Options) Option { return func(o *options) { o.nvjitlink = opt } }

// WithNVML sets the options for NVML, which the CUDA driver opens for the first device.
func WithNVML(opt nvml.Options) Option { return func(o *options) { o.nvml = opt } }

// WithRCCL sets the options for RCCL, which the HIP driver opens when a call first needs RCCL.
func WithRCCL(opt nccl.Options) Option { return func(o *options) { o.rccl = opt } }

// WithHIPRTC sets the options for hipRTC, which the HIP driver opens when a Compiler is first asked
// for.
func WithHIPRTC(opt hiprtc.Options) Option { return func(o *options) { o.hiprtc = opt } }

// WithLibraryDirs adds folders that are searched for every library, after the folders of the
// library's own options ([dl.Options].Dirs) and before all other places. The added folders are not
// searched for a library whose file is named by [dl.Options].Path or the library's environment
// variable. A folder may be Python's site-packages with NVIDIA's wheels.
func WithLibraryDirs(dirs ...string) Option {
	return func(o *options) { o.dirs = append(o.dirs, dirs...) }
}

// WithHIPPools makes the HIP driver use HIP's own memory pools if possible; see
// [hipdriver.WithPools]. Without this option the runtime uses its portable pools on HIP.
func WithHIPPools() Option { return func(o *options) { o.pools = true } }

// WithSim configures the simulated GPU. Programs that launch kernels need this option, because the
// default configuration has no kernels.
func WithSim(c simdriver.Config) Option { return func(o *options) { o.sim = c } }

// WithoutSim makes [Best] return an error instead of the simulated GPU.
func WithoutSim() Option { return func(o *options) { o.noSim = true } }

// WithLogger makes [Best] log to l. Without this option, or if l is nil, Best logs to
// [slog.Default].
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

// Open opens a driver by name. A driver without devices is not an error, except for HIP: its driver
// does not start without a device, and the error is [hip.ErrorNoDevice]. Open blocks while the
// library's start-up code runs, which may take long. Open ignores PUREGPU_DRIVER.
func Open(name string, opts ...Option) (driver.Driver, error) {
	return traced(collect(opts).open(name))
}

// traced returns a driver that writes a trace, or that shows labels to an NVIDIA profiler, if the
// environment asks for one of them. Otherwise traced returns d.
func traced(d driver.Driver, err error) (driver.Driver, error) {
	if err != nil {
		return nil, err
	}
	t, err := trace.FromEnv(nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("drivers: %w", err)
	case t != nil:
		return t.Driver(d), nil
	case nvtx.Enabled():
		return nvtxtrace.Driver(d), nil
	}
	return d, nil
}

func (o options) open(name string) (driver.Driver, error) {
	for _, opt := range []*dl.Options{&o.cuda, &o.hip, &o.nccl, &o.rccl, &o.nvrtc, &o.nvjitlink, &o.nvml, &o.hiprtc} {
		opt.Dirs = slices.Concat(opt.Dirs, o.dirs)
	}
	switch name {
	case CUDA:
		d, err := cudadriver.Open(o.cuda, cudadriver.WithNCCL(o.nccl), cudadriver.WithNVRTC(o.nvrtc), cudadriver.WithNVJitLink(o.nvjitlink), cudadriver.WithNVML(o.nvml))
		if err != nil {
			return nil, err // not d, which would be a non-nil interface
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
			return nil, err // not d, which would be a non-nil interface
		}
		return d, nil
	}
	return nil, fmt.Errorf("drivers: %q: %w; use %q, %q or %q", name, ErrUnknown, CUDA, HIP, Sim)
}
