package comm_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestMemoryKeptByLibrary closes memory of a communicator, and the buffer of that memory, while the
// library still holds both. The memory must be freed when the native communicator has been
// destroyed.
func TestMemoryKeptByLibrary(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, d *simdriver.Driver, comms []*collective.Communicator, m *collective.Memory){
		"the communicator has failed": func(t *testing.T, _ *simdriver.Driver, comms []*collective.Communicator, m *collective.Memory) {
			comms[0].Abort(nil)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		},
		"the library returns an error": func(t *testing.T, d *simdriver.Driver, _ []*collective.Communicator, m *collective.Memory) {
			d.Inject(simdriver.Fault{Op: simdriver.OpReleaseCommMemory, N: 1})
			if err := m.Close(); !errors.Is(err, simdriver.ErrInjected) {
				t.Error(err)
			}
			if err := m.Close(); err != nil {
				t.Errorf("again: %v", err)
			}
		},
		"the communicator is suspended, and is being closed": func(t *testing.T, _ *simdriver.Driver, comms []*collective.Communicator, m *collective.Memory) {
			if err := each(2, func(i int) error { return comms[i].Suspend(t.Context()) }); err != nil {
				t.Error(err)
			}
			held := make(chan struct{})
			in(comms[0]).Post(func() { <-held })
			closed := make(chan error, 1)
			go func() { closed <- m.Close() }()
			synctest.Wait()
			go comms[0].Close() // waits for the other rank
			synctest.Wait()
			close(held)
			if err := <-closed; err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := simdriver.New(simdriver.Config{Devices: 2, Strict: true})
				g, err := gpu.OpenGroup(d, gpu.Options{})
				if err != nil {
					t.Fatal(err)
				}
				comms, err := collective.NewAll(t.Context(), g.Devices(), collective.Options{Plain: true})
				if err != nil {
					t.Fatal(err)
				}
				b, err := g.Devices()[0].Alloc(gpu.CommMem, 64)
				if err != nil {
					t.Fatal(err)
				}
				m, err := comms[0].Register(b)
				if err != nil {
					t.Fatal(err)
				}
				freed := func() uint64 { return d.Counters().Devices[0].Calls[simdriver.OpFree] }
				end(t, d, comms, m)
				b.Close()
				synctest.Wait()
				if n := freed(); n != 0 {
					t.Errorf("%d buffers were freed before the communicator was closed", n)
				}
				if err := each(2, func(i int) error { return comms[i].Close() }); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if n := freed(); n != 1 {
					t.Errorf("%d buffers were freed", n)
				}
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestMemoryInUse closes memory of a communicator while a group that waits for another rank uses
// the memory. The communicator must keep the memory until the group has completed or failed.
func TestMemoryInUse(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2, Strict: true}), gpu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			comms, err := collective.NewAll(t.Context(), g.Devices(), collective.Options{})
			if err != nil {
				t.Fatal(err)
			}
			mem, told := make([]*gpu.Buffer, 2), make([]*collective.Memory, 2)
			for i, d := range g.Devices() {
				if mem[i], err = d.Alloc(gpu.CommMem, 64); err == nil {
					told[i], err = comms[i].Register(mem[i])
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			reduce := func(i int) error {
				return comms[i].Device().Queue(0).Submit(gpu.Order{}, comms[i].GroupContext(t.Context(), collective.AllReduce(mem[i].All(), mem[i].All(), collective.Uint8, collective.Sum())))
			}
			if err := reduce(0); err != nil {
				t.Fatal(err)
			}
			closed := make(chan error, 1)
			go func() { closed <- told[0].Close() }()
			time.Sleep(time.Second)
			select {
			case err := <-closed:
				t.Fatalf("it is closed while a group uses it: %v", err)
			default:
			}
			if fails {
				comms[0].Abort(nil)
			} else if err := reduce(1); err != nil {
				t.Error(err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			// Ignore the errors of Close: they can only come from the abort.
			each(2, func(i int) error { return comms[i].Close() })
			for _, b := range mem {
				b.Close()
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
