package blockpool

import (
	"errors"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
)

var errInjected = errors.New("injected")

// A fakeSource makes slabs of addresses. Its calls can be made to fail. A second Release of a slab
// panics, also if the first Release failed.
type fakeSource struct {
	next     uint64 // the next address
	gap      uint64 // between slabs
	capacity uint64 // in bytes; 0 means no limit
	held     uint64 // bytes that the pool has
	slabs    map[uint64]uint64
	refused  int    // number of slabs whose Release failed
	lost     uint64 // bytes of these slabs
	grows    int
	releases int

	grow     func(size uint64) (base, got uint64, err error) // replaces Grow, if set
	failGrow func(size uint64) error                         // makes Grow fail, if set
	failBack func(base uint64) error                         // makes Release fail, if set
}

func newSource() *fakeSource {
	return &fakeSource{next: 1 << 32, gap: 1 << 16, slabs: map[uint64]uint64{}}
}

func (s *fakeSource) Grow(size uint64) (uint64, uint64, error) {
	s.grows++
	if s.failGrow != nil {
		if err := s.failGrow(size); err != nil {
			return 0, 0, err
		}
	}
	if s.grow != nil {
		base, got, err := s.grow(size)
		if err == nil {
			s.slabs[base] = got
			s.held += got
		}
		return base, got, err
	}
	if s.capacity != 0 && (s.held+s.lost > s.capacity || size > s.capacity-s.held-s.lost) {
		return 0, 0, driver.ErrOutOfMemory
	}
	base := s.next
	s.next += size + s.gap
	s.slabs[base] = size
	s.held += size
	return base, size, nil
}

func (s *fakeSource) Release(base, size uint64) error {
	s.releases++
	if s.slabs[base] != size || size == 0 {
		panic(fmt.Sprintf("release of %d bytes at %#x, which has %d", size, base, s.slabs[base]))
	}
	delete(s.slabs, base)
	s.held -= size
	if s.failBack != nil {
		if err := s.failBack(base); err != nil {
			s.refused++
			s.lost += size
			return err
		}
	}
	return nil
}

// A fakeOrder is an order of a few timelines.
type fakeOrder struct {
	done  [8]uint64
	cover [8][8]uint64
	asked int
}

func (o *fakeOrder) Done(tl int, seq uint64) bool {
	o.asked++
	return o.done[tl] >= seq
}

func (o *fakeOrder) After(tl, on int, seq uint64) bool {
	o.asked++
	return o.cover[tl][on] >= seq
}

// allDone is an order in which all work is done.
type allDone struct{}

func (allDone) Done(int, uint64) bool       { return true }
func (allDone) After(int, int, uint64) bool { return true }

// The type never is an order in which no work is known to be done.
type never struct{}

func (never) Done(int, uint64) bool       { return false }
func (never) After(int, int, uint64) bool { return false }

const noLimit = math.MaxUint64
