package peer

import (
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// Sim returns the kernel of a simulated GPU, for simdriver.Config.Kernels.
func Sim() map[string]simdriver.Kernel { return SimSum(Twins{}) }

// Twins run in place of the kernel on a simulated GPU. They exchange the same words, and wait for the
// twins of the other devices.
type Twins struct{}

// PeerSum adds the ranks' parts.
func (Twins) PeerSum(g *simdriver.Grid, p Peers, n int32, part, x, state driver.Ptr) error {
	parts, err1 := simdriver.ReadView[float32](g, part, int(n)*4)
	sums, err2 := simdriver.View[float32](g, x, int(n)*4)
	tags, err3 := simdriver.View[uint32](g, state, 1+blocks)
	lost, err4 := simdriver.View[uint32](g, driver.Ptr(p.Lost), 1)
	err := errors.Join(err1, err2, err3, err4)
	all := make([][]uint64, p.Ranks)
	for r := range all {
		w, e := simdriver.View[uint64](g, driver.Ptr(p.Words[r]), words(int(p.Ranks)))
		all[r], err = w, errors.Join(err, e)
	}
	if err != nil || tags[0] != 0 {
		return err
	}
	grid := int(g.Blocks[0]) * threads
	for round := 0; round < int(n); round += grid {
		// Number i of all has its pair in the half for the tag, and the place of its block, rank,
		// half of a thread's four numbers, and thread.
		tag := func(i int) uint32 { return tags[1+i/4%grid/threads] }
		at := func(from, i int) int {
			group := i / 4 % grid
			return ((((int(tag(i)&1)*blocks+group/threads)*int(p.Ranks)+from)*2+i/2%2)*threads+group%threads)*2 + i%2
		}
		end := min(round+grid, int(n)) * 4
		for i := round * 4; i < end; i++ {
			for r := range all {
				if r != int(p.Rank) {
					atomic.StoreUint64(&all[r][at(int(p.Rank), i)], uint64(tag(i))<<32|uint64(math.Float32bits(parts[i])))
				}
			}
		}
		for i := round * 4; i < end; i++ {
			for r := range all {
				v := parts[i]
				if r != int(p.Rank) {
					word, ok := await(&all[p.Rank][at(r, i)], tag(i), time.Duration(p.Patience))
					if !ok {
						tags[0] = 1
						atomic.StoreUint32(&lost[0], uint32(1+r))
						return nil
					}
					v = math.Float32frombits(uint32(word))
				}
				sums[i] += v
			}
		}
		for first := round; first < min(round+grid, int(n)); first += threads {
			if t := &tags[1+first%grid/threads]; *t == math.MaxUint32 {
				*t = 2
			} else {
				*t++
			}
		}
	}
	return nil
}

// await returns the word as soon as it has the tag. It reports false if that takes too long.
func await(word *uint64, tag uint32, patience time.Duration) (w uint64, ok bool) {
	var begin time.Time
	for polls := 0; ; polls++ {
		if w = atomic.LoadUint64(word); uint32(w>>32) == tag {
			return w, true
		}
		if runtime.Gosched(); polls%100 == 99 {
			if begin.IsZero() {
				begin = time.Now()
			}
			if time.Since(begin) > patience {
				return 0, false
			}
			time.Sleep(20 * time.Microsecond)
		}
	}
}
