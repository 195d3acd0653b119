// Package cudadriver implements package driver for CUDA, over the bindings of package cuda.
//
// A device works in its primary context, which libraries such as NCCL and cuBLAS also use; no other
// context is made. Methods do not change the calling thread's current context, except Bind, which
// sets it, and Close, which removes the device's context from the calling thread because it may be
// gone afterwards. Creating methods need a bound thread. Any thread may call submitting methods:
// the driver takes the context from the stream or the event. Open tries whether it does. If not,
// the methods lock the thread, make the context current for the call, and restore the previous one.
//
// An error of the CUDA driver is a [*driver.Error]. errors.Is finds its code, for example
// cuda.ErrorInvalidPTX. If the driver or the device lacks a feature, the error is also
// [driver.ErrUnsupported]. Once a device is lost all methods but Close fail, also destroying ones;
// its objects are gone with the context.
//
// # Streams and memory
//
// Streams do not synchronize with CUDA's default streams, which no method accepts. Methods accept
// any other stream of the primary context; AdoptStream checks its context and returns its priority.
// Host memory for uploads and downloads should be of kind [driver.HostMem] or registered: from
// other memory the copy is staged, and the call may wait for it. Managed memory exists only if the
// host may touch it while the device is at work.
//
// Pools give memory back at a trim, or when a stream or an event is synchronized by CUDA's calls,
// which no method makes. A pool's memory is for its own device, and for the host if it is the
// host's, until another device is let in. Until then another device may use it only in CopyPeer:
// releases of the driver crash in other calls, on threads without a context.
//
// Values are cuStreamWriteValue64 and cuStreamWaitValue64 in the form of CUDA 11.7, if the device
// supports them. They cannot be in managed memory.
//
// Processes share handles of cuIpcGetMemHandle and cuIpcGetEventHandle, on Linux. OpenMem gives the
// context access to the memory of another device if needed. The driver divides blocks of 2 MiB, and
// a process that opens a part of one can reach all of it.
//
// # Kernels
//
// A module is PTX, a cubin or a fat binary. A kernel's code is on the device when Function returns,
// so no launch waits for loading. A launch may use as much dynamic shared memory as the kernel's
// own leaves of [driver.Info].SharedOptIn. Args of a launch must have an element for each
// parameter: the driver reads as many as the kernel has, and is not told their number.
//
// A launch with attributes needs a driver of CUDA 11.8, a dependent one a device of compute
// capability 9.0, and a carve-out a driver of CUDA 12.8. Clusters may have more than the 8 blocks
// that every device supports, up to [driver.FuncInfo].MaxCluster. A shape that does not fit is
// cuda.ErrorInvalidClusterSize, and a cooperative grid that is too large
// cuda.ErrorCooperativeLaunchTooLarge. Kernels have up to 4096 bytes of parameters, and 32,764 from
// CUDA 12.1 and compute capability 7.0 on.
//
// Load reads the number of a kernel's parameters from the image, because the driver reports it only
// by a failing call, which compute-sanitizer reports as an error of the program. For a fat binary
// that is compressed as a whole, Function makes that call, once for each kernel. PTX, cubins, and
// fat binaries made with nvcc --no-compress need none.
//
// Load refuses a cubin that was compiled to be linked (nvcc -rdc=true) and lacks symbols that the
// driver does not define, and names the symbols.
//
// # Compiling
//
// The compiler is NVRTC, opened with the first compilation. If it is missing, that call returns an
// error that is [driver.ErrUnsupported]. The code is a cubin for the device's own architecture, or,
// if NVRTC does not know it, PTX for the newest one before it, which the driver compiles in Load.
// An option -arch or --gpu-architecture of the source replaces both. A driver older than NVRTC
// loads cubins of the same major release, even if it does not know NVRTC's PTX. NVRTC includes few
// headers: the toolkit's need an option -I, or are given by name.
//
// Sources with Link are each compiled to LTO-IR, with NVRTC's option -dlto, and linked by nvJitLink
// with -lto, for the architecture of the first source. That needs NVRTC 12.0 or newer, and an
// nvJitLink from 12.3 on that is not older than NVRTC. nvJitLink is opened with the first link; if
// it is missing, the error is as with NVRTC. It is called on one thread for all of a link.
//
// # Graphs
//
// Setting a node of an exec needs the exec's graph. The driver may refuse other changes than new
// addresses, a new pattern and new arguments: a strided fill keeps its sizes, and a copy its kinds
// of memory and sizes that suit the node's setup. Copies have no largest size, but the gap between
// rows of a strided fill is less than 2 GiB. A dependent kernel begins early if it comes after
// exactly one other kernel and nothing else, with a driver of CUDA 12.3.
//
// # Facts
//
// [driver.Info].Version is the result of cuDriverGetVersion. MIG is set if the two forms of
// cuDeviceGetUuid differ: one returns the instance's UUID, the other the GPU's. The NUMA node comes
// from the driver, from 12.2 on, or else from Linux. The driver reports the rank and the features
// of a link, and NVML its kind. If NVML is missing, or does not know the devices,
// [driver.Link].Kind stays LinkUnknown.
//
// # Health
//
// NVML is opened and started with the first device, in the background. From then on it records the
// XID errors of each open device, without a goroutine. The error of a lost device names the last
// XID error since the device was opened, and wraps it as an XID of package runtime/health. The
// first call that returns such an error waits up to 20 ms for it. An XID error that NVML had
// already may be older than the loss: if no other one follows, the text says that its time is not
// known. Without NVML there is only CUDA's own error. If NVML hangs, the first call waits 0.3 s for
// it. Close waits until NVML has started and has freed its event sets, at most five seconds.
//
// # Communicators
//
// Communicators are NCCL's. The library is opened when it is first needed. If it is missing, or too
// old for a call, that call returns an error that is [driver.ErrUnsupported]. With a release before
// 2.18, which cannot split communicators, NewComm waits for the other ranks, and AbortComm is as
// unsafe as NCCL's own.
//
// A new communicator that is made of another one belongs to it until it is ready: aborting either
// aborts both. NCCL's environment must leave blocking and sharing of communicators to the driver:
// NewComm refuses to work with NCCL_COMM_BLOCKING=1 or NCCL_COMM_SPLIT_SHARE_RESOURCES. NCCL frees
// its memory for the ranks of a process with the last of them.
package cudadriver

import (
	"errors"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/hostinfo"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/ncclcomm"
)

// A Driver is the CUDA driver with its devices. Its methods may be called concurrently. A zero one has no devices.
type Driver struct {
	lib   *cuda.Library
	ids   []cuda.Device
	infos []driver.Info
	none  error // why there is no device

	hostPools hostPools
	comms     *ncclcomm.Library
	nvrtc     func() (*nvrtcLibrary, error)
	nvjitlink func() (*nvjitlink.Library, error)
	nvml      func() (*nvml.Library, error)
}

var _ driver.Driver = (*Driver)(nil)

// An Option changes how a driver is opened.
type Option func(*Driver)

// WithNCCL says how to find NCCL, which is opened with the first communicator.
func WithNCCL(opt nccl.Options) Option { return func(d *Driver) { d.comms = ncclcomm.NCCL(opt) } }

// WithNVRTC says how to find NVRTC, which is opened with the first compilation.
func WithNVRTC(opt nvrtc.Options) Option { return func(d *Driver) { d.nvrtc = openNVRTC(opt) } }

// WithNVJitLink says how to find nvJitLink, which is opened with the first link of sources.
func WithNVJitLink(opt nvjitlink.Options) Option {
	return func(d *Driver) { d.nvjitlink = openNVJitLink(opt) }
}

// WithNVML says how to find NVML, which is opened with the first device.
func WithNVML(opt nvml.Options) Option { return func(d *Driver) { d.nvml = openNVML(opt) } }

// Open loads the CUDA driver's library, which [cuda.Open] does, and goes on as [New].
func Open(opt cuda.Options, opts ...Option) (*Driver, error) {
	lib, err := cuda.Open(opt)
	if err != nil {
		// The error says what was looked for and where. A file that was named is the only one.
		open, ok := errors.AsType[*dl.OpenError](err)
		named := opt.Path != "" || ok && len(open.Attempts) == 1
		if say := hostinfo.This().NoLibrary(); say != "" && !named && errors.Is(err, dl.ErrNotFound) {
			err = fmt.Errorf("cuda: %s: %w", say, err)
		}
		return nil, err
	}
	return New(lib, opts...)
}

// New starts the CUDA driver of a library and reads its devices. No device is not an error.
func New(lib *cuda.Library, opts ...Option) (*Driver, error) {
	if lib == nil {
		lib = new(cuda.Library) // which is not open
	}
	d := &Driver{lib: lib, comms: ncclcomm.NCCL(nccl.Options{}), nvrtc: openNVRTC(nvrtc.Options{}), nvjitlink: openNVJitLink(nvjitlink.Options{}),
		nvml: openNVML(nvml.Options{})}
	for _, set := range opts {
		if set != nil {
			set(d)
		}
	}
	if err := lib.Init(0); errors.Is(err, cuda.ErrorNoDevice) {
		d.none = wrap("init", lib.Diagnose(err))
		return d, nil
	} else if err != nil {
		return nil, wrap("init", lib.Diagnose(err))
	}
	n, err := lib.DeviceGetCount()
	if err != nil {
		return nil, wrap("count devices", err)
	}
	if n == 0 {
		d.none = wrap("init", lib.Diagnose(cuda.ErrorNoDevice))
	}
	for i := range int(n) {
		id, err := lib.DeviceGet(int32(i))
		if err != nil {
			return nil, wrap("describe", fmt.Errorf("device %d: %w", i, err))
		}
		info, err := describe(lib, i, id)
		if err != nil {
			return nil, wrap("describe", fmt.Errorf("device %d: %w", i, err))
		}
		d.ids, d.infos = append(d.ids, id), append(d.infos, info)
	}
	return d, nil
}

// Name returns "cuda".
func (d *Driver) Name() string { return name }

// Devices returns the devices that New read. The error is nil.
func (d *Driver) Devices() ([]driver.Info, error) { return slices.Clone(d.infos), nil }

// NoDevice returns why the driver has no device, and what to do, or nil if it has one. The error is
// [cuda.ErrorNoDevice].
func (d *Driver) NoDevice() error {
	if d.none == nil && len(d.infos) == 0 {
		return cuda.ErrorNoDevice // of a zero Driver
	}
	return d.none
}

// Open takes a reference to the primary context of a device, makes the context if need be, and tries out whether threads
// without it can submit.
func (d *Driver) Open(index int) (driver.Device, error) {
	if index < 0 || index >= len(d.ids) {
		return nil, wrap("open", fmt.Errorf("no device %d: the driver has %d: %w", index, len(d.ids), cuda.ErrorInvalidDevice))
	}
	dev, err := openDevice(d.lib, d.ids[index], d.infos[index], &d.hostPools, d.comms)
	if err != nil {
		return nil, err
	}
	dev.nvrtc, dev.nvjitlink, dev.nvml = d.nvrtc, d.nvjitlink, d.nvml
	dev.watch.start(d.nvml, dev.info)
	return dev, nil
}
