package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A multiplier multiplies in order on a stream.
type multiplier struct {
	dev    *gpu.Device
	lib    *blas.Library
	stream *gpu.Stream
}

// Factors of the products, in host memory.
var one, zero float32 = 1, 0

// gemm computes c = a·b for row-major matrices. cuBLAS sees them as column-major, so as transposes;
// b therefore comes first.
func gemm(l blas.Call, side int32, c, a, b cuda.DevicePtr) error {
	const bf = cuda.DataTypeR16BF
	return l.GemmEx(l.Handle, cublas.OpN, cublas.OpN, side, side, side, unsafe.Pointer(&one), b, bf, side, a, bf, side,
		unsafe.Pointer(&zero), c, bf, side, cublas.Compute32f, cublas.GemmDefaultTensorOp)
}

// check multiplies small matrices in each way and compares the results with the host's. The
// elements are small whole numbers, so sums are exact in any order.
func (x *multiplier) check(ctx context.Context) error {
	const n, batch = 64, 3
	const bf, f32 = cuda.DataTypeR16BF, cuda.DataTypeR32F
	whole := func(seed int) (m []float32) {
		for i := range batch * n * n {
			m = append(m, float32((i*i*7+i*seed+seed)%5)-2)
		}
		return m
	}
	a, b := whole(3), whole(4)
	want := make([]float32, batch*n*n)
	for m := range batch {
		at := m * n * n
		for i := range n {
			for k := range n {
				for j := range n {
					want[at+i*n+j] += a[at+i*n+k] * b[at+k*n+j]
				}
			}
		}
	}
	version := x.lib.Call("version", func(l blas.Call) error {
		fmt.Printf("cuBLAS %s of %s\n", cublas.FormatVersion(l.Version()), l.Path())
		return nil
	})
	if err := x.stream.Do(version); err != nil {
		return err
	}
	type arguments struct{ c, a, b cuda.DevicePtr } // addresses of the first matrices
	for _, way := range []struct {
		name   string
		narrow bool                                                           // bfloat16, else float32
		count  int                                                            // number of matrices
		call   func(l blas.Call, at arguments, lists [3]cuda.DevicePtr) error // nil means that blas.Gemm multiplies
	}{
		{"GemmEx", true, 1, func(l blas.Call, at arguments, _ [3]cuda.DevicePtr) error { return gemm(l, n, at.c, at.a, at.b) }},
		{"LtMatmul", true, 1, nil},
		{"Sgemm", false, 1, func(l blas.Call, at arguments, _ [3]cuda.DevicePtr) error {
			return l.Sgemm(l.Handle, cublas.OpN, cublas.OpN, n, n, n, &one, at.b, n, at.a, n, &zero, at.c, n)
		}},
		{"SgemmStridedBatched", false, batch, func(l blas.Call, at arguments, _ [3]cuda.DevicePtr) error {
			return l.SgemmStridedBatched(l.Handle, cublas.OpN, cublas.OpN, n, n, n, &one, at.b, n, n*n, at.a, n, n*n, &zero, at.c, n, n*n, batch)
		}},
		{"SgemmBatched", false, batch, func(l blas.Call, _ arguments, lists [3]cuda.DevicePtr) error {
			return l.SgemmBatched(l.Handle, cublas.OpN, cublas.OpN, n, n, n, &one, lists[2], n, lists[1], n, &zero, lists[0], n, batch)
		}},
		{"GemmStridedBatchedEx", true, batch, func(l blas.Call, at arguments, _ [3]cuda.DevicePtr) error {
			return l.GemmStridedBatchedEx(l.Handle, cublas.OpN, cublas.OpN, n, n, n, unsafe.Pointer(&one), at.b, bf, n, n*n, at.a, bf, n, n*n,
				unsafe.Pointer(&zero), at.c, bf, n, n*n, batch, cublas.Compute32f, cublas.GemmDefault)
		}},
		{"GemmBatchedEx", true, batch, func(l blas.Call, _ arguments, lists [3]cuda.DevicePtr) error {
			return l.GemmBatchedEx(l.Handle, cublas.OpN, cublas.OpN, n, n, n, unsafe.Pointer(&one), lists[2], bf, n, lists[1], bf, n,
				unsafe.Pointer(&zero), lists[0], bf, n, batch, cublas.Compute32f, cublas.GemmDefault)
		}},
	} {
		encode, width := gpu.BytesOf[float32], 4
		if way.narrow {
			encode = func(m []float32) []byte { return gpu.BytesOf(smallfloat.Append[smallfloat.BFloat16](nil, m)) }
			width = 2
		}
		matrix := uint64(n * n * width)
		size := batch * matrix
		mem, err := x.dev.Alloc(gpu.DeviceMem, 3*size+3*8*batch)
		if err != nil {
			return err
		}
		var lists []byte // the addresses of all c, of all a and of all b
		for i := range uint64(3) {
			for k := range uint64(batch) {
				lists = binary.LittleEndian.AppendUint64(lists, uint64(mem.Ptr())+i*size+k*matrix)
			}
		}
		op := x.lib.Call(way.name, func(l blas.Call) error {
			base := cuda.DevicePtr(l.Ptrs[0])
			list := base + cuda.DevicePtr(3*size)
			return way.call(l, arguments{base, base + cuda.DevicePtr(size), base + cuda.DevicePtr(2*size)}, [3]cuda.DevicePtr{list, list + 8*batch, list + 16*batch})
		}, mem.All())
		if way.call == nil {
			op = x.product(n, mem.Range(0, matrix), mem.Range(size, matrix), mem.Range(2*size, matrix))
		}
		got := make([]byte, way.count*int(matrix))
		x.stream.Do(
			gpu.Fill(mem.Range(0, size), []byte{0xff}),
			gpu.Upload(mem.Range(size, 2*size), slices.Concat(encode(a), encode(b))),
			gpu.Upload(mem.Range(3*size, uint64(len(lists))), lists),
			op,
			gpu.Download(got, mem.Range(0, uint64(len(got)))),
		)
		if err := x.stream.Wait(ctx); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		if expected := encode(want[:way.count*n*n]); !slices.Equal(got, expected) {
			return fmt.Errorf("%s: the product of %d × %d is wrong", way.name, n, n)
		}
		if err := mem.Close(); err != nil {
			return err
		}
		fmt.Printf("%s: %d products of %d × %d are right\n", way.name, way.count, n, n)
	}
	return nil
}

// product returns package blas's operation for c = a·b.
func (x *multiplier) product(side int, c, a, b gpu.Range) gpu.Op {
	var m [3]blas.Matrix[smallfloat.BFloat16]
	for i, r := range []gpu.Range{c, a, b} {
		data, err := gpu.SliceOf[smallfloat.BFloat16](r)
		if err != nil {
			return gpu.BadOp(err)
		}
		m[i] = blas.Matrix[smallfloat.BFloat16]{Data: data, Rows: side, Cols: side}
	}
	return blas.Gemm(x.lib, m[0], m[1], m[2])
}

// A product is c = a·b of large matrices in device memory.
type product struct {
	x       *multiplier
	side    int32
	mem     *gpu.Buffer
	a, b, c gpu.Range
}

func (x *multiplier) newProduct(ctx context.Context, side int, a, b []smallfloat.BFloat16) (*product, error) {
	size := uint64(len(gpu.BytesOf(a)))
	mem, err := x.dev.Alloc(gpu.DeviceMem, 3*size)
	if err != nil {
		return nil, err
	}
	p := &product{x: x, side: int32(side), mem: mem, a: mem.Range(0, size), b: mem.Range(size, size), c: mem.Range(2*size, size)}
	x.stream.Do(gpu.Upload(p.a, gpu.BytesOf(a)), gpu.Upload(p.b, gpu.BytesOf(b)))
	return p, x.stream.Wait(ctx)
}

// multiply returns the operation that computes the product n times.
func (p *product) multiply(n int) gpu.Op {
	return p.x.lib.Call("gemm", func(l blas.Call) error {
		for range n {
			if err := gemm(l, p.side, cuda.DevicePtr(l.Ptrs[0]), cuda.DevicePtr(l.Ptrs[1]), cuda.DevicePtr(l.Ptrs[2])); err != nil {
				return err
			}
		}
		return nil
	}, p.c, p.a, p.b)
}

func (p *product) result(ctx context.Context) ([]smallfloat.BFloat16, error) {
	c := make([]smallfloat.BFloat16, p.c.Size/2)
	p.x.stream.Do(p.multiply(1), gpu.Download(gpu.BytesOf(c), p.c))
	return c, p.x.stream.Wait(ctx)
}

// queue measures n operations in a queue, each with one product.
func (p *product) queue(ctx context.Context, n int) (ns float64, err error) {
	return timed(n, func() error {
		for range n {
			p.x.stream.Do(p.multiply(1))
		}
		return p.x.stream.Wait(ctx)
	})
}

// loop measures one operation that computes the product n times.
func (p *product) loop(ctx context.Context, n int) (ns float64, err error) {
	return timed(n, func() error {
		p.x.stream.Do(p.multiply(n))
		return p.x.stream.Wait(ctx)
	})
}

func timed(n int, f func() error) (ns float64, err error) {
	runtime.GC()
	start := time.Now()
	err = f()
	return float64(time.Since(start)) / float64(n), err
}

// random makes a matrix of numbers between -1 and 1, which depend only on side and seed.
func random(side int, seed uint64) []smallfloat.BFloat16 {
	m := make([]smallfloat.BFloat16, side*side)
	for i := range m {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		m[i] = smallfloat.ToBFloat16(float32(int32(seed>>32)) / (1 << 31))
	}
	return m
}

// difference describes how the matrix a differs from the matrix stored in bytes.
func difference(a []smallfloat.BFloat16, bytes []byte) string {
	if len(gpu.BytesOf(a)) != len(bytes) {
		return fmt.Sprintf("%d bytes and %d", len(gpu.BytesOf(a)), len(bytes))
	}
	b := make([]smallfloat.BFloat16, len(a))
	copy(gpu.BytesOf(b), bytes)
	count, most := 0, float32(0)
	for i := range a {
		if a[i] != b[i] {
			count, most = count+1, max(most, a[i].Float32()-b[i].Float32(), b[i].Float32()-a[i].Float32())
		}
	}
	return fmt.Sprintf("%d of %d elements differ, by %g at most", count, len(a), most)
}
