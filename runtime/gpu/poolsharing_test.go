package gpu_test

import (
	"errors"
	"os"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// sharedPool makes a pool of one process that others may have, and imports it on another process's device.
func sharedPool(t *testing.T, a, b *gpu.Device) (*gpu.Pool, *gpu.ImportedPool) {
	t.Helper()
	p := newPool(t, a, gpu.PoolOptions{Shareable: true})
	f, err := p.Export()
	must(t, err)
	defer f.Close()
	q, err := b.ImportPool(f)
	must(t, err)
	return p, q
}

// TestPoolSharing, of B185, has a process use memory of another one's pool.
func TestPoolSharing(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		a, b := devs[0], devs[1]
		if !caps.PoolSharing {
			_, err := a.NewPool(gpu.PoolOptions{Shareable: true})
			f, err2 := os.CreateTemp(t.TempDir(), "")
			must(t, err2)
			defer f.Close()
			_, err2 = b.ImportPool(f)
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
		first := alloca(t, a.Queue(0), gpu.Order{}, p, 512) // so that the other lies behind something
		own := alloca(t, a.Queue(0), gpu.Order{}, p, 1024)
		must(t, a.Queue(0).Fill(gpu.Order{Signal: pts(s, 1)}, own.All(), []byte{1}))
		h, err := own.Export()
		must(t, err)
		data, err := h.MarshalBinary() // which is what is sent
		must(t, err)
		var sent gpu.MemoryHandle
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
		must(t, s.Wait(minute(t), 1)) // the host tells
		must(t, b.Queue(0).Fill(gpu.Order{Signal: pts(s, 2)}, o.Range(0, 16), []byte{2}))
		must(t, s.Wait(minute(t), 2))
		if got := bytesOf(t, a.Queue(0), own); got[255] != 1 || got[256] != 2 || got[271] != 2 || got[272] != 1 {
			t.Errorf("%v", got[250:280])
		}
		fullOf(t, a.Queue(0), first, 0)
		if got := bytesOf(t, b.Queue(1), whole); got[256] != 2 || got[1023] != 1 {
			t.Errorf("%v", got[250:280])
		}
		must(t, q.Close()) // what was imported stays
		must(t, q.Close())
		if _, err := q.Import(h, nil); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("import of a closed pool: %v", err)
		}
		must(t, b.Queue(0).Fill(gpu.Order{Signal: pts(s, 3)}, o.All(), []byte{3}))
		must(t, o.Close())
		must(t, whole.Close())
		must(t, s.Wait(minute(t), 3))
		<-back
		eventually(t, "the imported pool is given back", func() bool { return calls(ds[1], 0, simdriver.OpDestroyPool) == 1 }, b)
		if n := calls(ds[1], 0, simdriver.OpClosePoolMem); n != 2 {
			t.Errorf("closed %d times", n)
		}
		must(t, own.Dealloca(gpu.Order{}))
		must(t, first.Close())
	})
}

// TestPoolSharingMistakes, of B185, gives what is none.
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
		h, err := own.Export()
		must(t, err)
		file, err := os.CreateTemp(t.TempDir(), "")
		must(t, err)
		defer file.Close()
		mine, err := p.Export()
		must(t, err)
		defer mine.Close()
		ordinary, plain := newPool(t, a, gpu.PoolOptions{}), allocate(t, a, 256)
		ph, err := plain.Export()
		must(t, err)
		outside := h
		outside.Offset = 1 << 20
		closed := newPool(t, a, gpu.PoolOptions{Shareable: true})
		must(t, closed.Close())
		only := func(_ any, err error) error { return err }
		for what, x := range map[string]struct{ err, want error }{
			"export of an ordinary pool":            {only(ordinary.Export()), gpu.ErrArgument},
			"export of a closed pool":               {only(closed.Export()), gpu.ErrClosed},
			"export of an ordinary pool's memory":   {only(alloca(t, a.Queue(0), gpu.Order{}, ordinary, 64).Export()), gpu.ErrArgument},
			"export of what has not been allocated": {only(parked.Export()), gpu.ErrUnallocated},
			"import of no file":                     {only(b.ImportPool(nil)), gpu.ErrArgument},
			"import of another file":                {only(b.ImportPool(file)), simdriver.ErrInvalidHandle},
			"import in the same process":            {only(a.ImportPool(mine)), driver.ErrSameProcess},
			"import of ordinary memory":             {only(q.Import(ph, nil)), gpu.ErrArgument},
			"import of another pool's memory":       {only(otherImported.Import(h, nil)), simdriver.ErrInvalidHandle},
			"import of what is not in it":           {only(q.Import(outside, nil)), gpu.ErrRange},
			"import of nothing":                     {only(q.Import(gpu.MemoryHandle{Pooled: true}, nil)), gpu.ErrArgument},
			"import of a pool's as other memory":    {only(b.ImportShared(h, nil)), gpu.ErrArgument},
			"a shareable portable pool":             {only(a.NewPool(gpu.PoolOptions{Shareable: true, Portable: true})), driver.ErrUnsupported},
			"a shareable pool of host memory":       {only(a.NewPool(gpu.PoolOptions{Shareable: true, Kind: gpu.HostMem})), driver.ErrUnsupported},
			"a shareable pool over a buffer":        {only(a.NewPool(gpu.PoolOptions{Shareable: true, Over: plain})), driver.ErrUnsupported},
		} {
			if !errors.Is(x.err, x.want) {
				t.Errorf("%s: %v; want %v", what, x.err, x.want)
			}
		}
		must(t, host.Signal(1))
		o, err := q.Import(h, nil)
		must(t, err)
		must(t, b.Close()) // with what is left
		if _, err := b.ImportPool(mine); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("import on a closed device: %v", err)
		}
		must(t, o.Close())
		must(t, other.Close())
	})
}
