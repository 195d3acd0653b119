//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPools(t *testing.T) {
	for _, release := range []dl.Version{hip62, hip64, hip70, hip71} {
		t.Run(hip.FormatVersion(release), func(t *testing.T) { testFakePools(t, newFake(t, release)) })
	}
}

func testFakePools(t *testing.T, f *fake) {
	d := f.device(WithPools())
	if caps := d.Caps(); !caps.Pools || !caps.PoolsByStream || caps.HostPools {
		t.Fatalf("%+v", caps)
	}
	// A pool takes no notice of events, whoever made it.
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
	f.want("hipDeviceGetDefaultMemPool(0)", "hipMemPoolSetAttribute(0xb000, 1, 0)", "hipDeviceSetMemPool(0, 0xb020)",
		"hipDeviceGetMemPool(0)", "hipMemPoolSetAttribute(0xb020, 1, 0)", "hipDeviceSetMemPool(0, 0xb000)")
	p, err = d.NewPool(driver.PoolDesc{Kind: driver.DeviceMem, MaxSize: 100})
	if ok(t, err); p != pool1 {
		t.Errorf("pool %#x", p)
	}
	f.want("hipMemPoolCreate(1, 0, 1 0, (nil), 100)", "hipMemPoolSetAttribute(0xb020, 1, 0)")

	m, err := d.AllocAsync(stream0, p, 64)
	if ok(t, err); m.Kind != driver.DeviceMem || m.Ptr == 0 || m.Host != nil || m.Size != 64 {
		t.Errorf("%+v", m)
	}
	if none, err := d.AllocAsync(stream0, p, 64); !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, driver.ErrLost) || none != (driver.Mem{}) {
		t.Errorf("beyond the limit: %+v, %v", none, err)
	}
	ok(t, d.FreeAsync(stream0, m))
	ok(t, d.TrimPool(p, 1<<20))
	f.want("hipMallocFromPoolAsync(64, 0xb020, 0x5000)", "hipMallocFromPoolAsync(64, 0xb020, 0x5000)", "hipFreeAsync(0x5000)", "hipMemPoolTrimTo(0xb020, 1048576)")

	// A pool is destroyed empty, while no stream has work.
	s, err := d.NewStream()
	ok(t, err)
	f.calls()
	f.set("hipStreamQuery", int(hip.ErrorNotReady))
	if err := d.DestroyPool(p); !errors.Is(err, driver.ErrBusy) || f.last() != 0 {
		t.Errorf("while a stream has work: %v; the thread remembers %d", err, f.last())
	}
	f.want("hipStreamQuery(0x5000)")
	f.set("hipStreamQuery", int(hip.ErrorIllegalAddress))
	if err := d.DestroyPool(p); !errors.Is(err, driver.ErrLost) || f.last() != 0 {
		t.Errorf("on a device that is lost: %v; the thread remembers %d", err, f.last())
	}
	f.set("hipStreamQuery", 0)
	f.calls()
	ok(t, d.DestroyPool(p))
	f.want("hipStreamQuery(0x5000)", "hipMemPoolTrimTo(0xb020, 0)", "hipMemPoolDestroy(0xb020)")
	// One that is being captured is not asked, and no pool is destroyed meanwhile.
	ok(t, d.BeginCapture(s))
	f.calls()
	if err := d.DestroyPool(p); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("while a stream is captured: %v", err)
	}
	f.want("")
	f.set("hipStreamEndCapture", int(hip.ErrorStreamCaptureInvalidated))
	if _, err := d.EndCapture(s); err == nil {
		t.Error("a spoilt capture ends well")
	}
	f.set("hipStreamBeginCapture", int(hip.ErrorStreamCaptureUnsupported))
	if err := d.BeginCapture(s); err == nil {
		t.Error("the stream is captured")
	}
	f.set("hipStreamEndCapture", 0)
	f.set("hipStreamBeginCapture", 0)
	f.calls()
	ok(t, d.DestroyPool(p))
	f.want("hipStreamQuery(0x5000)", "hipMemPoolTrimTo(0xb020, 0)", "hipMemPoolDestroy(0xb020)")
	// A stream that could not be destroyed still counts, and one that was does not.
	f.set("hipStreamDestroy", int(hip.ErrorUnknown))
	if err := d.DestroyStream(s); err == nil {
		t.Error("the stream is destroyed")
	}
	f.set("hipStreamDestroy", 0)
	f.calls()
	if err := d.DestroyPool(pool0); !errors.Is(err, hip.ErrorInvalidValue) {
		t.Errorf("destroying the default pool: %v", err)
	}
	f.want("hipStreamQuery(0x5000)", "hipMemPoolTrimTo(0xb000, 0)", "hipMemPoolDestroy(0xb000)")
	ok(t, d.DestroyStream(s))
	f.calls()
	ok(t, d.DestroyPool(pool1))
	f.want("hipMemPoolTrimTo(0xb020, 0)", "hipMemPoolDestroy(0xb020)")
}

func TestPoolAttrs(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device(WithPools())
	for attr, value := range map[driver.PoolAttr]uint64{
		driver.PoolReuseOpportunistic: 0, driver.PoolReuseInternal: 1, driver.PoolThreshold: math.MaxUint64,
	} {
		ok(t, d.SetPoolAttr(pool1, attr, 1))
		ok(t, d.SetPoolAttr(pool1, attr, value))
		got, err := d.PoolAttr(pool1, attr)
		if ok(t, err); got != value {
			t.Errorf("attribute %d is %d, want %d", attr, got, value)
		}
	}
	f.calls()
	ok(t, d.SetPoolAttr(pool1, driver.PoolReuseEvents, 0))
	ok(t, d.SetPoolAttr(pool1, driver.PoolThreshold, 1<<40))
	ok(t, d.SetPoolAttr(pool1, driver.PoolReservedHigh, 0))
	for attr := driver.PoolReuseEvents; attr <= driver.PoolUsedHigh; attr++ {
		_, err := d.PoolAttr(pool1, attr)
		ok(t, err)
	}
	f.want("hipMemPoolSetAttribute(0xb020, 1, 0)", "hipMemPoolSetAttribute(0xb020, 4, 1099511627776)", "hipMemPoolSetAttribute(0xb020, 6, 0)",
		"hipMemPoolGetAttribute(0xb020, 1)", "hipMemPoolGetAttribute(0xb020, 2)", "hipMemPoolGetAttribute(0xb020, 3)", "hipMemPoolGetAttribute(0xb020, 4)",
		"hipMemPoolGetAttribute(0xb020, 5)", "hipMemPoolGetAttribute(0xb020, 6)", "hipMemPoolGetAttribute(0xb020, 5)",
		"hipMemPoolGetAttribute(0xb020, 7)", "hipMemPoolGetAttribute(0xb020, 8)", "hipMemPoolGetAttribute(0xb020, 7)")

	// The most that there was is no less than what there is, though HIP says so after a reset.
	m, err := d.AllocAsync(stream0, pool1, 64)
	ok(t, err)
	ok(t, d.SetPoolAttr(pool1, driver.PoolUsedHigh, 0))
	if most, err := d.PoolAttr(pool1, driver.PoolUsedHigh); most != 64 || err != nil {
		t.Errorf("%d bytes were in use at most, %v", most, err)
	}
	ok(t, d.FreeAsync(stream0, m))

	for name, c := range map[string]struct {
		err, want error
		says      string
	}{
		"events":          {d.SetPoolAttr(pool1, driver.PoolReuseEvents, 1), driver.ErrUnsupported, "hipMemPoolReuseFollowEventDependencies of pool 0xb020 to 1: HIP gives out memory too early then"},
		"reserved":        {d.SetPoolAttr(pool1, driver.PoolReserved, 0), hip.ErrorInvalidValue, "hipMemPoolAttrReservedMemCurrent of pool 0xb020 to 0"},
		"half a switch":   {d.SetPoolAttr(pool1, driver.PoolReuseEvents, 1<<32), hip.ErrorInvalidValue, "a switch is 0 or 1"},
		"none to set":     {d.SetPoolAttr(pool1, driver.PoolUsedHigh+1, 0), hip.ErrorInvalidValue, "no attribute 8"},
		"negative to set": {d.SetPoolAttr(pool1, -1, 0), hip.ErrorInvalidValue, "no attribute -1"},
		"none":            {func() error { _, err := d.PoolAttr(pool1, driver.PoolUsedHigh+1); return err }(), hip.ErrorInvalidValue, "no attribute 8"},
		"negative":        {func() error { _, err := d.PoolAttr(pool1, -1); return err }(), hip.ErrorInvalidValue, "no attribute -1"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestAccessPool(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := newFake(t, hip64)
	drv := f.driver(WithPools())
	var devs [2]*device
	for i := range devs {
		d, err := drv.Open(i)
		ok(t, err)
		defer d.Close()
		devs[i] = d.(*device)
	}
	d, other := devs[0], devs[1]
	ok(t, d.Bind())
	f.calls()
	ok(t, d.AccessPool(pool0, other, true))
	ok(t, d.AccessPool(pool0, d, true))
	f.want("hipDeviceCanAccessPeer(1, 0)", "hipMemPoolSetAccess(0xb000, 1 1 3, 1)", "hipMemPoolSetAccess(0xb000, 1 0 3, 1)")
	// What a release cannot take back it calls an invalid device.
	if err := d.AccessPool(pool0, other, false); !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err, hip.ErrorInvalidDevice) || f.last() != 0 {
		t.Errorf("access that is taken back: %v; the thread remembers %d", err, f.last())
	}
	if err := d.AccessPool(pool0, d, false); !errors.Is(err, hip.ErrorInvalidDevice) || errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the owner's access: %v", err)
	}
	f.set("revokes", 1)
	f.calls()
	ok(t, d.AccessPool(pool0, other, false))
	f.want("hipDeviceCanAccessPeer(1, 0)", "hipMemPoolSetAccess(0xb000, 1 1 0, 1)")
	f.set("apart", 1)
	if err := d.AccessPool(pool0, other, true); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "the hardware has no way") {
		t.Errorf("without a way: %v", err)
	}
	for _, by := range []driver.Device{struct{ driver.Device }{other}, nil} {
		if err := d.AccessPool(pool0, by, true); !errors.Is(err, hip.ErrorInvalidDevice) {
			t.Errorf("%T: %v", by, err)
		}
	}
}

func TestPoolErrors(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device(WithPools())
	newPool := func(k driver.MemKind) error { _, err := d.NewPool(driver.PoolDesc{Kind: k}); return err }
	for name, c := range map[string]struct {
		err, want error
		says      string
	}{
		"stream 0 to allocate": {func() error { _, err := d.AllocAsync(0, pool0, 1); return err }(), hip.ErrorInvalidHandle, "stream 0x0"},
		"stream 2 to free":     {d.FreeAsync(2, driver.Mem{}), hip.ErrorInvalidHandle, "stream 0x2"},
		"a shared pool":        {func() error { _, err := d.NewPool(driver.PoolDesc{Shareable: true}); return err }(), driver.ErrUnsupported, "a pool that processes share"},
		"managed pool":         {newPool(driver.ManagedMem), driver.ErrUnsupported, "a pool of host or managed memory"},
		"pool of no kind":      {newPool(7), hip.ErrorInvalidValue, "kind of memory 7"},
		"pool of the host's":   {newPool(driver.HostMem), driver.ErrUnsupported, "a pool of host or managed memory, which no release of HIP has"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if calls := f.calls(); calls[0] != "" {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
	// Without an answer about pools the device is of no use.
	drv := f.driver(WithPools())
	f.set("hipDeviceGetAttribute", int(hip.ErrorOutOfMemory))
	if dev, err := drv.Open(0); dev != nil || !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "hipDeviceAttributeMemoryPoolsSupported") {
		t.Errorf("%v, %v", dev, err)
	}
}

// TestNoPools has libraries and devices without pools, and nobody who asks for them. No operation makes a native call then.
func TestNoPools(t *testing.T) {
	withPools := []Option{WithPools()}
	for says, c := range map[string]struct {
		release dl.Version
		without []string
		zero    bool
		opts    []Option
	}{
		": memory pools: hipdriver.WithPools did not ask for them":                                  {hip64, nil, false, nil},
		": memory pools: the HIP runtime is of version 5.2, and pools are used from 6.2 on: ":       {hip52, nil, false, withPools},
		": memory pools: the HIP runtime is of version 6.1.40091, and pools are used from 6.2 on: ": {hip61, nil, false, withPools},
		": memory pools: the HIP runtime, version 6.4.43484, lacks hipMemPoolTrimTo: ":              {hip64, []string{"hipMemPoolTrimTo"}, false, withPools},
		": memory pools: hipDeviceAttributeMemoryPoolsSupported is 0: ":                             {hip64, nil, true, withPools},
	} {
		f := newFake(t, c.release, c.without...)
		if c.zero {
			f.set("attr 88", 1)
		}
		d := f.device(c.opts...)
		if caps := d.Caps(); caps.Pools || caps.PoolsByStream || caps.HostPools {
			t.Errorf("%+v", caps)
		}
		calls := all(d)
		f.calls()
		for op := range poolOps {
			err := calls[op]()
			e, is := err.(*driver.Error)
			if !is || e.Op != op || e.Lost || e.OOM || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v; want %s", op, err, says)
			}
		}
		if calls := f.calls(); !slices.Equal(calls, []string{""}) {
			t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
		}
	}
}
