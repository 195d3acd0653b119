package simdriver_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func peers(v driver.Device) driver.Peers { return v.(driver.Peers) }

func TestPeers(t *testing.T) {
	type env struct {
		d    *simdriver.Driver
		v, w driver.Device
		s    driver.Stream // stream of v
		m    driver.Mem    // memory of w
		f    driver.Function
	}
	write := func(t *testing.T, e env, p driver.Ptr) error {
		check(t, launch(e.v, e.s, e.f, unsafe.Pointer(&p)))
		return drain(t, e.v, e.s)
	}
	node := func(t *testing.T, e env, p driver.Ptr) error {
		g := graph(t, e.v)
		node(t, e.v, g, driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{
			Function: e.f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(&p)}}})
		check(t, graphs(e.v).LaunchGraph(e.s, instantiate(t, e.v, g)))
		return drain(t, e.v, e.s)
	}
	for _, c := range []struct {
		name  string
		apart bool
		do    func(t *testing.T, e env) error
		lost  bool
	}{
		{"a kernel without access", false, func(t *testing.T, e env) error { return write(t, e, e.m.Ptr) }, true},
		{"a kernel with access", false, func(t *testing.T, e env) error {
			check(t, peers(e.v).EnablePeer(e.w))
			check(t, peers(e.v).EnablePeer(e.w)) // enabling access again does nothing
			return write(t, e, e.m.Ptr)
		}, false},
		{"access is of one to the other only", false, func(t *testing.T, e env) error {
			check(t, peers(e.w).EnablePeer(e.v))
			return write(t, e, e.m.Ptr)
		}, true},
		{"a kernel in a graph", false, func(t *testing.T, e env) error {
			check(t, peers(e.v).EnablePeer(e.w))
			return node(t, e, e.m.Ptr)
		}, false},
		{"a kernel in a graph without access", false, func(t *testing.T, e env) error { return node(t, e, e.m.Ptr) }, true},
		{"copies and fills", true, func(t *testing.T, e env) error {
			a := alloc(t, e.v, driver.DeviceMem, 64)
			check(t, e.v.Copy(e.s, e.m.Ptr, a.Ptr, 64))
			check(t, e.v.Copy(e.s, a.Ptr, e.m.Ptr, 64))
			check(t, e.v.Fill(e.s, e.m.Ptr, 1, 1, 64))
			return drain(t, e.v, e.s)
		}, false},
		{"pinned memory that the other one made", true, func(t *testing.T, e env) error {
			return write(t, e, alloc(t, e.w, driver.HostMem, 64).Ptr)
		}, false},
		{"its own memory", true, func(t *testing.T, e env) error {
			check(t, peers(e.v).EnablePeer(e.v))
			return write(t, e, alloc(t, e.v, driver.DeviceMem, 64).Ptr)
		}, false},
		{"a pool that lets it in", false, func(t *testing.T, e env) error {
			p := pool(t, e.w, 0)
			check(t, pools(e.w).AccessPool(p, e.v, true))
			ws := stream(t, e.w)
			m := allocAsync(t, e.w, ws, p, 64)
			check(t, drain(t, e.w, ws))
			return write(t, e, m.Ptr)
		}, false},
		{"hardware without a link", true, func(t *testing.T, e env) error {
			refused(t, peers(e.v).EnablePeer(e.w), driver.ErrUnsupported, "enable peer", "no link")
			refused(t, pools(e.w).AccessPool(pool(t, e.w, 0), e.v, true), driver.ErrUnsupported, "access pool", "no link")
			host, err := pools(e.w).NewPool(driver.PoolDesc{Kind: driver.HostMem})
			check(t, err)
			return pools(e.w).AccessPool(host, e.v, true)
		}, false},
		{"the other one is closed and opened again", false, func(t *testing.T, e env) error {
			check(t, peers(e.v).EnablePeer(e.w))
			e.w.Close()
			refused(t, peers(e.v).EnablePeer(e.w), simdriver.ErrClosed, "device 1")
			must(e.d.Open(1))(t)
			return write(t, e, alloc(t, e.w, driver.DeviceMem, 64).Ptr)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, vs := open(t, simdriver.Config{Devices: 2, Apart: c.apart, Kernels: kernels(map[string]any{
				"write": func(g *simdriver.Grid, p driver.Ptr) {
					if b, err := simdriver.View[byte](g, p, 64); err == nil {
						clear(b)
					}
				},
			})})
			e := env{d: d, v: vs[0], w: vs[1], s: stream(t, vs[0]), m: alloc(t, vs[1], driver.DeviceMem, 64)}
			e.f = function(t, e.v, "write")
			err := c.do(t, e)
			if !c.lost {
				check(t, err)
				return
			}
			var access *simdriver.AccessError
			if !errors.Is(err, driver.ErrLost) || !errors.As(err, &access) {
				t.Fatalf("error %v, want a lost device's", err)
			}
			if access.Kernel != "write" || access.Size != 64 || !access.Apart || access.Base != access.Addr || access.Length != 64 ||
				!strings.Contains(err.Error(), "is on another device") {
				t.Errorf("%+v: %v", access, err)
			}
			if _, err := e.w.NewEvent(); err != nil {
				t.Errorf("the other device: %v", err)
			}
		})
	}
}

// TestPeersCalls checks that calls are counted, and that faults make them fail.
func TestPeersCalls(t *testing.T) {
	for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
		if !caps.Peers {
			t.Errorf("%+v", caps)
		}
		d, vs := open(t, simdriver.Config{Devices: 2, Caps: &caps})
		d.Inject(simdriver.Fault{Op: simdriver.OpEnablePeer, Device: 1, N: 1, OOM: true})
		check(t, peers(vs[0]).EnablePeer(vs[1]))
		refused(t, peers(vs[1]).EnablePeer(vs[0]), driver.ErrOutOfMemory)
		check(t, peers(vs[1]).EnablePeer(vs[0]))
		if n := d.Counters().Devices[1].Calls[simdriver.OpEnablePeer]; n != 2 {
			t.Errorf("%d calls", n)
		}
		other, _ := simdriver.New(simdriver.Config{}).Open(0)
		defer other.Close()
		refused(t, peers(vs[0]).EnablePeer(other), simdriver.ErrInvalidValue, "not a device of this driver")
		refused(t, peers(vs[0]).EnablePeer(nil), simdriver.ErrInvalidValue)
		check(t, d.LoseDevice(0, nil))
		refused(t, peers(vs[0]).EnablePeer(vs[1]), driver.ErrLost)
	}
	_, vs := open(t, simdriver.Config{Devices: 2, Caps: &driver.Caps{}})
	refused(t, peers(vs[0]).EnablePeer(vs[1]), driver.ErrUnsupported)
}

// TestCopyPeer copies between pools of two devices without access to each other.
func TestCopyPeer(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2, Apart: true})
	v, w := vs[0], vs[1]
	s, ws := stream(t, v), stream(t, w)
	a, b := allocAsync(t, v, s, must(pools(v).DefaultPool())(t), 64), allocAsync(t, w, ws, must(pools(w).DefaultPool())(t), 64)
	host := alloc(t, w, driver.HostMem, 64)
	check(t, v.Fill(s, a.Ptr, 1, 1, 64))
	check(t, drain(t, w, ws))
	before := d.Counters().Devices[0].Calls[simdriver.OpCopy]
	check(t, peers(v).CopyPeer(s, b.Ptr, w, a.Ptr, v, 64))
	check(t, peers(v).CopyPeer(s, host.Ptr, v, b.Ptr, w, 32)) // host memory counts as any device's
	check(t, peers(v).CopyPeer(s, a.Ptr, v, b.Ptr, w, 0))
	check(t, drain(t, v, s))
	if got := unsafe.Slice((*byte)(host.Host), 64); got[0] != 1 || got[31] != 1 || got[32] != 0 {
		t.Errorf("copied are %v", got)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpCopy] - before; n != 3 {
		t.Errorf("%d copies are counted", n)
	}
	other := must(simdriver.New(simdriver.Config{}).Open(0))(t)
	defer other.Close()
	for what, x := range map[string]struct {
		to, from driver.Device
		want     error
	}{
		"the wrong ones":    {v, w, simdriver.ErrInvalidValue},
		"the reader":        {w, w, simdriver.ErrInvalidValue},
		"the writer":        {v, v, simdriver.ErrInvalidValue},
		"nil":               {w, nil, simdriver.ErrInvalidValue},
		"of another driver": {other, v, simdriver.ErrInvalidValue},
	} {
		if err := peers(v).CopyPeer(s, b.Ptr, x.to, a.Ptr, x.from, 64); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.Inject(simdriver.Fault{Op: simdriver.OpCopy, Device: 0, N: 1, OOM: true})
	refused(t, peers(v).CopyPeer(s, b.Ptr, w, a.Ptr, v, 64), driver.ErrOutOfMemory, "copy")

	check(t, v.Copy(s, b.Ptr, a.Ptr, 64))
	var access *simdriver.AccessError
	if err := drain(t, v, s); !errors.Is(err, driver.ErrLost) || !errors.As(err, &access) || !access.Barred {
		t.Errorf("Copy: %v", err)
	}
	_, us := open(t, simdriver.Config{Devices: 2})
	us[1].Close()
	refused(t, peers(us[0]).CopyPeer(stream(t, us[0]), 8, us[0], 8, us[1], 8), simdriver.ErrClosed, "device 1")
	_, us = open(t, simdriver.Config{Devices: 2, Caps: &driver.Caps{}})
	refused(t, peers(us[0]).CopyPeer(stream(t, us[0]), 8, us[0], 8, us[1], 8), driver.ErrUnsupported)
}
