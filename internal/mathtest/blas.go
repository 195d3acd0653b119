package mathtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// Gemm checks products of the element types that the device has, with random shapes and options.
func Gemm(t *testing.T, dev *gpu.Device, lib *blas.Library) {
	product(t, dev, lib, f64, f64, f64)
	product(t, dev, lib, f32, f32, f32)
	product(t, dev, lib, f16, f16, f16)
	product(t, dev, lib, f32, f16, f16)
	product(t, dev, lib, bf16, bf16, bf16)
	product(t, dev, lib, f32, bf16, bf16)
	if dev.Info().Major >= 9 || dev.Info().Major == 8 && dev.Info().Minor >= 9 {
		product(t, dev, lib, bf16, e4m3, e4m3)
		product(t, dev, lib, f16, e4m3, e5m2)
		product(t, dev, lib, f32, e5m2, e4m3)
	}
}

// element converts numbers to and from an element type.
type element[T blas.Element] struct {
	to   func(float64) T
	from func(T) float64
	eps  float64 // largest relative error of a result
}

func small[T interface {
	smallfloat.Float
	blas.Element
}](eps float64) element[T] {
	return element[T]{smallfloat.FromFloat64[T], func(x T) float64 { return float64(x.Float32()) }, eps}
}

var (
	f64  = element[float64]{func(x float64) float64 { return x }, func(x float64) float64 { return x }, 0x1p-48}
	f32  = element[float32]{func(x float64) float32 { return float32(x) }, func(x float32) float64 { return float64(x) }, 0x1p-23}
	f16  = small[smallfloat.Float16](0x1p-10)
	bf16 = small[smallfloat.BFloat16](0x1p-7)
	e4m3 = small[smallfloat.Float8E4M3](0x1p-3)
	e5m2 = small[smallfloat.Float8E5M2](0x1p-2)
)

// matrix makes random matrices in device memory. It returns their numbers in the order in which a
// product reads them, and the contents of the memory.
func matrix[T blas.Element](t testing.TB, dev *gpu.Device, r *rand.Rand, e element[T], rows, cols, batch int, transposed, padded bool, multiple int) (blas.Matrix[T], []float64, []T) {
	t.Helper()
	m := blas.Matrix[T]{Rows: rows, Cols: cols, Transposed: transposed, Batch: batch}
	if transposed {
		m.Rows, m.Cols = cols, rows
	}
	stride, between := m.Cols, 0
	if padded {
		stride += multiple
		m.Stride, between = stride, 2*multiple
		m.BatchStride = m.Rows*stride + between
	}
	data := make([]T, batch*(m.Rows*stride+between))
	for i := range data {
		data[i] = e.to(float64(r.IntN(17)-8) / 4)
	}
	all := make([]float64, 0, batch*rows*cols)
	for k := range batch {
		for i := range rows {
			for j := range cols {
				x, y := i, j
				if transposed {
					x, y = j, i
				}
				all = append(all, e.from(data[k*(m.Rows*stride+between)+x*stride+y]))
			}
		}
	}
	var err error
	m.Data, err = gpu.AllocSlice[T](dev, gpu.DeviceMem, len(data))
	must(t, err)
	t.Cleanup(func() { must(t, m.Data.Close()) })
	must(t, dev.Queue(0).NewStream().Do(m.Data.UploadCopy(data)))
	return m, all, data
}

// product checks products of one combination of element types.
func product[C, A, B blas.Element](t *testing.T, dev *gpu.Device, lib *blas.Library, c element[C], a element[A], b element[B]) {
	t.Run(fmt.Sprintf("%T×%T=%T", *new(A), *new(B), *new(C)), func(t *testing.T) {
		st := dev.Queue(0).NewStream()
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 24 {
			m, n, k := 1+r.IntN(20), 1+r.IntN(20), 1+r.IntN(20)
			transA, transB, multiple := i&1 != 0, i&2 != 0, 1
			narrow := a.eps > 0x1p-5
			if narrow {
				n, k, transA, transB, multiple = 8*n, 16*(1+k%3), false, true, 16
			}
			batch, one := 1+i/4%3, i%5 == 0
			batchA := batch
			if one {
				batchA = 1
			}
			x, xs, _ := matrix(t, dev, r, a, m, k, batchA, transA, i&4 != 0, multiple)
			y, ys, _ := matrix(t, dev, r, b, k, n, batch, transB, i&8 != 0, multiple)
			z, zs, before := matrix(t, dev, r, c, m, n, batch, false, i&16 != 0, multiple)
			o := blas.GemmOptions[C]{Activation: blas.Activation(i % 3)}
			alpha, scale := 1.0, 1.0
			if i%3 == 1 {
				o.Alpha, o.Beta = 0.5, 2
				alpha = 0.5
			}
			bias := make([]C, n)
			if i%2 == 1 && !(narrow && c.eps < 0x1p-20) && (any(*new(C)) == any(*new(A)) || c.eps > 0x1p-20) {
				for j := range bias {
					bias[j] = c.to(float64(r.IntN(9)-4) / 2)
				}
				var err error
				o.Bias, err = gpu.AllocSlice[C](dev, gpu.DeviceMem, n)
				must(t, err)
				t.Cleanup(func() { must(t, o.Bias.Close()) })
				must(t, st.Do(o.Bias.UploadCopy(bias)))
			}
			if narrow {
				var err error
				o.ScaleA, err = gpu.AllocSlice[float32](dev, gpu.DeviceMem, 1)
				must(t, err)
				t.Cleanup(func() { must(t, o.ScaleA.Close()) })
				must(t, st.Do(o.ScaleA.Fill(4)))
				scale = 4
			}
			got := make([]C, z.Data.Len())
			must(t, st.Do(blas.GemmWith(lib, z, x, y, o), z.Data.Download(got)))
			must(t, st.Wait(minute(t)))
			stride, between := n, 0
			if z.Stride != 0 {
				stride, between = z.Stride, z.BatchStride-m*z.Stride
			}
			for at := range got {
				matrix, rest := at/(m*stride+between), at%(m*stride+between)
				row, col := rest/stride, rest%stride
				if row >= m || col >= n {
					if any(got[at]) != any(before[at]) {
						t.Fatalf("case %d: element %d between the rows was written", i, at)
					}
					continue
				}
				sum, size := 0.0, 0.0
				for d := range k {
					f := xs[(matrix%batchA*m+row)*k+d] * ys[(matrix*k+d)*n+col]
					sum, size = sum+f, size+math.Abs(f)
				}
				eps := c.eps
				want := alpha*scale*sum + o.Beta*zs[(matrix*m+row)*n+col] + c.from(bias[col])
				size = scale*size + math.Abs(want)
				switch o.Activation {
				case blas.ReLU:
					want = max(want, 0)
				case blas.GELU:
					eps = max(eps, 0x1p-16) // cuBLASLt's tanh is an approximation
					want = want / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(want+0.044715*want*want*want)))
				}
				if diff := math.Abs(c.from(got[at]) - want); !(diff <= eps*math.Abs(want)+size*0x1p-20+0x1p-24) {
					t.Fatalf("case %d, %d × %d × %d: element (%d, %d) of matrix %d is %v; want %v", i, m, n, k, row, col, matrix, got[at], want)
				}
			}
		}
	})
}

// GemmRecorded checks a recorded product that is executed twice, each time with other memory for
// the result, with and without a graph.
func GemmRecorded(t *testing.T, dev *gpu.Device, lib *blas.Library) {
	r, st := rand.New(rand.NewPCG(3, 4)), dev.Queue(0).NewStream()
	a, _, _ := matrix(t, dev, r, f32, 5, 7, 1, false, false, 1)
	b, _, _ := matrix(t, dev, r, f32, 7, 3, 1, true, false, 1)
	want, two := make([]float32, 15), make([]float32, 30)
	direct, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 15)
	must(t, err)
	results, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 30)
	must(t, err)
	must(t, st.Do(blas.Gemm(lib, blas.Matrix[float32]{Data: direct, Rows: 5, Cols: 3}, a, b), direct.Download(want)))
	for _, mode := range modes {
		rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
		must(t, err)
		to, err := gpu.BindingSlice[float32](rec, 15)
		must(t, err)
		_, err = rec.Add(blas.Gemm(lib, blas.Matrix[float32]{Data: to, Rows: 5, Cols: 3}, a, b))
		must(t, err)
		must(t, rec.End())
		must(t, st.Do(results.Fill(0), gpu.Execute(rec, results.Slice(0, 15).Range()), gpu.Execute(rec, results.Slice(15, 30).Range()), results.Download(two)))
		must(t, st.Wait(minute(t)))
		for i, x := range two {
			if x != want[i%15] {
				t.Fatalf("%v: element %d is %v; want %v", mode, i, x, want[i%15])
			}
		}
		must(t, rec.Close())
	}
	must(t, errors.Join(direct.Close(), results.Close()))
}

// GemmHeads checks a product whose matrices are side by side in the rows of memory, like the heads
// of attention, against one product for each matrix.
func GemmHeads(t *testing.T, dev *gpu.Device, lib *blas.Library) {
	const heads, tokens, keys, dim = 3, 5, 7, 4
	r, st := rand.New(rand.NewPCG(5, 6)), dev.Queue(0).NewStream()
	a, _, _ := matrix(t, dev, r, f32, tokens, keys, heads, false, false, 1)
	b, _, _ := matrix(t, dev, r, f32, keys, heads*dim, 1, false, true, 1)
	c, _, before := matrix(t, dev, r, f32, tokens, heads*dim, 1, false, true, 1)
	want := slice(t, dev, before)
	for i := range heads {
		part := func(m blas.Matrix[float32], data gpu.Slice[float32], from int) blas.Matrix[float32] {
			m.Data, m.Cols = data.Slice(from, data.Len()), dim
			return m
		}
		one := blas.Matrix[float32]{Data: a.Data.Slice(i*tokens*keys, (i+1)*tokens*keys), Rows: tokens, Cols: keys}
		must(t, st.Do(blas.Gemm(lib, part(c, want, i*dim), one, part(b, b.Data, i*dim))))
	}
	for _, m := range []*blas.Matrix[float32]{&b, &c} {
		m.Cols, m.Batch, m.BatchStride = dim, heads, dim
	}
	must(t, st.Do(blas.Gemm(lib, c, a, b)))
	if got, want := download(t, st, c.Data), download(t, st, want); !slices.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
}

// modes execute a recording without a graph and with one.
var modes = [...]gpu.Mode{gpu.StreamMode, gpu.GraphMode}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func minute(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
