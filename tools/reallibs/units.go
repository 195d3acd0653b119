package main

import "slices"

// A unit is a set of packages that are fetched together.
type unit struct {
	name string // name of its folder
	// If closure is set, the first suite has the packages, and dependencies may come from the other
	// suites. If not, the packages come from the first suite that has all of them.
	suites   []string
	packages []string
	// closure says to fetch all dependencies, also a C library. The unit's libraries then run under
	// the loader of that C library.
	closure  bool
	long     bool // the packages are large, so -short leaves the unit out
	releases []release
	tests    []test

	components string   // components of the suites, such as "main"; if "", the field closure decides
	headers    []string // libraries whose headers the packages have
	bind       bool     // unpack only headers
}

// A release is a library in a unit.
type release struct {
	library string // key of the library
	name    string // name of the release in the tables
	file    string // pattern for the file's name; the longest match counts
}

// A test names a package and, by a pattern, its tests to run. A unit must not have tests if one of
// its libraries is too old for its package.
type test struct {
	pkg, run string
}

// toolkitTests are the tests of the libraries of CUDA's toolkit.
var toolkitTests = []test{{"cufft", "Real"}, {"curand", "Real"}, {"cublas", "Real"}, {"cublaslt", "Real"}, {"cusparse", "Real"}, {"cusolver", "Real"}}

// units are the units with libraries. NVIDIA's driver and toolkit run with the C library of any
// suite, so their units need no closure.
var units = []unit{
	{
		name: "nvidia-450", suites: []string{"bullseye", "sid"}, packages: []string{"libnvidia-tesla-450-cuda1", "libnvidia-tesla-450-ml1"},
		releases: []release{{"cuda", "450", "libcuda.so.450*"}, {"nvml", "450", "libnvidia-ml.so.450*"}},
	},
	{
		name: "nvidia-460", suites: []string{"bullseye", "sid"}, packages: []string{"libnvidia-tesla-460-cuda1", "libnvidia-tesla-460-ml1"},
		releases: []release{{"cuda", "460", "libcuda.so.460*"}, {"nvml", "460", "libnvidia-ml.so.460*"}},
		tests:    []test{{"cuda", "Real"}, {"nvml", "Real"}},
	},
	{
		name: "nvidia-470", suites: []string{"bullseye"}, packages: []string{"libcuda1", "libnvidia-ml1", "libnvrtc11.2"}, long: true,
		releases: []release{{"cuda", "470", "libcuda.so.470*"}, {"nvml", "470", "libnvidia-ml.so.470*"}, {"nvrtc", "11.2", "libnvrtc.so.11.2*"}},
		tests:    []test{{"cuda", "Real"}, {"nvml", "Real"}, {"nvrtc", "Real"}, {"runtime/driver/cudadriver", "RealNVRTC"}},
	},
	{
		name: "nvidia-525", suites: []string{"bookworm", "sid"}, packages: []string{"libnvidia-tesla-cuda1", "libnvidia-tesla-ml1"}, long: true,
		releases: []release{{"cuda", "525", "libcuda.so.525*"}, {"nvml", "525", "libnvidia-ml.so.525*"}},
		tests:    []test{{"cuda", "Real"}, {"nvml", "Real"}},
	},
	{
		name: "nvidia-535", suites: []string{"bookworm"}, packages: []string{"libcuda1", "libnvidia-ml1", "libnvrtc11.2", "libnvrtc-builtins11.8"},
		releases: []release{{"cuda", "535", "libcuda.so.535*"}, {"nvml", "535", "libnvidia-ml.so.535*"}, {"nvrtc", "11.8", "libnvrtc.so.11.8*"}},
		tests:    []test{{"cuda", "Real"}, {"nvml", "Real"}, {"nvrtc", "Real"}, {"runtime/driver/cudadriver", "RealNVRTC"}},
	},
	{
		name: "nvidia-550", suites: []string{"trixie"}, packages: []string{"libcuda1", "libnvidia-ml1", "libnvrtc12", "libnvrtc-builtins12.4", "libnvjitlink12"},
		releases: []release{
			{"cuda", "550", "libcuda.so.550*"}, {"nvml", "550", "libnvidia-ml.so.550*"}, {"nvrtc", "12.4", "libnvrtc.so.12.4*"},
			{"nvjitlink", "12.4", "libnvJitLink.so.12.4*"},
		},
		tests: []test{
			{"cuda", "Real"}, {"nvml", "Real"}, {"nvrtc", "Real"}, {"nvjitlink", "Real"}, {"runtime/driver/cudadriver", "RealNVRTC|RealLink"},
		},
	},
	{
		name: "nvidia-555", suites: []string{"experimental"}, long: true,
		packages: []string{"libcuda1", "libnvidia-ml1", "libnvrtc12", "libnvrtc-builtins12.5", "libnvjitlink12"},
		releases: []release{
			{"cuda", "555", "libcuda.so.555*"}, {"nvml", "555", "libnvidia-ml.so.555*"}, {"nvrtc", "12.5", "libnvrtc.so.12.5*"},
			{"nvjitlink", "12.5", "libnvJitLink.so.12.5*"},
		},
		tests: []test{
			{"cuda", "Real"}, {"nvml", "Real"}, {"nvrtc", "Real"}, {"nvjitlink", "Real"}, {"runtime/driver/cudadriver", "RealNVRTC|RealLink"},
		},
	},
	{
		name: "cupti-11.2", suites: []string{"bullseye"}, packages: []string{"libcupti11.2"},
		releases: []release{{"cupti", "11.2", "libcupti.so.2*"}},
		tests:    []test{{"cupti", "Real"}, {"nvtx", "Real"}},
	},
	{
		name: "cupti-11.8", suites: []string{"bookworm"}, packages: []string{"libcupti11.8"},
		releases: []release{{"cupti", "11.8", "libcupti.so.2*"}},
		tests:    []test{{"cupti", "Real"}, {"nvtx", "Real"}},
	},
	{
		name: "cupti-12.4", suites: []string{"trixie"}, packages: []string{"libcupti12"},
		releases: []release{{"cupti", "12.4", "libcupti.so.2*"}},
		tests:    []test{{"cupti", "Real"}, {"nvtx", "Real"}},
	},
	{
		name: "cupti-12.5", suites: []string{"experimental"}, packages: []string{"libcupti12"},
		releases: []release{{"cupti", "12.5", "libcupti.so.2*"}},
		tests:    []test{{"cupti", "Real"}, {"nvtx", "Real"}},
	},
	{
		name: "toolkit-11.2", suites: []string{"bullseye"}, long: true,
		packages: []string{"libcufft10", "libcurand10", "libcublas11", "libcublaslt11", "libcusparse11", "libcusolver11", "libcusolvermg11"},
		releases: []release{
			{"cufft", "11.2", "libcufft.so.10*"},
			{"curand", "11.2", "libcurand.so.10*"},
			{"cublas", "11.2", "libcublas.so.11*"},
			{"cublaslt", "11.2", "libcublasLt.so.11*"},
			{"cusparse", "11.2", "libcusparse.so.11*"},
			{"cusolver", "11.2", "libcusolver.so.11*"},
		},
		tests: toolkitTests,
	},
	{
		name: "toolkit-11.8", suites: []string{"bookworm"}, long: true,
		packages: []string{"libcufft10", "libcurand10", "libcublas11", "libcublaslt11", "libcusparse11", "libcusolver11", "libcusolvermg11"},
		releases: []release{
			{"cufft", "11.8", "libcufft.so.10*"},
			{"curand", "11.8", "libcurand.so.10*"},
			{"cublas", "11.8", "libcublas.so.11*"},
			{"cublaslt", "11.8", "libcublasLt.so.11*"},
			{"cusparse", "11.8", "libcusparse.so.11*"},
			{"cusolver", "11.8", "libcusolver.so.11*"},
		},
		tests: toolkitTests,
	},
	{
		name: "toolkit-12.4", suites: []string{"trixie"}, long: true,
		packages: []string{"libcufft11", "libcublas12", "libcublaslt12", "libcusparse12", "libcusolver11", "libcusolvermg11", "libnvjitlink12"},
		releases: []release{
			{"cufft", "12.4", "libcufft.so.11*"},
			{"cublas", "12.4", "libcublas.so.12*"},
			{"cublaslt", "12.4", "libcublasLt.so.12*"},
			{"cusparse", "12.4", "libcusparse.so.12*"},
			{"cusolver", "12.4", "libcusolver.so.11*"},
		},
		tests: slices.DeleteFunc(slices.Clone(toolkitTests), func(t test) bool { return t.pkg == "curand" }),
	},
	{
		name: "toolkit-12.5", suites: []string{"experimental"}, long: true,
		packages: []string{"libcufft11", "libcurand10", "libcublas12", "libcublaslt12", "libcusparse12", "libcusolver11", "libcusolvermg11", "libnvjitlink12"},
		releases: []release{
			{"cufft", "12.5", "libcufft.so.11*"},
			{"curand", "12.5", "libcurand.so.10*"},
			{"cublas", "12.5", "libcublas.so.12*"},
			{"cublaslt", "12.5", "libcublasLt.so.12*"},
			{"cusparse", "12.5", "libcusparse.so.12*"},
			{"cusolver", "12.5", "libcusolver.so.11*"},
		},
		tests: toolkitTests,
	},
	{
		name: "curand-12.4", suites: []string{"trixie"}, packages: []string{"libcurand10"},
		releases: []release{{"curand", "12.4", "libcurand.so.10*"}}, tests: []test{{"curand", "Real"}, {"runtime/random", "Real"}},
	},
	{
		name: "cufile-11.8", suites: []string{"bookworm"}, packages: []string{"libcufile0"},
		releases: []release{{"cufile", "11.8", "libcufile.so.1.4*"}}, tests: []test{{"cufile", "Real"}},
	},
	{
		name: "cufile-12.4", suites: []string{"trixie"}, packages: []string{"libcufile0"},
		releases: []release{{"cufile", "12.4", "libcufile.so.1.9*"}}, tests: []test{{"cufile", "Real"}},
	},
	{
		name: "cufile-12.5", suites: []string{"experimental"}, packages: []string{"libcufile0"},
		releases: []release{{"cufile", "12.5", "libcufile.so.1.10*"}}, tests: []test{{"cufile", "Real"}},
	},
	{
		name: "nccl-2.22", suites: []string{"trixie"}, packages: []string{"libnccl2"}, closure: true, long: true,
		releases: []release{{"nccl", "2.22.3", "libnccl.so.2.22*"}}, tests: []test{{"nccl", "Real"}},
	},
	{
		name: "nccl-2.29", suites: []string{"sid"}, packages: []string{"libnccl2"}, closure: true, long: true,
		releases: []release{{"nccl", "2.29.7", "libnccl.so.2.29*"}}, tests: []test{{"nccl", "Real"}},
	},
	{
		// "make real-hip" fetches the same package.
		name: "hip-5.2", suites: []string{"bookworm"}, packages: []string{"libamdhip64-5"}, closure: true, long: true,
		releases: []release{{"hip", "5.2.3", "libamdhip64.so.5.2*"}, {"hiprtc", "5.2.3", "libamdhip64.so.5.2*"}},
		tests:    []test{{"hip", "Real"}, {"hiprtc", "Real"}, {"runtime/driver/hipdriver", "Real"}},
	},
	{
		name: "hip-5.7", suites: []string{"trixie"}, packages: []string{"librccl1"}, closure: true, long: true,
		releases: []release{
			{"hip", "5.7.1", "libamdhip64.so.5.7*"}, {"hiprtc", "5.7.1", "libamdhip64.so.5.7*"}, {"rccl", "5.4.3", "librccl.so.1*"},
		},
		tests: []test{{"hip", "Real"}, {"hiprtc", "Real"}, {"nccl", "Real"}, {"runtime/driver/hipdriver", "Real"}},
	},
	{
		name: "hip-6.4", suites: []string{"sid"}, packages: []string{"libamdhip64-6", "libhiprtc6"}, closure: true,
		releases: []release{{"hip", "6.4.3", "libamdhip64.so.6.4*"}, {"hiprtc", "6.4.3", "libhiprtc.so.6.4*"}},
		tests:    []test{{"hip", "Real"}, {"hiprtc", "Real"}, {"runtime/driver/hipdriver", "Real"}},
	},
	{
		name: "hip-7.2", suites: []string{"experimental", "sid"}, packages: []string{"libamdhip64-7", "libhiprtc7"}, closure: true, long: true,
		releases: []release{{"hip", "7.2.4", "libamdhip64.so.7.2*"}, {"hiprtc", "7.2.4", "libhiprtc.so.7.2*"}},
		tests:    []test{{"hip", "Real"}, {"hiprtc", "Real"}, {"runtime/driver/hipdriver", "Real"}},
	},
	{
		name: "rocm-5.2", suites: []string{"bookworm"}, packages: []string{"libhiprand1"}, closure: true, long: true,
		releases: []release{{"hiprand", "5.3", "libhiprand.so.1.1*"}}, tests: []test{{"hiprand", "Real"}},
	},
	{
		name: "rocm-5.7", suites: []string{"trixie"}, packages: []string{"libhipfft0", "libhiprand1"}, closure: true, long: true,
		releases: []release{{"hipfft", "6.1", "libhipfft.so.0.1*"}, {"hiprand", "5.7", "libhiprand.so.1.1*"}},
		tests:    []test{{"hipfft", "Real"}, {"hiprand", "Real"}},
	},
	{
		name: "rocm-6.4", suites: []string{"sid"}, packages: []string{"libhipblas2", "libhipfft0", "libhiprand1"}, closure: true, long: true,
		releases: []release{{"hipblas", "6.4", "libhipblas.so.2.4*"}, {"hipfft", "6.4", "libhipfft.so.0.1*"}, {"hiprand", "6.4", "libhiprand.so.1.1*"}},
		tests:    []test{{"hipblas", "Real"}, {"hipfft", "Real"}, {"hiprand", "Real"}},
	},
	{
		name: "rocm-7.2", suites: []string{"experimental", "sid"}, packages: []string{"libhipfft0", "libhiprand1"}, closure: true, long: true,
		releases: []release{{"hipfft", "7.2", "libhipfft.so.0.1*"}, {"hiprand", "7.2", "libhiprand.so.1.1*"}},
		tests:    []test{{"hipfft", "Real"}, {"hiprand", "Real"}},
	},
	{
		name: "rccl-7.2", suites: []string{"experimental", "sid"}, packages: []string{"librccl1"}, closure: true, long: true,
		releases: []release{{"rccl", "7.2.4", "librccl.so.1*"}}, tests: []test{{"nccl", "Real"}},
	},
}

// Headers, by their releases. Packages that also have libraries are large; only their headers are
// unpacked.
var headerUnits = []unit{
	{name: "headers-hip-5.2", suites: []string{"bookworm"}, packages: []string{"libamdhip64-dev"}, components: "main", headers: []string{"hip", "hiprtc"}},
	{name: "headers-hip-5.7", suites: []string{"trixie"}, packages: []string{"libamdhip64-dev"}, components: "main", headers: []string{"hip", "hiprtc"}},
	{name: "headers-hip-6.4", suites: []string{"sid"}, packages: []string{"libamdhip64-dev"}, components: "main", headers: []string{"hip", "hiprtc"}},
	{name: "headers-hip-7.2", suites: []string{"experimental"}, packages: []string{"libamdhip64-dev"}, components: "main", headers: []string{"hip", "hiprtc"}},
	{name: "headers-nccl-2.22", suites: []string{"trixie"}, packages: []string{"libnccl-dev"}, components: "contrib", headers: []string{"nccl"}, long: true},
	{name: "headers-nccl-2.29", suites: []string{"sid"}, packages: []string{"libnccl-dev"}, components: "contrib", headers: []string{"nccl"}, long: true},
	{name: "headers-rccl-5.4", suites: []string{"trixie"}, packages: []string{"librccl-dev"}, components: "main", headers: []string{"rccl"}},
	{name: "headers-rccl-7.2", suites: []string{"experimental"}, packages: []string{"librccl-dev"}, components: "main", headers: []string{"rccl"}},
	{name: "headers-cufile-1.4", suites: []string{"bookworm"}, packages: []string{"libcufile-dev"}, headers: []string{"cufile"}},
	{name: "headers-cufile-1.9", suites: []string{"trixie"}, packages: []string{"libcufile-dev"}, headers: []string{"cufile"}},
	{name: "headers-cufile-1.10", suites: []string{"experimental"}, packages: []string{"libcufile-dev"}, headers: []string{"cufile"}},
	{name: "headers-hipblas-5.5", suites: []string{"trixie"}, packages: []string{"libhipblas-dev"}, components: "main", headers: []string{"hipblas"}},
	{name: "headers-hipblas-6.4", suites: []string{"sid"}, packages: []string{"libhipblas-dev", "libhipblas-common-dev"}, components: "main", headers: []string{"hipblas"}},
	{name: "headers-hipblas-7.2", suites: []string{"experimental"}, packages: []string{"libhipblas-dev", "libhipblas-common-dev"}, components: "main", headers: []string{"hipblas"}},
	{name: "headers-hipfft-1.0.27", suites: []string{"trixie"}, packages: []string{"libhipfft-dev"}, components: "main", headers: []string{"hipfft"}},
	{name: "headers-hipfft-1.0.32", suites: []string{"sid"}, packages: []string{"libhipfft-dev"}, components: "main", headers: []string{"hipfft"}},
	{name: "headers-hipfft-1.0.36", suites: []string{"experimental"}, packages: []string{"libhipfft-dev"}, components: "main", headers: []string{"hipfft"}},
	{name: "headers-hiprand-5.3", suites: []string{"bookworm"}, packages: []string{"libhiprand-dev", "librocrand-dev"}, components: "main", headers: []string{"hiprand"}, long: true},
	{name: "headers-hiprand-5.7", suites: []string{"trixie"}, packages: []string{"libhiprand-dev", "librocrand-dev"}, components: "main", headers: []string{"hiprand"}, long: true},
	{name: "headers-hiprand-6.4", suites: []string{"sid"}, packages: []string{"libhiprand-dev", "librocrand-dev"}, components: "main", headers: []string{"hiprand"}, long: true},
	{name: "headers-hiprand-7.2", suites: []string{"experimental"}, packages: []string{"libhiprand-dev", "librocrand-dev"}, components: "main", headers: []string{"hiprand"}, long: true},
	{name: "headers-cuda-11.2", suites: []string{"bullseye"}, packages: []string{"nvidia-cuda-dev", "libnvidia-ml-dev", "libcupti-dev"}, headers: []string{"cuda", "nvrtc", "nvml", "cufft", "curand", "cublas", "cublaslt", "cusparse", "cusolver", "cupti"}, long: true},
	{name: "headers-cuda-11.8", suites: []string{"bookworm"}, packages: []string{"nvidia-cuda-dev", "libnvidia-ml-dev", "libcupti-dev"}, headers: []string{"cuda", "nvrtc", "nvml", "cufft", "curand", "cublas", "cublaslt", "cusparse", "cusolver", "cupti"}, long: true},
	{name: "headers-cuda-12.4", suites: []string{"trixie"}, packages: []string{"nvidia-cuda-dev", "libnvidia-ml-dev", "libcupti-dev"}, headers: []string{"cuda", "nvrtc", "nvjitlink", "nvml", "cufft", "curand", "cublas", "cublaslt", "cusparse", "cusolver", "cupti"}, long: true},
	{name: "headers-cuda-12.5", suites: []string{"experimental"}, packages: []string{"nvidia-cuda-dev", "libnvidia-ml-dev", "libcupti-dev"}, headers: []string{"cuda", "nvrtc", "nvjitlink", "nvml", "cufft", "curand", "cublas", "cublaslt", "cusparse", "cusolver", "cupti"}, long: true},
}

// Headers of libraries outside this project, for tests of bindgen.
var bindUnits = []unit{
	{
		name: "bind-main", suites: []string{"bookworm"}, components: "main", bind: true,
		packages: []string{
			"linux-libc-dev", "libc6-dev", "libhsa-runtime-dev", "libze-dev", "libvulkan-dev", "opencl-c-headers", "libibverbs-dev", "libhwloc-dev", "zlib1g-dev", "libsqlite3-dev",
			"libasound2-dev", "libbz2-dev", "libcap-dev", "libcjson-dev", "libcups2-dev", "libcurl4-openssl-dev", "libdrm-dev", "libevent-dev", "libexpat1-dev", "libfftw3-dev", "libflac-dev",
			"libfreetype-dev", "libgmp-dev", "libjansson-dev", "libjpeg62-turbo-dev", "liblcms2-dev", "liblmdb-dev", "liblz4-dev", "liblzma-dev", "libmagic-dev", "libmpfr-dev", "libnghttp2-dev",
			"libnuma-dev", "libogg-dev", "libssl-dev", "libopus-dev", "libpci-dev", "libpcre2-dev", "libpng-dev", "libsamplerate0-dev", "libseccomp-dev", "libsndfile1-dev", "libsodium-dev",
			"libssh2-1-dev", "libtiff-dev", "libudev-dev", "libusb-1.0-0-dev", "libuv1-dev", "libvorbis-dev", "libwebp-dev", "libx11-dev", "x11proto-dev", "libxcb1-dev", "libxml2-dev", "libyaml-dev",
			"libzmq3-dev", "libzstd-dev", "libicu-dev",
		},
	},
	{name: "bind-cufile", suites: []string{"trixie"}, packages: []string{"libcufile-dev"}, bind: true},
}

// Tools that scripts run from their unpacked folders.
var toolUnits = []unit{
	// 64-bit Wine without windows and sound. Debian 12's is 8.0, which is too old for Go's runtime.
	{
		name: "wine", suites: []string{"trixie"}, components: "main",
		packages: []string{"wine64", "libwine", "libc6", "libgcc-s1", "libunwind8", "liblzma5", "libz-mingw-w64", "zlib1g"},
	},
	// A C compiler for Windows. It runs with the C library of any system since Debian 12.
	{
		name: "mingw", suites: []string{"bookworm"}, components: "main",
		packages: []string{
			"gcc-mingw-w64-x86-64-win32", "gcc-mingw-w64-x86-64-win32-runtime", "gcc-mingw-w64-base", "binutils-mingw-w64-x86-64", "mingw-w64-x86-64-dev",
			"mingw-w64-common", "libgmp10", "libisl23", "libmpc3", "libmpfr6", "zlib1g", "libzstd1",
		},
	},
}
