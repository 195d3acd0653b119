//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestPools(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	p, err := d.DefaultPool()
	if ok(t, err); p != pool0 {
		t.Errorf("the default pool is %#x", p)
	}
	ok(t, d.SetCurrentPool(pool1))
	p, err = d.CurrentPool()
	if ok(t, err); p != pool1 {
		t.Errorf("the current pool is %#x", p)
	}
	ok(t, d.SetCurrentPool(pool0))
	f.want("cuDeviceGetDefaultMemPool(40)", "cuDeviceSetMemPool(40, 0x9020)", "cuDeviceGetMemPool(40)", "cuDeviceSetMemPool(40, 0x9000)")

	// Of the devices' numbers it is the ordinal that a location has.
	p, err = d.NewPool(driver.PoolDesc{Kind: driver.DeviceMem, MaxSize: 100})
	ok(t, err)
	host, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem})
	ok(t, err)
	f.want("cuMemPoolCreate(1, 0, 1 0, (nil), 100, 0)", "cuMemPoolCreate(1, 0, 2 0, (nil), 0, 0)", "cuMemPoolSetAccess(0x9030, 1 0 3, 1)", "cuMemPoolSetAccess(0x9030, 1 1 3, 1)")
	if p != pool1 || host != pool1+0x10 {
		t.Errorf("pools %#x and %#x", p, host)
	}

	m, err := d.AllocAsync(stream0, p, 64)
	ok(t, err)
	if m.Kind != driver.DeviceMem || m.Ptr == 0 || m.Host != nil || m.Size != 64 {
		t.Errorf("%+v", m)
	}
	if none, err := d.AllocAsync(stream0, p, 64); !errors.Is(err, driver.ErrOutOfMemory) || none != (driver.Mem{}) {
		t.Errorf("beyond the limit: %+v, %v", none, err)
	}
	ok(t, d.FreeAsync(stream0, m))
	m, err = d.AllocAsync(stream0, host, 64)
	ok(t, err)
	if m.Kind != driver.HostMem || m.Host == nil || uintptr(m.Host) != uintptr(m.Ptr) || m.Size != 64 {
		t.Errorf("%+v", m)
	}
	unsafe.Slice((*byte)(m.Host), 64)[63] = 1
	f.want("cuMemAllocFromPoolAsync(64, 0x9020, 0x5000)", "cuMemAllocFromPoolAsync(64, 0x9020, 0x5000)", "cuMemFreeAsync(0x5000)",
		"cuMemAllocFromPoolAsync(64, 0x9030, 0x5000)")

	ok(t, d.TrimPool(p, 1<<20))
	ok(t, d.DestroyPool(p))
	ok(t, d.DestroyPool(host)) // of which there is an allocation left
	ok(t, d.FreeAsync(stream0, m))
	f.want("cuMemPoolTrimTo(0x9020, 1048576)", "cuMemPoolDestroy(0x9020)", "cuMemPoolDestroy(0x9030)", "cuMemFreeAsync(0x5000)")
	if d.hostPools.kind(host) != driver.DeviceMem {
		t.Error("a destroyed pool counts as one of host memory")
	}
	if err := d.DestroyPool(pool0); !errors.Is(err, cuda.ErrorInvalidValue) {
		t.Errorf("destroying the default pool: %v", err)
	}
}

// TestManagedPools has a pool of managed memory, which the host has an address for.
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
	f.want("cuMemPoolCreate(2, 0, 1 0, (nil), 0, 0)", "cuMemAllocFromPoolAsync(64, 0x9020, 0x5000)", "cuMemFreeAsync(0x5000)", "cuMemPoolDestroy(0x9020)")
	f.set("cuMemPoolCreate", int(cuda.ErrorNotSupported)) // as where another device cannot share managed memory
	if p, err := d.NewPool(driver.PoolDesc{Kind: driver.ManagedMem}); p != 0 || !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("%#x, %v", p, err)
	}
}

// TestHostPools has the devices of a driver know each other's pools, and pools come and go.
func TestHostPools(t *testing.T) {
	runtime.LockOSThread() // which has the context
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
	f.calls()
	var pools []driver.Pool
	for range 3 {
		p, err := devs[1].NewPool(driver.PoolDesc{Kind: driver.HostMem})
		ok(t, err)
		pools = append(pools, p)
	}
	if calls := f.calls(); calls[1] != "cuMemPoolSetAccess(0x9020, 1 0 3, 1)" || calls[2] != "cuMemPoolSetAccess(0x9020, 1 1 3, 1)" {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
	ok(t, devs[1].DestroyPool(pools[1]))
	f.set("cuMemPoolDestroy", int(cuda.ErrorInvalidContext))
	if err := devs[1].DestroyPool(pools[2]); !errors.Is(err, cuda.ErrorInvalidContext) {
		t.Error(err)
	}
	f.set("cuMemPoolDestroy", 0)
	for i, host := range []bool{true, false, true} {
		m, err := devs[0].AllocAsync(stream0, pools[i], 8)
		ok(t, err)
		if (m.Host != nil) != host || (m.Kind == driver.HostMem) != host {
			t.Errorf("from pool %d: %+v", i, m)
		}
		ok(t, devs[0].FreeAsync(stream0, m))
	}
}

func TestPoolAttrs(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	for attr, value := range map[driver.PoolAttr]uint64{
		driver.PoolReuseEvents: 1, driver.PoolReuseOpportunistic: 0, driver.PoolReuseInternal: 1,
		driver.PoolThreshold: math.MaxUint64, driver.PoolReservedHigh: 0, driver.PoolUsedHigh: 0,
	} {
		ok(t, d.SetPoolAttr(pool1, attr, 1))
		ok(t, d.SetPoolAttr(pool1, attr, value))
		got, err := d.PoolAttr(pool1, attr)
		if ok(t, err); got != value {
			t.Errorf("attribute %d is %d, want %d", attr, got, value)
		}
	}
	f.calls()
	ok(t, d.SetPoolAttr(pool1, driver.PoolReuseInternal, 0))
	ok(t, d.SetPoolAttr(pool1, driver.PoolThreshold, 1<<40))
	for attr := driver.PoolReuseEvents; attr <= driver.PoolUsedHigh; attr++ {
		_, err := d.PoolAttr(pool1, attr)
		ok(t, err)
	}
	f.want("cuMemPoolSetAttribute(0x9020, 3, 0)", "cuMemPoolSetAttribute(0x9020, 4, 1099511627776)",
		"cuMemPoolGetAttribute(0x9020, 1)", "cuMemPoolGetAttribute(0x9020, 2)", "cuMemPoolGetAttribute(0x9020, 3)", "cuMemPoolGetAttribute(0x9020, 4)",
		"cuMemPoolGetAttribute(0x9020, 5)", "cuMemPoolGetAttribute(0x9020, 6)", "cuMemPoolGetAttribute(0x9020, 7)", "cuMemPoolGetAttribute(0x9020, 8)")

	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"reserved":        {d.SetPoolAttr(pool1, driver.PoolReserved, 0), "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT of pool 0x9020 to 0"},
		"used":            {d.SetPoolAttr(pool1, driver.PoolUsed, 0), "CU_MEMPOOL_ATTR_USED_MEM_CURRENT"},
		"half a switch":   {d.SetPoolAttr(pool1, driver.PoolReuseEvents, 1<<32), "a switch is 0 or 1"},
		"none to set":     {d.SetPoolAttr(pool1, driver.PoolUsedHigh+1, 0), "no attribute 8"},
		"negative to set": {d.SetPoolAttr(pool1, -1, 0), "no attribute -1"},
		"none":            {func() error { _, err := d.PoolAttr(pool1, driver.PoolUsedHigh+1); return err }(), "no attribute 8"},
		"negative":        {func() error { _, err := d.PoolAttr(pool1, -1); return err }(), "no attribute -1"},
	} {
		if !errors.Is(c.err, cuda.ErrorInvalidValue) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestAccessPool(t *testing.T) {
	runtime.LockOSThread() // which has the context
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
	f.calls()
	ok(t, d.(driver.Pools).AccessPool(pool0, other, true))
	ok(t, d.(driver.Pools).AccessPool(pool0, other, false))
	f.want("cuDeviceCanAccessPeer(41, 40)", "cuMemPoolSetAccess(0x9000, 1 1 3, 1)",
		"cuDeviceCanAccessPeer(41, 40)", "cuMemPoolSetAccess(0x9000, 1 1 0, 1)")
	if err := d.(driver.Pools).AccessPool(pool0, struct{ driver.Device }{other}, true); !errors.Is(err, cuda.ErrorInvalidDevice) {
		t.Errorf("a device of another driver: %v", err)
	}
}

func TestPoolErrors(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	for name, c := range map[string]struct {
		err  error
		want error
		says string
	}{
		"stream 0 to allocate": {func() error { _, err := d.AllocAsync(0, pool0, 1); return err }(), cuda.ErrorInvalidHandle, "stream 0x0"},
		"stream 2 to free":     {d.FreeAsync(2, driver.Mem{}), cuda.ErrorInvalidHandle, "stream 0x2"},
		"no kind of pool":      {func() error { _, err := d.NewPool(driver.PoolDesc{Kind: driver.CommMem}); return err }(), cuda.ErrorInvalidValue, "kind of memory 3"},
		"a managed limit":      {func() error { _, err := d.NewPool(driver.PoolDesc{Kind: driver.ManagedMem, MaxSize: 1}); return err }(), driver.ErrUnsupported, "managed memory, of at most 1 bytes"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	// Without an answer about pools of host memory there are none.
	f.set("attr 144", 1)
	dev, err := f.driver().Open(0)
	ok(t, err)
	defer dev.Close()
	if _, err := dev.(driver.Pools).NewPool(driver.PoolDesc{Kind: driver.HostMem}); !errors.Is(err, driver.ErrUnsupported) {
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
		"a pool of at most 4096 bytes: the driver is of CUDA 12.1, and limits came with 12.2: ": {MaxSize: 4096},
		"a pool of host memory":    {Kind: driver.HostMem},
		"a pool of managed memory": {Kind: driver.ManagedMem},
	} {
		if p, err := d.NewPool(desc); p != 0 || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %#x, %v", desc, p, err)
		}
	}
	if calls := f.calls(); calls[0] != "" {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
	p, err := d.NewPool(driver.PoolDesc{})
	ok(t, err)
	ok(t, d.DestroyPool(p))
}

// checkUnsupported has every method of a kind fail, and says why in the error.
func checkUnsupported(t *testing.T, f *fake, d *device, ops, says string) {
	t.Helper()
	calls := all(d)
	f.calls()
	for op := range strings.SplitSeq(ops, ", ") {
		err := calls[op]()
		e, is := err.(*driver.Error)
		if !is || e.Op != op || e.Lost || e.OOM || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if calls := f.calls(); calls[0] != "" {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
}

func TestNoPools(t *testing.T) {
	const ops = "default pool, current pool, set current pool, new pool, destroy pool, pool attribute, set pool attribute, trim pool, access pool, " +
		"alloc async, free async"
	f := newFake(t, 13000)
	f.set("attr 115", 1)
	d := f.device()
	if caps := d.Caps(); caps.Pools || caps.HostPools || !caps.Graphs || !caps.Timers || d.sets {
		t.Errorf("%+v", caps)
	}
	checkUnsupported(t, f, d, ops, ": memory pools: CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED is 0")

	f = newFake(t, 13000, "NOPOOLS")
	d = f.device()
	if caps := d.Caps(); caps.Pools || caps.HostPools || !caps.Graphs || !caps.Timers || d.sets {
		t.Errorf("%+v", caps)
	}
	checkUnsupported(t, f, d, ops, "of CUDA 13.0, has 0 of the 17 functions of set memory-pools, which came with CUDA 11.2")
	// Nor is there a crash where nobody asked for the set.
	d.noPools = nil
	for op := range strings.SplitSeq(ops, ", ") {
		if op == "new pool" {
			continue
		}
		if err := all(d)[op](); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestStreamsAreSettledWhileTheyLive trims a pool, and makes a stream, while another stream is being destroyed.
func TestStreamsAreSettledWhileTheyLive(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	f.set("cuStreamDestroy_v2", int(cuda.ErrorUnknown))
	if err := d.DestroyStream(s); err == nil {
		t.Fatal("the stream is destroyed")
	}
	f.set("cuStreamDestroy_v2", 0)
	f.calls()
	if err := d.TrimPool(pool0, 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(f.calls(), "cuStreamSynchronize(0x5000)") {
		t.Error("a stream that could not be destroyed is not waited for")
	}

	f.set("linger", 1)
	live := f.live()
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
	for f.live() == live {
		select {
		case err := <-destroyed:
			t.Fatalf("the stream does not linger: %v", err)
		default:
			runtime.Gosched()
		}
	}
	f.calls()
	err = d.TrimPool(pool0, 0)
	calls := f.calls()
	again, two := d.NewStream()
	f.set("linger", 0)
	if err := errors.Join(err, two, <-destroyed); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(calls, "cuStreamSynchronize(0x5000)") {
		t.Error("a stream that is gone is waited for")
	}
	f.calls()
	if err := d.TrimPool(pool0, 0); err != nil {
		t.Fatal(err)
	}
	if again != s || !slices.Contains(f.calls(), "cuStreamSynchronize(0x5000)") {
		t.Errorf("stream %#x, with the handle of the one before, is not waited for", uintptr(again))
	}
	if err := d.DestroyStream(again); err != nil {
		t.Fatal(err)
	}
}
