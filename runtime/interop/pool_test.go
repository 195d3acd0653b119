package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// sharedPool makes a shareable pool in one process, and imports it on another process's device.
func sharedPool(t *testing.T, a, b *gpu.Device) (*gpu.Pool, *interop.Pool) {
	t.Helper()
	p := newPool(t, a, gpu.PoolOptions{Shareable: true})
	f, err := interop.ExportPool(p)
	must(t, err)
	defer f.Close()
	q, err := interop.ImportPool(b, f)
	must(t, err)
	return p, q
}

// TestPoolSharing tests B185: a process uses memory of another process's pool.
func TestPoolSharing(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		a, b := devs[0], devs[1]
		if !caps.PoolSharing {
			_, err := a.NewPool(gpu.PoolOptions{Shareable: true})
			f, err2 := os.CreateTemp(t.TempDir(), "")
			must(t, err2)
			defer f.Close()
			_, err2 = interop.ImportPool(b, f)
			if !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err2, driver.ErrUnsupported) {
				t.Errorf("%v, %v", err, err2)
			}
			return
		}
		p, q := sharedPool(t, a, b)
		if q.Device() != b || !p.Options().Shareable {
			t.Error("another device, or options")
		}
		s := semaphores(t, 1)[0]
		first := alloca(t, a.Queue(0), gpu.Order{}, p, 512) // takes the pool's first bytes: the buffer own gets an offset
		own := alloca(t, a.Queue(0), gpu.Order{}, p, 1024)
		must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(own.All(), []byte{1})))
		h, err := interop.ExportMemory(own)
		must(t, err)
		data, err := h.MarshalBinary() // the processes send each other the encoded handle
		must(t, err)
		var sent interop.MemoryHandle
		must(t, sent.UnmarshalBinary(data))
		if sent != h || !h.Pooled || h.Size != 1024 || h.Device != a.Info().UUID {
			t.Errorf("%+v came of %+v", sent, h)
		}
		sent.Offset, sent.Size = 256, 512
		back := make(chan struct{})
		o, err := q.Import(sent, func() { close(back) })
		must(t, err)
		whole, err := q.Import(h, nil)
		must(t, err)
		must(t, s.Wait(minute(t), 1)) // the host orders the two processes
		must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Fill(o.Range(0, 16), []byte{2})))
		must(t, s.Wait(minute(t), 2))
		if got := bytesOf(t, a.Queue(0), own); got[255] != 1 || got[256] != 2 || got[271] != 2 || got[272] != 1 {
			t.Errorf("%v", got[250:280])
		}
		fullOf(t, a.Queue(0), first, 0)
		if got := bytesOf(t, b.Queue(1), whole); got[256] != 2 || got[1023] != 1 {
			t.Errorf("%v", got[250:280])
		}
		must(t, q.Close()) // the imported memory stays usable
		must(t, q.Close())
		if _, err := q.Import(h, nil); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("import of a closed pool: %v", err)
		}
		must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(s, 3)}, gpu.Fill(o.All(), []byte{3})))
		must(t, o.Close())
		must(t, whole.Close())
		must(t, s.Wait(minute(t), 3))
		<-back
		eventually(t, "the imported pool is given back", func() bool { return calls(ds[1], 0, simdriver.OpDestroyPool) == 1 }, b)
		if n := calls(ds[1], 0, simdriver.OpClosePoolMem); n != 2 {
			t.Errorf("closed %d times", n)
		}
		must(t, own.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(own)))
		must(t, first.Close())
	})
}

// TestPoolSharingMistakes checks the errors for pools, files and handles that cannot be shared or
// imported (B185).
func TestPoolSharingMistakes(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		if !caps.PoolSharing {
			return
		}
		a, b := devs[0], devs[1]
		p, q := sharedPool(t, a, b)
		other, otherImported := sharedPool(t, a, b)
		host := semaphores(t, 1)[0]
		own, parked := alloca(t, a.Queue(0), gpu.Order{}, p, 256), alloca(t, a.Queue(0), gpu.Order{Wait: pts(host, 1)}, p, 256)
		h, err := interop.ExportMemory(own)
		must(t, err)
		file, err := os.CreateTemp(t.TempDir(), "")
		must(t, err)
		defer file.Close()
		mine, err := interop.ExportPool(p)
		must(t, err)
		defer mine.Close()
		ordinary, plain := newPool(t, a, gpu.PoolOptions{}), allocate(t, a, 256)
		ph, err := interop.ExportMemory(plain)
		must(t, err)
		outside := h
		outside.Offset = 1 << 20
		closed := newPool(t, a, gpu.PoolOptions{Shareable: true})
		must(t, closed.Close())
		only := func(_ any, err error) error { return err }
		for what, x := range map[string]struct{ err, want error }{
			"export of an ordinary pool":          {only(interop.ExportPool(ordinary)), gpu.ErrArgument},
			"export of a closed pool":             {only(interop.ExportPool(closed)), gpu.ErrClosed},
			"export of an ordinary pool's memory": {only(interop.ExportMemory(alloca(t, a.Queue(0), gpu.Order{}, ordinary, 64))), gpu.ErrArgument},
			"export of unallocated memory":        {only(interop.ExportMemory(parked)), gpu.ErrUnallocated},
			"import of no file":                   {only(interop.ImportPool(b, nil)), gpu.ErrArgument},
			"import of another file":              {only(interop.ImportPool(b, file)), simdriver.ErrInvalidHandle},
			"import in the same process":          {only(interop.ImportPool(a, mine)), driver.ErrSameProcess},
			"import of ordinary memory":           {only(q.Import(ph, nil)), gpu.ErrArgument},
			"import of another pool's memory":     {only(otherImported.Import(h, nil)), simdriver.ErrInvalidHandle},
			"import of memory outside the pool":   {only(q.Import(outside, nil)), gpu.ErrRange},
			"import of nothing":                   {only(q.Import(interop.MemoryHandle{Pooled: true}, nil)), gpu.ErrArgument},
			"import of a pool's as other memory":  {only(interop.ImportMemory(b, h, nil)), gpu.ErrArgument},
			"a shareable portable pool":           {only(a.NewPool(gpu.PoolOptions{Shareable: true, Portable: true})), driver.ErrUnsupported},
			"a shareable pool of host memory":     {only(a.NewPool(gpu.PoolOptions{Shareable: true, Kind: gpu.HostMem})), driver.ErrUnsupported},
			"a shareable pool over a buffer":      {only(a.NewPool(gpu.PoolOptions{Shareable: true, Over: plain})), driver.ErrUnsupported},
		} {
			if !errors.Is(x.err, x.want) {
				t.Errorf("%s: %v; want %v", what, x.err, x.want)
			}
		}
		must(t, host.Signal(1))
		o, err := q.Import(h, nil)
		must(t, err)
		must(t, b.Close()) // also closes o and the imported pools
		if _, err := interop.ImportPool(b, mine); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("import on a closed device: %v", err)
		}
		must(t, o.Close())
		must(t, other.Close())
	})
}

// TestPoolSharingFaults is like TestSharingFaults, for pools.
func TestPoolSharingFaults(t *testing.T) {
	sharingFaults(t, sharePools)
}

// sharePools makes each of two processes use memory of the other's pool. If a call fails,
// sharePools returns early. The returned error says that work or an import never ended or, if sound
// is true, which call failed.
func sharePools(t *testing.T, d, other driver.Driver, sound bool) error {
	type side struct {
		dev      *gpu.Device
		pool     *gpu.Pool
		imported *interop.Pool // the other process's pool
		stream   *gpu.Stream
		own, far *gpu.Buffer // far is the other process's memory
		back     chan struct{}
	}
	var sides [2]*side
	for i, d := range []driver.Driver{d, other} {
		dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2, Events: 2})
		if err != nil {
			return failed(sound, err)
		}
		defer dev.Close() // may return the injected fault
		sides[i] = &side{dev: dev, stream: dev.Queue(1).NewStream()}
	}
	// Let all work end before the devices are closed. A stream of a lost device may still access
	// the other process's memory.
	defer synctest.Wait()
	for _, x := range sides {
		var err error
		if x.pool, err = x.dev.NewPool(gpu.PoolOptions{Shareable: true, Threshold: 64}); err != nil {
			return failed(sound, err)
		}
	}
	for i, x := range sides {
		f, err := interop.ExportPool(sides[1-i].pool)
		if err != nil {
			return failed(sound, err)
		}
		x.imported, err = interop.ImportPool(x.dev, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return failed(sound, err)
		}
	}
	ctx := in(t, 30*time.Second)
	var errs []error
	for round := range byte(2) {
		for _, x := range sides {
			var err error
			if x.own, err = x.stream.Alloc(x.pool, 64); err != nil {
				return failed(sound, err)
			}
			x.stream.Fill(x.own.All(), []byte{round})
		}
		for i, x := range sides {
			y := sides[1-i]
			if err := y.stream.Wait(ctx); err != nil { // the host orders their operations
				return endsIn(ctx, sound, err)
			}
			h, err := interop.ExportMemory(y.own)
			if err != nil {
				return failed(sound, err)
			}
			back := make(chan struct{})
			x.back = back
			if x.far, err = x.imported.Import(h, func() { close(back) }); err != nil {
				return failed(sound, err)
			}
			x.stream.Fill(x.far.Range(uint64(1+i), 1), []byte{10})
		}
		for i, x := range sides {
			y := sides[1-i]
			x.far.Close()
			select {
			case <-x.back:
			case <-in(t, 5*time.Second).Done(): // after a fault, only closing the device may release the import
				// First let all work end: the other process may still use memory of this device.
				synctest.Wait()
				x.dev.Close()
				select {
				case <-x.back:
				case <-ctx.Done():
					sound = true
				}
				return failed(sound, fmt.Errorf("the other process's memory is not given back\n%s", dump(x.dev)))
			}
			got := make([]byte, 4)
			err := x.stream.Wait(ctx)
			if err != nil {
				synctest.Wait() // let all work end: the failed stream may still use the other process's memory
			}
			y.stream.Download(got, y.own.Range(0, 4))
			y.stream.Free(y.own)
			err2 := y.stream.Wait(ctx)
			if err := endsIn(ctx, sound, errors.Join(err, err2)); err != nil {
				return err
			}
			want := []byte{round, round, round, round}
			want[1+i] = 10
			if err == nil && err2 == nil && !bytes.Equal(got, want) {
				errs = append(errs, fmt.Errorf("%v came, and %v was to", got, want))
			}
		}
	}
	for _, x := range sides {
		errs = append(errs, failed(sound, x.imported.Close()))
	}
	synctest.Wait()
	return errors.Join(errs...)
}

// endsIn returns an error if ctx has ended, or if sound is true and err is not nil.
func endsIn(ctx context.Context, sound bool, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("work has neither come to its end nor failed: %w", err)
	}
	return failed(sound, err)
}

// TestPoolProcessKilled kills one of two processes that share a pool: the process that made the
// pool, the process that imported it, or a process for whose event the other process waits. The
// surviving process must not hang.
func TestPoolProcessKilled(t *testing.T) {
	// shared allocates memory from a pool of process 0, fills it with 1, and imports it in process
	// 1.
	shared := func(t *testing.T, devs [2]*gpu.Device) (p *gpu.Pool, q *interop.Pool, own, far *gpu.Buffer, h interop.MemoryHandle, back chan struct{}) {
		p, q = sharedPool(t, devs[0], devs[1])
		s := semaphores(t, 1)[0]
		own = alloca(t, devs[0].Queue(0), gpu.Order{}, p, 64)
		must(t, devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(own.All(), []byte{1})))
		must(t, s.Wait(minute(t), 1))
		h, err := interop.ExportMemory(own)
		must(t, err)
		back = make(chan struct{})
		far, err = q.Import(h, func() { close(back) })
		must(t, err)
		return p, q, own, far, h, back
	}
	t.Run("that has made it", func(t *testing.T) {
		onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
			if !caps.PoolSharing {
				return
			}
			a, b := devs[0], devs[1]
			p, q, own, far, h, back := shared(t, devs)
			file, err := interop.ExportPool(p)
			must(t, err)
			defer file.Close()
			sa, sb := semaphores(t, 1)[0], semaphores(t, 1)[0]
			must(t, ds[0].StallDevice(0))
			must(t, ds[1].StallDevice(0))
			must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(sa, 1)}, gpu.Fill(own.All(), []byte{2}))) // the killed process's device never runs this
			must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(sb, 1)}, gpu.Fill(far.Range(0, 8), []byte{3})))
			ds[0].Kill()
			if err := sa.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) || !errors.Is(err, simdriver.ErrKilled) {
				t.Errorf("the process that was killed: %v", err)
			}
			own.Close()
			p.Close()
			a.Close()
			must(t, ds[1].ResumeDevice(0))
			must(t, sb.Wait(minute(t), 1))
			want := append(bytes.Repeat([]byte{3}, 8), bytes.Repeat([]byte{1}, 56)...)
			if got := bytesOf(t, b.Queue(1), far); !bytes.Equal(got, want) {
				t.Errorf("its memory has %v", got)
			}
			if _, err := q.Import(h, nil); !errors.Is(err, simdriver.ErrInvalidHandle) || !strings.Contains(err.Error(), "its process has ended") {
				t.Errorf("import of its memory: %v", err)
			}
			if _, err := interop.ImportPool(b, file); !errors.Is(err, simdriver.ErrInvalidHandle) || !strings.Contains(err.Error(), "the pool's process has ended") {
				t.Errorf("import of its pool: %v", err)
			}
			// Closing does not wait for the killed process.
			must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(sb, 2)}, gpu.Fill(far.All(), []byte{4})))
			must(t, far.Close())
			<-back
			must(t, q.Close())
			must(t, b.Close())
		})
	})
	t.Run("that has imported it", func(t *testing.T) {
		onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
			if !caps.PoolSharing {
				return
			}
			a, b := devs[0], devs[1]
			p, q, own, far, h, back := shared(t, devs)
			sa, sb := semaphores(t, 1)[0], semaphores(t, 1)[0]
			must(t, ds[1].StallDevice(0))
			must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(sb, 1)}, gpu.Fill(far.All(), []byte{3}))) // the killed process's device never runs this
			must(t, b.Queue(1).Submit(order(sa, 2, sb, 2), gpu.Fill(far.All(), []byte{4})))
			ds[1].Kill()
			if err := sb.Wait(minute(t), 2); !errors.Is(err, driver.ErrLost) || !errors.Is(err, simdriver.ErrKilled) {
				t.Errorf("the process that was killed: %v", err)
			}
			if _, err := q.Import(h, nil); !errors.Is(err, driver.ErrLost) {
				t.Errorf("an import on a lost device: %v", err)
			}
			must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(sa, 1)}, gpu.Fill(own.Range(0, 8), []byte{2})))
			if got := bytesOf(t, a.Queue(1), own, sa.At(1)); got[7] != 2 || got[8] != 1 {
				t.Errorf("the memory has %v", got)
			}
			must(t, a.Queue(0).Submit(gpu.Order{Wait: pts(sa, 1), Signal: pts(sa, 2)}, gpu.Free(own)))
			must(t, sa.Wait(minute(t), 2))
			must(t, p.Trim(0))
			if st, err := p.Stats(); err != nil || st.Used != 0 {
				t.Errorf("%+v, %v", st, err)
			}
			must(t, p.Close())
			must(t, a.Close())
			far.Close()
			q.Close()
			b.Close()
			<-back
		})
	})
	t.Run("while another waits for its event", func(t *testing.T) {
		onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
			if !caps.PoolSharing || !caps.IPCEvents {
				return
			}
			a, b := devs[0], devs[1]
			_, _, own, far, _, back := shared(t, devs)
			e, in := sharedEvent(t, a, b)
			sa, sb := semaphores(t, 1)[0], semaphores(t, 1)[0]
			must(t, ds[0].StallDevice(0))
			must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(sa, 1)}, gpu.Fill(own.All(), []byte{2})))
			must(t, a.Queue(0).Submit(order(sa, 1, sa, 2), interop.RecordEvent(e)))
			must(t, sa.WaitIssued(minute(t), 2))
			must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(sb, 1)}, interop.WaitEvent(in)))
			must(t, b.Queue(0).Submit(order(sb, 1, sb, 2), gpu.Fill(far.All(), []byte{3})))
			ds[0].Kill()
			why := errors.New("the other process has gone")
			sb.Fail(why)
			if err := sb.Wait(minute(t), 2); !errors.Is(err, why) {
				t.Errorf("%v", err)
			}
			if got := bytesOf(t, b.Queue(1), far); !bytes.Equal(got, bytes.Repeat([]byte{1}, 64)) {
				t.Errorf("its memory has %v", got)
			}
			far.Close()
			var late *gpu.CloseError
			if err := b.Close(); !errors.As(err, &late) || !errors.Is(err, driver.ErrBusy) {
				t.Errorf("close: %v", err)
			}
			synctest.Wait()
			select {
			case <-back:
				t.Error("the memory was given back, and the fill is still to come")
			default:
			}
			a.Close()
		})
	})
}

// fullOf checks that all bytes of a buffer are x.
func fullOf(t testing.TB, q *gpu.Queue, b *gpu.Buffer, x byte) {
	t.Helper()
	for i, got := range bytesOf(t, q, b) {
		if got != x {
			t.Fatalf("byte %d is %d, and was to be %d", i, got, x)
		}
	}
}
