// Package cudadriver implements package driver for CUDA, over the bindings of package cuda.
//
// A device uses its primary context, like libraries such as NCCL and cuBLAS. The driver makes no
// other context. Five methods change the calling thread's current context: Bind, Unbind, Enter,
// Leave and Close. Close removes the device's context from the thread, because the context may be
// destroyed. Creating methods need a bound thread. Any thread may call submitting methods, because
// the CUDA driver takes the context from the stream or the event. Open checks whether the CUDA
// driver does so. If not, the methods lock the thread, make the context current for the call, and
// restore the previous one.
//
// An error of the CUDA driver is a [*driver.Error]. errors.Is finds its code, for example
// cuda.ErrorInvalidPTX. If the driver or the device lacks a feature, the error is also
// [driver.ErrUnsupported]. Once a device is lost, its calls of the CUDA driver fail, including
// those that destroy objects, but Close works. The device's objects are gone with the context.
//
// # Streams and memory
//
// Streams do not synchronize with CUDA's default streams. Methods that submit work refuse default
// streams. They accept any other stream of the primary context. AdoptStream checks the stream's
// context and returns the stream's priority. Host memory for uploads and downloads should be of
// kind [driver.HostMem] or registered. A copy of other memory is staged, and the call may wait for
// it. Managed memory is available only if the host may touch it while the device is working.
//
// A pool gives memory back at a trim, or when a CUDA call synchronizes a stream or an event. Of the
// methods, only TrimPool and DestroyPool make such calls. Initially only the pool's device can
// access a pool of device memory. AccessPool gives other devices access. A device without access
// may use the memory only in CopyPeer: some driver releases crash in other calls, on threads
// without a context.
//
// Values use cuStreamWriteValue64 and cuStreamWaitValue64 in the form of CUDA 11.7, if the device
// supports these calls. The memory can be neither managed nor in a pool.
//
// Processes share handles of cuIpcGetMemHandle and cuIpcGetEventHandle, on Linux. OpenMem gives the
// context access to the memory of another device if needed. The CUDA driver divides blocks of 2 MiB
// into allocations. A process that opens one allocation can reach the whole block.
//
// # Kernels
//
// A module is PTX, a cubin or a fat binary. A kernel's code is on the device when Function returns,
// so no launch waits for loading. Static and dynamic shared memory of a kernel may be up to
// [driver.Info].SharedOptIn together. Args of a launch must have an element for each parameter,
// because the CUDA driver reads one for each without knowing the length.
//
// A launch with Cluster, Cooperative or Dependent needs a driver of CUDA 11.8. A dependent launch
// also needs a device of compute capability 9.0. Drivers before CUDA 11.8 ignore Priority, and
// drivers before 12.8 ignore Carveout. Every device with clusters supports clusters of 8 blocks;
// the limit of a kernel is [driver.FuncInfo].MaxCluster. A cluster that does not fit fails with
// cuda.ErrorInvalidClusterSize, and a cooperative grid that is too large with
// cuda.ErrorCooperativeLaunchTooLarge. Kernels have up to 4096 bytes of parameters, or 32,764 with
// CUDA 12.1 and compute capability 7.0 or newer.
//
// Load reads the number of a kernel's parameters from the image. The CUDA driver tells the number
// only by a failing call, which compute-sanitizer reports as an error of the program. Function
// makes that call for kernels of a fat binary that is compressed as a whole. PTX, cubins, and fat
// binaries made with nvcc --no-compress do not need the call.
//
// Load refuses a cubin that was compiled to be linked (nvcc -rdc=true) and lacks symbols that the
// driver does not define. The error names up to five symbols.
//
// # Compiling
//
// The compiler is NVRTC, opened by the first call of Compiler. If NVRTC is missing, the error of
// Compiler is [driver.ErrUnsupported]. The result is a cubin for the device's own architecture. If
// NVRTC does not know that architecture, the result is PTX for the newest older one, which the CUDA
// driver compiles in Load. An option -arch or --gpu-architecture of the source overrides this
// choice. A driver older than NVRTC loads cubins of the same major release, even if it cannot read
// NVRTC's PTX. NVRTC itself has few headers. Others are found by options -I, or in the toolkit's
// folders, or have their text in the source's Headers.
//
// Sources with Link are each compiled to LTO-IR, with NVRTC's option -dlto. nvJitLink links them
// with -lto, for the architecture of the first source. This needs NVRTC 12.0 or newer, and
// nvJitLink 12.3 or newer that is not older than NVRTC. nvJitLink is opened by the first call of
// Linker; if it is missing, the error is [driver.ErrUnsupported] too.
//
// # Graphs
//
// Setting a node of an exec needs the exec's graph. New addresses, a new pattern and new arguments
// always work; the CUDA driver may refuse other changes. A strided fill keeps its sizes. A copy
// keeps its kinds of memory, and the driver may refuse another size. Copies have no maximum size,
// but the gap between rows of a strided fill is less than 2 GiB. With a driver of CUDA 12.3, a
// dependent kernel begins early if exactly one other kernel and nothing else precedes it.
//
// # Facts
//
// [driver.Info].Version is the result of cuDriverGetVersion. MIG is set if the two forms of
// cuDeviceGetUuid differ: one returns the instance's UUID, the other the GPU's. The NUMA node comes
// from the CUDA driver since 12.2, and from Linux otherwise. The CUDA driver reports the rank and
// the features of a link, and NVML its kind. If NVML is missing, or does not know the devices,
// [driver.Link].Kind is LinkUnknown.
//
// # Health
//
// NVML is opened and started in the background with the first device. From then on it records the
// XID errors of each open device, without a goroutine. The error of a lost device names the last
// XID error since the device was opened, and wraps it as an XID of package runtime/health. The
// first call that returns such an error waits up to 20 ms for the XID error. If NVML records none
// in this time, the error names the last one recorded before, which may be older than the loss, and
// says that its time is unknown. Without NVML there is only CUDA's own error. If NVML hangs, the
// first call waits 0.3 s for it. Close waits until NVML has started and has freed its event sets,
// five seconds at most.
//
// # Communicators
//
// Communicators are NCCL's. NCCL is opened when it is first needed. If it is missing, or too old
// for a call, that call returns an error that is [driver.ErrUnsupported]. NCCL before 2.18 cannot
// split communicators. With such a release NewComm waits for the other ranks, and AbortComm is as
// unsafe as NCCL's own.
//
// A communicator that is made from an old one depends on the old one until the new one is ready:
// until then aborting either aborts both. The driver decides about blocking and sharing, so NewComm
// refuses the environment variables NCCL_COMM_BLOCKING=1 and NCCL_COMM_SPLIT_SHARE_RESOURCES. NCCL
// frees the memory of a process's ranks with the last of them.
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

// A Driver is the CUDA driver with its devices. Its methods may be called concurrently. A zero
// Driver has no devices.
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

// WithNCCL sets the options of NCCL, which is opened when it is first needed.
func WithNCCL(opt nccl.Options) Option { return func(d *Driver) { d.comms = ncclcomm.NCCL(opt) } }

// WithNVRTC sets the options of NVRTC, which is opened when a Compiler is first asked for.
func WithNVRTC(opt nvrtc.Options) Option { return func(d *Driver) { d.nvrtc = openNVRTC(opt) } }

// WithNVJitLink sets the options of nvJitLink, which is opened when a Linker is first asked for.
func WithNVJitLink(opt nvjitlink.Options) Option {
	return func(d *Driver) { d.nvjitlink = openNVJitLink(opt) }
}

// WithNVML sets the options of NVML, which is opened with the first device.
func WithNVML(opt nvml.Options) Option { return func(d *Driver) { d.nvml = openNVML(opt) } }

// Open loads the CUDA driver's library with [cuda.Open], and passes it to [New].
func Open(opt cuda.Options, opts ...Option) (*Driver, error) {
	lib, err := cuda.Open(opt)
	if err != nil {
		// If no library was found, NoLibrary says why. Its reason does not hold if only one file
		// was tried, such as opt.Path.
		open, ok := errors.AsType[*dl.OpenError](err)
		named := opt.Path != "" || ok && len(open.Attempts) == 1
		if say := hostinfo.This().NoLibrary(); say != "" && !named && errors.Is(err, dl.ErrNotFound) {
			err = fmt.Errorf("cuda: %s: %w", say, err)
		}
		return nil, err
	}
	return New(lib, opts...)
}

// New starts the CUDA driver of a library and reads its devices. If there are none, New returns no
// error, and NoDevice says why.
func New(lib *cuda.Library, opts ...Option) (*Driver, error) {
	if lib == nil {
		lib = new(cuda.Library) // a Library that is not open
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
		return cuda.ErrorNoDevice // a zero Driver
	}
	return d.none
}

// Open retains the primary context of a device. The CUDA driver creates the context if necessary.
// Open checks whether threads without the context can submit.
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
