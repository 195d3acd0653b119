package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A multiplier has what cuBLAS needs for one stream: handles, and memory to compute in.
type multiplier struct {
	dev    *gpu.Device
	lib    *cublas.Library
	lt     *cublaslt.Library
	work   *gpu.Buffer
	stream *gpu.Stream

	device cudadriver.Native // once a handle has been made
	handle cublas.Handle
	light  cublaslt.Handle
	set    cuda.Stream // that the handle has
}

func newMultiplier(dev *gpu.Device, lib *cublas.Library, lt *cublaslt.Library) (*multiplier, error) {
	size := uint64(8519680) // as PyTorch gives it
	if dev.Info().Major >= 9 {
		size = 32 << 20
	}
	work, err := dev.Alloc(gpu.DeviceMem, size)
	if err != nil {
		return nil, err
	}
	return &multiplier{dev: dev, lib: lib, lt: lt, work: work, stream: dev.Queue(0).NewStream()}, nil
}

// prepare makes the handles on the first call, and makes them use the stream of the call. The device is current in a function of gpu.Native.
func (x *multiplier) prepare(n gpu.NativeCall) (err error) {
	if x.handle == 0 {
		x.device, _ = cudadriver.NativeOf(n.Device)
		if x.handle, err = x.lib.Create(); err != nil {
			return err
		}
		if x.light, err = x.lt.Create(); err != nil {
			return err
		}
	}
	s := cudadriver.Stream(n.Stream)
	if x.set == s {
		return nil
	}
	// To set the stream takes the workspace away: both are set, and only where the stream is another one.
	if err := x.lib.SetStream(x.handle, s); err != nil {
		return err
	}
	if err := x.lib.SetWorkspace(x.handle, cuda.DevicePtr(x.work.Ptr()), x.work.Size()); err != nil {
		return err
	}
	x.set = s
	return nil
}

// close destroys the handles. That waits for the device, so it cannot be done in a function of gpu.Native: close makes the device current itself.
func (x *multiplier) close() error {
	if x.handle == 0 {
		return nil
	}
	runtime.LockOSThread() // a context is current on a thread
	defer runtime.UnlockOSThread()
	if err := x.device.Library.CtxPushCurrent(x.device.Context); err != nil {
		return err
	}
	err := x.lib.Destroy(x.handle)
	if x.light != 0 {
		err = errors.Join(err, x.lt.Destroy(x.light))
	}
	_, pop := x.device.Library.CtxPopCurrent()
	return errors.Join(err, pop)
}

// Factors of products, on the host.
var one, zero float32 = 1, 0

// gemm computes c = a·b of matrices in rows: for cuBLAS, which has them in columns, their transposes, so b is first.
func (x *multiplier) gemm(n gpu.NativeCall, side int32, c, a, b cuda.DevicePtr) error {
	if err := x.prepare(n); err != nil {
		return err
	}
	const bf = cuda.DataTypeR16BF
	return x.lib.GemmEx(x.handle, cublas.OpN, cublas.OpN, side, side, side, unsafe.Pointer(&one), b, bf, side, a, bf, side,
		unsafe.Pointer(&zero), c, bf, side, cublas.Compute32f, cublas.GemmDefaultTensorOp)
}

// matmul computes the same by cuBLASLt, with the algorithm that it thinks best.
func (x *multiplier) matmul(n gpu.NativeCall, side uint64, c, a, b cuda.DevicePtr) (err error) {
	if err := x.prepare(n); err != nil {
		return err
	}
	l := x.lt
	step := func(f func() error) { // the first error stands
		if err == nil {
			err = f()
		}
	}
	var desc cublaslt.MatmulDesc
	var layout cublaslt.MatrixLayout
	var pref cublaslt.MatmulPreference
	found := make([]cublaslt.MatmulHeuristicResult, 4)
	var count int32
	step(func() (err error) { desc, err = l.MatmulDescCreate(cublaslt.Compute32f, cuda.DataTypeR32F); return err })
	step(func() (err error) {
		layout, err = l.MatrixLayoutCreate(cuda.DataTypeR16BF, side, side, int64(side))
		return err
	})
	step(func() (err error) { pref, err = l.MatmulPreferenceCreate(); return err })
	step(func() error { // not transposed, as they are anyway
		op := cublaslt.OpN
		return l.MatmulDescSetAttribute(desc, cublaslt.MatmulDescTransa, unsafe.Pointer(&op), uint64(unsafe.Sizeof(op)))
	})
	step(func() error {
		room := x.work.Size()
		return l.MatmulPreferenceSetAttribute(pref, cublaslt.MatmulPrefMaxWorkspaceBytes, unsafe.Pointer(&room), uint64(unsafe.Sizeof(room)))
	})
	step(func() (err error) {
		count, err = l.MatmulAlgoGetHeuristic(x.light, desc, layout, layout, layout, layout, pref, found)
		if err == nil && count == 0 {
			err = cublaslt.StatusNotSupported
		}
		return err
	})
	step(func() error {
		return l.Matmul(x.light, desc, unsafe.Pointer(&one), b, layout, a, layout, unsafe.Pointer(&zero), c, layout, c, layout,
			&found[0].Algo, cuda.DevicePtr(x.work.Ptr()), x.work.Size(), cudadriver.Stream(n.Stream))
	})
	if pref != 0 {
		l.MatmulPreferenceDestroy(pref)
	}
	if layout != 0 {
		l.MatrixLayoutDestroy(layout)
	}
	if desc != 0 {
		l.MatmulDescDestroy(desc)
	}
	return err
}

// check multiplies small matrices of small whole numbers, which every way of adding sums exactly, and compares with the host.
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
	type arguments struct{ c, a, b cuda.DevicePtr } // and behind them arrays of addresses
	for _, way := range []struct {
		name   string
		narrow bool // bfloat16, else float32
		count  int  // matrices that are multiplied
		call   func(g gpu.NativeCall, at arguments, lists [3]cuda.DevicePtr) error
	}{
		{"GemmEx", true, 1, func(g gpu.NativeCall, at arguments, _ [3]cuda.DevicePtr) error { return x.gemm(g, n, at.c, at.a, at.b) }},
		{"LtMatmul", true, 1, func(g gpu.NativeCall, at arguments, _ [3]cuda.DevicePtr) error {
			return x.matmul(g, n, at.c, at.a, at.b)
		}},
		{"Sgemm", false, 1, func(g gpu.NativeCall, at arguments, _ [3]cuda.DevicePtr) error {
			return x.lib.Sgemm(x.handle, cublas.OpN, cublas.OpN, n, n, n, &one, at.b, n, at.a, n, &zero, at.c, n)
		}},
		{"SgemmStridedBatched", false, batch, func(g gpu.NativeCall, at arguments, _ [3]cuda.DevicePtr) error {
			return x.lib.SgemmStridedBatched(x.handle, cublas.OpN, cublas.OpN, n, n, n, &one, at.b, n, n*n, at.a, n, n*n, &zero, at.c, n, n*n, batch)
		}},
		{"SgemmBatched", false, batch, func(g gpu.NativeCall, _ arguments, lists [3]cuda.DevicePtr) error {
			return x.lib.SgemmBatched(x.handle, cublas.OpN, cublas.OpN, n, n, n, &one, lists[2], n, lists[1], n, &zero, lists[0], n, batch)
		}},
		{"GemmStridedBatchedEx", true, batch, func(g gpu.NativeCall, at arguments, _ [3]cuda.DevicePtr) error {
			return x.lib.GemmStridedBatchedEx(x.handle, cublas.OpN, cublas.OpN, n, n, n, unsafe.Pointer(&one), at.b, bf, n, n*n, at.a, bf, n, n*n,
				unsafe.Pointer(&zero), at.c, bf, n, n*n, batch, cublas.Compute32f, cublas.GemmDefault)
		}},
		{"GemmBatchedEx", true, batch, func(g gpu.NativeCall, _ arguments, lists [3]cuda.DevicePtr) error {
			return x.lib.GemmBatchedEx(x.handle, cublas.OpN, cublas.OpN, n, n, n, unsafe.Pointer(&one), lists[2], bf, n, lists[1], bf, n,
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
		var lists []byte // of addresses: of c, of a, of b
		for i := range uint64(3) {
			for k := range uint64(batch) {
				lists = binary.LittleEndian.AppendUint64(lists, uint64(mem.Ptr())+i*size+k*matrix)
			}
		}
		call := func(g gpu.NativeCall) error {
			if err := x.prepare(g); err != nil {
				return err
			}
			base := cuda.DevicePtr(g.Ptrs[0])
			list := base + cuda.DevicePtr(3*size)
			return way.call(g, arguments{base, base + cuda.DevicePtr(size), base + cuda.DevicePtr(2*size)}, [3]cuda.DevicePtr{list, list + 8*batch, list + 16*batch})
		}
		got := make([]byte, way.count*int(matrix))
		x.stream.Do(
			gpu.Fill(mem.Range(0, size), []byte{0xff}),
			gpu.Upload(mem.Range(size, 2*size), slices.Concat(encode(a), encode(b))),
			gpu.Upload(mem.Range(3*size, uint64(len(lists))), lists),
			gpu.Native(way.name, call, mem.All(), x.work.All()),
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
	return gpu.Native("gemm", func(g gpu.NativeCall) error {
		for range n {
			err := p.x.gemm(g, p.side, cuda.DevicePtr(g.Ptrs[0]), cuda.DevicePtr(g.Ptrs[1]), cuda.DevicePtr(g.Ptrs[2]))
			if err != nil {
				return err
			}
		}
		return nil
	}, p.c, p.a, p.b, p.x.work.All())
}

func (p *product) result(ctx context.Context) ([]smallfloat.BFloat16, error) {
	c := make([]smallfloat.BFloat16, p.c.Size/2)
	p.x.stream.Do(p.multiply(1), gpu.Download(gpu.BytesOf(c), p.c))
	return c, p.x.stream.Wait(ctx)
}

// queue times operations of a queue, one for each product.
func (p *product) queue(ctx context.Context, n int) (ns float64, err error) {
	return timed(n, func() error {
		for range n {
			p.x.stream.Do(p.multiply(1))
		}
		return p.x.stream.Wait(ctx)
	})
}

// loop times calls of cuBLAS in one operation.
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

// random makes a matrix between -1 and 1, the same each time.
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

// difference says how far two matrices are apart, one of which is given as bytes.
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
