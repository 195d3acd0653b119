package main

import (
	"fmt"
	"slices"

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
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/symbols"
)

// An opened is an open library of any package.
type opened interface {
	Version() dl.Version
	HasSymbol(cname string) bool
	Missing() []dl.MissingSymbol
}

// A library is a library that puregpu binds.
type library struct {
	key  string // name on the command line, and of the file with its recorded exports
	name string
	pkg  string // name of its package and of its symbol table
	env  string // variable with which tests find the file
	// Name of this implementation in the symbol table, such as rccl in the table of NCCL; "" for
	// the first or only implementation.
	lib    string
	format func(dl.Version) string
	open   func(dl.Options) (opened, error)

	run string // for the guide: where the library was run, or that it was not

	unpackaged bool // Debian does not have the library, so there is no record of its exports

	// The function that returns the release, if the description does not name it.
	tells string
	text  func(symbols.Version) string // what the function in tells returns for a release; nil if that is a number
	// The file's name, if it contains the release; each %d is a part of the release.
	file string
}

var libraries = []library{
	{key: "cuda", name: "CUDA driver", pkg: "cuda", run: "on an H100 and on H200s", env: "PUREGPU_CUDA_LIBRARY", format: cuda.FormatVersion, open: opener(cuda.Open)},
	{key: "nvml", name: "NVML", pkg: "nvml", run: "on an H200", env: "PUREGPU_NVML_LIBRARY", format: nvml.FormatVersion, open: opener(nvml.Open),
		tells: "nvmlSystemGetNVMLVersion", text: driverOf},
	{key: "nvrtc", name: "NVRTC", pkg: "nvrtc", run: "compiles kernels, of 11.2 to 13.0, that ran on H200s", env: "PUREGPU_NVRTC_LIBRARY", format: nvrtc.FormatVersion, open: opener(nvrtc.Open)},
	{key: "nvjitlink", name: "nvJitLink", pkg: "nvjitlink", run: "links, with 12.4, 12.5 and 13.0", env: "PUREGPU_NVJITLINK_LIBRARY", format: nvjitlink.FormatVersion, open: opener(nvjitlink.Open)},
	{key: "cublas", name: "cuBLAS", pkg: "cublas", run: "on an H200, of 13.0", env: "PUREGPU_CUBLAS_LIBRARY", format: cublas.FormatVersion, open: opener(cublas.Open),
		tells: "cublasGetProperty"},
	{key: "cublaslt", name: "cuBLASLt", pkg: "cublaslt", run: "on an H200, of 13.0", env: "PUREGPU_CUBLASLT_LIBRARY", format: cublaslt.FormatVersion, open: opener(cublaslt.Open),
		tells: "cublasLtGetProperty"},
	{key: "cufft", name: "cuFFT", pkg: "cufft", run: "on an H200, of 13.0", env: "PUREGPU_CUFFT_LIBRARY", format: cufft.FormatVersion, open: opener(cufft.Open)},
	{key: "curand", name: "cuRAND", pkg: "curand", run: "on an H200, of 13.0", env: "PUREGPU_CURAND_LIBRARY", format: curand.FormatVersion, open: opener(curand.Open)},
	{key: "cusparse", name: "cuSPARSE", pkg: "cusparse", run: "on an H200, of 13.0", env: "PUREGPU_CUSPARSE_LIBRARY", format: cusparse.FormatVersion, open: opener(cusparse.Open),
		tells: "cusparseGetProperty"},
	{key: "cusolver", name: "cuSOLVER", pkg: "cusolver", run: "on an H200, of 13.0", env: "PUREGPU_CUSOLVER_LIBRARY", format: cusolver.FormatVersion, open: opener(cusolver.Open)},
	{key: "cudnn", name: "cuDNN", pkg: "cudnn", run: "on an H200, 9.14 and 9.19", unpackaged: true, env: "PUREGPU_CUDNN_LIBRARY", format: cudnn.FormatVersion, open: opener(cudnn.Open)},
	{key: "cupti", name: "CUPTI", pkg: "cupti", run: "on an H200, of 13.0", env: "PUREGPU_CUPTI_LIBRARY", format: cupti.FormatVersion, open: opener(cupti.Open)},
	{key: "cufile", name: "cuFile", pkg: "cufile", run: "opened on an H200, whose file system it does not take", env: "PUREGPU_CUFILE_LIBRARY", format: cufile.FormatVersion, open: opener(cufile.Open),
		file: "libcufile.so.%d.%d.%d"},
	{key: "nccl", name: "NCCL", pkg: "nccl", run: "on four H200s", env: "PUREGPU_NCCL_LIBRARY", format: nccl.FormatVersion, open: opener(nccl.Open)},
	{key: "rccl", name: "RCCL", pkg: "nccl", run: "not run", env: "PUREGPU_RCCL_LIBRARY", lib: "rccl", format: nccl.FormatVersion, open: opener(nccl.OpenRCCL)},
	{key: "hip", name: "HIP runtime", pkg: "hip", run: "not run on an AMD GPU", env: "PUREGPU_HIP_LIBRARY", format: hip.FormatVersion, open: opener(hip.Open)},
	{key: "hiprtc", name: "hipRTC", pkg: "hiprtc", run: "compiles; what it makes is not run", env: "PUREGPU_HIPRTC_LIBRARY", format: hiprtc.FormatVersion, open: opener(hiprtc.Open),
		tells: "hiprtcVersion"},
	{key: "hipblas", name: "hipBLAS", pkg: "hipblas", run: "not run on an AMD GPU", env: "PUREGPU_HIPBLAS_LIBRARY", format: hipblas.FormatVersion, open: opener(hipblas.Open),
		file: "libhipblas.so.%d.%d.%d"},
	{key: "hipfft", name: "hipFFT", pkg: "hipfft", run: "not run on an AMD GPU", env: "PUREGPU_HIPFFT_LIBRARY", format: hipfft.FormatVersion, open: opener(hipfft.Open)},
	{key: "hiprand", name: "hipRAND", pkg: "hiprand", run: "not run on an AMD GPU", env: "PUREGPU_HIPRAND_LIBRARY", format: hiprand.FormatVersion, open: opener(hiprand.Open)},
}

// driverOf returns the version of the driver that came with a CUDA release, in the form in which
// NVML reports it: the first number of the release, then the driver's.
func driverOf(v symbols.Version) string {
	branches := map[symbols.Version]int{
		{Major: 11, Minor: 0}: 450, {Major: 11, Minor: 1}: 455, {Major: 11, Minor: 2}: 460, {Major: 11, Minor: 3}: 465, {Major: 11, Minor: 4}: 470,
		{Major: 11, Minor: 5}: 495, {Major: 11, Minor: 6}: 510, {Major: 11, Minor: 7}: 515, {Major: 11, Minor: 8}: 520,
		{Major: 12, Minor: 0}: 525, {Major: 12, Minor: 1}: 530, {Major: 12, Minor: 2}: 535, {Major: 12, Minor: 3}: 545, {Major: 12, Minor: 4}: 550,
		{Major: 12, Minor: 5}: 555, {Major: 12, Minor: 6}: 560, {Major: 12, Minor: 8}: 570, {Major: 12, Minor: 9}: 575,
		{Major: 13, Minor: 0}: 580, {Major: 13, Minor: 1}: 590, {Major: 13, Minor: 2}: 595, {Major: 13, Minor: 3}: 610,
	}
	return fmt.Sprintf("%d.%d.1", v.Major, branches[v])
}

func libraryNamed(key string) *library {
	i := slices.IndexFunc(libraries, func(l library) bool { return l.key == key })
	if i < 0 {
		return nil
	}
	return &libraries[i]
}

func opener[L opened](open func(dl.Options) (L, error)) func(dl.Options) (opened, error) {
	return func(opt dl.Options) (opened, error) {
		lib, err := open(opt)
		if err != nil {
			return nil, err // not a nil L
		}
		return lib, nil
	}
}
