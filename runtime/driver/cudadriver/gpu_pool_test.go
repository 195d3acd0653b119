package cudadriver

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// openPools opens a device with memory pools.
func openPools(t testing.TB) *device {
	t.Helper()
	d := openGPU(t)
	if !d.caps.Pools {
		t.Skip("no memory pools")
	}
	return d
}

func newPool(t testing.TB, d *device, desc driver.PoolDesc) driver.Pool {
	t.Helper()
	p, err := d.NewPool(desc)
	ok(t, err)
	t.Cleanup(func() { ok(t, d.DestroyPool(p)) })
	return p
}

// synchronize waits for a stream with CUDA's call, which also makes pools notice completed frees.
func synchronize(t testing.TB, d *device, s driver.Stream) {
	t.Helper()
	ok(t, d.lib.StreamSynchronize(cuda.Stream(s)))
}

func poolAttr(t testing.TB, d *device, p driver.Pool, a driver.PoolAttr) uint64 {
	t.Helper()
	v, err := d.PoolAttr(p, a)
	ok(t, err)
	return v
}

// words returns memory that the host can use as 32-bit numbers.
func words(m driver.Mem) []uint32 { return unsafe.Slice((*uint32)(m.Host), m.Size/4) }

func TestGPUPool(t *testing.T) {
	d := openPools(t)
	s := newStream(t, d)
	def, err := d.DefaultPool()
	ok(t, err)
	made := newPool(t, d, driver.PoolDesc{Kind: driver.DeviceMem})
	if again, err := d.DefaultPool(); again != def || err != nil || def == 0 || made == 0 || made == def {
		t.Errorf("the default pool is %#x, then %#x, and another is %#x; %v", def, again, made, err)
	}
	const rounds, n = 32, 64 << 10
	host := alloc(t, d, driver.HostMem, rounds*n)
	for name, p := range map[string]driver.Pool{"default": def, "made": made} {
		work := func() error {
			for i := range uint64(rounds) {
				m, err := d.AllocAsync(s, p, n)
				if err != nil {
					return err
				}
				if m.Ptr == 0 || m.Ptr%256 != 0 || m.Host != nil || m.Kind != driver.DeviceMem || m.Size != n {
					t.Errorf("%s pool: %+v", name, m)
				}
				if err := errors.Join(
					d.Fill(s, m.Ptr, uint32(i)|0xab00, 4, n/4),
					d.Download(s, unsafe.Add(host.Host, i*n), m.Ptr, n),
					d.FreeAsync(s, m),
				); err != nil {
					return err
				}
			}
			return nil
		}
		check := func() {
			t.Helper()
			finish(t, d, s)
			for i, w := range words(host) {
				if want := uint32(i*4/n) | 0xab00; w != want {
					t.Fatalf("%s pool: word %d is %#x, want %#x", name, i, w, want)
				}
			}
			clear(words(host))
		}
		ok(t, work())
		check()
		elsewhere(t, d, work)
		check()
		if m, err := d.AllocAsync(s, p, 1<<50); !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, driver.ErrLost) || m != (driver.Mem{}) {
			t.Errorf("%s pool: 2^50 bytes: %+v, %v", name, m, err)
		}
		if dl.Fast {
			var sink error
			if n := testing.AllocsPerRun(100, func() {
				m, err := d.AllocAsync(s, p, n)
				if sink = err; err == nil {
					sink = d.FreeAsync(s, m)
				}
			}); n != 0 || sink != nil {
				t.Errorf("%s pool: AllocAsync and FreeAsync allocate %v times, %v", name, n, sink)
			}
		}
	}
	finish(t, d, s)
	if err := d.DestroyPool(def); err == nil || errors.Is(err, driver.ErrLost) {
		t.Errorf("destroying the default pool: %v", err)
	}
}

func TestGPUPoolCurrent(t *testing.T) {
	d := openPools(t)
	before, err := d.CurrentPool()
	ok(t, err)
	p, err := d.NewPool(driver.PoolDesc{})
	ok(t, err)
	ok(t, d.SetCurrentPool(p))
	if got, err := d.CurrentPool(); got != p || err != nil {
		t.Errorf("the current pool is %#x, want %#x; %v", got, p, err)
	}
	// Destroying the current pool makes the default pool current.
	ok(t, d.DestroyPool(p))
	def, err := d.DefaultPool()
	ok(t, err)
	if got, err := d.CurrentPool(); got != def || err != nil {
		t.Errorf("then the current pool is %#x, want %#x; %v", got, def, err)
	}
	ok(t, d.SetCurrentPool(before))
}

// TestGPUPoolStreams allocates in one stream and frees in another. It then immediately allocates in
// the first stream again. The new allocation must not overlap memory that the second stream still
// has to read.
func TestGPUPoolStreams(t *testing.T) {
	d := openPools(t)
	p := newPool(t, d, driver.PoolDesc{})
	a, b := newStream(t, d), newStream(t, d)
	e, freed := newEvent(t, d), newEvent(t, d)
	spin, _ := load(t, d, []byte(gpuPTX), "spin")
	one := [3]uint32{1, 1, 1}
	busy := &driver.Launch{Function: spin, Grid: one, Block: one, Args: []unsafe.Pointer{arg(uint64(5e6))}}
	const rounds, n = 8, 1 << 20
	host := alloc(t, d, driver.HostMem, rounds*n)
	for _, reuse := range []uint64{1, 0} {
		ok(t, d.SetPoolAttr(p, driver.PoolReuseInternal, reuse))
		same := 0
		for i := range uint64(rounds) {
			m, err := d.AllocAsync(a, p, n)
			ok(t, err)
			ok(t, d.Launch(a, busy))
			ok(t, d.Fill(a, m.Ptr, uint32(i+1), 4, n/4))
			ok(t, d.Record(e, a))
			ok(t, d.StreamWait(b, e))
			ok(t, d.Launch(b, busy))
			ok(t, d.Download(b, unsafe.Add(host.Host, i*n), m.Ptr, n))
			ok(t, d.FreeAsync(b, m))
			ok(t, d.Record(freed, b))

			next, err := d.AllocAsync(a, p, n)
			ok(t, err)
			ok(t, d.Fill(a, next.Ptr, 0xdead, 4, n/4))
			ok(t, d.FreeAsync(a, next))
			if next.Ptr == m.Ptr {
				same++
			}
			ok(t, d.StreamWait(a, freed)) // from now on the pool may reuse the memory
		}
		finish(t, d, a)
		finish(t, d, b)
		t.Logf("with internal dependencies %d: the memory came again at once %d times of %d", reuse, same, rounds)
		for i, w := range words(host) {
			if want := uint32(i*4/n) + 1; w != want {
				t.Fatalf("word %d is %#x, want %#x", i, w, want)
			}
		}
		clear(words(host))
	}
}

func TestGPUPoolAttrs(t *testing.T) {
	d := openPools(t)
	s := newStream(t, d)
	p := newPool(t, d, driver.PoolDesc{})
	attr := func(a driver.PoolAttr) uint64 { t.Helper(); return poolAttr(t, d, p, a) }
	for a := driver.PoolReuseEvents; a <= driver.PoolReuseInternal; a++ {
		for _, on := range []uint64{1, 0, 1} {
			ok(t, d.SetPoolAttr(p, a, on))
			if got := attr(a); got != on {
				t.Errorf("switch %d is %d, want %d", a, got, on)
			}
		}
	}
	if got := attr(driver.PoolThreshold); got != 0 {
		t.Errorf("the threshold is %d at first", got)
	}
	for _, v := range []uint64{2048, 1 << 33, math.MaxUint64} {
		ok(t, d.SetPoolAttr(p, driver.PoolThreshold, v))
		if got := attr(driver.PoolThreshold); got != v {
			t.Errorf("the threshold is %d, want %d", got, v)
		}
	}

	const n = 8 << 20
	m, err := d.AllocAsync(s, p, n)
	ok(t, err)
	if used, high := attr(driver.PoolUsed), attr(driver.PoolUsedHigh); used < n || high < used {
		t.Errorf("%d bytes are in use, %d at most, of which %d were allocated", used, high, n)
	}
	if reserved, high := attr(driver.PoolReserved), attr(driver.PoolReservedHigh); reserved < n || high < reserved {
		t.Errorf("%d bytes are reserved, %d at most, of which %d were allocated", reserved, high, n)
	}
	ok(t, d.FreeAsync(s, m))
	synchronize(t, d, s)
	reserved := attr(driver.PoolReserved)
	if used := attr(driver.PoolUsed); used != 0 || reserved < n {
		t.Errorf("after freeing %d bytes are in use and %d reserved, below the threshold", used, reserved)
	}
	ok(t, d.TrimPool(p, 1<<40))
	if got := attr(driver.PoolReserved); got != reserved {
		t.Errorf("trimmed to more than there is, %d of %d bytes are reserved", got, reserved)
	}
	ok(t, d.TrimPool(p, 0))
	if got := attr(driver.PoolReserved); got != 0 {
		t.Errorf("trimmed to nothing, %d of %d bytes are reserved", got, reserved)
	}
	if used, reserved := attr(driver.PoolUsedHigh), attr(driver.PoolReservedHigh); used < n || reserved < n {
		t.Errorf("the most in use was %d bytes, reserved %d", used, reserved)
	}
	ok(t, d.SetPoolAttr(p, driver.PoolUsedHigh, 0))
	ok(t, d.SetPoolAttr(p, driver.PoolReservedHigh, 0))
	if used, reserved := attr(driver.PoolUsedHigh), attr(driver.PoolReservedHigh); used != 0 || reserved != 0 {
		t.Errorf("after the reset the most in use was %d bytes, reserved %d", used, reserved)
	}

	// With threshold 0 the pool releases the memory when the stream is synchronized.
	ok(t, d.SetPoolAttr(p, driver.PoolThreshold, 0))
	m, err = d.AllocAsync(s, p, n)
	ok(t, err)
	ok(t, d.FreeAsync(s, m))
	finish(t, d, s)
	t.Logf("without a threshold %d bytes stay reserved when the stream is done", attr(driver.PoolReserved))
	ok(t, d.TrimPool(p, 0))
	t.Logf("of which a trim leaves %d", attr(driver.PoolReserved))
	m, err = d.AllocAsync(s, p, n)
	ok(t, err)
	ok(t, d.FreeAsync(s, m))
	synchronize(t, d, s)
	if got := attr(driver.PoolReserved); got >= n {
		t.Errorf("without a threshold %d bytes stay reserved", got)
	}

	for name, err := range map[string]error{
		"reserved":      d.SetPoolAttr(p, driver.PoolReserved, 0),
		"used":          d.SetPoolAttr(p, driver.PoolUsed, 0),
		"reserved high": d.SetPoolAttr(p, driver.PoolReservedHigh, 1),
	} {
		if !errors.Is(err, cuda.ErrorInvalidValue) {
			t.Errorf("setting %s: %v", name, err)
		}
	}
	ok(t, d.AccessPool(p, d, true)) // the device already has access
	if err := d.AccessPool(p, d, false); err == nil || errors.Is(err, driver.ErrLost) {
		t.Errorf("taking a pool from its own device: %v", err)
	}
}

func TestGPUPoolLimit(t *testing.T) {
	d := openPools(t)
	const limit, n = 64 << 20, 16 << 20
	if d.lib.Version() < poolLimits {
		if _, err := d.NewPool(driver.PoolDesc{MaxSize: limit}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("a limit for a driver that has none: %v", err)
		}
		t.Skip("no limits")
	}
	s := newStream(t, d)
	p := newPool(t, d, driver.PoolDesc{MaxSize: limit})
	for range 2 {
		var got []driver.Mem
		for {
			m, err := d.AllocAsync(s, p, n)
			if err != nil {
				t.Logf("after %d times %d bytes, with %d reserved: %v", len(got), n, poolAttr(t, d, p, driver.PoolReserved), err)
				if !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, driver.ErrLost) {
					t.Errorf("the error is %v", err)
				}
				break
			}
			got = append(got, m)
			if len(got)*n > 4*limit {
				t.Errorf("%d times %d bytes fit into %d", len(got), n, limit)
				break
			}
		}
		if len(got) == 0 {
			t.Error("nothing fits")
		}
		for _, m := range got {
			ok(t, d.Fill(s, m.Ptr, 1, 4, n/4))
			ok(t, d.FreeAsync(s, m))
		}
	}
	finish(t, d, s)
}

// TestGPUPoolManaged writes to managed memory of a pool from the host and the device in turn.
func TestGPUPoolManaged(t *testing.T) {
	d := openPools(t)
	s := newStream(t, d)
	if !d.caps.ManagedPools {
		if _, err := d.NewPool(driver.PoolDesc{Kind: driver.ManagedMem}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("a pool that cannot be: %v", err)
		}
		t.Skip("no pools of managed memory")
	}
	p := newPool(t, d, driver.PoolDesc{Kind: driver.ManagedMem})
	const n = 1 << 20
	for round := range uint32(4) {
		m, err := d.AllocAsync(s, p, n)
		ok(t, err)
		if m.Kind != driver.ManagedMem || m.Host == nil || m.Ptr == 0 || m.Size != n {
			t.Fatalf("%+v", m)
		}
		finish(t, d, s)
		w := words(m)
		w[n/4-1] = 9 + round
		ok(t, d.Fill(s, m.Ptr, 5+round, 4, n/8))
		ok(t, d.Copy(s, m.Ptr, m.Ptr+n-4, 4))
		finish(t, d, s)
		if w[0] != 9+round || w[1] != 5+round || w[n/8-1] != 5+round {
			t.Errorf("the host reads %d %d … %d", w[0], w[1], w[n/8-1])
		}
		ok(t, d.FreeAsync(s, m))
	}
	finish(t, d, s)
}

func TestGPUPoolHost(t *testing.T) {
	d := openPools(t)
	s := newStream(t, d)
	if !d.caps.HostPools {
		if _, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("a pool that cannot be: %v", err)
		}
		t.Skip("no pools of host memory")
	}
	p := newPool(t, d, driver.PoolDesc{Kind: driver.HostMem})
	const n = 1 << 20
	dev := alloc(t, d, driver.DeviceMem, n)
	bump, _ := load(t, d, []byte(gpuPTX), "bump")
	one := [3]uint32{1, 1, 1}
	for round := range uint32(4) {
		m, err := d.AllocAsync(s, p, n)
		ok(t, err)
		if m.Kind != driver.HostMem || m.Host == nil || m.Ptr == 0 || m.Size != n {
			t.Fatalf("%+v", m)
		}
		// The device writes with a fill, a copy and a kernel, and the host reads.
		ok(t, d.Fill(s, dev.Ptr, 7+round, 4, n/4))
		ok(t, d.Fill(s, m.Ptr, 5+round, 4, n/8))
		ok(t, d.Copy(s, m.Ptr+n/2, dev.Ptr, n/2))
		ok(t, d.Launch(s, &driver.Launch{Function: bump, Grid: one, Block: one, Args: []unsafe.Pointer{arg(m.Ptr), arg(uint32(100))}}))
		finish(t, d, s)
		w := words(m)
		if w[0] != 105+round || w[1] != 5+round || w[n/8-1] != 5+round || w[n/8] != 7+round || w[n/4-1] != 7+round {
			t.Errorf("the host reads %d %d … %d", w[0], w[1], w[n/4-1])
		}
		// The host writes, and the device reads.
		w[0], w[n/4-1] = 11+round, 13+round
		ok(t, d.Upload(s, dev.Ptr, m.Host, n))
		clear(w[2:100])
		ok(t, d.Copy(s, m.Ptr+8, dev.Ptr+n-8, 8))
		finish(t, d, s)
		if w[0] != 11+round || w[2] != 7+round || w[3] != 13+round {
			t.Errorf("the device gives %d %d %d back", w[0], w[2], w[3])
		}
		ok(t, d.FreeAsync(s, m))
	}
	finish(t, d, s)
}

// TestGPUPoolDestroy destroys a pool with memory in use.
func TestGPUPoolDestroy(t *testing.T) {
	d := openPools(t)
	s := newStream(t, d)
	p, err := d.NewPool(driver.PoolDesc{})
	ok(t, err)
	ok(t, d.SetPoolAttr(p, driver.PoolThreshold, math.MaxUint64))
	const n = 4 << 20
	host := alloc(t, d, driver.HostMem, n)
	var kept []driver.Mem
	for i := range uint32(3) {
		m, err := d.AllocAsync(s, p, n)
		ok(t, err)
		ok(t, d.Fill(s, m.Ptr, i+1, 4, n/4))
		kept = append(kept, m)
	}
	ok(t, d.FreeAsync(s, kept[2]))
	err = d.DestroyPool(p)
	for errors.Is(err, driver.ErrBusy) { // while the stream still executes the fills
		synchronize(t, d, s)
		err = d.DestroyPool(p)
	}
	ok(t, err)
	for i, m := range kept[:2] {
		ok(t, d.Download(s, host.Host, m.Ptr, n))
		finish(t, d, s)
		if w := words(host); w[0] != uint32(i+1) || w[n/4-1] != uint32(i+1) {
			t.Errorf("allocation %d has %d … %d", i, w[0], w[n/4-1])
		}
		ok(t, d.FreeAsync(s, m))
	}
	synchronize(t, d, s)
}
