package cudadriver

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/ncclcomm"
)

var _ driver.Comms = (*device)(nil)

// device is an open device. After Open only the fields streams, modules, peers, closed, watch and
// tester change.
type device struct {
	*ncclcomm.Comms

	streamsMu sync.Mutex
	streams   map[cuda.Stream]struct{} // streams for the method settle: made by the device, and not being captured

	mu      sync.Mutex               // protects modules and peers
	modules map[driver.Module]module // loaded modules
	peers   map[cuda.Device]*device  // devices whose memory EnablePeer has made accessible

	lib  *cuda.Library
	id   cuda.Device
	ctx  cuda.Context // the primary context
	info driver.Info
	caps driver.Caps

	noPools, noGraphs error // why the device has no pools or no graphs; nil if it has them
	hostPools         *hostPools
	physical          physical // for ShareableMem; used if Caps.MemSharing is set
	private           physical // for NewPages; used if Caps.VirtualMem is set
	nvrtc             func() (*nvrtcLibrary, error)
	nvjitlink         func() (*nvjitlink.Library, error)
	nvml              func() (*nvml.Library, error)
	sets              bool // submitting calls make the context current; set by askCaps
	hasFuncLoad       bool
	hasLibraries      bool // the driver has code libraries, and loads code lazily
	hasKernelNodes    bool // kernel nodes in the form of CUDA 12.0
	hasElapsed        bool // elapsed times in the form of CUDA 12.8
	hasLaunchEx       bool // launches can have attributes
	hasCarveout       bool // launches can set the carve-out of shared memory
	hasEdges          bool // edges of a graph can be programmatic
	closed            atomic.Bool
	watch             watch
	tester            tester // kernel of test nodes
}

func openDevice(lib *cuda.Library, id cuda.Device, info driver.Info, hosts *hostPools, comms *ncclcomm.Library) (*device, error) {
	d := &device{
		streams: map[cuda.Stream]struct{}{}, modules: map[driver.Module]module{}, peers: map[cuda.Device]*device{},
		lib: lib, id: id, info: info, hostPools: hosts,
		hasFuncLoad:    lib.HasSymbol("cuFuncLoad"),
		hasKernelNodes: lib.HasSymbol("cuGraphAddKernelNode_v2") && lib.HasSymbol("cuGraphExecKernelNodeSetParams_v2"),
		hasElapsed:     lib.HasSymbol("cuEventElapsedTime_v2"),
		hasLaunchEx:    lib.HasSymbol("cuLaunchKernelEx") && lib.Version() >= clusters,
		hasCarveout:    lib.Version() >= carveouts,
		hasEdges:       lib.HasSymbol("cuGraphAddDependencies_v2"),
	}
	if lib.HasSymbol("cuLibraryLoadData") && lib.HasSymbol("cuModuleGetLoadingMode") {
		mode, err := lib.ModuleGetLoadingMode()
		d.hasLibraries = err == nil && mode == cuda.ModuleLazyLoading
	}
	d.Comms = ncclcomm.New(comms, ncclcomm.Host{Bind: d.Bind, Unbind: d.Unbind, Fail: func(op string, err error, what string) error {
		return d.fail(op, err, "%s", what)
	}})
	ctx, err := lib.DevicePrimaryCtxRetain(id)
	if err != nil {
		return nil, d.fail("open", err, "retain the primary context")
	}
	d.ctx = ctx
	if err := d.askCaps(); err != nil {
		if release := lib.DevicePrimaryCtxRelease(id); release != nil {
			err = errors.Join(err, d.fail("open", release, "release the primary context"))
		}
		return nil, err
	}
	return d, nil
}

// ipcEvents is the first release that can be asked whether processes can share events.
const ipcEvents = 12000

// askCaps finds the device's features. It asks for no attribute that is newer than the driver.
func (d *device) askCaps() error {
	has := func(attr cuda.DeviceAttribute) (bool, error) {
		v, err := d.lib.DeviceGetAttribute(attr, d.id)
		if err != nil {
			return false, d.fail("open", err, "%v", attr)
		}
		return v != 0, nil
	}
	managed, err := has(cuda.DeviceAttributeManagedMemory)
	if err != nil {
		return err
	}
	// Caps.Managed needs this attribute. On a device without it, a process crashes if the host
	// touches managed memory while a kernel runs.
	concurrent, err := has(cuda.DeviceAttributeConcurrentManagedAccess)
	if err != nil {
		return err
	}
	register, err := has(cuda.DeviceAttributeHostRegisterSupported)
	if err != nil {
		return err
	}
	readOnly, err := has(cuda.DeviceAttributeReadOnlyHostRegisterSupported)
	if err != nil {
		return err
	}
	pools, err := has(cuda.DeviceAttributeMemoryPoolsSupported)
	if err != nil {
		return err
	}
	hostPools := false
	if d.lib.Version() >= hostMemoryPools {
		if hostPools, err = has(cuda.DeviceAttributeHostMemoryPoolsSupported); err != nil {
			return err
		}
	}
	handles := int32(0) // bits of the handle types that pools support
	if d.lib.Version() >= poolHandles {
		if handles, err = d.lib.DeviceGetAttribute(cuda.DeviceAttributeMemPoolSupportedHandleTypes, d.id); err != nil {
			return d.fail("open", err, "ask for %v", cuda.DeviceAttributeMemPoolSupportedHandleTypes)
		}
	}
	ipc := runtime.GOOS == "linux" && lacks(d.lib, "ipc") == nil
	if ipc && d.lib.Version() >= ipcEvents {
		// According to the documentation the attribute for events covers memory too.
		if ipc, err = has(cuda.DeviceAttributeIPCEventSupported); err != nil {
			return err
		}
	}
	virtual, memSharing, err := d.askPhysical(has)
	if err != nil {
		return err
	}
	d.noPools, d.noGraphs = lacks(d.lib, "memory-pools"), lacks(d.lib, "graphs")
	if d.noPools == nil && !pools {
		d.noPools = fmt.Errorf("%v is 0: %w", cuda.DeviceAttributeMemoryPoolsSupported, driver.ErrUnsupported)
	}
	d.caps = driver.Caps{
		RerecordEvents: true, // a wait is for the record that was the latest when the wait was called
		Managed:        managed && concurrent && d.lib.HasSymbol("cuMemAllocManaged"),
		HostRegister:   register && d.lib.HasSymbol("cuMemHostRegister_v2"),
		KernelParams:   d.lib.HasSymbol("cuFuncGetParamInfo"),
		Pools:          d.noPools == nil,
		HostPools:      d.noPools == nil && hostPools,
		PoolSharing:    d.noPools == nil && runtime.GOOS == "linux" && handles&int32(cuda.MemHandleTypePosixFileDescriptor) != 0,
		Graphs:         d.noGraphs == nil,
		Timers:         true, // all supported drivers have the functions for timers
		Peers:          lacks(d.lib, "peer") == nil,
		Comms:          true, // without NCCL, calls return an error that names it
		Native:         true,
		Capture:        d.noGraphs == nil && d.lib.HasSymbol("cuGraphExecChildGraphNodeSetParams"),
		MemInfo:        true,
		Links:          d.lib.HasSymbol("cuDeviceGetP2PAttribute"),
		Occupancy:      d.lib.HasSymbol("cuOccupancyMaxActiveBlocksPerMultiprocessor"),
		IPCMem:         ipc,
		IPCEvents:      ipc,
		MemSharing:     memSharing,
		VirtualMem:     virtual,
		Compile:        true, // without NVRTC, calls return an error that names it
	}
	d.caps.Adopt = d.lib.HasSymbol("cuStreamGetCtx") && d.lib.HasSymbol("cuStreamGetPriority") && d.lib.HasSymbol("cuStreamIsCapturing")
	if d.lib.Version() >= valueOps && d.lib.HasSymbol("cuStreamWriteValue64_v2") && d.lib.HasSymbol("cuStreamWaitValue64_v2") {
		if d.caps.Values, err = has(cuda.DeviceAttributeCanUse64BitStreamMemOps); err != nil {
			return err
		}
	}
	d.caps.Cooperative = d.hasLaunchEx && d.info.Cooperative
	d.caps.Clusters = d.hasLaunchEx && d.info.Clusters
	d.caps.DependentLaunch = d.hasLaunchEx && d.info.Major >= dependent
	d.caps.LaunchEvents = d.hasLaunchEx && d.lib.Version() >= launchEvents
	d.caps.NodeAttrs = d.caps.Graphs // drivers with graphs have the function that sets attributes
	d.caps.Prefetch = d.caps.Managed && (d.lib.HasSymbol("cuMemPrefetchAsync_v2") || d.lib.HasSymbol("cuMemPrefetchAsync"))
	d.caps.ManagedPools = d.caps.Managed && d.caps.Pools && d.lib.Version() >= managedMemoryPools
	d.caps.ReadOnlyRegister = d.caps.HostRegister && readOnly
	d.caps.Conditionals = d.caps.Graphs && d.lib.Version() >= conditionals && d.hasKernelNodes &&
		d.lib.HasSymbol("cuGraphConditionalHandleCreate") && d.lib.HasSymbol("cuGraphAddNode_v2")
	d.caps.ResizeNodes = d.caps.Graphs // the documentation promises an error for a size that does not fit
	if d.caps.PriorityRange, err = d.priorities(); err != nil {
		return err
	}
	anywhere, err := d.probe()
	d.sets = !anywhere
	return err
}

// submit makes a submitting call. If the driver needs a current context for it, submit makes the
// device's context current around the call, and restores the thread's context.
func (d *device) submit(call func() error) error {
	if d.sets {
		return d.inContext(call)
	}
	return call()
}

// inContext makes a call with the device's context current on the calling thread.
func (d *device) inContext(call func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.lib.CtxPushCurrent(d.ctx); err != nil {
		return err
	}
	defer func() {
		if _, pop := d.lib.CtxPopCurrent(); pop != nil && err == nil {
			err = pop
		}
	}()
	return call()
}

// lacks returns an error if the library lacks functions of a set.
func lacks(lib *cuda.Library, set string) error {
	for _, s := range lib.Sets() {
		if s.Name == set && s.Have < s.Total {
			return fmt.Errorf("the driver, of CUDA %s, has %d of the %d functions of set %s, which came with CUDA %s: %w",
				cuda.FormatVersion(lib.Version()), s.Have, s.Total, set, cuda.FormatVersion(s.Since), driver.ErrUnsupported)
		}
	}
	return nil
}

func (d *device) Info() driver.Info { return d.info }

func (d *device) Caps() driver.Caps { return d.caps }

func (d *device) Bind() error {
	if err := d.lib.CtxSetCurrent(d.ctx); err != nil {
		return d.fail("bind", err, "make the context current")
	}
	return nil
}

func (d *device) Unbind() error {
	current, err := d.lib.CtxGetCurrent()
	if err == nil && current == d.ctx {
		err = d.lib.CtxSetCurrent(0)
	}
	if err != nil {
		return d.fail("unbind", err, "take the context from the thread")
	}
	return nil
}

// Close releases the primary context. The last release destroys the context. A thread on which the
// context is still current would then get misleading errors, so Close first removes the context
// from the calling thread.
func (d *device) Close() error {
	if d.closed.Swap(true) {
		// A second release would release another owner's reference.
		return wrap("close", fmt.Errorf("device %d (%s) is closed already", d.info.Index, d.info.Name))
	}
	d.watch.stop()
	if m := d.tester.module; m != 0 {
		d.Unload(m) // an error, such as that of a lost device, is ignored: the end of the context frees the module
	}
	var leave error
	if current, err := d.lib.CtxGetCurrent(); err != nil {
		leave = err
	} else if current == d.ctx {
		leave = d.lib.CtxSetCurrent(0)
	}
	var errs []error
	if leave != nil && !ending(leave) {
		errs = append(errs, d.fail("close", leave, "take the context from the thread"))
	}
	if err := d.lib.DevicePrimaryCtxRelease(d.id); err != nil && !ending(err) {
		errs = append(errs, d.fail("close", err, "release the primary context"))
	}
	return errors.Join(errs...)
}

// ending reports whether err means that the driver is shutting down, as at the end of the process.
func ending(err error) bool {
	return errors.Is(err, cuda.ErrorDeinitialized) || errors.Is(err, cuda.ErrorNotInitialized)
}
