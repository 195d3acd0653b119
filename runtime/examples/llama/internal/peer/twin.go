package peer

import (
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// Sim returns the kernels of a simulated GPU, for simdriver.Config.Kernels.
func Sim() map[string]simdriver.Kernel { return SimSum(Twins{}) }

// Twins run in place of the kernels on a simulated GPU. They exchange the same words as the
// kernels, and wait for the twins of the other devices.
type Twins struct{}

// PeerSum adds the ranks' parts.
func (Twins) PeerSum(g *simdriver.Grid, p Peers, n, length int32, part, x, state driver.Ptr) error {
	_, err := add(g, &p, int(n), int(length), part, x, state)
	return err
}

// PeerSumNorm adds the ranks' parts, and computes the norms of rows.
func (Twins) PeerSumNorm(g *simdriver.Grid, p Peers, n, length int32, part, x, state, weight driver.Ptr, eps float32, half int32, h driver.Ptr) error {
	sums, err := add(g, &p, int(n), int(length), part, x, state)
	width := int(length) * 4
	ws, err1 := simdriver.ReadView[uint16](g, weight, width)
	to, err2 := simdriver.View[uint16](g, h, len(sums))
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	for begin := 0; begin < len(sums); begin += width {
		row, squares := sums[begin:][:width], 0.0
		for _, v := range row {
			squares += float64(v) * float64(v)
		}
		inverse := 1 / math.Sqrt(squares/float64(width)+float64(eps))
		for i, v := range row {
			if half == 1 {
				to[begin+i] = uint16(smallfloat.ToFloat16(float32(float64(v) * inverse * float64(smallfloat.Float16(ws[i]).Float32()))))
			} else {
				to[begin+i] = uint16(smallfloat.ToBFloat16(float32(float64(v) * inverse * float64(smallfloat.BFloat16(ws[i]).Float32()))))
			}
		}
	}
	return nil
}

// A piece is the range of numbers that one block adds in one round.
type piece struct{ block, from, to int }

// add adds the parts of all ranks to x, which has n groups of four numbers. The parameter length is
// the number of groups in a row. add returns the sums, or nil if a rank was lost.
func add(g *simdriver.Grid, p *Peers, n, length int, part, x, state driver.Ptr) ([]float32, error) {
	parts, err1 := simdriver.ReadView[float32](g, part, n*4)
	sums, err2 := simdriver.View[float32](g, x, n*4)
	tags, err3 := simdriver.View[uint32](g, state, 1+blocks)
	lost, err4 := simdriver.View[uint32](g, driver.Ptr(p.Lost), 1)
	err := errors.Join(err1, err2, err3, err4)
	all := make([][]uint64, p.Ranks)
	for r := range all {
		w, e := simdriver.View[uint64](g, driver.Ptr(p.Words[r]), words(int(p.Ranks)))
		all[r], err = w, errors.Join(err, e)
	}
	if err != nil || tags[0] != 0 || atomic.LoadUint32(&lost[0]) != 0 {
		return nil, err
	}
	rank, grid := int(p.Rank), int(g.Blocks[0])
	// at returns the index of word i of piece c in the words of the rank whose number is from.
	at := func(c piece, from, i int) int {
		half := int(tags[1+c.block] & 1)
		return ((((half*blocks+c.block)*int(p.Ranks)+from)*2+i/2%2)*capacity+i/4)*2 + i%2
	}
	for row := 0; row*length < n; row += grid {
		for first := 0; first < length; first += capacity {
			var pieces []piece // all blocks write before the first one waits
			for block := range grid {
				begin := (row + block) * length
				if from, to := begin+first, min(begin+first+capacity, begin+length, n); from < to {
					pieces = append(pieces, piece{block, from * 4, to * 4})
				}
			}
			for _, c := range pieces {
				for i, v := range parts[c.from:c.to] {
					for r := range all {
						if r != rank {
							atomic.StoreUint64(&all[r][at(c, rank, i)], uint64(tags[1+c.block])<<32|uint64(math.Float32bits(v)))
						}
					}
				}
			}
			for _, c := range pieces {
				tag := &tags[1+c.block]
				for i := range c.to - c.from {
					for r := range all {
						v := parts[c.from+i]
						if r != rank {
							word, ok := AwaitWord(&all[rank][at(c, r, i)], *tag, time.Duration(p.Patience))
							if !ok {
								tags[0] = 1
								atomic.CompareAndSwapUint32(&lost[0], 0, uint32(1+r))
								return nil, nil
							}
							v = math.Float32frombits(uint32(word))
						}
						sums[c.from+i] += v
					}
				}
				if *tag++; *tag == 0 {
					*tag = 2
				}
			}
		}
	}
	return sums, nil
}

// AwaitWord waits until the upper half of the word is the tag, and returns the word. It reports
// false if the wait takes longer than the duration in patience. It is for twins of kernels that
// exchange words.
func AwaitWord(word *uint64, tag uint32, patience time.Duration) (w uint64, ok bool) {
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
