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
)

// TestSharedPools has two processes use memory of each other's pool, of which a call may fail, or the device be lost: what is not lost has what a model says, and
// nobody touches memory that another one may have.
func TestSharedPools(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		x.Window(false)
		machine := new(simdriver.Machine)
		type side struct {
			rig
			pool     *gpu.Pool
			imported *gpu.ImportedPool
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
			f, err := sides[1-i].pool.Export()
			s.must(err)
			s.imported, err = s.devs[0].ImportPool(f)
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
					if s.own, err = s.stream.Alloca(s.pool, 64); bad(err) {
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
					h, err := o.own.Export()
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
					case <-time.After(5 * time.Second): // what a failed call has met is given back when the device is closed
						x.Settle()
						s.lose()
						<-s.back
						return
					}
					err := s.ends(s.stream)
					if err != nil {
						x.Settle() // a failed signal says nothing about memory: the stream may be at it
					}
					got := make([]byte, 4)
					bad(o.stream.Download(got, o.own.Range(0, 4)))
					bad(o.stream.Dealloca(o.own))
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
