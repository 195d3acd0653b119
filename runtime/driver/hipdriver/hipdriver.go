// Package hipdriver is HIP as package driver wants a GPU API to be, over the bindings of package hip, from ROCm 5.2 on.
//
// It is tested against libraries that stand for HIP's, one of which puts HIP's rules on top of CUDA; it has not been run on
// an AMD GPU.
//
// HIP has no contexts worth the name but a current device for each thread, 0 where nothing was set. Methods leave it as
// they find it. The exceptions are Bind, which is there to set it, and Close, which sets it back to 0 on a thread that was
// bound. Creating methods of a device need a bound thread: on any other HIP would work on the wrong device and say nothing.
// Any thread may call submitting methods. From ROCm 5.6 on HIP takes the device from the stream or the event; Open tries whether it does.
// If it does not, the methods lock the thread, set its device for the call, and restore the thread's device. Methods that set nodes of
// graphs do so with every release, for they have neither stream nor event. What fails on a thread that is not
// locked may be remembered by HIP as that thread's last error.
//
// What fails in HIP is reported as a [*driver.Error]. Its code is found by errors.Is(err, hip.ErrorInvalidImage), say, and
// what the library or the device cannot do at all is [driver.ErrUnsupported] besides. HIP remembers a thread's last error
// for others to find; no method leaves one of its own there.
//
// Before ROCm 7 a kernel that touches memory it must not touch ends the process. From 7 on the device is lost: all methods
// but Close fail then, also those that destroy.
//
// # Streams, events and memory
//
// Streams do not synchronize with HIP's default streams, which no method accepts. An event can be recorded in streams of its
// own device only, and every device's streams can wait for it. Host memory for uploads and downloads should be of kind
// [driver.HostMem] or registered: from any other the copy is staged, and the call may wait for it. Managed memory is there
// only where the host may touch it while the device is at work.
//
// FillStrided takes one call where the library has hipMemsetD2D32Async, of ROCm 7.1, and else one for each run of equal
// bytes in the pattern, four at the most.
//
// Processes share memory, on Linux, and no events: those that HIP has for that hold up the thread that has a stream wait for them, and are not
// told of every record. CloseMem waits for the device. Memory by file descriptors, which is driver.MemSharing, they do not share: as others call it
// hipMemImportFromShareableHandle takes the address of a descriptor before ROCm 7.1, and the descriptor from then on, of which AMD says nothing.
//
// # Memory pools
//
// Devices have HIP's own memory pools only where [WithPools] asks for them, from HIP 6.2 on; those of earlier releases have no
// limit, and return success and no address when they are out of memory. Package gpu has pools of its own besides. What follows
// is from HIP's sources, of 5.6 to 6.2 and what became of them later, and from reports: the pools have not been run on an AMD GPU
// either.
//
//   - HIP gives a stream the memory that it allocated again at once when that has been freed in another stream, which may still
//     be using it. So memory must be freed in the stream that allocated it: Caps.PoolsByStream is set.
//   - With PoolReuseEvents HIP takes a wait for any event of a stream for a wait for all that the stream has freed. It is off in all
//     pools that a device returns, also in HIP's default one, for others in the process too, and cannot be set.
//   - FreeAsync waits for the last free of the same memory, if the stream has not come to it, and frees memory in the call when more
//     is free than in use. A goroutine that launches collectives of several ranks must not free memory between them.
//   - A pool hands out whole allocations again; those of 6.2 give the stream that freed them also much larger ones. A limit counts
//     the most that the pool has reserved since PoolReservedHigh was reset.
//   - PoolThreshold is not kept to where more is free than in use (ROCm/rocm-systems issue 11690). With less than the
//     highest, ROCm 7.2 has lost the contents of memory (10943); package gpu sets the highest unless it is told otherwise.
//   - Allocations fail or crash with ROCm 7 on gfx1100 and gfx1101 (ROCm/legacy-rocm-build issue 6178), and when the
//     device is out of memory (ROCm/rocm-systems issue 11642).
//   - There are no pools of host or managed memory. Most releases do not take back access that AccessPool has given: [driver.ErrUnsupported].
//
// # Kernels
//
// A module is a code object, which is an ELF file, or a bundle of them, as hipcc --genco writes it, compressed or not. HIP
// goes on reading it after Load, from a copy that the device keeps until Unload. Args of a launch must have an element for
// each parameter: the library reads as many as the kernel has, and is not told how many there are. A launch can have less
// than 2³² threads along x. Of the attributes of launches HIP has one: cooperative, from ROCm 5.5 on, and not in graphs.
//
// # Compiling
//
// The compiler is hipRTC. It is looked for when a program is compiled for the first time, and that it is missing is an error of that call,
// and [driver.ErrUnsupported]. The code is a code object for the device's own architecture, with any setting of its features (sramecc, xnack); an option
// --offload-arch=… or --gpu-architecture=… of the source goes before it. HIP 5.2 ends the process where that names an architecture which the compiler does
// not know. The headers of HIP's device code are there without an include. In the compiler's messages the paths of files that it has made for the
// moment are replaced by the names of the source and its headers. What tells builds of hipRTC apart is its own file, and not that of the
// compiler behind it, libamd_comgr.
//
// It compiles with Debian's hipRTC 5.2, whose code has not been run on an AMD GPU.
//
// # Graphs
//
// There are graphs from ROCm 6.1 on. HIP refuses with hip.ErrorInvalidValue to change the number of elements of a strided fill
// by SetNode, and to add one whose last stride ends behind its allocation.
//
// # Facts
//
// [driver.Info].Version is what hipRuntimeGetVersion tells, and the NUMA node is Linux's. What the library does not know of a device
// stays 0. The kind of a link and its hops are those of hipExtGetLinkTypeAndHopCount; HIP has no ranks.
//
// # Communicators
//
// Communicators are RCCL's, as package cudadriver's are NCCL's, and the same holds for them.
package hipdriver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/tried"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/ncclcomm"
)

// A Driver is the HIP runtime with its devices. Its methods may be called concurrently.
type Driver struct {
	lib     *hip.Library
	more    *more // or nil
	infos   []driver.Info
	comms   *ncclcomm.Library
	hiprtc  func() (*hiprtc.Library, error)
	pools   bool     // devices are to have HIP's own
	targets []string // the devices' architectures with their features: "gfx90a:sramecc+:xnack-"
}

var _ driver.Driver = (*Driver)(nil)

// An Option changes how a driver is opened.
type Option func(*Driver)

// WithRCCL says how to find RCCL, which is opened when a communicator is needed for the first time.
func WithRCCL(opt nccl.Options) Option { return func(d *Driver) { d.comms = ncclcomm.RCCL(opt) } }

// WithHIPRTC says how to find hipRTC, which is opened when a program is compiled for the first time.
func WithHIPRTC(opt hiprtc.Options) Option { return func(d *Driver) { d.hiprtc = openHIPRTC(opt) } }

// WithPools has devices use HIP's own memory pools, where the release is 6.2 or newer and the device has them; see the
// package's documentation on what is to be expected of them. Without it devices have none, and package gpu has its own.
func WithPools() Option { return func(d *Driver) { d.pools = true } }

// Open loads the HIP runtime's library, which [hip.Open] does, and goes on as [New].
func Open(opt hip.Options, opts ...Option) (*Driver, error) {
	lib, err := hip.Open(opt)
	if err != nil {
		return nil, err // which says what was looked for and where
	}
	return New(lib, opts...)
}

// New starts the HIP runtime of a library and reads what it tells of its devices. HIP does not start without a device: that
// there is none is an error, [hip.ErrorNoDevice].
func New(lib *hip.Library, opts ...Option) (*Driver, error) {
	if lib == nil {
		lib = new(hip.Library) // which is not open
	}
	runtime.LockOSThread() // for the errors that HIP remembers
	defer runtime.UnlockOSThread()
	none := func(err error) error {
		return failed(lib, "init", fmt.Errorf("the HIP runtime in %s, version %s, finds no AMD GPU: %w%s", lib.Path(), version(lib), err, others(lib)))
	}
	// Older releases call the device that is not there an invalid one.
	if err := lib.Init(0); errors.Is(err, hip.ErrorNoDevice) || errors.Is(err, hip.ErrorInvalidDevice) {
		return nil, none(hip.ErrorNoDevice)
	} else if err != nil {
		return nil, failed(lib, "init", tried.With(err, lib))
	}
	n, err := lib.GetDeviceCount()
	if errors.Is(err, hip.ErrorNoDevice) || err == nil && n == 0 {
		return nil, none(hip.ErrorNoDevice)
	} else if err != nil {
		return nil, failed(lib, "count devices", err)
	}
	d := &Driver{lib: lib, more: openMore(lib), comms: ncclcomm.RCCL(nccl.Options{}), hiprtc: openHIPRTC(hiprtc.Options{})}
	for _, set := range opts {
		if set != nil {
			set(d)
		}
	}
	for i := range int(n) {
		info, target, err := describe(lib, i)
		if err != nil {
			return nil, failed(lib, "describe", fmt.Errorf("device %d: %w", i, err))
		}
		d.infos, d.targets = append(d.infos, info), append(d.targets, target)
	}
	return d, nil
}

// others lists the other files that were found, each with what it answered.
func others(lib *hip.Library) string {
	var b strings.Builder
	for _, a := range lib.Attempts() {
		if a.Err != nil && !errors.Is(a.Err, dl.ErrNotFound) && a.File != lib.Path() {
			b.WriteString("\n\t" + a.String())
		}
	}
	return b.String()
}

func version(lib *hip.Library) string {
	if v := lib.Version(); v != 0 {
		return hip.FormatVersion(v)
	}
	return "unknown"
}

// Name returns "hip".
func (d *Driver) Name() string { return name }

// Devices returns what New read. The error is nil.
func (d *Driver) Devices() ([]driver.Info, error) { return slices.Clone(d.infos), nil }

// Open makes sure that the device can be made current, and finds out what it can do.
func (d *Driver) Open(index int) (driver.Device, error) {
	if index < 0 || index >= len(d.infos) {
		return nil, wrap("open", fmt.Errorf("no device %d: the driver has %d: %w", index, len(d.infos), hip.ErrorInvalidDevice))
	}
	dev := newDevice(d, index)
	if err := dev.open(len(d.infos), d.pools); err != nil {
		return nil, err
	}
	return dev, nil
}
