//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDestroyPool checks on each release that DestroyPool empties a pool first, and refuses while a
// stream has work.
func TestDestroyPool(t *testing.T) {
	for _, release := range []dl.Version{hip62, hip64, hip70, hip71} {
		t.Run(hip.FormatVersion(release), func(t *testing.T) { testDestroyPool(t, newFake(t, release)) })
	}
}

func testDestroyPool(t *testing.T, f *fake) {
	d := f.device(WithPools())
	if caps := d.Caps(); !caps.Pools || !caps.PoolsByStream || caps.HostPools {
		t.Fatalf("%+v", caps)
	}
	p, err := d.NewPool(driver.PoolDesc{Kind: driver.DeviceMem, MaxSize: 100})
	if ok(t, err); p != pool1 {
		t.Errorf("pool %#x", p)
	}
	s, err := d.NewStream()
	ok(t, err)
	f.Calls()
	f.Set("hipStreamQuery", int(hip.ErrorNotReady))
	if err := d.DestroyPool(p); !errors.Is(err, driver.ErrBusy) || f.last() != 0 {
		t.Errorf("while a stream has work: %v; the thread's last error is %d", err, f.last())
	}
	f.Want("hipStreamQuery(0x5000)")
	f.Set("hipStreamQuery", int(hip.ErrorIllegalAddress))
	if err := d.DestroyPool(p); !errors.Is(err, driver.ErrLost) || f.last() != 0 {
		t.Errorf("on a lost device: %v; the thread's last error is %d", err, f.last())
	}
	// No stream has work, so the pool is emptied and destroyed.
	f.Set("hipStreamQuery", 0)
	f.Calls()
	ok(t, d.DestroyPool(p))
	f.Want("hipStreamQuery(0x5000)", "hipMemPoolTrimTo(0xb020, 0)", "hipMemPoolDestroy(0xb020)")
	// A stream that is being captured is not queried, and DestroyPool refuses.
	ok(t, d.BeginCapture(s))
	f.Calls()
	if err := d.DestroyPool(p); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("while a stream is captured: %v", err)
	}
	f.Want("")
	f.Set("hipStreamEndCapture", int(hip.ErrorStreamCaptureInvalidated))
	if _, err := d.EndCapture(s); err == nil {
		t.Error("the end of an invalidated capture returns no error")
	}
	f.Set("hipStreamBeginCapture", int(hip.ErrorStreamCaptureUnsupported))
	if err := d.BeginCapture(s); err == nil {
		t.Error("the stream is captured")
	}
	f.Set("hipStreamEndCapture", 0)
	f.Set("hipStreamBeginCapture", 0)
	f.Calls()
	ok(t, d.DestroyPool(p))
	f.Want("hipStreamQuery(0x5000)", "hipMemPoolTrimTo(0xb020, 0)", "hipMemPoolDestroy(0xb020)")
	// A stream that could not be destroyed is still queried. A destroyed stream is not.
	f.Set("hipStreamDestroy", int(hip.ErrorUnknown))
	if err := d.DestroyStream(s); err == nil {
		t.Error("the stream is destroyed")
	}
	f.Set("hipStreamDestroy", 0)
	f.Calls()
	if err := d.DestroyPool(pool0); !errors.Is(err, hip.ErrorInvalidValue) {
		t.Errorf("destroying the default pool: %v", err)
	}
	f.Want("hipStreamQuery(0x5000)", "hipMemPoolTrimTo(0xb000, 0)", "hipMemPoolDestroy(0xb000)")
	ok(t, d.DestroyStream(s))
	f.Calls()
	ok(t, d.DestroyPool(pool1))
	f.Want("hipMemPoolTrimTo(0xb020, 0)", "hipMemPoolDestroy(0xb020)")
}

// TestPoolLimits tests pool attributes for which HIP returns wrong values.
func TestPoolLimits(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device(WithPools())
	// After a reset HIP returns a maximum below the current value.
	m, err := d.AllocAsync(stream0, pool1, 64)
	ok(t, err)
	ok(t, d.SetPoolAttr(pool1, driver.PoolUsedHigh, 0))
	if most, err := d.PoolAttr(pool1, driver.PoolUsedHigh); most != 64 || err != nil {
		t.Errorf("%d bytes were in use at most, %v", most, err)
	}
	ok(t, d.FreeAsync(stream0, m))

	if err := d.SetPoolAttr(pool1, driver.PoolReuseEvents, 1); !errors.Is(err, driver.ErrUnsupported) ||
		!strings.Contains(err.Error(), "hipMemPoolReuseFollowEventDependencies of pool 0xb020 to 1: HIP would reuse memory too early") {
		t.Errorf("events: %v", err)
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
	f.Calls()
	ok(t, d.AccessPool(pool0, other, true))
	ok(t, d.AccessPool(pool0, d, true))
	f.Want("hipDeviceCanAccessPeer(1, 0)", "hipMemPoolSetAccess(0xb000, 1 1 3, 1)", "hipMemPoolSetAccess(0xb000, 1 0 3, 1)")
	// Releases that cannot revoke access return "invalid device".
	if err := d.AccessPool(pool0, other, false); !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err, hip.ErrorInvalidDevice) || f.last() != 0 {
		t.Errorf("revoked access: %v; the thread's last error is %d", err, f.last())
	}
	if err := d.AccessPool(pool0, d, false); !errors.Is(err, hip.ErrorInvalidDevice) || errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the owner's access: %v", err)
	}
	f.Set("revokes", 1)
	f.Calls()
	ok(t, d.AccessPool(pool0, other, false))
	f.Want("hipDeviceCanAccessPeer(1, 0)", "hipMemPoolSetAccess(0xb000, 1 1 0, 1)")
	f.Set("apart", 1)
	if err := d.AccessPool(pool0, other, true); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "the hardware has no link") {
		t.Errorf("without a link: %v", err)
	}
	for _, by := range []driver.Device{struct{ driver.Device }{other}, nil} {
		if err := d.AccessPool(pool0, by, true); !errors.Is(err, hip.ErrorInvalidDevice) {
			t.Errorf("%T: %v", by, err)
		}
	}
}

func TestPoolsUnanswered(t *testing.T) {
	f := newFake(t, hip64)
	// If the query about pools fails, Open fails.
	drv := f.driver(WithPools())
	f.Set("hipDeviceGetAttribute", int(hip.ErrorOutOfMemory))
	if dev, err := drv.Open(0); dev != nil || !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "hipDeviceAttributeMemoryPoolsSupported") {
		t.Errorf("%v, %v", dev, err)
	}
}

// TestNoPools tests libraries and devices without pools, and a driver without WithPools. Operations
// on pools make no call of the library.
func TestNoPools(t *testing.T) {
	withPools := []Option{WithPools()}
	for says, c := range map[string]struct {
		release dl.Version
		without []string
		zero    bool
		opts    []Option
	}{
		": memory pools: hipdriver.WithPools did not ask for them":                     {hip64, nil, false, nil},
		": memory pools: the HIP runtime has version 5.2, and pools need 6.2: ":        {hip52, nil, false, withPools},
		": memory pools: the HIP runtime has version 6.1.40091, and pools need 6.2: ":  {hip61, nil, false, withPools},
		": memory pools: the HIP runtime, version 6.4.43484, lacks hipMemPoolTrimTo: ": {hip64, []string{"hipMemPoolTrimTo"}, false, withPools},
		": memory pools: hipDeviceAttributeMemoryPoolsSupported is 0: ":                {hip64, nil, true, withPools},
	} {
		f := newFake(t, c.release, c.without...)
		if c.zero {
			f.Set("attr 88", 1)
		}
		d := f.device(c.opts...)
		if caps := d.Caps(); caps.Pools || caps.PoolsByStream || caps.HostPools {
			t.Errorf("%+v", caps)
		}
		suite.Unsupported(t, f, d, drivertest.PoolOps, says)
	}
}
