package blockpool

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A slowSource is a fakeSource that checks that its calls do not overlap.
type slowSource struct {
	fakeSource
	calls atomic.Int32
	fails atomic.Uint32
}

var errBusy = errors.New("called during a call")

func (s *slowSource) Grow(size uint64) (uint64, uint64, error) {
	defer s.calls.Add(-1)
	if s.calls.Add(1) != 1 {
		return 0, 0, errBusy
	}
	if s.fails.Add(1)%5 == 0 {
		return 0, 0, driver.ErrOutOfMemory
	}
	return s.fakeSource.Grow(size)
}

func (s *slowSource) Release(base, size uint64) error {
	defer s.calls.Add(-1)
	if s.calls.Add(1) != 1 {
		return errBusy
	}
	s.failBack = func(uint64) error {
		if s.fails.Add(1)%5 == 0 {
			return errInjected
		}
		return nil
	}
	return s.fakeSource.Release(base, size)
}

// An atomicOrder is an order in which work is done some time after it was issued.
type atomicOrder struct{ issued [4]atomic.Uint64 }

func (o *atomicOrder) Done(tl int, seq uint64) bool         { return seq+8 <= o.issued[tl].Load() }
func (o *atomicOrder) After(_ int, on int, seq uint64) bool { return seq+4 <= o.issued[on].Load() }

// TestConcurrent checks that goroutines that share a pool never own the same memory at one time.
func TestConcurrent(t *testing.T) {
	const unit = 256
	src := &slowSource{fakeSource: *newSource()}
	src.next, src.gap, src.capacity = 0, 0, 1<<18
	p, err := New(src, Config{SlabSize: 1 << 13, MaxSize: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	var o atomicOrder
	var owner sync.Map // maps each unit of memory to the goroutine that owns it
	var wg sync.WaitGroup
	steps := 5000
	if testing.Short() {
		steps = 1000
	}
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			var live []Block
			free := func() {
				i := r.IntN(len(live))
				b := live[i]
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				for at := b.Addr; at < b.Addr+b.Size; at += unit {
					if !owner.CompareAndDelete(at, g) {
						t.Errorf("%#x is not %d's", at, g)
					}
				}
				var err error
				switch r.IntN(8) {
				case 0:
					err = p.Cancel(b.Addr)
				case 1:
					err = p.Free(b.Addr, Mark{})
				default:
					err = p.Free(b.Addr, Mark{g, o.issued[g].Add(1)})
				}
				if err != nil {
					t.Error(err)
				}
			}
			for range steps {
				switch n := r.IntN(32); {
				case n == 0:
					if err := p.Maintain(1<<16, &o); err != nil && (!errors.Is(err, errInjected) || errors.Is(err, errBusy)) {
						t.Error(err)
					}
				case n == 1:
					if err := p.Trim(1<<14, &o); err != nil && (!errors.Is(err, errInjected) || errors.Is(err, errBusy)) {
						t.Error(err)
					}
				case n == 2:
					if s := p.Stats(); s.Used > s.Reserved || s.Reserved > 1<<18 {
						t.Errorf("%+v", s)
					}
				case n < 18 && len(live) > 0:
					free()
				default:
					b, err := p.Alloc(1+r.Uint64N(4096), g, &o)
					if err != nil {
						if !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, errBusy) {
							t.Error(err)
						}
						continue
					}
					for at := b.Addr; at < b.Addr+b.Size; at += unit {
						if other, taken := owner.LoadOrStore(at, g); taken {
							t.Errorf("%#x is %d's and %d's", at, g, other)
						}
					}
					live = append(live, b)
				}
			}
			for len(live) > 0 {
				free()
			}
		})
	}
	wg.Wait()
	p.verify(t)
	p.Trim(0, allDone{}) // ignore its error: the source may refuse slabs
	if s := p.Stats(); s.Reserved != 0 || s.Used != 0 || src.held != 0 {
		t.Errorf("%+v; the source has %d", s, src.held)
	}
}
