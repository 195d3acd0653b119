package hipdriver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/ncclcomm"
)

var _ driver.Comms = (*device)(nil)

// device is an open device. mu protects the fields below it.
type device struct {
	*ncclcomm.Comms

	lib    *hip.Library
	id     int32
	info   driver.Info
	target string
	caps   driver.Caps

	hiprtc   func() (*hiprtc.Library, error)
	more     *more  // functions of newer releases, or nil
	unit     uint64 // hipMemsetD2D32Async's width per element of 4 bytes, or 0 if FillStrided must not use the function
	noGraphs error  // why the device has no graphs, or nil
	noPools  error  // why the device has no pools, or nil; set by the method open
	reminds  bool   // HIP keeps "event not ready" as the thread's last error
	sets     bool   // submitting calls must set the thread's device; set by the method open
	closed   atomic.Bool
	pages    hip.MemAllocationProp // properties of physical memory
	pageSize uint64

	mu      sync.Mutex
	images  map[driver.Module][]byte  // the images of loaded modules
	execs   map[driver.Exec]*launches // launches of the execs that Instantiate has made
	streams map[driver.Stream]bool    // streams that the device has made; true while the stream is being captured
}

// errorsOnly is the first release in which only real errors become a thread's last error.
const errorsOnly = 7_00_00000

func newDevice(d *Driver, index int) *device {
	v := &device{
		lib: d.lib, id: int32(index), info: d.infos[index], target: d.targets[index], more: d.more, hiprtc: d.hiprtc,
		reminds: d.lib.Version() < errorsOnly && d.lib.HasSymbol("hipGetLastError"),
		images:  map[driver.Module][]byte{}, execs: map[driver.Exec]*launches{},
		streams: map[driver.Stream]bool{},
	}
	v.noGraphs = lacks(d.lib, graphSymbols)
	v.Comms = ncclcomm.New(d.comms, ncclcomm.Host{Bind: v.Bind, Unbind: v.Unbind, Fail: func(op string, err error, what string) error {
		return v.fail(op, err, "%s", what)
	}})
	return v
}

// open finds the device's features, while the device is current. devices is the number of devices.
func (d *device) open(devices int, pools bool) error {
	return d.onDevice("open", func() (err error) {
		if err := d.askPools(pools); err != nil {
			return err
		}
		if err := d.askCaps(); err != nil {
			return err
		}
		if err := d.tryStrided(); err != nil {
			return err
		}
		anywhere, err := d.probe(devices)
		d.sets = !anywhere
		return err
	})
}

// submit makes a submitting call. If HIP does not take the device from the stream or event, submit
// makes this device current for the call, and then restores the thread's device.
func (d *device) submit(op string, f func() error) error {
	if d.sets {
		return d.onDevice(op, f)
	}
	return f()
}

// onDevice calls f with the device current on the calling thread.
func (d *device) onDevice(op string, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return d.during(op, d.id, "the device", f)
}

// during calls f while a device is current on the calling thread. The thread must be locked. The
// parameter what names the device in errors.
func (d *device) during(op string, device int32, what string, f func() error) (err error) {
	before, err := d.lib.GetDevice()
	if err != nil {
		return d.fail(op, err, "the thread's current device")
	}
	// The device is set even if GetDevice returns it: the thread may not have chosen a device yet.
	if err := d.lib.SetDevice(device); err != nil {
		return d.fail(op, err, "make %s current", what)
	}
	defer func() {
		if restore := d.lib.SetDevice(before); restore != nil {
			err = errors.Join(err, d.fail(op, restore, "restore the thread's current device"))
		}
	}()
	return f()
}

// has reports whether an attribute is not 0. If the library is too old for the attribute, the
// result is the value of the parameter unknown.
func (d *device) has(attr hip.DeviceAttribute, unknown bool) (bool, error) {
	v, err := d.lib.DeviceGetAttribute(attr, d.id)
	switch {
	case errors.Is(err, hip.ErrorInvalidValue):
		d.lib.GetLastError()
		return unknown, nil
	case err != nil:
		return false, d.fail("open", err, "%v", attr)
	}
	return v != 0, nil
}

// askCaps finds the device's features.
func (d *device) askCaps() error {
	managed, err := d.has(hip.DeviceAttributeManagedMemory, false)
	if err != nil {
		return err
	}
	// Managed memory needs this attribute. Without it the host must not touch the memory while the
	// device is working.
	concurrent, err := d.has(hip.DeviceAttributeConcurrentManagedAccess, false)
	if err != nil {
		return err
	}
	// Releases before 6.0 have the feature, but not the attribute.
	register, err := d.has(hip.DeviceAttributeHostRegisterSupported, true)
	if err != nil {
		return err
	}
	symbols := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !d.lib.HasSymbol(n) })
	}
	d.caps = driver.Caps{
		RerecordEvents: false, // HIP does not document whether a pending wait keeps its old record when the event is recorded again
		Managed:        managed && concurrent && symbols("hipMallocManaged"),
		HostRegister:   register && symbols("hipHostRegister", "hipHostUnregister", "hipHostGetDevicePointer"),
		Pools:          d.noPools == nil,
		PoolsByStream:  d.noPools == nil,
		Graphs:         d.noGraphs == nil,
		Timers:         true, // the package requires releases that have all functions for timers
		Peers:          symbols("hipDeviceCanAccessPeer", "hipDeviceEnablePeerAccess", "hipMemcpyPeerAsync"),
		Comms:          true, // without RCCL, calls return an error that names it
		Compile:        true, // without hipRTC, calls return an error that names it
		Native:         true,
		MemInfo:        true,
		Links:          symbols("hipDeviceGetP2PAttribute"),
		Occupancy:      symbols("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"),
		IPCMem:         runtime.GOOS == "linux" && symbols("hipIpcGetMemHandle", "hipIpcOpenMemHandle", "hipIpcCloseMemHandle"),
	}
	d.caps.Adopt = symbols("hipStreamGetDevice", "hipStreamGetPriority", "hipStreamIsCapturing")
	d.caps.Capture = d.caps.Graphs && symbols("hipStreamBeginCapture", "hipStreamEndCapture", "hipGraphExecChildGraphNodeSetParams")
	d.caps.Prefetch = d.caps.Managed && symbols("hipMemPrefetchAsync")
	if symbols("hipModuleLaunchCooperativeKernel") {
		if d.caps.Cooperative, err = d.has(hip.DeviceAttributeCooperativeLaunch, false); err != nil {
			return err
		}
	}
	if d.caps.VirtualMem, err = d.askVirtual(symbols); err != nil {
		return err
	}
	if symbols("hipDeviceGetStreamPriorityRange", "hipStreamCreateWithPriority") {
		least, greatest, err := d.lib.DeviceGetStreamPriorityRange()
		if err != nil {
			return d.fail("open", err, "range of priorities")
		}
		d.caps.PriorityRange = [2]int{int(least), int(greatest)}
	}
	return nil
}

func (d *device) Info() driver.Info { return d.info }

func (d *device) Caps() driver.Caps { return d.caps }

func (d *device) Bind() error {
	if err := d.lib.SetDevice(d.id); err != nil {
		return d.fail("bind", err, "make the device current")
	}
	return nil
}

// Unbind sets the thread's device to 0, which every thread has initially, if this device is
// current.
func (d *device) Unbind() error {
	current, err := d.lib.GetDevice()
	if err == nil && current == d.id && current != 0 {
		err = d.lib.SetDevice(0)
	}
	if err != nil {
		return d.fail("unbind", err, "take the device from the thread")
	}
	return nil
}

// Close sets the thread's device to 0, which every thread has initially, if this device is current.
// There is nothing else to release.
func (d *device) Close() error {
	if d.closed.Swap(true) {
		return wrap("close", fmt.Errorf("device %d (%s) is closed already", d.info.Index, d.info.Name))
	}
	current, err := d.lib.GetDevice()
	if err == nil && current == d.id && current != 0 {
		err = d.lib.SetDevice(0)
	}
	if err == nil || ending(err) {
		return nil
	}
	if e := d.fail("close", err, "make device 0 current"); !e.Lost {
		return e
	}
	return nil
}
