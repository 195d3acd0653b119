package gpu_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// scratchUser returns a function for Native. The function fills n bytes of scratch memory, copies
// them to the first range of the Native operation, and stores the address of the scratch memory in
// *at.
func scratchUser(with byte, n uint64, at *driver.Ptr) func(gpu.NativeCall) error {
	return func(v gpu.NativeCall) error {
		*at = v.Ptrs[len(v.Ptrs)-1]
		return errors.Join(v.Device.Fill(v.Stream, *at, uint32(with), 1, n), v.Device.Copy(v.Stream, v.Ptrs[0], *at, n))
	}
}

// TestNativeScratch runs native operations with scratch memory on two queues. An operation must get
// the memory of the previous operation on the same queue, unless that memory is too small.
func TestNativeScratch(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Native {
			t.Skip("no access to streams")
		}
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		b := allocate(t, dev, 1024)
		var at [4]driver.Ptr
		st, other := dev.Queue(0).NewStream(), dev.Queue(1).NewStream()
		must(t, st.Do(
			gpu.Native("", scratchUser(1, 64, &at[0]), b.Range(0, 64)).Scratch(64),
			gpu.Native("", scratchUser(2, 32, &at[1]), b.Range(64, 32)).Scratch(32),
			gpu.Native("", scratchUser(3, 128, &at[2]), b.Range(128, 128)).Scratch(128),
			gpu.Native("", func(v gpu.NativeCall) error {
				if len(v.Ptrs) != 1 {
					return errors.New("scratch memory that nobody asked for")
				}
				return nil
			}, b.All()).Scratch(0)))
		must(t, other.Do(gpu.Native("", scratchUser(4, 64, &at[3]), b.Range(256, 64)).Scratch(64)))
		must(t, st.Wait(in(t, time.Minute)))
		must(t, other.Wait(in(t, time.Minute)))
		if at[0] != at[1] || at[0] == at[2] || at[0] == at[3] || at[2] == at[3] {
			t.Errorf("addresses %#x", at)
		}
		got := bytesOf(t, dev.Queue(0), b)
		if got[0] != 1 || got[63] != 1 || got[64] != 2 || got[95] != 2 || got[128] != 3 || got[255] != 3 || got[256] != 4 || got[319] != 4 {
			t.Errorf("bytes %v", got[:320])
		}
		testkit.Eventually(t, "3 buffers: b and each queue's scratch memory", func() bool { return dev.Stats().Buffers == 3 }, dev)
		if err := st.Do(gpu.Fill(b.All(), []byte{1}).Scratch(4)); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("a fill with scratch memory: %v", err)
		}
		if err := dev.Queue(0).NewStream().Do(gpu.Native("", filler(1, 1), b.All()).Scratch(1 << 50)); !errors.Is(err, gpu.ErrOutOfMemory) {
			t.Errorf("too much: %v", err)
		}
		must(t, dev.Close())
	})
}

// TestNativeScratchConcurrent submits operations with scratch memory of various sizes from several
// goroutines.
func TestNativeScratchConcurrent(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	const workers, rounds = 4, 50
	b := allocate(t, dev, workers*rounds)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			st := dev.Queue(0).NewStream()
			for i := range rounds {
				size := uint64(1 + (i*7+w*13)%rounds)
				must(t, st.Do(gpu.Native("", func(v gpu.NativeCall) error {
					return errors.Join(v.Device.Fill(v.Stream, v.Ptrs[1], uint32(w+1), 1, size), v.Device.Copy(v.Stream, v.Ptrs[0], v.Ptrs[1], 1))
				}, b.Range(uint64(w*rounds+i), 1)).Scratch(size)))
			}
			must(t, st.Wait(in(t, time.Minute)))
		})
	}
	wg.Wait()
	for i, v := range bytesOf(t, dev.Queue(0), b) {
		if int(v) != i/rounds+1 {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
	must(t, dev.Close())
}

// TestNativeScratchRecorded executes a recording of native operations with scratch memory. Two
// operations must share scratch memory if one comes after the other.
func TestNativeScratchRecorded(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.GraphMode, gpu.StreamMode} {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			if !caps.Native || mode == gpu.GraphMode && !caps.Capture {
				t.Skip("no access to streams, or no capture")
			}
			dev := openDevice(t, d, 0, gpu.Options{})
			b, c := allocate(t, dev, 256), commandBuffer(t, dev, mode)
			var at [3]driver.Ptr
			rec := recorded(t)
			x := rec(c.Add(gpu.Native("", scratchUser(1, 64, &at[0]), b.Range(0, 64)).Scratch(64)))
			rec(c.Add(gpu.Native("", scratchUser(2, 64, &at[1]), b.Range(64, 64)).Scratch(64)))
			rec(c.Add(gpu.Native("", scratchUser(3, 64, &at[2]), b.Range(128, 64)).Scratch(64), x))
			must(t, c.End())
			st := dev.Queue(0).NewStream()
			must(t, st.Do(gpu.Execute(c)))
			must(t, st.Wait(in(t, time.Minute)))
			if at[0] == at[1] || at[0] != at[2] {
				t.Errorf("addresses %#x", at)
			}
			got := bytesOf(t, dev.Queue(0), b)
			if !slices.Equal([]byte{got[0], got[63], got[64], got[127], got[128], got[191]}, []byte{1, 1, 2, 2, 3, 3}) {
				t.Errorf("bytes %v", got)
			}
			must(t, c.Close())
			must(t, dev.Close())
		})
	}
}

// TestNativeScratchAllocs checks that submitting native work with scratch memory allocates no Go
// memory.
func TestNativeScratchAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	st, b, fn, ctx := dev.Queue(0).NewStream(), allocate(t, dev, 64), filler(1, 64), minute(t)
	if n := testing.AllocsPerRun(200, func() {
		must(t, st.Do(gpu.Native("", fn, b.All()).Scratch(128)))
		must(t, st.Wait(ctx))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	must(t, dev.Close())
}

// TestNativeScratchAdopted closes a queue on an adopted stream. The scratch memory of the queue
// must be freed, and later operations must not allocate any.
func TestNativeScratchAdopted(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Native {
			t.Skip("no access to streams")
		}
		dev, f := openDevice(t, d, 0, gpu.Options{}), testkit.NewForeign(t, d, 0)
		for _, used := range []bool{false, true} {
			q, b := f.Adopt(t, dev), allocate(t, dev, 64)
			var at driver.Ptr
			op := gpu.Native("", scratchUser(1, 64, &at), b.All())
			if used {
				st := q.NewStream()
				must(t, st.Do(op.Scratch(64)))
				must(t, st.Wait(in(t, time.Minute)))
			}
			must(t, q.Close())
			for _, size := range []uint64{64, 128, 256} {
				if err := q.NewStream().Do(op.Scratch(size)); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("used %v, %d bytes of a closed queue: %v", used, size, err)
				}
			}
			synctest.Wait()
			if n := dev.Stats().Buffers; n != 1 {
				t.Errorf("used %v: %d buffers", used, n)
			}
			must(t, b.Close())
		}
		f.End(t)
		must(t, dev.Close())
	})
}
