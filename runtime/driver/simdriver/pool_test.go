package simdriver_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func pools(v driver.Device) driver.Pools { return v.(driver.Pools) }

// pool makes a pool of device memory.
func pool(t testing.TB, v driver.Device, limit uint64) driver.Pool {
	t.Helper()
	return must(pools(v).NewPool(driver.PoolDesc{MaxSize: limit}))(t)
}

func allocAsync(t testing.TB, v driver.Device, s driver.Stream, p driver.Pool, n uint64) driver.Mem {
	t.Helper()
	return must(pools(v).AllocAsync(s, p, n))(t)
}

// attr reads a property of a pool.
func attr(t testing.TB, v driver.Device, p driver.Pool, a driver.PoolAttr) uint64 {
	t.Helper()
	return must(pools(v).PoolAttr(p, a))(t)
}

// books ends the test unless the pool's properties have the given values.
func books(t testing.TB, v driver.Device, p driver.Pool, reserved, reservedHigh, used, usedHigh uint64) {
	t.Helper()
	for i, want := range []uint64{reserved, reservedHigh, used, usedHigh} {
		if got := attr(t, v, p, driver.PoolReserved+driver.PoolAttr(i)); got != want {
			t.Fatalf("property %d is %d, want %d", driver.PoolReserved+driver.PoolAttr(i), got, want)
		}
	}
}

const kib = 1 << 10

func TestPool(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, p := stream(t, v), pool(t, v, 0)
	check(t, d.StallStream(s))
	m := allocAsync(t, v, s, p, 1000)
	if m.Kind != driver.DeviceMem || m.Host != nil || m.Size != 1000 || m.Ptr == 0 || m.Ptr%256 != 0 {
		t.Errorf("memory %+v", m)
	}
	check(t, v.Fill(s, m.Ptr, 'a', 1, 1000))
	got := make([]byte, 1000)
	check(t, v.Download(s, unsafe.Pointer(&got[0]), m.Ptr, 1000))
	check(t, pools(v).FreeAsync(s, m))
	check(t, d.ResumeStream(s))
	check(t, drain(t, v, s))
	if got[0] != 'a' || got[999] != 'a' {
		t.Errorf("memory has %q", got[:10])
	}
	// The contents of reused memory are undefined.
	again := allocAsync(t, v, s, p, 1000)
	if again.Ptr != m.Ptr {
		t.Errorf("at %#x, not at %#x again", again.Ptr, m.Ptr)
	}
	check(t, v.Download(s, unsafe.Pointer(&got[0]), m.Ptr, 1000))
	check(t, drain(t, v, s))
	if got[0] == 'a' || got[999] == 'a' {
		t.Error("the memory is as it was before the free")
	}
	check(t, pools(v).FreeAsync(s, again))
	check(t, pools(v).DestroyPool(p))
}

// TestPoolViolations tests accesses to a pool's memory at the wrong time or by the wrong device.
// Each access loses the device.
func TestPoolViolations(t *testing.T) {
	type env struct {
		d    *simdriver.Driver
		v, w driver.Device
		s, o driver.Stream // streams of v
		ws   driver.Stream // stream of w
		p    driver.Pool
		m    driver.Mem // 600 bytes, allocated in s
		f    driver.Function
	}
	run := func(t *testing.T, e env) {
		check(t, e.d.ResumeStream(e.s))
		check(t, drain(t, e.v, e.s))
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, e env) error
		want simdriver.AccessError // Addr is relative to m
		held bool                  // call do before s executes anything
		say  string
	}{
		{"too long", func(t *testing.T, e env) error { return e.v.Fill(e.s, e.m.Ptr+500, 0, 1, 101) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 500, Size: 101, Length: 600}, false, "only 100 bytes remain"},
		{"behind", func(t *testing.T, e env) error { return e.v.Fill(e.s, e.m.Ptr+602, 0, 1, 1) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 602, Size: 1, Length: 600}, false, "2 bytes after the end"},
		{"behind the segment", func(t *testing.T, e env) error { return e.v.Fill(e.s, e.m.Ptr+65*kib, 0, 1, 1) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 65 * kib, Size: 1, Length: 600}, false, "65960 bytes after the end"},
		{"free, then fill", func(t *testing.T, e env) error {
			check(t, pools(e.v).FreeAsync(e.s, e.m))
			return e.v.Fill(e.s, e.m.Ptr+100, 0, 4, 1)
		}, simdriver.AccessError{Op: simdriver.OpFill, Addr: 100, Size: 4, Length: 600, Freed: true}, false, "was freed"},
		{"free, fill in another stream", func(t *testing.T, e env) error {
			check(t, pools(e.v).FreeAsync(e.s, e.m))
			check(t, e.v.StreamWait(e.o, record(t, e.v, e.s)))
			return e.v.Fill(e.o, e.m.Ptr, 0, 4, 1)
		}, simdriver.AccessError{Op: simdriver.OpFill, Size: 4, Length: 600, Freed: true}, false, "was freed"},
		{"free, allocate less, read after it", func(t *testing.T, e env) error {
			check(t, pools(e.v).FreeAsync(e.s, e.m))
			allocAsync(t, e.v, e.s, e.p, 512)
			return e.v.Copy(e.s, e.m.Ptr, e.m.Ptr+512, 8)
		}, simdriver.AccessError{Op: simdriver.OpCopy, Addr: 512, Size: 8, Length: 600, Freed: true}, false, "was freed"},
		{"free, trim, view", func(t *testing.T, e env) error {
			check(t, pools(e.v).FreeAsync(e.s, e.m))
			run(t, e)
			check(t, pools(e.v).TrimPool(e.p, 0))
			return launch(e.v, e.s, e.f, unsafe.Pointer(&e.m.Ptr))
		}, simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Size: 4, Length: 64 * kib, Freed: true}, false, "was freed"},
		{"view in a stream that does not wait", func(t *testing.T, e env) error {
			m := allocAsync(t, e.v, e.s, e.p, 700)
			return launch(e.v, e.o, e.f, unsafe.Pointer(&m.Ptr))
		}, simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Addr: 1024, Size: 4, Length: 700, Early: true}, true, "is not made yet"},
		{"free in a stream that does not wait", func(t *testing.T, e env) error {
			m := allocAsync(t, e.v, e.s, e.p, 700)
			return pools(e.v).FreeAsync(e.o, m)
		}, simdriver.AccessError{Op: simdriver.OpFreeAsync, Addr: 1024, Size: 700, Length: 700, Early: true}, true, "free async on stream"},
		{"another device", func(t *testing.T, e env) error {
			run(t, e)
			return e.w.Fill(e.ws, e.m.Ptr, 0, 4, 1)
		}, simdriver.AccessError{Op: simdriver.OpFill, Device: 1, Size: 4, Length: 600, Barred: true}, false, "no access"},
		{"another device that may no longer", func(t *testing.T, e env) error {
			run(t, e)
			check(t, pools(e.v).AccessPool(e.p, e.w, true))
			check(t, e.w.Fill(e.ws, e.m.Ptr, 0, 4, 1))
			check(t, drain(t, e.w, e.ws))
			check(t, pools(e.v).AccessPool(e.p, e.w, false))
			return e.w.Fill(e.ws, e.m.Ptr+4, 0, 4, 1)
		}, simdriver.AccessError{Op: simdriver.OpFill, Device: 1, Addr: 4, Size: 4, Length: 600, Barred: true}, false, "no access"},
		{"another device, too long", func(t *testing.T, e env) error {
			run(t, e)
			return e.w.Fill(e.ws, e.m.Ptr, 0, 4, 151)
		}, simdriver.AccessError{Op: simdriver.OpFill, Device: 1, Size: 604, Length: 600}, false, "only 600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{
				"view": func(g *simdriver.Grid, p driver.Ptr) { simdriver.View[uint32](g, p, 1) },
			})})
			e := env{d: d, v: vs[0], w: vs[1], s: stream(t, vs[0]), o: stream(t, vs[0]), ws: stream(t, vs[1])}
			e.p, e.f = pool(t, e.v, 0), function(t, e.v, "view")
			e.m = allocAsync(t, e.v, e.s, e.p, 600)
			check(t, d.StallStream(e.s))
			check(t, c.do(t, e))
			if !c.held {
				check(t, d.ResumeStream(e.s))
			}
			var err error
			for err == nil {
				_, err = vs[c.want.Device].Query(0)
				if errors.Is(err, simdriver.ErrInvalidHandle) {
					err = nil
				}
				runtime.Gosched()
			}
			refused(t, err, driver.ErrLost, c.say)
			var got *simdriver.AccessError
			if !errors.As(err, &got) {
				t.Fatalf("%v", err)
			}
			x := *got
			x.Addr, x.Base, x.Stream = x.Addr-e.m.Ptr, 0, 0
			if x != c.want {
				t.Errorf("%+v, want %+v", x, c.want)
			}
		})
	}
}

// TestPoolErrors tests invalid calls, which have no effect.
func TestPoolErrors(t *testing.T) {
	_, vs := open(t, simdriver.Config{Devices: 2})
	_, others := open(t, simdriver.Config{})
	v, w := vs[0], vs[1]
	s, p := stream(t, v), pool(t, v, 0)
	basic := must(pools(v).DefaultPool())(t)
	m := allocAsync(t, v, s, p, 1000)
	freed := allocAsync(t, v, s, p, 1000)
	check(t, pools(v).FreeAsync(s, freed))
	inside, kind, plain := m, m, alloc(t, v, driver.DeviceMem, 64)
	inside.Ptr += 512
	kind.Kind = driver.HostMem
	destroyed := pool(t, v, 0)
	check(t, pools(v).DestroyPool(destroyed))
	for _, c := range []struct {
		err, want error
		say       string
	}{
		{second(pools(v).AllocAsync(s, p, 0)), simdriver.ErrInvalidValue, "0 bytes"},
		{second(pools(v).AllocAsync(s, 0, 1)), simdriver.ErrInvalidHandle, "no such pool"},
		{second(pools(v).AllocAsync(s, destroyed, 1)), simdriver.ErrInvalidHandle, "was destroyed"},
		{second(pools(v).AllocAsync(0, p, 1)), simdriver.ErrInvalidHandle, "no such stream"},
		{second(pools(w).AllocAsync(s, p, 1)), simdriver.ErrInvalidHandle, "belongs to device 0"},
		{pools(v).FreeAsync(s, inside), simdriver.ErrInvalidValue, "the allocation begins at"},
		{pools(v).FreeAsync(s, freed), simdriver.ErrInvalidValue, "freed already"},
		{pools(v).FreeAsync(s, kind), simdriver.ErrInvalidValue, "of kind 0, not 1"},
		{pools(v).FreeAsync(s, plain), simdriver.ErrInvalidValue, "it is in no pool"},
		{pools(v).FreeAsync(s, driver.Mem{Ptr: 8}), simdriver.ErrInvalidValue, "it is in no pool"},
		{pools(v).FreeAsync(s, driver.Mem{Ptr: m.Ptr + 32*kib}), simdriver.ErrInvalidValue, "never allocated"},
		{pools(v).FreeAsync(0, m), simdriver.ErrInvalidHandle, "no such stream"},
		{v.Free(m), simdriver.ErrInvalidValue, "FreeAsync"},
		{v.Free(inside), simdriver.ErrInvalidValue, "FreeAsync"},
		{pools(v).DestroyPool(basic), simdriver.ErrInvalidValue, "default pool"},
		{pools(v).DestroyPool(destroyed), simdriver.ErrInvalidHandle, "was destroyed"},
		{pools(w).DestroyPool(p), simdriver.ErrInvalidHandle, "belongs to device 0"},
		{pools(v).TrimPool(destroyed, 0), simdriver.ErrInvalidHandle, "was destroyed"},
		{pools(v).SetCurrentPool(destroyed), simdriver.ErrInvalidHandle, "was destroyed"},
		{pools(w).SetCurrentPool(p), simdriver.ErrInvalidHandle, "belongs to device 0"},
		{pools(v).AccessPool(p, v, false), simdriver.ErrInvalidValue, "its own pool"},
		{pools(v).AccessPool(p, others[0], true), simdriver.ErrInvalidValue, "not a device of this driver"},
		{pools(v).AccessPool(p, nil, true), simdriver.ErrInvalidValue, "not a device of this driver"},
		{second(pools(v).NewPool(driver.PoolDesc{Kind: driver.CommMem})), simdriver.ErrInvalidValue, "kind 3"},
		{second(pools(v).NewPool(driver.PoolDesc{Kind: driver.ManagedMem, MaxSize: 1})), driver.ErrUnsupported, "at most 1 bytes"},
		{second(pools(v).PoolAttr(p, -1)), simdriver.ErrInvalidValue, "no such property"},
		{second(pools(v).PoolAttr(p, 8)), simdriver.ErrInvalidValue, "no such property"},
		{pools(v).SetPoolAttr(p, 8, 0), simdriver.ErrInvalidValue, "no such property"},
		{pools(v).SetPoolAttr(p, driver.PoolReserved, 0), simdriver.ErrInvalidValue, "only be read"},
		{pools(v).SetPoolAttr(p, driver.PoolUsed, 0), simdriver.ErrInvalidValue, "only be read"},
		{pools(v).SetPoolAttr(p, driver.PoolUsedHigh, 1), simdriver.ErrInvalidValue, "only be set to 0"},
		{pools(v).SetPoolAttr(p, driver.PoolReuseEvents, 2), simdriver.ErrInvalidValue, "a switch"},
	} {
		refused(t, c.err, c.want, c.say)
	}
	check(t, pools(v).AccessPool(p, v, true)) // the device already has access
	check(t, pools(v).FreeAsync(s, m))
	check(t, drain(t, v, s))
	refused(t, pools(v).FreeAsync(s, m), simdriver.ErrInvalidValue, "freed already")
	books(t, v, p, 64*kib, 64*kib, 0, 2048)
	check(t, pools(v).TrimPool(p, 0))
	refused(t, pools(v).FreeAsync(s, m), simdriver.ErrInvalidValue, "freed already")
}

func TestPoolUnsupported(t *testing.T) {
	hip, none := simdriver.HIPCaps(), driver.Caps{Pools: true}
	d, vs := open(t, simdriver.Config{Caps: &hip})
	v := vs[0]
	s := stream(t, v)
	for _, err := range []error{
		second(pools(v).DefaultPool()), second(pools(v).CurrentPool()), pools(v).SetCurrentPool(1),
		second(pools(v).NewPool(driver.PoolDesc{})), pools(v).DestroyPool(1),
		second(pools(v).PoolAttr(1, 0)), pools(v).SetPoolAttr(1, 0, 0), pools(v).TrimPool(1, 0), pools(v).AccessPool(1, v, true),
		second(pools(v).AllocAsync(s, 1, 1)), pools(v).FreeAsync(s, driver.Mem{}),
	} {
		refused(t, err, driver.ErrUnsupported)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpFreeAsync]; n != 1 {
		t.Errorf("%d calls are counted", n)
	}
	_, vs = open(t, simdriver.Config{Caps: &none})
	pool(t, vs[0], 0)
	refused(t, second(pools(vs[0]).NewPool(driver.PoolDesc{Kind: driver.HostMem})), driver.ErrUnsupported)
	refused(t, second(pools(vs[0]).NewPool(driver.PoolDesc{Kind: driver.ManagedMem})), driver.ErrUnsupported)
}

// TestPoolsByStream tests pools whose memory must be freed in the stream that allocated it.
func TestPoolsByStream(t *testing.T) {
	caps := simdriver.CUDACaps()
	caps.PoolsByStream = true
	d, vs := open(t, simdriver.Config{Caps: &caps})
	v := vs[0]
	s, other, p := stream(t, v), stream(t, v), pool(t, v, 0)
	if n := attr(t, v, p, driver.PoolReuseEvents); n != 0 {
		t.Errorf("PoolReuseEvents is %d", n)
	}
	check(t, pools(v).SetPoolAttr(p, driver.PoolReuseEvents, 0))
	refused(t, pools(v).SetPoolAttr(p, driver.PoolReuseEvents, 1), driver.ErrUnsupported)
	m := allocAsync(t, v, s, p, 100)
	refused(t, pools(v).FreeAsync(other, m), simdriver.ErrInvalidHandle, "another stream")
	check(t, pools(v).FreeAsync(s, m))
	check(t, drain(t, v, s))
	if c := d.Counters().Devices[0]; c.PoolAllocations != 0 {
		t.Errorf("%d allocations are left", c.PoolAllocations)
	}
}

// TestPoolBooks checks a pool's properties. Memory counts as used from AllocAsync until the free
// has executed.
func TestPoolBooks(t *testing.T) {
	d, vs := open(t, simdriver.Config{Memory: 1 << 20})
	v := vs[0]
	s, p := stream(t, v), pool(t, v, 256*kib)
	for a, want := range map[driver.PoolAttr]uint64{
		driver.PoolReuseEvents: 1, driver.PoolReuseOpportunistic: 1, driver.PoolReuseInternal: 1, driver.PoolThreshold: math.MaxUint64,
	} {
		if got := attr(t, v, p, a); got != want {
			t.Errorf("property %d is %d at first", a, got)
		}
		check(t, pools(v).SetPoolAttr(p, a, 0))
		if got := attr(t, v, p, a); got != 0 {
			t.Errorf("property %d is %d, not 0", a, got)
		}
		check(t, pools(v).SetPoolAttr(p, a, want))
	}
	books(t, v, p, 0, 0, 0, 0)
	check(t, d.StallStream(s))
	a := allocAsync(t, v, s, p, 1)
	books(t, v, p, 64*kib, 64*kib, 512, 512)
	b := allocAsync(t, v, s, p, 100*kib)
	books(t, v, p, 192*kib, 192*kib, 100*kib+512, 100*kib+512)
	check(t, pools(v).FreeAsync(s, a))
	books(t, v, p, 192*kib, 192*kib, 100*kib+512, 100*kib+512)
	check(t, pools(v).TrimPool(p, 0)) // no effect, because the free has not executed
	check(t, d.ResumeStream(s))
	check(t, drain(t, v, s))
	books(t, v, p, 192*kib, 192*kib, 100*kib, 100*kib+512)
	if c := d.Counters().Devices[0]; c.Pools != 1 || c.PoolAllocations != 1 || c.Reserved != 192*kib || c.Used != 100*kib || c.Allocations != 0 || c.Bytes != 0 {
		t.Errorf("counters %+v", c)
	}

	_, err := pools(v).AllocAsync(s, p, 129*kib) // giving the free segment back does not make enough room
	refused(t, err, driver.ErrOutOfMemory, "of the pool's 262144")
	books(t, v, p, 128*kib, 192*kib, 100*kib, 100*kib+512)
	e := allocAsync(t, v, s, p, 100*kib)
	books(t, v, p, 256*kib, 256*kib, 200*kib, 200*kib)
	for _, n := range []uint64{1 << 50, math.MaxUint64} {
		refused(t, second(pools(v).AllocAsync(s, p, n)), driver.ErrOutOfMemory)
	}

	// Now the device's memory is the limit: 768 KiB are left.
	other := pool(t, v, 0)
	refused(t, second(pools(v).AllocAsync(s, other, 1<<20)), driver.ErrOutOfMemory, "of device 0's")
	big := allocAsync(t, v, s, other, 768*kib-1)
	refused(t, second(v.Alloc(driver.DeviceMem, 512)), driver.ErrOutOfMemory)
	check(t, pools(v).FreeAsync(s, big))
	check(t, drain(t, v, s))
	refused(t, second(v.Alloc(driver.DeviceMem, 512)), driver.ErrOutOfMemory) // the memory belongs to the pool, even when it is free
	check(t, pools(v).TrimPool(other, 0))
	alloc(t, v, driver.DeviceMem, 512)

	check(t, pools(v).FreeAsync(s, b))
	check(t, drain(t, v, s))
	check(t, pools(v).TrimPool(p, 128*kib))
	books(t, v, p, 128*kib, 256*kib, 100*kib, 200*kib)
	check(t, pools(v).TrimPool(p, 1))
	books(t, v, p, 128*kib, 256*kib, 100*kib, 200*kib)
	check(t, pools(v).FreeAsync(s, e))
	check(t, drain(t, v, s))
	check(t, pools(v).SetPoolAttr(p, driver.PoolReservedHigh, 0))
	check(t, pools(v).SetPoolAttr(p, driver.PoolUsedHigh, 0))
	books(t, v, p, 128*kib, 128*kib, 0, 0)
	check(t, pools(v).TrimPool(p, 1))
	books(t, v, p, 128*kib, 128*kib, 0, 0)
	check(t, pools(v).TrimPool(p, 0))
	books(t, v, p, 0, 128*kib, 0, 0)
	check(t, pools(v).DestroyPool(p))
	check(t, pools(v).DestroyPool(other))
}

// TestPoolUsedTwice checks PoolUsed for memory that is freed and allocated again ahead of the
// stream. PoolUsed is at most the reserved memory.
func TestPoolUsedTwice(t *testing.T) {
	d, vs := open(t, simdriver.Config{Deterministic: true})
	v := vs[0]
	s, p := stream(t, v), pool(t, v, 0)
	check(t, pools(v).FreeAsync(s, allocAsync(t, v, s, p, 100*kib)))
	again := allocAsync(t, v, s, p, 100*kib)
	books(t, v, p, 128*kib, 128*kib, 128*kib, 128*kib)
	if c := d.Counters().Devices[0]; c.Used != 128*kib {
		t.Errorf("%d bytes are used", c.Used)
	}
	d.Run()
	books(t, v, p, 128*kib, 128*kib, 100*kib, 128*kib)
	check(t, pools(v).FreeAsync(s, again))
	d.Run()
	check(t, pools(v).DestroyPool(p))
}

// TestPoolThreshold tests pools with a release threshold.
func TestPoolThreshold(t *testing.T) {
	_, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, p := stream(t, v), pool(t, v, 0)
	use := func() {
		var ms []driver.Mem
		for range 4 {
			ms = append(ms, allocAsync(t, v, s, p, 64*kib))
		}
		for _, m := range ms {
			check(t, pools(v).FreeAsync(s, m))
		}
		check(t, drain(t, v, s))
	}
	use()
	books(t, v, p, 256*kib, 256*kib, 0, 256*kib)
	check(t, pools(v).SetPoolAttr(p, driver.PoolThreshold, 100*kib))
	use()
	books(t, v, p, 128*kib, 256*kib, 0, 256*kib)
	check(t, pools(v).SetPoolAttr(p, driver.PoolThreshold, 0))
	keep := allocAsync(t, v, s, p, 1)
	use()
	books(t, v, p, 64*kib, 320*kib, 512, 256*kib+512)
	check(t, pools(v).FreeAsync(s, keep))
	check(t, pools(v).SetPoolAttr(p, driver.PoolThreshold, math.MaxUint64))
	check(t, drain(t, v, s))
	books(t, v, p, 64*kib, 320*kib, 0, 256*kib+512)
	check(t, pools(v).SetPoolAttr(p, driver.PoolThreshold, 5))
	check(t, pools(v).DestroyPool(p))
	check(t, drain(t, v, s))
}

// TestPoolReuse checks in which cases an allocation gets the address of a freed one.
func TestPoolReuse(t *testing.T) {
	type env struct {
		d    *simdriver.Driver
		v    driver.Device
		a, b driver.Stream // both are stalled
		p    driver.Pool
	}
	off := func(t *testing.T, e env, attrs ...driver.PoolAttr) {
		for _, a := range attrs {
			check(t, pools(e.v).SetPoolAttr(e.p, a, 0))
		}
	}
	execute := func(t *testing.T, e env, s driver.Stream) {
		check(t, e.d.ResumeStream(s))
		check(t, drain(t, e.v, s))
	}
	for _, c := range []struct {
		name string
		// do is called after the free in stream a. It returns the stream to allocate in.
		do   func(t *testing.T, e env) driver.Stream
		same bool
	}{
		{"same stream", func(t *testing.T, e env) driver.Stream { return e.a }, true},
		{"same stream, no reuse across streams", func(t *testing.T, e env) driver.Stream {
			off(t, e, driver.PoolReuseEvents, driver.PoolReuseOpportunistic, driver.PoolReuseInternal)
			return e.a
		}, true},
		{"another stream", func(t *testing.T, e env) driver.Stream { return e.b }, false},
		{"done", func(t *testing.T, e env) driver.Stream { execute(t, e, e.a); return e.b }, true},
		{"done, but that does not count", func(t *testing.T, e env) driver.Stream {
			off(t, e, driver.PoolReuseOpportunistic)
			execute(t, e, e.a)
			return e.b
		}, false},
		{"done, and the stream is no more", func(t *testing.T, e env) driver.Stream {
			off(t, e, driver.PoolReuseOpportunistic)
			execute(t, e, e.a)
			check(t, e.v.DestroyStream(e.a))
			return e.b
		}, true},
		{"after an event", func(t *testing.T, e env) driver.Stream {
			check(t, e.v.StreamWait(e.b, record(t, e.v, e.a)))
			return e.b
		}, true},
		{"after an event, done", func(t *testing.T, e env) driver.Stream {
			off(t, e, driver.PoolReuseOpportunistic)
			execute(t, e, e.a)
			check(t, e.v.StreamWait(e.b, record(t, e.v, e.a)))
			return e.b
		}, true},
		{"after an event that does not count", func(t *testing.T, e env) driver.Stream {
			off(t, e, driver.PoolReuseEvents)
			check(t, e.v.StreamWait(e.b, record(t, e.v, e.a)))
			return e.b
		}, false},
		{"after a timer", func(t *testing.T, e env) driver.Stream {
			timer := must(timers(e.v).NewTimer())(t)
			check(t, e.v.Record(timer, e.a))
			check(t, e.v.StreamWait(e.b, timer))
			return e.b
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, vs := open(t, simdriver.Config{})
			v := vs[0]
			e := env{d, v, stream(t, v), stream(t, v), pool(t, v, 0)}
			check(t, d.StallStream(e.a))
			check(t, d.StallStream(e.b))
			early := record(t, v, e.a)
			m := allocAsync(t, v, e.a, e.p, 10*kib)
			check(t, v.StreamWait(e.b, early)) // this event is recorded before the free
			check(t, pools(v).FreeAsync(e.a, m))
			s := c.do(t, e)
			again := allocAsync(t, v, s, e.p, 10*kib)
			if (again.Ptr == m.Ptr) != c.same {
				t.Errorf("at %#x, then at %#x", m.Ptr, again.Ptr)
			}
			check(t, v.Fill(s, again.Ptr, 1, 1, 10*kib))
			check(t, pools(v).FreeAsync(s, again))
			d.ResumeStream(e.a)
			check(t, d.ResumeStream(e.b))
			check(t, drain(t, v, e.b))
		})
	}
}

// TestPoolLastFreed checks that a stream reuses the memory that it freed last, although the frees
// are pending.
func TestPoolLastFreed(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, p := stream(t, v), pool(t, v, 0)
	check(t, d.StallStream(s))
	a, _, b := allocAsync(t, v, s, p, 1000), allocAsync(t, v, s, p, 1000), allocAsync(t, v, s, p, 1000)
	for _, ms := range [][]driver.Mem{{a, b}, {b, a}} {
		for _, m := range ms {
			check(t, pools(v).FreeAsync(s, m))
		}
		first, second := allocAsync(t, v, s, p, 1000), allocAsync(t, v, s, p, 1000)
		if first.Ptr != ms[1].Ptr || second.Ptr != ms[0].Ptr {
			t.Errorf("at %#x and %#x, freed at %#x, then at %#x", first.Ptr, second.Ptr, ms[0].Ptr, ms[1].Ptr)
		}
	}
	check(t, d.ResumeStream(s))
	check(t, drain(t, v, s))
}

// TestPoolWaits checks that a stream waits for another stream's free if the pool is full.
func TestPoolWaits(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	a, b := stream(t, v), stream(t, v)
	p := pool(t, v, 64*kib)
	check(t, d.StallStream(a))
	var ms []driver.Mem
	for range 4 {
		ms = append(ms, allocAsync(t, v, a, p, 16*kib))
	}
	refused(t, second(pools(v).AllocAsync(b, p, 16*kib)), driver.ErrOutOfMemory)
	for _, m := range ms[1:3] {
		check(t, v.Fill(a, m.Ptr, 1, 1, 16*kib))
		check(t, pools(v).FreeAsync(a, m))
	}
	check(t, pools(v).SetPoolAttr(p, driver.PoolReuseInternal, 0))
	refused(t, second(pools(v).AllocAsync(b, p, 32*kib)), driver.ErrOutOfMemory)
	check(t, pools(v).SetPoolAttr(p, driver.PoolReuseInternal, 1))
	refused(t, second(pools(v).AllocAsync(b, p, 33*kib)), driver.ErrOutOfMemory)
	m := allocAsync(t, v, b, p, 32*kib)
	if m.Ptr != ms[1].Ptr {
		t.Errorf("at %#x, want %#x", m.Ptr, ms[1].Ptr)
	}
	check(t, v.Fill(b, m.Ptr, 2, 1, 32*kib))
	e := record(t, v, b)
	pending(t, v, e)
	check(t, d.ResumeStream(a))
	check(t, wait(t, v, e))
	check(t, pools(v).FreeAsync(b, m))
	check(t, pools(v).FreeAsync(a, ms[0]))
	check(t, pools(v).FreeAsync(a, ms[3]))
	check(t, drain(t, v, a))
	check(t, drain(t, v, b))
	if m := allocAsync(t, v, b, p, 64*kib); m.Ptr != ms[0].Ptr {
		t.Errorf("at %#x, want %#x", m.Ptr, ms[0].Ptr)
	}
}

// TestPoolWaitsForLast checks that a stream waits for the last of several frees. There are other
// operations between the frees.
func TestPoolWaitsForLast(t *testing.T) {
	ran, release := make(chan bool), make(chan bool)
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"block": func(*simdriver.Grid) { ran <- true; <-release },
	})})
	v := vs[0]
	a, b, f, p := stream(t, v), stream(t, v), function(t, v, "block"), pool(t, v, 64*kib)
	var ms []driver.Mem
	for range 4 {
		ms = append(ms, allocAsync(t, v, a, p, 16*kib))
	}
	check(t, pools(v).FreeAsync(a, ms[1]))
	check(t, drain(t, v, a))
	check(t, pools(v).FreeAsync(b, allocAsync(t, v, b, p, 16*kib)))
	check(t, drain(t, v, b))
	check(t, launch(v, a, f))
	check(t, pools(v).FreeAsync(a, ms[2]))
	freed := record(t, v, a)
	check(t, launch(v, a, f))
	check(t, pools(v).FreeAsync(a, ms[0]))
	m := allocAsync(t, v, b, p, 48*kib)
	if m.Ptr != ms[0].Ptr {
		t.Errorf("at %#x, want %#x", m.Ptr, ms[0].Ptr)
	}
	e := record(t, v, b)
	<-ran
	release <- true
	<-ran
	check(t, wait(t, v, freed))
	pending(t, v, e)
	release <- true
	check(t, wait(t, v, e))
}

// TestPoolWaitsForNothing allocates from a full pool. The only free of the pool's memory is in a
// stream of a lost device.
func TestPoolWaitsForNothing(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2, Deterministic: true})
	v, w := vs[0], vs[1]
	s, ws, p := stream(t, v), stream(t, w), pool(t, v, 64*kib)
	m := must(pools(w).AllocAsync(ws, p, 64*kib))(t)
	check(t, pools(w).FreeAsync(ws, m))
	check(t, d.LoseDevice(1, nil))
	refused(t, second(pools(v).AllocAsync(s, p, 64*kib)), driver.ErrOutOfMemory)
	d.Run() // drops the free, which can no longer execute
	allocAsync(t, v, s, p, 64*kib)
	if n := d.Run(); n != 1 {
		t.Errorf("%d steps", n)
	}
}

func TestDefaultPool(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]
	p := must(pools(v).DefaultPool())(t)
	current := func(want driver.Pool) {
		t.Helper()
		if got := must(pools(v).CurrentPool())(t); got != want {
			t.Errorf("current pool %#x, want %#x", got, want)
		}
		if got := must(pools(v).DefaultPool())(t); got != p {
			t.Errorf("default pool %#x, want %#x", got, p)
		}
	}
	current(p)
	if other := must(pools(w).CurrentPool())(t); other == p {
		t.Error("two devices have one pool")
	}
	q := pool(t, v, 0)
	check(t, pools(v).SetCurrentPool(q))
	current(q)
	check(t, pools(v).SetCurrentPool(p))
	current(p)
	check(t, pools(v).SetCurrentPool(q))
	check(t, pools(v).DestroyPool(q))
	current(p)
	s := stream(t, v)
	m := allocAsync(t, v, s, p, 100)
	check(t, pools(v).FreeAsync(s, m))
	check(t, destroyed(v.DestroyStream, s))
	// Neither the pool nor its memory counts as a leak. The device gets a new default pool when it
	// is opened again.
	check(t, v.Close())
	if c := d.Counters().Devices[0]; c.Reserved != 0 || c.Pools != 0 {
		t.Errorf("counters %+v", c)
	}
	v = must(d.Open(0))(t)
	defer v.Close()
	refused(t, second(pools(v).PoolAttr(p, 0)), simdriver.ErrInvalidHandle)
	if must(pools(v).DefaultPool())(t) == p {
		t.Error("a handle was used again")
	}
}

// TestDestroyPool destroys a pool that still has allocations.
func TestDestroyPool(t *testing.T) {
	for _, manual := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Deterministic: manual, Memory: 192 * kib})
		v := vs[0]
		s, p := stream(t, v), pool(t, v, 0)
		a, b, c := allocAsync(t, v, s, p, 64*kib), allocAsync(t, v, s, p, 64*kib), allocAsync(t, v, s, p, 64*kib)
		check(t, pools(v).FreeAsync(s, a))
		d.Run()
		for d.Counters().Devices[0].Used > 128*kib {
			runtime.Gosched()
		}
		check(t, pools(v).DestroyPool(p))
		reserved := func(want uint64, left string) {
			t.Helper()
			for d.Run(); d.Counters().Devices[0].Reserved != want; {
				runtime.Gosched()
			}
			if got := strings.Join(d.Leaks(), ", "); strings.Count(got, "65536 bytes of pool memory") != len(left) || strings.Contains(got, " pool 0x") {
				t.Errorf("leaks: %s", got)
			}
		}
		reserved(128*kib, "bc")
		alloc(t, v, driver.DeviceMem, 64*kib) // must get the address of a
		check(t, pools(v).FreeAsync(s, b))
		check(t, v.Fill(s, c.Ptr, 1, 1, 64*kib))
		reserved(64*kib, "c")
		check(t, pools(v).FreeAsync(s, c))
		reserved(0, "")
		refused(t, pools(v).FreeAsync(s, c), simdriver.ErrInvalidValue)
		check(t, destroyed(v.DestroyStream, s))
	}
}

func TestHostPool(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2, HostMemory: 128 * kib})
	v, w := vs[0], vs[1]
	s, ws := stream(t, v), stream(t, w)
	p := must(pools(v).NewPool(driver.PoolDesc{Kind: driver.HostMem}))(t)
	m := allocAsync(t, v, s, p, 100)
	if m.Kind != driver.HostMem || m.Host == nil || m.Ptr != driver.Ptr(uintptr(m.Host)) {
		t.Errorf("memory %+v", m)
	}
	n := allocAsync(t, v, s, p, 100)
	check(t, v.Fill(s, m.Ptr, 'a', 1, 100))
	check(t, v.Upload(s, n.Ptr, m.Host, 100))
	check(t, drain(t, v, s))
	for _, m := range []driver.Mem{m, n} {
		if got := unsafe.Slice((*byte)(m.Host), 100); got[0] != 'a' || got[99] != 'a' {
			t.Errorf("memory has %q", got)
		}
	}
	check(t, pools(v).AccessPool(p, w, true))
	check(t, w.Fill(ws, m.Ptr, 'b', 1, 100))
	check(t, drain(t, w, ws))
	// Allocate from one device's pool in a stream of another device.
	o := must(pools(w).AllocAsync(ws, p, 50))(t)
	check(t, w.Copy(ws, o.Ptr, m.Ptr, 50))
	check(t, drain(t, w, ws))
	if got := unsafe.Slice((*byte)(o.Host), 50); got[0] != 'b' || got[49] != 'b' {
		t.Errorf("memory has %q", got)
	}
	refused(t, second(pools(v).AllocAsync(s, p, 128*kib)), driver.ErrOutOfMemory, "host memory")
	for _, m := range []driver.Mem{m, n, o} {
		refused(t, v.Free(m), simdriver.ErrInvalidValue, "FreeAsync")
		check(t, pools(v).FreeAsync(s, m))
	}
	check(t, drain(t, v, s))
	check(t, pools(v).TrimPool(p, 0))
	if c := d.Counters().Devices[0]; c.HostBytes != 0 || c.Reserved != 0 || c.PoolAllocations != 0 {
		t.Errorf("counters %+v", c)
	}
	check(t, v.Download(s, m.Host, alloc(t, v, driver.DeviceMem, 8).Ptr, 8))
	_, err := v.NewEvent()
	for ; err == nil; _, err = v.NewEvent() {
	}
	refused(t, err, driver.ErrLost, "was freed")
}

// TestPoolLost frees memory on a lost device.
func TestPoolLost(t *testing.T) {
	for _, manual := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Devices: 2, Deterministic: manual})
		v, w := vs[0], vs[1]
		s, p := stream(t, v), pool(t, v, 0)
		check(t, d.StallStream(s))
		var ms []driver.Mem
		for range 5 {
			ms = append(ms, allocAsync(t, v, s, p, 1000))
		}
		check(t, pools(v).FreeAsync(s, ms[0]))
		// s also allocates from a pool of the other device, which frees that memory after device 0
		// is lost.
		ws, wp := stream(t, w), pool(t, w, 0)
		check(t, pools(w).AccessPool(wp, v, true))
		late := must(pools(v).AllocAsync(s, wp, 1000))(t)
		check(t, d.LoseDevice(0, errTest))
		for i, m := range ms[1:] {
			refused(t, pools(v).FreeAsync(s, m), driver.ErrLost, "test's own error")
			if n := d.Counters().Devices[0].PoolAllocations; n != 3-i {
				t.Errorf("%d allocations left", n)
			}
		}
		refused(t, pools(v).FreeAsync(s, ms[1]), simdriver.ErrInvalidValue)
		refused(t, second(pools(v).AllocAsync(s, p, 1)), driver.ErrLost)
		refused(t, pools(v).TrimPool(p, 0), driver.ErrLost)
		refused(t, pools(v).DestroyPool(p), driver.ErrLost)
		refused(t, pools(v).DestroyPool(p), simdriver.ErrInvalidHandle)
		check(t, pools(w).FreeAsync(ws, late))
		d.Run()
		check(t, destroyed(w.DestroyStream, ws))
		refused(t, v.DestroyStream(s), driver.ErrLost)
		check(t, pools(w).DestroyPool(wp))
		if left := d.Leaks(); len(left) != 2 { // Leaks names only the two open devices
			t.Errorf("leaks %q", left)
		}
		for d.Counters().Devices[1].Reserved > 0 {
			runtime.Gosched()
		}
	}
}

// destroyed calls destroy until the object is not busy.
func destroyed[T any](destroy func(T) error, x T) error {
	for {
		if err := destroy(x); !errors.Is(err, simdriver.ErrBusy) {
			return err
		}
		runtime.Gosched()
	}
}

// TestPoolFaults checks that memory is freed even if a fault makes its free fail.
func TestPoolFaults(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, p := stream(t, v), pool(t, v, 0)
	d.Inject(simdriver.Fault{Op: simdriver.OpAllocAsync, N: 2, OOM: true})
	m := allocAsync(t, v, s, p, 64)
	refused(t, second(pools(v).AllocAsync(s, p, 64)), driver.ErrOutOfMemory)
	d.Inject(simdriver.Fault{Op: simdriver.OpFreeAsync, N: 1, Err: errTest})
	refused(t, pools(v).FreeAsync(s, m), errTest, "free async")
	refused(t, pools(v).FreeAsync(s, m), simdriver.ErrInvalidValue)
	check(t, drain(t, v, s))
	books(t, v, p, 64*kib, 64*kib, 0, 512)
	for _, op := range []simdriver.Op{simdriver.OpAllocAsync, simdriver.OpFreeAsync} {
		d, vs := open(t, simdriver.Config{})
		v := vs[0]
		s, p := stream(t, v), pool(t, v, 0)
		d.Inject(simdriver.Fault{Op: op, N: 2, AtExecution: true, Err: errTest})
		check(t, d.StallStream(s))
		check(t, pools(v).FreeAsync(s, allocAsync(t, v, s, p, 64)))
		e := record(t, v, s)
		check(t, pools(v).FreeAsync(s, allocAsync(t, v, s, p, 64)))
		pending(t, v, e)
		check(t, d.ResumeStream(s))
		var err error
		for ; err == nil; _, err = v.Query(e) {
		}
		refused(t, err, errTest, string(op)+" on device 0")
		refused(t, err, driver.ErrLost)
	}
}
