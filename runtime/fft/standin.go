package fft

import (
	"math"
	"math/cmplx"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// complexStandIn returns the stand-in for a transform of complex numbers. sign is the sign of the
// exponent.
func complexStandIn[T Complex](s Shape, sign float64) func(m standin.Memory, dst, src driver.Ptr) error {
	return func(m standin.Memory, dst, src driver.Ptr) error {
		n := s.Points() * s.batch()
		from, err := standin.Read[T](m, src, n)
		if err != nil {
			return err
		}
		data := make([]complex128, n)
		for i, v := range from {
			data[i] = complex128(v)
		}
		for axis := range s.Dims {
			along(data, s.Dims, axis, sign)
		}
		to, err := standin.Write[T](m, dst, n)
		if err != nil {
			return err
		}
		for i, v := range data {
			to[i] = T(v)
		}
		return nil
	}
}

// realForward returns the stand-in for a transform of real numbers.
func realForward[R Real, C Complex](s Shape) func(m standin.Memory, dst, src driver.Ptr) error {
	return func(m standin.Memory, dst, src driver.Ptr) error {
		n, half, pitch, rows := s.row(), s.half(), s.pitch(), s.rows()
		from, err := standin.Read[R](m, src, rows*pitch)
		if err != nil {
			return err
		}
		data, row, out := make([]complex128, rows*half), make([]complex128, n), make([]complex128, n)
		roots := rootsOf(n, -1)
		for r := range rows {
			for i, v := range from[r*pitch:][:n] {
				row[i] = complex(float64(v), 0)
			}
			transform(out, row, 1, roots, 1)
			copy(data[r*half:], out[:half])
		}
		dims := halved(s)
		for axis := range len(dims) - 1 {
			along(data, dims, axis, -1)
		}
		to, err := standin.Write[C](m, dst, len(data))
		if err != nil {
			return err
		}
		for i, v := range data {
			to[i] = C(v)
		}
		return nil
	}
}

// realInverse returns the stand-in for a transform to real numbers. If the source is not the
// destination, the stand-in writes NaN to the source. Then a test finds a program that reads the
// source afterwards.
func realInverse[R Real, C Complex](s Shape) func(m standin.Memory, dst, src driver.Ptr) error {
	return func(m standin.Memory, dst, src driver.Ptr) error {
		n, half, pitch, rows := s.row(), s.half(), s.pitch(), s.rows()
		from, err := standin.Write[C](m, src, rows*half)
		if err != nil {
			return err
		}
		data, row, out := make([]complex128, rows*half), make([]complex128, n), make([]complex128, n)
		for i, v := range from {
			data[i] = complex128(v)
		}
		if dst != src {
			for i := range from {
				from[i] = C(cmplx.NaN())
			}
		}
		dims := halved(s)
		for axis := range len(dims) - 1 {
			along(data, dims, axis, +1)
		}
		to, err := standin.Write[R](m, dst, rows*pitch)
		if err != nil {
			return err
		}
		roots := rootsOf(n, +1)
		for r := range rows {
			copy(row, data[r*half:][:half])
			for k := half; k < n; k++ {
				row[k] = cmplx.Conj(row[n-k])
			}
			transform(out, row, 1, roots, 1)
			for i, v := range out {
				to[r*pitch+i] = R(real(v))
			}
		}
		return nil
	}
}

// halved returns the sizes of the array of complex numbers of a transform of real numbers.
func halved(s Shape) []int {
	dims := append([]int(nil), s.Dims...)
	dims[len(dims)-1] = s.half()
	return dims
}

// along transforms data in place along one axis. data consists of arrays with the sizes dims.
func along(data []complex128, dims []int, axis int, sign float64) {
	n, stride := dims[axis], 1
	for _, d := range dims[axis+1:] {
		stride *= d
	}
	roots, out := rootsOf(n, sign), make([]complex128, n)
	for block := 0; block < len(data); block += n * stride {
		for i := range stride {
			row := data[block+i:]
			transform(out, row, stride, roots, 1)
			for k, v := range out {
				row[k*stride] = v
			}
		}
	}
}

// rootsOf returns the powers of exp(sign·2πi/n).
func rootsOf(n int, sign float64) []complex128 {
	roots := make([]complex128, n)
	for k := range roots {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(n))
		if 4*k%n == 0 { // quarters of a turn are exact
			sin, cos = math.Round(sin), math.Round(cos)
		}
		roots[k] = complex(cos, sign*sin)
	}
	return roots
}

// transform computes the transform of len(dst) numbers of src, which are stride apart. Every
// step-th element of roots is a power of the root for length len(dst). transform divides the length
// by its least prime factor p, transforms the p parts and combines them.
func transform(dst, src []complex128, stride int, roots []complex128, step int) {
	n := len(dst)
	if n == 1 {
		dst[0] = src[0]
		return
	}
	p := 2
	for n%p != 0 {
		if p*p > n {
			p = n
			break
		}
		p++
	}
	m := n / p
	for r := range p {
		transform(dst[r*m:][:m], src[r*stride:], stride*p, roots, step*p)
	}
	parts := make([]complex128, p)
	for k := range m {
		for r := range parts {
			parts[r] = dst[r*m+k]
		}
		for q := range p {
			at, sum := k+q*m, complex128(0)
			for r, v := range parts {
				sum += v * roots[r*at%n*step]
			}
			dst[at] = sum
		}
	}
}
