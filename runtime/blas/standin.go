package blas

import (
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/standin"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// multiply does on a simulated GPU what cublasLtMatmul does on a real one. It sums in float64.
func multiply[C, A, B Element](m standin.Memory, g *gemm, at operands) error {
	k := &g.key
	a, err := load[A](m, at.a, k.a)
	if err != nil {
		return err
	}
	b, err := load[B](m, at.b, k.b)
	if err != nil {
		return err
	}
	scale := g.alpha
	for _, p := range [...]driver.Ptr{at.scaleA, at.scaleB} {
		if p != 0 {
			s, err := standin.Read[float32](m, p, 1)
			if err != nil {
				return err
			}
			scale *= float64(s[0])
		}
	}
	rows, cols, depth := k.c.rows, k.c.cols, k.a.logicalCols()
	bias, from, to := make([]float64, cols), widening[C](), rounding[C]()
	if at.bias != 0 {
		all, err := standin.Read[C](m, at.bias, cols)
		if err != nil {
			return err
		}
		for i, x := range all {
			bias[i] = from(x)
		}
	}
	for i := range k.c.batch {
		x, y := a[i%len(a)], b[i%len(b)]
		for r := range rows {
			out, err := standin.Write[C](m, at.c+driver.Ptr((i*k.c.batchStride+r*k.c.stride)*k.types[0].size()), cols)
			if err != nil {
				return err
			}
			sums := make([]float64, cols)
			for d := range depth {
				f := x.at(r, d)
				for c := range sums {
					sums[c] += f * y.at(d, c)
				}
			}
			for c, sum := range sums {
				v := scale*sum + bias[c]
				if g.beta != 0 {
					v += g.beta * from(out[c])
				}
				out[c] = to(k.activation.of(v))
			}
		}
	}
	return nil
}

// of returns the activation of x.
func (f Activation) of(x float64) float64 {
	switch f {
	case ReLU:
		return max(x, 0)
	case GELU:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x
}

// numbers is a copy of a matrix in host memory.
type numbers struct {
	shape
	all []float64 // rows × cols
}

// at returns an element of the matrix, or of its transpose if transposed is set.
func (n *numbers) at(row, col int) float64 {
	if n.transposed {
		row, col = col, row
	}
	return n.all[row*n.cols+col]
}

// load copies the matrices at p from device memory.
func load[T Element](m standin.Memory, p driver.Ptr, s shape) ([]numbers, error) {
	all := make([]numbers, s.batch)
	size, from := typeOf[T]().size(), widening[T]()
	for i := range all {
		all[i] = numbers{s, make([]float64, 0, s.rows*s.cols)}
		for r := range s.rows {
			row, err := standin.Read[T](m, p+driver.Ptr((i*s.batchStride+r*s.stride)*size), s.cols)
			if err != nil {
				return nil, err
			}
			for _, x := range row {
				all[i].all = append(all[i].all, from(x))
			}
		}
	}
	return all, nil
}

// widening returns the function that converts an element to a float64.
func widening[T Element]() func(T) float64 {
	var f any
	switch any(*new(T)).(type) {
	case float64:
		f = func(x float64) float64 { return x }
	case float32:
		f = func(x float32) float64 { return float64(x) }
	case smallfloat.Float16:
		f = widen[smallfloat.Float16]
	case smallfloat.BFloat16:
		f = widen[smallfloat.BFloat16]
	case smallfloat.Float8E4M3:
		f = widen[smallfloat.Float8E4M3]
	default:
		f = widen[smallfloat.Float8E5M2]
	}
	return f.(func(T) float64)
}

func widen[T smallfloat.Float](x T) float64 { return float64(x.Float32()) }

// rounding returns the function that rounds a float64 to the element type.
func rounding[T Element]() func(float64) T {
	var f any
	switch any(*new(T)).(type) {
	case float64:
		f = func(x float64) float64 { return x }
	case float32:
		f = func(x float64) float32 { return float32(x) }
	case smallfloat.Float16:
		f = smallfloat.FromFloat64[smallfloat.Float16]
	case smallfloat.BFloat16:
		f = smallfloat.FromFloat64[smallfloat.BFloat16]
	case smallfloat.Float8E4M3:
		f = smallfloat.FromFloat64[smallfloat.Float8E4M3]
	default:
		f = smallfloat.FromFloat64[smallfloat.Float8E5M2]
	}
	return f.(func(float64) T)
}
