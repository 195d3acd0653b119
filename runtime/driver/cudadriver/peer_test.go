//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestPeersOnce checks that a device asks the driver only once for access to an open device.
func TestPeersOnce(t *testing.T) {
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
	ok(t, devs[1].Bind())
	f.Calls()
	ask := []string{"cuDeviceCanAccessPeer(41, 40)", "cuCtxEnablePeerAccess(0xc0, 0)"}
	ok(t, devs[1].EnablePeer(devs[0]))
	f.Want(ask...)
	ok(t, devs[1].EnablePeer(devs[0])) // access is enabled already
	f.Want("")
	again, err := drv.Open(0) // a device that is opened again may have another context
	ok(t, err)
	defer again.Close()
	f.Calls()
	ok(t, devs[1].EnablePeer(again))
	f.Want(ask...) // cuCtxEnablePeerAccess returns that access is enabled already
}

// TestPeersUntouched checks that the calling thread keeps its context.
func TestPeersUntouched(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	o, err := f.driver().Open(1)
	ok(t, err)
	defer o.Close()
	before := f.stack()
	if err := d.EnablePeer(o); err == nil { // the device is from another library object, although from the same file
		t.Error("a device of another library is accepted")
	}
	two := &device{lib: d.lib, id: d.id + 1, ctx: context0 + 1} // the device is from the same library object
	ok(t, d.EnablePeer(two))
	if f.stack() != before {
		t.Errorf("contexts %#x, want %#x", f.stack(), before)
	}
}

// TestAccessPoolApart gives a device access to another device's pools. A pool of device memory
// needs a link between the devices. A host pool does not.
func TestAccessPoolApart(t *testing.T) {
	runtime.LockOSThread() // the context is current on this thread
	defer runtime.UnlockOSThread()
	f := newFake(t, 13000)
	drv := f.driver()
	open, err := drv.Open(0)
	ok(t, err)
	defer open.Close()
	other, err := drv.Open(1)
	ok(t, err)
	defer other.Close()
	ok(t, open.Bind())
	d := open.(*device)
	host, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem})
	ok(t, err)
	for _, c := range []struct {
		apart int
		code  cuda.Result
		pool  driver.Pool
		want  error
		asked bool
	}{
		{1, 0, pool0, driver.ErrUnsupported, false},
		{0, cuda.ErrorPeerAccessUnsupported, pool0, driver.ErrUnsupported, true},
		{0, cuda.ErrorInvalidDevice, pool0, cuda.ErrorInvalidDevice, true},
		{0, cuda.ErrorIllegalAddress, pool0, driver.ErrLost, true},
		{1, cuda.ErrorInvalidValue, host, cuda.ErrorInvalidValue, true},
		{1, 0, host, nil, true},
	} {
		f.Set("apart", c.apart)
		f.Set("cuMemPoolSetAccess", int(c.code))
		f.Calls()
		err := d.AccessPool(c.pool, other, true)
		asked := slices.ContainsFunc(f.Calls(), func(call string) bool { return strings.HasPrefix(call, "cuMemPoolSetAccess") })
		if !errors.Is(err, c.want) || asked != c.asked || errors.Is(err, driver.ErrUnsupported) != (c.want == driver.ErrUnsupported) {
			t.Errorf("%+v: asked is %v, %v", c, asked, err)
		}
	}
}

// TestCopyPeer copies between pools of two devices without access to each other. With Copy the
// driver would fail or crash.
func TestCopyPeer(t *testing.T) {
	runtime.LockOSThread() // the context is current on this thread
	defer runtime.UnlockOSThread()
	f := newFake(t, 13000)
	drv := f.driver()
	var devs [2]*device
	var mem [2]driver.Mem
	for i := range devs {
		open, err := drv.Open(i)
		ok(t, err)
		devs[i] = open.(*device)
		ok(t, devs[i].Bind())
		s, err := devs[i].NewStream()
		ok(t, err)
		p, err := devs[i].DefaultPool()
		ok(t, err)
		mem[i], err = devs[i].AllocAsync(s, p, 64)
		ok(t, err)
		ok(t, devs[i].Fill(s, mem[i].Ptr, uint32(i+1), 1, 64))
	}
	host, err := devs[0].Alloc(driver.HostMem, 64)
	ok(t, err)
	if err := devs[0].Copy(stream0, mem[1].Ptr, mem[0].Ptr, 64); !errors.Is(err, cuda.ErrorInvalidValue) {
		t.Errorf("Copy: %v", err)
	}
	f.Calls()
	ok(t, devs[0].CopyPeer(stream0, mem[1].Ptr, devs[1], mem[0].Ptr, devs[0], 32))
	ok(t, devs[0].CopyPeer(stream0, host.Ptr, devs[0], mem[1].Ptr, devs[1], 64))
	ok(t, devs[0].CopyPeer(stream0, 0, devs[0], 0, devs[1], 0))
	f.Want("cuMemcpyPeerAsync(0xc1, 0xc0, 32, 0x5000)", "cuMemcpyPeerAsync(0xc0, 0xc1, 64, 0x5000)")
	if w := words(host); w[7] != 0x01010101 || w[8] != 0x02020202 {
		t.Errorf("%x", w)
	}
	other, err := newFake(t, 13000).driver().Open(0)
	ok(t, err)
	for what, d := range map[string]driver.Device{"nothing": nil, "of another driver": other} {
		if err := devs[0].CopyPeer(stream0, mem[0].Ptr, devs[0], mem[1].Ptr, d, 64); !errors.Is(err, cuda.ErrorInvalidDevice) {
			t.Errorf("from %s: %v", what, err)
		}
		if err := devs[0].CopyPeer(stream0, mem[0].Ptr, d, mem[1].Ptr, devs[1], 64); !errors.Is(err, cuda.ErrorInvalidDevice) {
			t.Errorf("to %s: %v", what, err)
		}
	}
	ok(t, other.Close())
	ok(t, devs[1].Close())
	f.Calls()
	if err := devs[0].CopyPeer(stream0, mem[0].Ptr, devs[0], mem[1].Ptr, devs[1], 64); !errors.Is(err, cuda.ErrorInvalidContext) || errors.Is(err, driver.ErrLost) {
		t.Errorf("from a closed device: %v", err)
	}
	if err := devs[0].EnablePeer(devs[1]); !errors.Is(err, cuda.ErrorInvalidContext) || errors.Is(err, driver.ErrLost) {
		t.Errorf("access to a closed device: %v", err)
	}
	f.Want("")
	ok(t, devs[0].Close())
}

// TestOtherCurrent copies to and from a pool's memory on a thread where another device is current.
// That device has no access to the pool. It must stay current.
func TestOtherCurrent(t *testing.T) {
	for _, hostPools := range []bool{false, true} {
		runtime.LockOSThread() // the context is current on this thread
		f := newFake(t, 13000)
		drv := f.driver()
		one, err := drv.Open(0)
		ok(t, err)
		ok(t, one.Bind())
		d := one.(*device)
		if hostPools { // with a host pool, uploads and downloads use another function
			_, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem})
			ok(t, err)
		}
		s, err := d.NewStream()
		ok(t, err)
		pool, err := d.DefaultPool()
		ok(t, err)
		mem, err := d.AllocAsync(s, pool, 128)
		ok(t, err)
		host, err := d.Alloc(driver.HostMem, 64)
		ok(t, err)
		two, err := drv.Open(1)
		ok(t, err)
		ok(t, two.Bind()) // now device 1 is current on this thread
		before := f.stack()
		for i := range words(host) {
			words(host)[i] = 0x01020304
		}
		f.Calls()
		ok(t, d.Upload(s, mem.Ptr, host.Host, 64))
		ok(t, d.Copy(s, mem.Ptr+64, mem.Ptr, 64))
		clear(words(host))
		ok(t, d.Download(s, host.Host, mem.Ptr+64, 64))
		if w := words(host); w[0] != 0x01020304 || w[15] != 0x01020304 {
			t.Errorf("%x", w)
		}
		if n := len(slices.DeleteFunc(f.Calls(), func(call string) bool { return !strings.HasPrefix(call, "cuMemcpy") })); n != 6 {
			t.Errorf("%d copies, want three that are refused and three that are not", n)
		}
		if f.stack() != before {
			t.Errorf("contexts %#x, want %#x", f.stack(), before)
		}
		ok(t, two.Bind())
		ok(t, two.Close())
		ok(t, one.Bind())
		ok(t, one.Close())
		runtime.UnlockOSThread()
	}
}
