package cudadriver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// newID makes an id of a communicator. It skips the test without NCCL.
func newID(t testing.TB, d *device) driver.UniqueID {
	t.Helper()
	id, err := d.NewUniqueID()
	if errors.Is(err, dl.ErrNotFound) && os.Getenv("PUREGPU_TEST_REQUIRE_GPU") == "" {
		t.Skip(err)
	}
	ok(t, err)
	return id
}

// soon calls fn. It fails the test if fn fails or takes more than five seconds.
func soon(t testing.TB, what string, fn func() error) {
	t.Helper()
	start := time.Now()
	err := fn()
	took := time.Since(start)
	t.Logf("%s took %v", what, took)
	if err != nil || took > 5*time.Second {
		t.Errorf("%s: %v after %v", what, err, took)
	}
}

// float8 reports whether e is an 8-bit float. NCCL may refuse to compute with these types on older
// GPUs.
func float8(e driver.ElementType) bool { return e == driver.Float8E4M3 || e == driver.Float8E5M2 }

// TestGPUComm tests a communicator of one rank, where all operations copy.
func TestGPUComm(t *testing.T) {
	d := openGPU(t)
	id := newID(t, d)
	start := time.Now()
	c, err := d.NewComm(driver.CommDesc{ID: id, Rank: 0, Count: 1, Name: "puregpu test"})
	ok(t, err)
	began := time.Since(start)
	ready(t, d, c)
	t.Logf("a communicator is begun in %v and made in %v", began, time.Since(start))
	if r, n, err := d.CommRank(c); r != 0 || n != 1 || err != nil {
		t.Errorf("rank %d of %d, %v", r, n, err)
	}
	s := newStream(t, d)
	const room = 1 << 16
	src, dst, host := alloc(t, d, driver.CommMem, room), alloc(t, d, driver.CommMem, room), alloc(t, d, driver.HostMem, room)
	data := unsafe.Slice((*byte)(host.Host), room)
	// copied runs operations with data at src, and checks dst.
	copied := func(what string, n int, dst driver.Ptr, ops ...driver.CommOp) {
		t.Helper()
		var want [room]byte
		// The bytes are normal numbers in every float type. An average multiplies the data by 1,
		// and that may change numbers that are not normal.
		for i := range data {
			data[i] = 0x38 + byte(i+i>>3+i>>6+n)&7
		}
		copy(want[:], data)
		ok(t, d.Upload(s, src.Ptr, host.Host, room))
		if dst != src.Ptr {
			ok(t, d.Fill(s, dst, 0, 1, room))
		}
		if err := d.Collect(s, c, ops); err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		ok(t, d.Download(s, host.Host, dst, room))
		finish(t, d, s)
		if !bytes.Equal(data[:n], want[:n]) {
			t.Errorf("%s: not copied", what)
		}
	}
	const count = 1000
	for e := driver.ElementType(0); e.Valid(); e++ {
		n := count * e.Size()
		for k := driver.AllReduce; k < driver.Send; k++ {
			for r := driver.Sum; r < driver.PreMulSum; r++ {
				op := driver.CommOp{Kind: k, Type: e, Reduction: r, Src: src.Ptr, Dst: dst.Ptr, Count: count}
				what := k.String() + " of " + e.String() + " by " + r.String()
				if k.Reduces() && (e == driver.Int16 || e == driver.Uint16) {
					if err := d.Collect(s, c, []driver.CommOp{op}); !errors.Is(err, driver.ErrUnsupported) {
						t.Errorf("%s: %v", what, err)
					}
					continue
				}
				if k.Reduces() && float8(e) {
					if err := d.Collect(s, c, []driver.CommOp{op}); err != nil {
						t.Logf("%s: %v", what, err)
						break
					}
				}
				copied(what, n, dst.Ptr, op)
				if k != driver.AllToAll {
					op.Dst = op.Src
					copied(what+", in place", n, src.Ptr, op)
				}
				if !k.Reduces() {
					break
				}
			}
		}
		copied("messages of "+e.String(), n, dst.Ptr, driver.CommOp{Kind: driver.Send, Type: e, Src: src.Ptr, Count: count},
			driver.CommOp{Kind: driver.Recv, Type: e, Dst: dst.Ptr, Count: count})
	}
	half := driver.CommOp{Kind: driver.AllReduce, Type: driver.Int32, Src: src.Ptr, Dst: dst.Ptr, Count: count / 2}
	other, none := half, half
	other.Src, other.Dst, none.Count = half.Src+2*count, half.Dst+2*count, 0
	copied("a group", 4*count, dst.Ptr, half, none, other)

	// PreMulSum multiplies by a factor.
	for i := range count {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i)))
	}
	ok(t, d.Upload(s, src.Ptr, host.Host, room))
	scaled := driver.CommOp{Kind: driver.AllReduce, Type: driver.Float32, Reduction: driver.PreMulSum, Src: src.Ptr, Dst: dst.Ptr, Count: count}
	binary.LittleEndian.PutUint32(scaled.Scale[:], math.Float32bits(2.5))
	ok(t, d.Collect(s, c, []driver.CommOp{scaled}))
	ok(t, d.Download(s, host.Host, dst.Ptr, room))
	finish(t, d, s)
	for i := range count {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); got != 2.5*float32(i) {
			t.Fatalf("element %d is %v, want %v", i, got, 2.5*float32(i))
		}
	}

	// Use registered memory.
	m, err := d.RegisterComm(c, src.Ptr, src.Size)
	ok(t, err)
	copied("registered memory", room, dst.Ptr, driver.CommOp{Type: driver.Uint8, Src: src.Ptr, Dst: dst.Ptr, Count: room})
	ok(t, d.ReleaseCommMemory(c, m))
	for _, symmetric := range []bool{false, true} {
		w, err := d.NewWindow(c, src.Ptr, src.Size, symmetric)
		if errors.Is(err, dl.ErrSymbol) {
			break
		}
		ok(t, err)
		copied("a window", room, dst.Ptr, driver.CommOp{Type: driver.Uint8, Src: src.Ptr, Dst: dst.Ptr, Count: room})
		ok(t, d.ReleaseCommMemory(c, w))
	}
	if _, err := d.RegisterComm(c, dst.Ptr, dst.Size); err != nil { // DestroyComm releases the registration
		t.Error(err)
	}
	m2, err := d.Alloc(driver.CommMem, 1<<45)
	if t.Logf("2^45 bytes: %v", err); err == nil || m2 != (driver.Mem{}) {
		t.Errorf("2^45 bytes: %+v, %v", m2, err)
	}
	if dl.Fast {
		ops, sink := []driver.CommOp{half, other}, error(nil)
		if n := testing.AllocsPerRun(20, func() { sink = d.Collect(s, c, ops) }); n != 0 || sink != nil {
			t.Errorf("Collect allocates %v times, %v", n, sink)
		}
		finish(t, d, s)
	}

	// SplitComm and ShrinkComm make communicators from this one.
	if none, err := d.SplitComm(c, driver.NoColor, 0); none != 0 || errors.Is(err, dl.ErrSymbol) {
		t.Logf("no split: %v", err)
	} else {
		ok(t, err)
		start = time.Now()
		child, err := d.SplitComm(c, 3, -7)
		ok(t, err)
		ready(t, d, child)
		t.Logf("split in %v", time.Since(start))
		if r, n, err := d.CommRank(child); r != 0 || n != 1 || err != nil {
			t.Errorf("rank %d of %d, %v", r, n, err)
		}
		soon(t, "abort", func() error { return d.AbortComm(c) })
		soon(t, "destroy an aborted communicator", func() error { return d.DestroyComm(c) })
		c = child
		ok(t, d.CommError(c))
		copied("the communicator made from it", 4*count, dst.Ptr, half, other)
	}
	ok(t, d.CommError(c))
	soon(t, "destroy", func() error { return d.DestroyComm(c) })

	// The other rank of this communicator never comes.
	id = newID(t, d)
	lonely, err := d.NewComm(driver.CommDesc{ID: id, Rank: 0, Count: 2})
	ok(t, err)
	for range 100 {
		if done, err := d.CommReady(lonely); done || err != nil {
			t.Fatalf("%t, %v", done, err)
		}
		time.Sleep(time.Millisecond)
	}
	ok(t, d.CommError(lonely))
	soon(t, "abort while it is made", func() error { return d.AbortComm(lonely) })
	if _, err := d.CommReady(lonely); err == nil {
		t.Error("an aborted communicator becomes ready")
	}
	soon(t, "destroy", func() error { return d.DestroyComm(lonely) })
	if ctx, err := d.lib.CtxGetCurrent(); ctx != d.ctx || err != nil {
		t.Errorf("the context is %#x, want %#x; %v", ctx, d.ctx, err)
	}
}

// gpuRanks holds two devices, each with its own thread.
type gpuRanks struct {
	t    *testing.T
	devs [2]*device
	todo [2]chan func()
	s    [2]driver.Stream
	c    [2]driver.Comm
}

func openRanks(t *testing.T) *gpuRanks {
	first := openGPU(t)
	drv, err := New(first.lib)
	ok(t, err)
	if infos, err := drv.Devices(); err != nil || len(infos) < 2 {
		t.Skipf("%d devices, %v", len(infos), err)
	}
	newID(t, first)
	g := &gpuRanks{t: t}
	for i := range g.devs {
		d, err := drv.Open(i)
		ok(t, err)
		g.devs[i], g.todo[i] = d.(*device), make(chan func())
		ended := make(chan error)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			d.Bind()
			for f := range g.todo[i] {
				f()
			}
			ended <- d.Close()
		}()
		t.Cleanup(func() {
			close(g.todo[i])
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Errorf("rank %d hangs", i)
			}
		})
	}
	g.each("streams", func(i int, d *device) (err error) {
		g.s[i], err = d.NewStream()
		return err
	})
	t.Cleanup(func() { g.each("destroy streams", func(i int, d *device) error { return d.DestroyStream(g.s[i]) }) })
	return g
}

// start runs fn on a rank's thread.
func (g *gpuRanks) start(i int, fn func(i int, d *device) error) <-chan error {
	done := make(chan error, 1)
	g.todo[i] <- func() { done <- fn(i, g.devs[i]) }
	return done
}

func (g *gpuRanks) wait(what string, done <-chan error) error {
	g.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		g.t.Fatalf("%s: the call hangs", what)
		return nil
	}
}

// each runs fn on both threads concurrently.
func (g *gpuRanks) each(what string, fn func(i int, d *device) error) {
	g.t.Helper()
	var done [2]<-chan error
	for i := range done {
		done[i] = g.start(i, fn)
	}
	for i := range done {
		if err := g.wait(what, done[i]); err != nil {
			g.t.Fatalf("%s: rank %d: %v", what, i, err)
		}
	}
}

// ready waits until a communicator is ready.
func ready(t testing.TB, d *device, c driver.Comm) {
	t.Helper()
	ok(t, settle(d, c))
}

// settle waits until a communicator is ready.
func settle(d *device, c driver.Comm) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		if done, err := d.CommReady(c); done || err != nil {
			return err
		}
	}
	return errors.New("the communicator does not get ready")
}

// join makes a communicator of both devices.
func (g *gpuRanks) join() {
	g.t.Helper()
	id := newID(g.t, g.devs[0])
	start := time.Now()
	g.each("new communicator", func(i int, d *device) (err error) {
		if g.c[i], err = d.NewComm(driver.CommDesc{ID: id, Rank: i, Count: 2}); err != nil {
			return err
		}
		return settle(d, g.c[i])
	})
	g.t.Logf("made in %v", time.Since(start))
}

func (g *gpuRanks) destroy() {
	g.t.Helper()
	start := time.Now()
	g.each("destroy", func(i int, d *device) error { return d.DestroyComm(g.c[i]) })
	g.t.Logf("destroyed in %v", time.Since(start))
}

// idle waits until a stream has no pending work.
func idle(d *device, s driver.Stream) error {
	e, err := d.NewEvent()
	if err != nil {
		return err
	}
	defer d.DestroyEvent(e)
	if err := d.Record(e, s); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if done, err := d.Query(e); done || err != nil {
			return err
		}
	}
	return errors.New("the stream does not end")
}

// TestGPURanks compares every operation on two devices with results of the host.
func TestGPURanks(t *testing.T) {
	g := openRanks(t)
	g.join()
	const n = 100_003 // elements of each operation
	// in returns element i of a rank's input.
	in := func(rank, i int) uint32 { return uint32(rank+1)*1_000_003 + uint32(i)*uint32(i) }
	type op struct {
		kind driver.CommOpKind
		red  driver.Reduction
		peer func(rank int) int
		// want returns element i of a rank's output.
		want  func(rank, i int) uint32
		count func(rank int) int
	}
	all := func(x int) func(int) int { return func(int) int { return x } }
	at := func(root, x int) func(int) int {
		return func(rank int) int {
			if rank == root {
				return x
			}
			return 0
		}
	}
	both := func(f func(a, b uint32) uint32) func(int, int) uint32 {
		return func(_, i int) uint32 { return f(in(0, i), in(1, i)) }
	}
	sum := both(func(a, b uint32) uint32 { return a + b })
	ops := map[string]op{
		"all-reduce by sum":  {driver.AllReduce, driver.Sum, all(0), sum, all(n)},
		"all-reduce by prod": {driver.AllReduce, driver.Prod, all(0), both(func(a, b uint32) uint32 { return a * b }), all(n)},
		"all-reduce by min":  {driver.AllReduce, driver.Min, all(0), both(func(a, b uint32) uint32 { return min(a, b) }), all(n)},
		"all-reduce by max":  {driver.AllReduce, driver.Max, all(0), both(func(a, b uint32) uint32 { return max(a, b) }), all(n)},
		"all-gather":         {driver.AllGather, 0, all(0), func(_, i int) uint32 { return in(i/n, i%n) }, all(2 * n)},
		"reduce-scatter":     {driver.ReduceScatter, driver.Sum, all(0), func(rank, i int) uint32 { return sum(0, rank*n+i) }, all(n)},
		"broadcast":          {driver.Broadcast, 0, all(1), func(_, i int) uint32 { return in(1, i) }, all(n)},
		"reduce":             {driver.Reduce, driver.Sum, all(1), sum, at(1, n)},
		"all-to-all":         {driver.AllToAll, 0, all(0), func(rank, i int) uint32 { return in(i/n, rank*n+i%n) }, all(2 * n)},
		"gather":             {driver.Gather, 0, all(1), func(_, i int) uint32 { return in(i/n, i%n) }, at(1, 2*n)},
		"scatter":            {driver.Scatter, 0, all(1), func(rank, i int) uint32 { return in(1, rank*n+i) }, all(n)},
		"messages":           {driver.Send, 0, func(rank int) int { return 1 - rank }, func(rank, i int) uint32 { return in(1-rank, i) }, all(n)},
	}
	const size = 2 * n * 4
	var src, dst, host [2]driver.Mem
	g.each("memory", func(i int, d *device) error {
		var errs [3]error
		src[i], errs[0] = d.Alloc(driver.CommMem, size)
		dst[i], errs[1] = d.Alloc(driver.DeviceMem, size)
		host[i], errs[2] = d.Alloc(driver.HostMem, size)
		return errors.Join(errs[:]...)
	})
	run := func(what string, o op) {
		g.each(what, func(i int, d *device) error {
			words := unsafe.Slice((*uint32)(host[i].Host), 2*n)
			for k := range words {
				words[k] = in(i, k)
			}
			c := driver.CommOp{Kind: o.kind, Type: driver.Uint32, Reduction: o.red, Src: src[i].Ptr, Dst: dst[i].Ptr, Count: n, Peer: o.peer(i)}
			list := []driver.CommOp{c}
			if o.kind == driver.Send {
				c.Kind = driver.Recv
				list = append(list, c)
			}
			err := errors.Join(d.Upload(g.s[i], src[i].Ptr, host[i].Host, size), d.Fill(g.s[i], dst[i].Ptr, 0, 1, size), d.Collect(g.s[i], g.c[i], list),
				d.Download(g.s[i], host[i].Host, dst[i].Ptr, size), idle(d, g.s[i]))
			if err != nil {
				return err
			}
			for k := range o.count(i) {
				if want := o.want(i, k); words[k] != want {
					t.Errorf("%s: element %d of rank %d is %d, want %d", what, k, i, words[k], want)
					break
				}
			}
			return nil
		})
	}
	for what, o := range ops {
		run(what, o)
	}
	var registered [2]driver.CommMemory
	g.each("window", func(i int, d *device) (err error) {
		if registered[i], err = d.NewWindow(g.c[i], src[i].Ptr, src[i].Size, true); errors.Is(err, dl.ErrSymbol) {
			registered[i], err = d.RegisterComm(g.c[i], src[i].Ptr, src[i].Size)
		}
		return err
	})
	run("all-reduce in a window", ops["all-reduce by sum"])
	g.each("release the window", func(i int, d *device) error { return d.ReleaseCommMemory(g.c[i], registered[i]) })

	// These sums of floats are exact.
	for _, red := range []driver.Reduction{driver.Sum, driver.Avg} {
		g.each("floats", func(i int, d *device) error {
			values := unsafe.Slice((*float32)(host[i].Host), n)
			for k := range values {
				values[k] = float32(k%1000) * float32(i+1)
			}
			o := driver.CommOp{Kind: driver.AllReduce, Type: driver.Float32, Reduction: red, Src: src[i].Ptr, Dst: src[i].Ptr, Count: n}
			err := errors.Join(d.Upload(g.s[i], src[i].Ptr, host[i].Host, 4*n), d.Collect(g.s[i], g.c[i], []driver.CommOp{o}),
				d.Download(g.s[i], host[i].Host, src[i].Ptr, 4*n), idle(d, g.s[i]))
			for k := range values {
				want := 3 * float32(k%1000)
				if red == driver.Avg {
					want /= 2
				}
				if err == nil && values[k] != want {
					t.Errorf("%v: element %d of rank %d is %v, want %v", red, k, i, values[k], want)
					break
				}
			}
			return err
		})
	}

	// Split the communicator into a communicator with the ranks in reverse order, and then into one
	// communicator per rank.
	parent := g.c
	for _, alone := range []bool{false, true} {
		g.c = parent
		start := time.Now()
		g.each("split", func(i int, d *device) error {
			color, rank, count := 5, 1-i, 2
			if alone {
				color, rank, count = i, 0, 1
			}
			c, err := d.SplitComm(g.c[i], color, -i)
			if err != nil {
				return err
			}
			if err := settle(d, c); err != nil {
				return err
			}
			g.c[i] = c
			if r, n, err := d.CommRank(c); r != rank || n != count || err != nil {
				t.Errorf("rank %d of %d, %v, want %d of %d", r, n, err, rank, count)
			}
			return nil
		})
		t.Logf("split in %v", time.Since(start))
		if !alone {
			run("all-reduce after a split", ops["all-reduce by sum"])
		}
		g.destroy()
	}
	g.c = parent
	run("all-reduce afterwards", ops["all-reduce by sum"])
	g.destroy()
	g.each("free", func(i int, d *device) error { return errors.Join(d.Free(src[i]), d.Free(dst[i]), d.Free(host[i])) })
}

// TestGPURankMissing tests every call that waits for another rank. The other rank never comes. The
// test aborts the communicator, and the waiting call must return.
func TestGPURankMissing(t *testing.T) {
	g := openRanks(t)
	var mem [2]driver.Mem
	g.each("memory", func(i int, d *device) (err error) {
		mem[i], err = d.Alloc(driver.DeviceMem, 4096)
		return err
	})
	reduce := func(i int, d *device) error {
		return d.Collect(g.s[i], g.c[i], []driver.CommOp{{Kind: driver.AllReduce, Type: driver.Float32, Src: mem[i].Ptr, Dst: mem[i].Ptr, Count: 1024}})
	}
	// abort aborts rank 0 from this bound thread.
	abort := func() {
		t.Helper()
		soon(t, "abort", func() error { return g.devs[0].AbortComm(g.c[0]) })
	}
	end := func() {
		t.Helper()
		g.each("end", func(i int, d *device) error {
			if i == 1 {
				if err := d.AbortComm(g.c[i]); err != nil {
					return err
				}
			}
			return errors.Join(idle(d, g.s[i]), d.DestroyComm(g.c[i]))
		})
	}
	for _, c := range []struct {
		name string
		work func(i int, d *device) error
		met  bool // the ranks have made a communicator before
	}{
		{"first operation", reduce, false},
		{"operation", reduce, true},
		{"window", func(i int, d *device) error {
			m, err := d.Alloc(driver.CommMem, 1<<21)
			if err != nil {
				return err
			}
			t.Cleanup(func() { <-g.start(i, func(i int, d *device) error { return d.Free(m) }) })
			_, err = d.NewWindow(g.c[i], m.Ptr, m.Size, true)
			return err
		}, true},
		{"split", func(i int, d *device) error {
			child, err := d.SplitComm(g.c[i], 0, 0)
			if err != nil {
				return err
			}
			err = settle(d, child)
			return errors.Join(err, d.DestroyComm(child))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ok(t, g.devs[0].Bind())
			defer g.devs[0].Unbind()
			g.t = t
			g.join()
			if c.met {
				g.each("meet", func(i int, d *device) error { return errors.Join(reduce(i, d), idle(d, g.s[i])) })
			}
			stuck := g.start(0, c.work)
			select {
			case err := <-stuck:
				t.Logf("the call returned without waiting: %v", err)
				stuck = nil
			case <-time.After(500 * time.Millisecond):
			}
			if err := g.devs[0].CommError(g.c[0]); err != nil {
				t.Errorf("before the abort, CommError = %v", err)
			}
			abort()
			if stuck != nil {
				start := time.Now()
				err := g.wait(c.name, stuck)
				t.Logf("the call returned %v after the abort: %v", time.Since(start), err)
				if err == nil {
					t.Error("an aborted call has succeeded")
				}
			}
			if err := g.devs[0].CommError(g.c[0]); err == nil {
				t.Error("an aborted communicator has no error")
			}
			end()
		})
	}
	g.t = t
	g.join() // the devices must still work
	g.each("meet", func(i int, d *device) error { return errors.Join(reduce(i, d), idle(d, g.s[i])) })

	// DestroyComm may wait for the other rank until the communicator is aborted.
	done := g.start(0, func(i int, d *device) error { return d.DestroyComm(g.c[i]) })
	select {
	case err := <-done:
		t.Logf("destroying does not wait: %v", err)
		done = nil
	case <-time.After(500 * time.Millisecond):
	}
	if done != nil {
		abort()
		t.Logf("destroying returned: %v", g.wait("destroy", done))
	}
	g.wait("destroy", g.start(1, func(i int, d *device) error { return d.DestroyComm(g.c[i]) }))
	g.each("free", func(i int, d *device) error { return d.Free(mem[i]) })
}

// BenchmarkGPUCollect issues operations of one rank. They are copies and wait for nothing.
func BenchmarkGPUCollect(b *testing.B) {
	d := openGPU(b)
	c, err := d.NewComm(driver.CommDesc{ID: newID(b, d), Count: 1})
	ok(b, err)
	ready(b, d, c)
	s, m := newStream(b, d), alloc(b, d, driver.DeviceMem, 8192)
	ops := []driver.CommOp{{Kind: driver.AllReduce, Type: driver.Float32, Src: m.Ptr, Dst: m.Ptr + 4096, Count: 1024}}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Collect(s, c, ops); err != nil {
			b.Fatal(err)
		}
	}
	finish(b, d, s)
	ok(b, d.DestroyComm(c))
}
