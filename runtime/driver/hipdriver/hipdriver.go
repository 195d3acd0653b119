// Package hipdriver is HIP as package driver wants a GPU API to be, over the bindings of package hip, from ROCm 5.2 on.
//
// It is tested against libraries that stand for HIP's, one of which puts HIP's rules on top of CUDA; it has not been run on
// an AMD GPU.
//
// HIP has no contexts worth the name but a current device for each thread, 0 where nothing was set. Methods leave it as
// they find it. The exceptions are Bind, which is there to set it, and Close, which sets it back to 0 on a thread that was
// bound. Creating methods of a device need a bound thread: on any other HIP would work on the wrong device and say nothing.
// Submitting methods take the device from the stream or the event, with ROCm 5.6 and later; Open tries whether they do. Those
// that set nodes of graphs have neither, and make the device current for the moment. What fails on a thread that is not
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
// # Kernels
//
// A module is a code object, which is an ELF file, or a bundle of them, as hipcc --genco writes it, compressed or not. HIP
// goes on reading it after Load, from a copy that the device keeps until Unload. Args of a launch must have an element for
// each parameter: the library reads as many as the kernel has, and is not told how many there are. A launch can have less
// than 2³² threads along x.
//
// # Graphs
//
// There are graphs from ROCm 6.1 on. HIP refuses with hip.ErrorInvalidValue to change the number of elements of a strided fill
// by SetNode, and to add one whose last stride ends behind its allocation.
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

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/ncclcomm"
)

// A Driver is the HIP runtime with its devices. Its methods may be called concurrently.
type Driver struct {
	lib     *hip.Library
	more    *more // or nil
	infos   []driver.Info
	comms   *ncclcomm.Library
	targets []string // the devices' architectures with their features: "gfx90a:sramecc+:xnack-"
}

var _ driver.Driver = (*Driver)(nil)

// An Option changes how a driver is opened.
type Option func(*Driver)

// WithRCCL says how to find RCCL, which is opened when a communicator is needed for the first time.
func WithRCCL(opt nccl.Options) Option { return func(d *Driver) { d.comms = ncclcomm.RCCL(opt) } }

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
		return failed(lib, "init", fmt.Errorf("the HIP runtime in %s, version %s, finds no AMD GPU: %w", lib.Path(), version(lib), err))
	}
	// Older releases call the device that is not there an invalid one.
	if err := lib.Init(0); errors.Is(err, hip.ErrorNoDevice) || errors.Is(err, hip.ErrorInvalidDevice) {
		return nil, none(hip.ErrorNoDevice)
	} else if err != nil {
		return nil, failed(lib, "init", err)
	}
	n, err := lib.GetDeviceCount()
	if errors.Is(err, hip.ErrorNoDevice) || err == nil && n == 0 {
		return nil, none(hip.ErrorNoDevice)
	} else if err != nil {
		return nil, failed(lib, "count devices", err)
	}
	d := &Driver{lib: lib, more: openMore(lib), comms: ncclcomm.RCCL(nccl.Options{})}
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
	if err := dev.open(len(d.infos)); err != nil {
		return nil, err
	}
	return dev, nil
}
