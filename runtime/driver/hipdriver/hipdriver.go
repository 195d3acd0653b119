// Package hipdriver implements package driver for HIP, over the bindings of package hip, from ROCm
// 5.2 on.
//
// The package is tested with fake HIP libraries, one of which applies HIP's rules on top of CUDA.
// The package has not been run on an AMD GPU.
//
// HIP has a current device for each thread, initially 0. Five methods change it: Bind, Unbind,
// Enter, Leave and Close. Unbind and Close set it back to 0 on a bound thread. Creating methods of
// a device need a bound thread: on any other thread HIP would silently work on the wrong device.
// Any thread may call submitting methods. From ROCm 5.6 on HIP takes the device from the stream or
// the event; Open checks whether it does. If not, the methods lock the thread, set its device for
// the call, and restore the previous one. Methods that set nodes of graphs always do this, because
// they have neither stream nor event. If the calling goroutine is not locked to its thread, an
// error may remain as the thread's last error.
//
// An error of HIP is a [*driver.Error]. errors.Is finds its code, for example
// hip.ErrorInvalidImage. If the library or the device lacks a feature, the error is also
// [driver.ErrUnsupported]. HIP keeps a thread's last error for other code; the methods clear their
// own errors.
//
// Before ROCm 7 a kernel with an illegal access ends the process. From 7 on the device is lost:
// then all methods except Close fail, including destroying ones.
//
// # Streams, events and memory
//
// Streams do not synchronize with HIP's default streams, which no method accepts. An event can be
// recorded only in streams of its own device, and streams of every device can wait for it. Host
// memory for uploads and downloads should be of kind [driver.HostMem] or registered. A copy of
// other memory is staged, and the call may wait for the copy. Managed memory is available only if
// the host may touch it while the device is working.
//
// FillStrided takes one call if the library has hipMemsetD2D32Async (ROCm 7.1). Otherwise it takes
// one call for each run of equal bytes in the pattern, four at most.
//
// Processes share memory, on Linux, but no events: a wait for one of HIP's shared events blocks the
// calling thread, and misses some records. CloseMem waits for the device. The device does not
// implement driver.MemSharing. Before ROCm 7.1 hipMemImportFromShareableHandle seems to take the
// address of a descriptor, and later the descriptor; AMD documents neither.
//
// Virtual memory (hipMemCreate, hipMemMap) needs HIP 5.3, because structs had another layout
// before, and a device with the attribute for virtual memory.
//
// # Memory pools
//
// Devices have HIP's own memory pools only with [WithPools], from HIP 6.2 on. Pools of earlier
// releases have no limit. When they are out of memory, they return success without an address.
// Package gpu has pools of its own as well. The following facts come from HIP's sources, of 5.6 to
// 6.2 and later, and from reports; the pools have not been run on an AMD GPU.
//
//   - As soon as another stream has freed memory, HIP can give the memory to the stream that
//     allocated it, even if the freeing stream still uses it. So memory must be freed in the stream
//     that allocated it: Caps.PoolsByStream is set.
//   - With PoolReuseEvents HIP treats a wait for any event of a stream as a wait for all frees of
//     the stream. So the switch is off and cannot be set, in all pools that a device returns. It is
//     also off in HIP's default pool, which other code in the process may use.
//   - FreeAsync may block. It waits until the stream has reached the last free of the same memory.
//     If more memory is free than in use, FreeAsync gives memory back to the system during the
//     call. A goroutine that launches collectives of several ranks must not free memory between
//     them.
//   - A pool reuses whole allocations. Pools of 6.2 also reuse much larger ones in the stream that
//     freed them. A limit applies to the maximum of the reserved memory since PoolReservedHigh was
//     reset.
//   - PoolThreshold is not kept if more is free than in use (ROCm/rocm-systems issue 11690). With
//     less than the maximum threshold, ROCm 7.2 has lost the contents of memory (10943); package
//     gpu sets the maximum by default.
//   - Allocations fail or crash with ROCm 7 on gfx1100 and gfx1101 (ROCm/legacy-rocm-build issue
//     6178), and when the device is out of memory (ROCm/rocm-systems issue 11642).
//   - There are no pools of host or managed memory. Most releases cannot revoke access that
//     AccessPool has given. The error is then [driver.ErrUnsupported].
//
// # Kernels
//
// A module is a code object, which is an ELF file, or a bundle of them as hipcc --genco writes it,
// compressed or not. HIP also reads the image after Load, so the device keeps a copy until Unload.
// Args of a launch must have an element for each parameter, because the library reads one element
// for each parameter without knowing the length of Args. A launch can have fewer than 2³² threads
// along x. The only supported launch attribute is Cooperative, from ROCm 5.5 on, and not in graphs.
// Priority and Carveout are ignored.
//
// # Compiling
//
// The compiler is hipRTC, opened by the first call of Compiler. If hipRTC is missing, the error of
// Compiler is [driver.ErrUnsupported]. The result is a code object for the device's own
// architecture that runs with any setting of its features (sramecc, xnack). An option
// --offload-arch=… or --gpu-architecture=… of the source overrides this choice. HIP 5.2 ends the
// process if the option names an architecture that the compiler does not know. The headers of HIP's
// device code need no include. In the compiler's messages, paths of temporary files are replaced by
// the names of the source and its headers. Builds of hipRTC are distinguished by hipRTC's own file,
// not by libamd_comgr, the compiler behind it.
//
// Compilation is tested with Debian's hipRTC 5.2.
//
// # Graphs
//
// There are graphs from ROCm 6.1 on. HIP returns hip.ErrorInvalidValue if SetNode changes the
// number of elements of a strided fill, or if the last stride of a strided fill ends beyond its
// allocation.
//
// # Facts
//
// [driver.Info].Version is the result of hipRuntimeGetVersion, and the NUMA node is Linux's.
// The kind of a link and its hops come from hipExtGetLinkTypeAndHopCount; HIP has no ranks.
//
// # Communicators
//
// Communicators are RCCL's. Otherwise they work as in package cudadriver.
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
	more    *more // functions of newer releases, or nil
	infos   []driver.Info
	comms   *ncclcomm.Library
	hiprtc  func() (*hiprtc.Library, error)
	pools   bool     // devices have HIP's own pools
	targets []string // architecture of each device with its features: "gfx90a:sramecc+:xnack-"
}

var _ driver.Driver = (*Driver)(nil)

// An Option changes how a driver is opened.
type Option func(*Driver)

// WithRCCL sets the options of RCCL, which is opened when a call first needs RCCL.
func WithRCCL(opt nccl.Options) Option { return func(d *Driver) { d.comms = ncclcomm.RCCL(opt) } }

// WithHIPRTC sets the options of hipRTC, which is opened when a Compiler is first asked for.
func WithHIPRTC(opt hiprtc.Options) Option { return func(d *Driver) { d.hiprtc = openHIPRTC(opt) } }

// WithPools makes devices use HIP's own memory pools, if the release is 6.2 or newer and the device
// has them. The package documentation lists the faults of these pools. Without WithPools devices
// have no pools, and package gpu uses its portable pools.
func WithPools() Option { return func(d *Driver) { d.pools = true } }

// Open loads the HIP runtime's library with [hip.Open], and passes it to [New].
func Open(opt hip.Options, opts ...Option) (*Driver, error) {
	lib, err := hip.Open(opt)
	if err != nil {
		return nil, err // the error lists the files that were tried
	}
	return New(lib, opts...)
}

// New starts the HIP runtime of a library and reads its devices. HIP does not start without a
// device: the error is then [hip.ErrorNoDevice].
func New(lib *hip.Library, opts ...Option) (*Driver, error) {
	if lib == nil {
		lib = new(hip.Library) // a Library that is not open returns errors
	}
	runtime.LockOSThread() // an error and the call that clears it must be on the same thread
	defer runtime.UnlockOSThread()
	none := func(err error) error {
		return failed(lib, "init", fmt.Errorf("the HIP runtime in %s, version %s, finds no AMD GPU: %w%s", lib.Path(), version(lib), err, others(lib)))
	}
	// Without a device older releases return "invalid device".
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

// others lists the library files that were found, except lib's own, each with its error.
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

// Devices returns the devices that New read. The error is nil.
func (d *Driver) Devices() ([]driver.Info, error) { return slices.Clone(d.infos), nil }

// Open checks that the device can be made current, and finds its features.
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
