//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

// TestHostPool tests a pool of host memory, whose allocations have a host address.
func TestHostPool(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	host, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem})
	ok(t, err)
	f.Want("cuMemPoolCreate(1, 0, 2 0, (nil), 0, 0)", "cuMemPoolSetAccess(0x9020, 1 0 3, 1)", "cuMemPoolSetAccess(0x9020, 1 1 3, 1)")

	m, err := d.AllocAsync(stream0, host, 64)
	ok(t, err)
	if m.Kind != driver.HostMem || m.Host == nil || uintptr(m.Host) != uintptr(m.Ptr) || m.Size != 64 {
		t.Errorf("%+v", m)
	}
	unsafe.Slice((*byte)(m.Host), 64)[63] = 1
	f.Want("cuMemAllocFromPoolAsync(64, 0x9020, 0x5000)")

	ok(t, d.DestroyPool(host)) // one allocation is not freed yet
	ok(t, d.FreeAsync(stream0, m))
	f.Want("cuMemPoolDestroy(0x9020)", "cuMemFreeAsync(0x5000)")
	if d.hostPools.kind(host) != driver.DeviceMem {
		t.Error("a destroyed pool counts as one of host memory")
	}
}

// TestManagedPools tests a pool of managed memory, whose allocations have a host address.
func TestManagedPools(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	p, err := d.NewPool(driver.PoolDesc{Kind: driver.ManagedMem})
	ok(t, err)
	m, err := d.AllocAsync(stream0, p, 64)
	ok(t, err)
	if m.Kind != driver.ManagedMem || m.Host == nil || uintptr(m.Host) != uintptr(m.Ptr) || m.Size != 64 {
		t.Errorf("%+v", m)
	}
	ok(t, d.FreeAsync(stream0, m))
	ok(t, d.DestroyPool(p))
	f.Want("cuMemPoolCreate(2, 0, 1 0, (nil), 0, 0)", "cuMemAllocFromPoolAsync(64, 0x9020, 0x5000)", "cuMemFreeAsync(0x5000)", "cuMemPoolDestroy(0x9020)")
	f.Set("cuMemPoolCreate", int(cuda.ErrorNotSupported)) // a device may be unable to use managed pools
	if p, err := d.NewPool(driver.PoolDesc{Kind: driver.ManagedMem}); p != 0 || !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("%#x, %v", p, err)
	}
}

// TestHostPools checks that the devices of a driver see each other's pools while pools are made and
// destroyed.
func TestHostPools(t *testing.T) {
	runtime.LockOSThread() // the context is current on this thread
	defer runtime.UnlockOSThread()
	f := newFake(t, 13000)
	drv := f.driver()
	var devs [2]*device
	for i := range devs {
		d, err := drv.Open(i)
		ok(t, err)
		defer d.Close()
		devs[i] = d.(*device)
	}
	ok(t, devs[0].Bind())
	f.Calls()
	var pools []driver.Pool
	for range 3 {
		p, err := devs[1].NewPool(driver.PoolDesc{Kind: driver.HostMem})
		ok(t, err)
		pools = append(pools, p)
	}
	if calls := f.Calls(); calls[1] != "cuMemPoolSetAccess(0x9020, 1 0 3, 1)" || calls[2] != "cuMemPoolSetAccess(0x9020, 1 1 3, 1)" {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
	ok(t, devs[1].DestroyPool(pools[1]))
	f.Set("cuMemPoolDestroy", int(cuda.ErrorInvalidContext))
	if err := devs[1].DestroyPool(pools[2]); !errors.Is(err, cuda.ErrorInvalidContext) {
		t.Error(err)
	}
	f.Set("cuMemPoolDestroy", 0)
	for i, host := range []bool{true, false, true} {
		m, err := devs[0].AllocAsync(stream0, pools[i], 8)
		ok(t, err)
		if (m.Host != nil) != host || (m.Kind == driver.HostMem) != host {
			t.Errorf("from pool %d: %+v", i, m)
		}
		ok(t, devs[0].FreeAsync(stream0, m))
	}
}

func TestAccessPool(t *testing.T) {
	runtime.LockOSThread() // the context is current on this thread
	defer runtime.UnlockOSThread()
	f := newFake(t, 13000)
	drv := f.driver()
	d, err := drv.Open(0)
	ok(t, err)
	defer d.Close()
	other, err := drv.Open(1)
	ok(t, err)
	defer other.Close()
	ok(t, d.Bind())
	f.Calls()
	ok(t, d.(driver.Pools).AccessPool(pool0, other, true))
	ok(t, d.(driver.Pools).AccessPool(pool0, other, false))
	f.Want("cuDeviceCanAccessPeer(41, 40)", "cuMemPoolSetAccess(0x9000, 1 1 3, 1)",
		"cuDeviceCanAccessPeer(41, 40)", "cuMemPoolSetAccess(0x9000, 1 1 0, 1)")
	if err := d.(driver.Pools).AccessPool(pool0, struct{ driver.Device }{other}, true); !errors.Is(err, cuda.ErrorInvalidDevice) {
		t.Errorf("a device of another driver: %v", err)
	}
}

// TestNoHostPools tests a device whose attribute query for pools of host memory fails.
func TestNoHostPools(t *testing.T) {
	f := newFake(t, 13000)
	f.Set("attr 144", 1)
	if _, err := f.device().NewPool(driver.PoolDesc{Kind: driver.HostMem}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a pool of host memory: %v", err)
	}
}

func TestOldPools(t *testing.T) {
	f := newFake(t, 12010)
	d := f.device()
	if caps := d.Caps(); !caps.Pools || caps.HostPools || caps.ManagedPools {
		t.Errorf("%+v", caps)
	}
	for says, desc := range map[string]driver.PoolDesc{
		"a pool of at most 4096 bytes: the driver has CUDA 12.1, and limits need 12.2: ": {MaxSize: 4096},
		"a pool of host memory":    {Kind: driver.HostMem},
		"a pool of managed memory": {Kind: driver.ManagedMem},
	} {
		if p, err := d.NewPool(desc); p != 0 || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %#x, %v", desc, p, err)
		}
	}
	if calls := f.Calls(); calls[0] != "" {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
	p, err := d.NewPool(driver.PoolDesc{})
	ok(t, err)
	ok(t, d.DestroyPool(p))
}

func TestNoPools(t *testing.T) {
	f := newFake(t, 13000)
	f.Set("attr 115", 1)
	d := f.device()
	if caps := d.Caps(); caps.Pools || caps.HostPools || !caps.Graphs || !caps.Timers || d.sets {
		t.Errorf("%+v", caps)
	}
	suite.Unsupported(t, f, d, drivertest.PoolOps, ": memory pools: CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED is 0")

	f = newFake(t, 13000, "NOPOOLS")
	d = f.device()
	if caps := d.Caps(); caps.Pools || caps.HostPools || !caps.Graphs || !caps.Timers || d.sets {
		t.Errorf("%+v", caps)
	}
	suite.Unsupported(t, f, d, drivertest.PoolOps, "of CUDA 13.0, has 0 of the 17 functions of set memory-pools, which came with CUDA 11.2")
	// Without the check of askCaps the calls return errors, and do not crash.
	d.noPools = nil
	for _, op := range drivertest.PoolOps {
		if op == "new pool" {
			continue
		}
		if err := all(d)[op](); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestStreamsAreSettledWhileTheyLive trims a pool and makes a stream while another stream is being
// destroyed. The trim must not wait for the destroyed stream.
func TestStreamsAreSettledWhileTheyLive(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	f.Set("cuStreamDestroy_v2", int(cuda.ErrorUnknown))
	if err := d.DestroyStream(s); err == nil {
		t.Fatal("the stream is destroyed")
	}
	f.Set("cuStreamDestroy_v2", 0)
	f.Calls()
	if err := d.TrimPool(pool0, 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(f.Calls(), "cuStreamSynchronize(0x5000)") {
		t.Error("a stream that could not be destroyed is not waited for")
	}

	f.Set("linger", 1)
	live := f.Live()
	destroyed := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := d.Bind(); err != nil {
			destroyed <- err
			return
		}
		err := d.DestroyStream(s)
		destroyed <- errors.Join(err, d.Unbind())
	}()
	for f.Live() == live {
		select {
		case err := <-destroyed:
			t.Fatalf("the stream does not linger: %v", err)
		default:
			runtime.Gosched()
		}
	}
	f.Calls()
	err = d.TrimPool(pool0, 0)
	calls := f.Calls()
	again, two := d.NewStream()
	f.Set("linger", 0)
	if err := errors.Join(err, two, <-destroyed); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(calls, "cuStreamSynchronize(0x5000)") {
		t.Error("a destroyed stream is waited for")
	}
	f.Calls()
	if err := d.TrimPool(pool0, 0); err != nil {
		t.Fatal(err)
	}
	if again != s || !slices.Contains(f.Calls(), "cuStreamSynchronize(0x5000)") {
		t.Errorf("stream %#x, with the handle of the one before, is not waited for", uintptr(again))
	}
	if err := d.DestroyStream(again); err != nil {
		t.Fatal(err)
	}
}
