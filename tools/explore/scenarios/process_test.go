package scenarios

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestSharedPools lets two simulated processes use memory of each other's pool. A driver call may
// fail, or lose a device. Unless something failed, each process must read what both have written.
func TestSharedPools(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		x.Window(false)
		machine := new(simdriver.Machine)
		type side struct {
			rig
			pool     *gpu.Pool
			imported *interop.Pool
			stream   *gpu.Stream
			own, far *gpu.Buffer
			back     chan struct{}
		}
		var sides [2]*side
		for i := range sides {
			s := &side{rig: rig{T: x, sim: simdriver.New(simdriver.Config{Machine: machine, Strict: true})}}
			d, err := gpu.Open(s.sim, 0, quick())
			s.must(err)
			s.devs = []*gpu.Device{d}
			s.stream = d.Queue(1).NewStream()
			s.pool, err = d.NewPool(gpu.PoolOptions{Shareable: true, Threshold: 64})
			s.must(err)
			sides[i] = s
		}
		for i, s := range sides {
			f, err := interop.ExportPool(sides[1-i].pool)
			s.must(err)
			s.imported, err = interop.ImportPool(s.devs[0], f)
			s.must(errors.Join(err, f.Close()))
		}
		x.Window(true)
		r := &sides[0].rig
		if n := x.Choose(60); n > 0 {
			f := simdriver.Fault{Device: simdriver.AnyDevice, N: uint64(n)}
			switch x.Choose(3) {
			case 1:
				f.Lost = true
			case 2:
				f.AtExecution = true
			}
			r.sim.Inject(f)
		}
		bad := func(err error) bool {
			r.is(err, driver.ErrLost, simdriver.ErrInjected, gpu.ErrUnallocated, gpu.ErrClosed, simdriver.ErrInvalidHandle)
			return err != nil
		}
		func() {
			for round := range byte(2) {
				for _, s := range sides {
					var err error
					if s.own, err = s.stream.Alloc(s.pool, 64); bad(err) {
						return
					}
					if bad(s.stream.Fill(s.own.All(), []byte{round})) {
						return
					}
				}
				for i, s := range sides {
					o := sides[1-i]
					if bad(o.ends(o.stream)) {
						return
					}
					h, err := interop.ExportMemory(o.own)
					if bad(err) {
						return
					}
					back := make(chan struct{})
					s.back = back
					if s.far, err = s.imported.Import(h, func() { close(back) }); bad(err) {
						return
					}
					if bad(s.stream.Fill(s.far.Range(uint64(1+i), 1), []byte{10})) {
						return
					}
				}
				for i, s := range sides {
					o := sides[1-i]
					s.far.Close()
					select {
					case <-s.back:
					// After a failed call the import may be given back only when the device is closed.
					case <-time.After(5 * time.Second):
						x.Settle()
						s.lose()
						<-s.back
						return
					}
					err := s.ends(s.stream)
					if err != nil {
						// A failed signal says nothing about memory: the stream may still use it.
						x.Settle()
					}
					got := make([]byte, 4)
					bad(o.stream.Download(got, o.own.Range(0, 4)))
					bad(o.stream.Free(o.own))
					err2 := o.ends(o.stream)
					if bad(err) || bad(err2) {
						return
					}
					want := []byte{round, round, round, round}
					want[1+i] = 10
					if !bytes.Equal(got, want) {
						r.Errorf("%v came, and %v was to", got, want)
					}
				}
			}
		}()
		x.Settle()
		for _, s := range sides {
			bad(s.imported.Close())
		}
		sides[0].lose()
		sides[1].lose()
	})
}

// TestSharedAgainst lets a simulated process use memory and an event of another process, and
// release them. Meanwhile the importing device may be closed or lost, one of its driver calls may
// fail, or the semaphore may fail. Work behind the event must see the written data or fail. The
// function freed must be called for the memory and for the event.
func TestSharedAgainst(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		x.Window(false)
		machine := new(simdriver.Machine)
		sides := [2]*rig{}
		for i := range sides {
			s := &rig{T: x, sim: simdriver.New(simdriver.Config{Machine: machine, Strict: true})}
			d, err := gpu.Open(s.sim, 0, quick())
			s.must(err)
			s.devs, sides[i] = []*gpu.Device{d}, s
		}
		own, r := sides[0], sides[1]
		theirs, d := own.devs[0], r.devs[0]
		kind := gpu.DeviceMem
		if x.Choose(2) == 1 {
			kind = gpu.ShareableMem
		}
		b, err := theirs.Alloc(kind, 64)
		r.must(err)
		e, err := interop.NewSharedEvent(theirs)
		r.must(err)
		own.fill(theirs, b, 1)
		how := x.Choose(5)
		if n := x.Choose(30); n > 0 {
			r.sim.Inject(simdriver.Fault{Device: simdriver.AnyDevice, N: uint64(n)})
		}
		x.Window(true)
		ended := []error{gpu.ErrClosed, driver.ErrLost, simdriver.ErrInjected}
		bad := func(err error) bool {
			r.is(err, ended...)
			return err != nil
		}
		event, err := e.Export()
		r.must(err)
		imported := func(freed func()) (*gpu.Buffer, error) {
			if kind == gpu.DeviceMem {
				h, err := interop.ExportMemory(b)
				r.must(err)
				return interop.ImportMemory(d, h, freed)
			}
			f, err := interop.ExportMemoryFile(b)
			r.must(err)
			defer f.Close()
			return interop.ImportMemoryFile(d, f, 64, freed)
		}
		gone, eventGone := make(chan struct{}), make(chan struct{})
		s, u := r.sem(), r.sem()
		use := func() {
			far, err := imported(func() { close(gone) })
			if bad(err) {
				return
			}
			there, err := interop.ImportEvent(d, event, func() { close(eventGone) })
			if bad(err) {
				r.must(far.Close())
				return
			}
			recorded := own.sem()
			own.must(theirs.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{2})))
			own.must(theirs.Queue(0).Submit(gpu.Order{Signal: pts(recorded, 1)}, interop.RecordEvent(e)))
			own.must(recorded.WaitIssued(t.Context(), 1))
			waited := d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, interop.WaitEvent(there))
			r.do(func() { r.must(there.Close()) })
			if bad(waited) {
				s.Fail(waited)
			}
			got := make([]byte, 64)
			err = d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(u, 1)}, gpu.Download(got, far.All()))
			r.do(func() { r.must(far.Close()) })
			switch how {
			case 1:
				r.do(func() { r.is(d.Close(), append(ended, driver.ErrBusy)...) })
			case 2:
				r.do(func() { r.sim.LoseDevice(0, nil) })
			case 3:
				r.do(func() {
					_, err := interop.ExportMemory(b)
					r.is(err, gpu.ErrArgument) // such memory is exported by ExportMemoryFile only
				})
			case 4:
				s.Fail(errBoom)
			}
			if err == nil {
				err = r.wait(u, 1)
			}
			switch r.is(err, append(ended, errBoom)...); {
			case err == nil && waited == nil:
				r.full("what the other process has written", got, 2)
			case err == nil:
				r.Errorf("work behind a wait that was refused is done")
			}
			r.wg.Wait()
			r.lose()
			for what, c := range map[string]chan struct{}{"memory": gone, "an event": eventGone} {
				select {
				case <-c:
				case <-time.After(time.Minute):
					r.Errorf("freed is not called for %s", what)
				}
			}
		}
		use()
		r.lose()
		own.must(e.Close())
		own.must(b.Close())
		own.end()
	})
}
