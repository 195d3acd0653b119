package kernels

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func sizeOf[T any]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// Sample chooses the next tokens as the kernel does: see sample.h.
func (Twins) Sample(g *simdriver.Grid, d Dims, active, token, position, sampling, logits, out driver.Ptr) error {
	m := &mem{g: g, d: d}
	rows, vocab := int(g.Blocks[0]), int(d.Vocab)
	outs := view[int32](m, out, 0, rows)
	for r, slot := range view[int32](m, active, 0, rows) {
		if slot < 0 {
			outs[r] = -1
			continue
		}
		at := view[int32](m, position, int(slot), 1)
		outs[r] = choose(view[float32](m, logits, r*vocab, vocab), view[Sampling](m, sampling, int(slot), 1)[0], at[0])
		view[int32](m, token, int(slot), 1)[0] = outs[r]
		at[0]++
	}
	return m.err
}

// never is the key of a token that is never chosen.
const never = math.MaxUint32

// choose returns the token that follows a position.
func choose(logits []float32, s Sampling, position int32) int32 {
	top, first := float32(math.Inf(-1)), 0
	for i, v := range logits {
		if v > top {
			top, first = v, i
		}
	}
	if !(s.Temperature >= 1e-5) || math.IsInf(float64(top), 0) {
		return int32(first)
	}
	keys, weights := make([]uint32, len(logits)), make([]uint32, len(logits))
	for i, v := range logits {
		keys[i], weights[i] = candidate(v, top, 1/s.Temperature)
	}
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(int64(keys[a]) - int64(keys[b])) })
	limit := uint32(never - 1)
	// restrict lowers the limit to the key at which the total reaches target.
	restrict := func(target uint64, each func(i int) uint64) {
		sum := uint64(0)
		for _, i := range order {
			if keys[i] > limit {
				return
			}
			if sum += each(i); sum >= target {
				limit = keys[i]
			}
		}
	}
	weight := func(i int) uint64 {
		if keys[i] > limit {
			return 0
		}
		return uint64(weights[i])
	}
	total := func() (sum uint64) {
		for i := range weights {
			sum += weight(i)
		}
		return sum
	}
	if s.TopK > 0 && int(s.TopK) < len(logits) {
		restrict(uint64(s.TopK), func(int) uint64 { return 1 })
	}
	if s.TopP < 1 {
		restrict(max(uint64(max(float64(s.TopP), 0)*float64(total())), 1), weight)
	}
	place, _ := bits.Mul64(random64(s.Seed, uint32(position)), total())
	for i := range weights {
		w := weight(i)
		if place < w {
			return int32(i)
		}
		place -= w
	}
	return int32(first)
}

// fma is a*b + c with the rounding of float32. It rounds twice, so about one of 2²⁹ results differs
// from a single rounding.
func fma(a, b, c float32) float32 { return float32(float64(a)*float64(b) + float64(c)) }

// candidate returns the key and weight of a token, as Candidate in sample.h has them.
func candidate(logit, top, inverse float32) (key, weight uint32) {
	distance := float32(float32(top-logit) * inverse)
	if !(distance < 32) {
		return never, 0
	}
	x := float32(distance * -1.44269504)
	whole := float32(math.RoundToEven(float64(x)))
	f, y := float32(x-whole), float32(1.54035304e-4)
	for _, c := range []float32{1.33335581e-3, 9.61812911e-3, 5.55041087e-2, 2.40226507e-1, 6.93147181e-1, 1} {
		y = fma(y, f, c)
	}
	if n := int(whole) + 31; n >= 0 {
		weight = uint32(math.Ldexp(float64(y), n))
	}
	return uint32(distance * (1 << 27)), weight
}

// random64 returns 64 random bits: Philox4x32-10 of a key and a counter.
func random64(key uint64, counter uint32) uint64 {
	x := [4]uint32{counter}
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		a, b := 0xd2511f53*uint64(x[0]), 0xcd9e8d57*uint64(x[2])
		x = [4]uint32{uint32(b>>32) ^ x[1] ^ k0, uint32(b), uint32(a>>32) ^ x[3] ^ k1, uint32(a)}
		k0 += 0x9e3779b9
		k1 += 0xbb67ae85
	}
	return uint64(x[1])<<32 | uint64(x[0])
}
