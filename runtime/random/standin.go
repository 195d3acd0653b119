package random

import (
	"math"
	"math/bits"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// philox is the function Philox4x32-10 of J. Salmon et al., «Parallel random numbers: as easy as 1,
// 2, 3» (2011): four random words for each counter.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	c := counter
	for range 10 {
		hi0, lo0 := bits.Mul32(0xd2511f53, c[0])
		hi1, lo1 := bits.Mul32(0xcd9e8d57, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ key[0], lo1, hi0 ^ c[3] ^ key[1], lo0}
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	return c
}

// subsequences is the number of subsequences that cuRAND's generator has.
const subsequences = 1 << 16

// A state is the state of cuRAND's generator Philox4x32-10. Results come in groups of four. The
// groups go through the subsequences in turn. A group takes one or two steps of its subsequence,
// and each step has four words. A draw that ends within a group does not take the group's steps, so
// the next draw begins with the same words.
type state struct {
	seed, position uint64
	steps          []uint64 // steps taken of each subsequence
}

func newState(seed, offset uint64) *state {
	s := &state{seed: seed, position: offset, steps: make([]uint64, subsequences)}
	for i := range s.steps {
		s.steps[i] = offset / 4 / subsequences
		if uint64(i) < offset/4%subsequences {
			s.steps[i]++
		}
	}
	return s
}

// A result describes how results of type T are made from the words of a group. of returns the
// group's i-th result.
type result[T any] struct {
	steps uint64 // steps of a subsequence that a group takes
	of    func(words *[8]uint32, i int) T
}

// fill returns the stand-in that draws count results and writes the first n.
func fill[T any](r result[T]) func(s *state, m standin.Memory, to driver.Ptr, n int, count uint64) error {
	return func(s *state, m standin.Memory, to driver.Ptr, n int, count uint64) error {
		dst, err := standin.Write[T](m, to, n)
		if err != nil {
			return err
		}
		var words [8]uint32
		for drawn := range count {
			group, i := s.position/4%subsequences, s.position%4
			if i == 0 || drawn == 0 {
				for k := range r.steps {
					step := s.steps[group] + k
					w := philox([4]uint32{uint32(step), uint32(step >> 32), uint32(group), 0}, [2]uint32{uint32(s.seed), uint32(s.seed >> 32)})
					copy(words[4*k:], w[:])
				}
			}
			if drawn < uint64(n) {
				dst[drawn] = r.of(&words, int(i))
			}
			if i == 3 {
				s.steps[group] += r.steps
			}
			s.position++
		}
		return nil
	}
}

var (
	bits32    = result[uint32]{1, func(w *[8]uint32, i int) uint32 { return w[i] }}
	uniform32 = result[float32]{1, func(w *[8]uint32, i int) float32 { return unit32(w[i]) }}
	uniform64 = result[float64]{2, func(w *[8]uint32, i int) float64 { return unit64(w[2*i], w[2*i+1]) }}
)

func normal32(mean, stddev float64) result[float32] {
	const turn = float32(0x1p-32) * float32(2*math.Pi)
	return result[float32]{1, func(w *[8]uint32, i int) float32 {
		at := i / 2 * 2
		angle := float32(w[at+1])*turn + turn/2
		return float32(mean + stddev*boxMuller(float64(unit32(w[at])), float64(angle), i))
	}}
}

func normal64(mean, stddev float64) result[float64] {
	return result[float64]{2, func(w *[8]uint32, i int) float64 {
		at := i / 2 * 4
		return mean + stddev*boxMuller(unit64(w[at], w[at+1]), 2*math.Pi*unit64(w[at+2], w[at+3]), i)
	}}
}

// unit32 returns a number above 0 and up to 1.
func unit32(x uint32) float32 { return float32(x)*0x1p-32 + 0x1p-33 }

// unit64 returns a number above 0 and up to 1, made from 53 bits of two words.
func unit64(lo, hi uint32) float64 {
	return float64(uint64(lo)^uint64(hi)<<21)*0x1p-53 + 0x1p-54
}

// boxMuller returns the first of two normal numbers if i is even, and the second if it is odd.
func boxMuller(u, angle float64, i int) float64 {
	sin, cos := math.Sincos(angle)
	if i%2 == 0 {
		cos = sin
	}
	return math.Sqrt(-2*math.Log(u)) * cos
}
