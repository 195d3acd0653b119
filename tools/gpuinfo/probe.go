package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/cufile"
	"github.com/puregpu/puregpu/cupti"
	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/cusolver"
	"github.com/puregpu/puregpu/cusparse"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hipblas"
	"github.com/puregpu/puregpu/hipfft"
	"github.com/puregpu/puregpu/hiprand"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// An opened is an open library with the methods that gpuinfo calls.
type opened interface {
	Path() string
	Version() dl.Version
	Sets() []dl.SetStatus
	Missing() []dl.MissingSymbol
	Explain() string
}

// A probe knows how to open a library and how to query it.
type probe struct {
	name string // "CUDA driver"
	env  string // environment variable that names the library's file
	use  string // advice for a missing library: what needs it; "" for no advice
	pkg  string
	// toolkit marks a library of the CUDA toolkit or of ROCm that few programs need. If such a
	// library is found, it gets one line without -explain.
	toolkit bool
	vendor  string // vendor of the devices that the library opens, "" if it opens none
	format  func(dl.Version) string
	open    func(dl.Options) (opened, error)
	// The kernel module of the driver for the library's devices.
	module  string
	devices func(lib opened, memory bool) ([]Device, error) // nil if the library has none
	links   func(lib opened, devices []Device) []Link
	absent  []error // errors of devices that mean that there is no device
}

// probes lists all libraries.
var probes = []probe{
	{
		name: "CUDA driver", env: "PUREGPU_CUDA_LIBRARY", pkg: "cuda", vendor: "NVIDIA", format: cuda.FormatVersion, absent: []error{cuda.ErrorNoDevice, cuda.ErrorStubLibrary},
		open:   opener(cuda.Open),
		module: "nvidia",
		devices: func(lib opened, memory bool) ([]Device, error) {
			devices, err := cudaDevices(lib.(*cuda.Library), memory)
			return devices, lib.(*cuda.Library).Diagnose(err)
		},
		links: func(lib opened, devices []Device) []Link {
			return cudaLinks(lib.(*cuda.Library), len(devices), nvmlPaths(devices))
		},
	},
	{name: "NCCL", env: "PUREGPU_NCCL_LIBRARY", use: "collectives on NVIDIA's GPUs need it", pkg: "nccl", format: nccl.FormatVersion, open: opener(nccl.Open)},
	{name: "NVML", env: "PUREGPU_NVML_LIBRARY", use: "it tells how devices are linked", pkg: "nvml", format: nvml.FormatVersion, open: opener(nvml.Open)},
	{name: "NVRTC", env: "PUREGPU_NVRTC_LIBRARY", use: "compiling at run time needs it", pkg: "nvrtc", format: nvrtc.FormatVersion, open: opener(nvrtc.Open)},
	{name: "nvJitLink", env: "PUREGPU_NVJITLINK_LIBRARY", use: "linking of sources at run time needs it", pkg: "nvjitlink", format: nvjitlink.FormatVersion, open: opener(nvjitlink.Open)},
	{name: "cuBLAS", env: "PUREGPU_CUBLAS_LIBRARY", pkg: "cublas", toolkit: true, format: cublas.FormatVersion, open: opener(cublas.Open)},
	{name: "cuBLASLt", env: "PUREGPU_CUBLASLT_LIBRARY", pkg: "cublaslt", toolkit: true, format: cublaslt.FormatVersion, open: opener(cublaslt.Open)},
	{name: "cuFFT", env: "PUREGPU_CUFFT_LIBRARY", pkg: "cufft", toolkit: true, format: cufft.FormatVersion, open: opener(cufft.Open)},
	{name: "cuRAND", env: "PUREGPU_CURAND_LIBRARY", pkg: "curand", toolkit: true, format: curand.FormatVersion, open: opener(curand.Open)},
	{name: "cuSPARSE", env: "PUREGPU_CUSPARSE_LIBRARY", pkg: "cusparse", toolkit: true, format: cusparse.FormatVersion, open: opener(cusparse.Open)},
	{name: "cuSOLVER", env: "PUREGPU_CUSOLVER_LIBRARY", pkg: "cusolver", toolkit: true, format: cusolver.FormatVersion, open: opener(cusolver.Open)},
	{name: "CUPTI", env: "PUREGPU_CUPTI_LIBRARY", pkg: "cupti", toolkit: true, format: cupti.FormatVersion, open: opener(cupti.Open)},
	{name: "cuDNN", env: "PUREGPU_CUDNN_LIBRARY", pkg: "cudnn", toolkit: true, format: cudnn.FormatVersion, open: opener(cudnn.Open)},
	{name: "cuFile", env: "PUREGPU_CUFILE_LIBRARY", pkg: "cufile", toolkit: true, format: cufile.FormatVersion, open: opener(cufile.Open)},
	{
		name: "HIP runtime", env: "PUREGPU_HIP_LIBRARY", pkg: "hip", vendor: "AMD", format: hip.FormatVersion, absent: []error{hip.ErrorNoDevice},
		open:    opener(hip.Open),
		module:  "amdgpu",
		devices: func(lib opened, memory bool) ([]Device, error) { return hipDevices(lib.(*hip.Library), memory) },
		links:   func(lib opened, devices []Device) []Link { return hipLinks(lib.(*hip.Library), len(devices)) },
	},
	{name: "hipRTC", env: "PUREGPU_HIPRTC_LIBRARY", use: "compiling at run time needs it", pkg: "hiprtc", format: hiprtc.FormatVersion, open: opener(hiprtc.Open)},
	{name: "RCCL", env: "PUREGPU_RCCL_LIBRARY", use: "collectives on AMD's GPUs need it", pkg: "nccl", format: nccl.FormatVersion, open: opener(nccl.OpenRCCL)},
	{name: "hipBLAS", env: "PUREGPU_HIPBLAS_LIBRARY", pkg: "hipblas", toolkit: true, format: hipblas.FormatVersion, open: opener(hipblas.Open)},
	{name: "hipFFT", env: "PUREGPU_HIPFFT_LIBRARY", pkg: "hipfft", toolkit: true, format: hipfft.FormatVersion, open: opener(hipfft.Open)},
	{name: "hipRAND", env: "PUREGPU_HIPRAND_LIBRARY", pkg: "hiprand", toolkit: true, format: hiprand.FormatVersion, open: opener(hiprand.Open)},
}

func opener[L opened](open func(dl.Options) (L, error)) func(dl.Options) (opened, error) {
	return func(opt dl.Options) (opened, error) {
		lib, err := open(opt)
		if err != nil {
			return nil, err // not lib: an interface with a nil pointer is not nil
		}
		return lib, nil
	}
}

// look opens p's library and reports on it, its devices and their links. err says why the library
// or its devices cannot be used.
func (p *probe) look(explain, memory bool) (r Library, devices []Device, links []Link, err error) {
	r = Library{Name: p.name, Package: p.pkg}
	var seen attempts
	var broken error // the reason why a library without devices of its own cannot be used
	lib, err := p.open(dl.Options{Logger: slog.New(&seen)})
	for _, a := range seen.list {
		switch {
		case a.err == nil:
			r.Asked, r.Source = a.path, a.source
		case err == nil && a.file != "" && a.file == lib.Path(): // no file is ready
			r.Asked, r.Source, r.NotReady = a.path, a.source, a.err.Error()
			r.hidden = errors.Is(a.err, dl.ErrHidden)
			if p.devices == nil && !errors.Is(a.err, dl.ErrNoDevice) {
				broken = a.err
			}
		default:
			r.Attempts = append(r.Attempts, Attempt{Path: a.path, Source: a.source, File: a.file, Version: a.told(p), Found: !errors.Is(a.err, dl.ErrNotFound), Error: firstLine(a.err)})
		}
	}
	if err != nil {
		r.Error = err.Error()
		if explain {
			r.Explain = fmt.Sprintf("library: %s, not open\nerror: %v\n", p.name, err)
		}
		return r, nil, nil, err
	}
	r.Found = true
	r.Path = lib.Path()
	if v := lib.Version(); v != 0 {
		r.Version, r.VersionNumber = p.format(v), int(v)
	}
	for _, s := range lib.Sets() {
		r.Sets = append(r.Sets, Set{Name: s.Name, Status: s.String(), Since: p.format(s.Since), Have: s.Have, Total: s.Total})
	}
	for _, m := range lib.Missing() {
		r.Missing = append(r.Missing, Missing{Name: m.Name, Set: m.Set, Since: p.format(m.Since)})
	}
	if p.devices != nil {
		r.DriverVersion = sysfs.ModuleVersion(p.module)
		if devices, err = p.devices(lib, memory); err != nil {
			r.Error = err.Error()
		} else {
			links = p.links(lib, devices)
		}
	}
	if broken != nil {
		err, r.Error = broken, broken.Error()
	}
	if explain {
		r.Explain = lib.Explain()
	}
	return r, devices, links, err
}

// absence reports whether err only means that a library or a device is absent.
func (p *probe) absence(err error) bool {
	targets := append([]error{dl.ErrNotFound, dl.ErrStub, dl.ErrUnsupported}, p.absent...)
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// attempts is a log handler that records the files that were tried for a library.
type attempts struct {
	list []attempt
}

type attempt struct {
	path, source, file string
	version            dl.Version
	err                error
}

// told returns the version as text, or "".
func (a *attempt) told(p *probe) string {
	if a.version == 0 {
		return ""
	}
	return p.format(a.version)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (a *attempts) Enabled(context.Context, slog.Level) bool { return true }
func (a *attempts) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a *attempts) WithGroup(string) slog.Handler            { return a }

func (a *attempts) Handle(_ context.Context, r slog.Record) error {
	var x attempt
	r.Attrs(func(at slog.Attr) bool {
		switch at.Key {
		case "path":
			x.path = at.Value.String()
		case "source":
			x.source = at.Value.String()
		case "file":
			x.file = at.Value.String()
		case "version":
			x.version = dl.Version(at.Value.Int64())
		case "error":
			x.err, _ = at.Value.Any().(error)
		}
		return true
	})
	if x.path != "" {
		a.list = append(a.list, x)
	}
	return nil
}
