// Package cudadriver is CUDA as package driver wants a GPU API to be, over the bindings of package cuda.
//
// A device works in its primary context, which libraries such as NCCL and cuBLAS use too; no other context is ever made.
// Methods leave the calling thread's current context as they find it. The exceptions are Bind, which is there to set it,
// and Close, which takes the device's context from the thread that calls it, because it may be gone afterwards. Creating methods need a
// bound thread. Any thread may call submitting methods: the driver takes the context from the stream or the event. Open tries whether
// it does. Where it does not, the methods lock the thread, make the context current for the call, and restore what the thread had.
//
// What fails in the CUDA driver is reported as a [*driver.Error]. Its code is found by errors.Is(err, cuda.ErrorInvalidPTX),
// say, and what the driver or the device cannot do at all is [driver.ErrUnsupported] besides. Once a device is lost all
// methods but Close fail, also those that destroy; what there was is gone with the context.
//
// # Streams and memory
//
// Streams do not synchronize with CUDA's default streams, which no method accepts. Any other stream of the primary context they accept, whoever
// has made it; AdoptStream asks for its context and its priority. Host memory for uploads and downloads
// should be of kind [driver.HostMem] or registered: from any other the copy is staged, and the call may wait for it.
// Managed memory is there only where the host may touch it while the device is at work.
//
// Pools give memory back at a trim, or when somebody synchronizes with a stream or an event in CUDA's way, which no method
// does. A pool's memory is for its own device, and for the host if it is the host's, until another device is let in. Until then only
// CopyPeer may be given it by another device: releases of the driver crash in other calls, on threads without a context.
//
// Values are cuStreamWriteValue64 and cuStreamWaitValue64 in the form of CUDA 11.7, which is on by itself, where the device says that it can.
// They cannot be in managed memory.
//
// What processes share are handles of cuIpcGetMemHandle and cuIpcGetEventHandle, on Linux. OpenMem gives the context access to the memory of
// another device where that is needed. The driver divides blocks of 2 MiB, and a process that opens a part of one can reach all of it.
//
// # Kernels
//
// A module is PTX, a cubin or a fat binary. A kernel's code is on the device when Function returns, so that no launch has
// to wait for the device in order to load it, and a launch may ask for as much dynamic shared memory as the kernel's own
// leaves of [driver.Info].SharedOptIn. Args of a launch must have an element for each parameter: the driver reads as many
// as the kernel has, and is not told how many there are.
//
// A launch with attributes takes a driver of CUDA 11.8, one that is dependent a device of compute capability 9.0, and a carve-out
// a driver of CUDA 12.8. Clusters may have more than the 8 blocks that every device has room for, as many as
// [driver.FuncInfo].MaxCluster says; a shape of them that does not fit is cuda.ErrorInvalidClusterSize, a cooperative grid that is
// too large cuda.ErrorCooperativeLaunchTooLarge. Kernels have up to 4096 bytes of parameters, and 32,764 from CUDA 12.1 and compute
// capability 7.0 on.
//
// How many parameters a kernel has, Load reads from the image, since the driver tells it only by a call that fails, which
// compute-sanitizer reports as an error of the program. A fat binary that is compressed as a whole does not tell: of its kernels
// Function makes that call, one for each. PTX, cubins, and fat binaries made with nvcc --no-compress need none.
//
// A cubin that was compiled to be linked (nvcc -rdc=true) and lacks symbols that the driver does not define is refused by Load,
// which names them.
//
// # Compiling
//
// The compiler is NVRTC. It is looked for when a program is compiled for the first time, and that it is missing is an error of that call,
// and [driver.ErrUnsupported]. The code is a cubin for the device's own architecture, or, where this NVRTC does not know that, PTX for the newest one
// before it, which Load has the driver compile; an option -arch or --gpu-architecture of the source goes before either. A driver older than NVRTC
// loads cubins as long as both are of one major release, and need not know NVRTC's PTX. NVRTC brings few headers: those of the toolkit
// need an option -I, or are given by name.
//
// Sources with Link are compiled to LTO-IR each, with NVRTC's option -dlto, and linked by nvJitLink with -lto, for the architecture that the first
// source is compiled for. That takes NVRTC 12.0 or newer, and an nvJitLink from 12.3 on that is not older than NVRTC. nvJitLink is looked for when it is
// needed for the first time; that it is missing is an error as with NVRTC. It is called on one thread for all of a link.
//
// # Graphs
//
// Setting a node of an exec needs the graph that the exec was made of. The driver is free to refuse what is more than new
// addresses, a new pattern and new arguments: a fill with a stride keeps its sizes, a copy the kinds of memory that it is
// between, and of other sizes it takes those that suit what it has set up for the node. Copies have no longest size, but
// what is between rows of a strided fill is less than 2 GiB. A dependent kernel begins early where it comes after one other kernel and
// nothing else, with a driver of CUDA 12.3.
//
// # Facts
//
// [driver.Info].Version is what cuDriverGetVersion tells. MIG is set where the two forms of cuDeviceGetUuid differ: one tells the
// instance's UUID, the other the GPU's. The NUMA node comes from the driver, from 12.2 on, or else from Linux. The driver tells how
// fast a link is in comparison, and what works over it; whether it is NVLink NVML tells. That it is missing, or does not know the devices, is no failure: [driver.Link].Kind stays LinkUnknown.
//
// # Health
//
// NVML is opened and started when the first device is opened, in the background. From then on it
// records the XID errors of each open device, without a goroutine. The error of a lost device names
// the last XID error since the device was opened, and wraps it as an XID of package runtime/health.
// The first call that returns such an error waits up to 20 ms for it. An XID error that NVML had
// already may be older than the loss: if no other one follows, the text says that its time is not
// known. Without NVML there is only CUDA's own error. If NVML hangs, the first call waits 0.3 s for
// it. Close waits until NVML has started and has freed what records, at most five seconds.
//
// # Communicators
//
// Communicators are NCCL's. The library is looked for when it is needed for the first time. That it is missing, or too old
// for something, is an error of the call that needs it, and [driver.ErrUnsupported]. With a release before 2.18, which cannot
// split communicators, NewComm waits for the other ranks, and AbortComm is as unsafe as NCCL's own.
//
// What is being made of a communicator is part of it until it is ready: to abort the one is to abort both. NCCL's environment
// must leave it to the driver which communicators block and which share; NewComm refuses to work with NCCL_COMM_BLOCKING=1 or
// NCCL_COMM_SPLIT_SHARE_RESOURCES. What NCCL holds for the ranks of a process it gives back with the last one of them.
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

// WithNCCL says how to find NCCL, which is opened when a communicator is needed for the first time.
func WithNCCL(opt nccl.Options) Option { return func(d *Driver) { d.comms = ncclcomm.NCCL(opt) } }

// WithNVRTC says how to find NVRTC, which is opened when a program is compiled for the first time.
func WithNVRTC(opt nvrtc.Options) Option { return func(d *Driver) { d.nvrtc = openNVRTC(opt) } }

// WithNVJitLink says how to find nvJitLink, which is opened when sources are linked for the first time.
func WithNVJitLink(opt nvjitlink.Options) Option {
	return func(d *Driver) { d.nvjitlink = openNVJitLink(opt) }
}

// WithNVML says how to find NVML, which is opened when the first device is opened.
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

// New starts the CUDA driver of a library and reads what it tells of its devices. That there are none is no error.
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

// Devices returns what New read. The error is nil.
func (d *Driver) Devices() ([]driver.Info, error) { return slices.Clone(d.infos), nil }

// NoDevice returns why the driver has no device, with what to do, or nil if it has one. The error is [cuda.ErrorNoDevice].
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
