package cudadriver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/cublas"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// TestGPUCapture captures graphs between Enter and Leave, and sets a child node to them.
func TestGPUCapture(t *testing.T) {
	d := openGraphs(t)
	if !d.caps.Capture {
		t.Skip("no capture")
	}
	const n = 1 << 10
	s, cs := newStream(t, d), newStream(t, d)
	index, _ := load(t, d, kernels.Basic, "index")
	dev, host := alloc(t, d, driver.DeviceMem, 4*n), alloc(t, d, driver.HostMem, 4*n)
	words := unsafe.Slice((*uint32)(host.Host), n)
	// capture records a fill of n/2 words from index half on, kernels that number the other words,
	// and a copy of all words to the host.
	capture := func(with, base uint32, half, times int) (g driver.Graph) {
		t.Helper()
		elsewhere(t, d, func() error {
			was, err := d.Enter()
			if err != nil {
				return err
			}
			err = d.BeginCapture(cs)
			if err == nil {
				err = d.Fill(cs, dev.Ptr+driver.Ptr(4*half), with, 4, n/2)
			}
			for range times {
				op := kernelOp(index, n/2/64, 64, arg(uint64(n/2)), arg(base), arg(uint32(1)), arg(dev.Ptr+driver.Ptr(4*(n/2-half))))
				err = errors.Join(err, d.Launch(cs, &op.Launch))
			}
			err = errors.Join(err, d.Copy(cs, host.Ptr, dev.Ptr, 4*n))
			var end error
			g, end = d.EndCapture(cs)
			return errors.Join(err, end, d.Leave(was))
		})
		return g
	}
	child := capture(7, 100, 0, 1)
	g := newGraph(t, d)
	node := addNode(t, d, g, &driver.NodeOp{Kind: driver.ChildNode, Child: child})
	ok(t, d.DestroyGraph(child)) // the node has a copy
	x := instantiate(t, d, g)
	check := func(with, base uint32, half int) {
		t.Helper()
		clear(words)
		ok(t, d.LaunchGraph(s, x))
		finish(t, d, s)
		for i, w := range words {
			want := with
			if i/(n/2) != half/(n/2) {
				want = base + uint32(i%(n/2))
			}
			if w != want {
				t.Fatalf("word %d is %d, want %d", i, w, want)
			}
		}
	}
	check(7, 100, 0)
	for i := uint32(1); i <= 10; i++ {
		half := int(i) % 2 * n / 2
		child := capture(i, 1000*i, half, 1)
		elsewhere(t, d, func() error {
			return d.SetNode(x, node, &driver.NodeOp{Kind: driver.ChildNode, Child: child})
		})
		ok(t, d.DestroyGraph(child))
		check(i, 1000*i, half)
	}
	child = capture(1, 2, 0, 2)
	if err := d.SetNode(x, node, &driver.NodeOp{Kind: driver.ChildNode, Child: child}); err == nil || errors.Is(err, driver.ErrLost) {
		t.Errorf("a child with one kernel more: %v", err)
	}
	ok(t, d.DestroyGraph(child))
	ok(t, d.BeginCapture(cs))
	if err := d.BeginCapture(cs); err == nil {
		t.Error("a capture is begun twice")
	}
	if err := d.lib.StreamSynchronize(cuda.Stream(cs)); !errors.Is(err, cuda.ErrorStreamCaptureUnsupported) {
		t.Errorf("a wait is captured: %v", err)
	}
	if g, err := d.EndCapture(cs); g != 0 || !errors.Is(err, cuda.ErrorStreamCaptureInvalidated) {
		t.Errorf("graph %#x, %v", g, err)
	}
	ok(t, d.Fill(cs, dev.Ptr, 1, 4, n)) // the stream still works
	finish(t, d, cs)
}

// side is the number of rows and columns of the matrices.
const side = 64

// A matrix holds floats in column order. Small integers give exact float32 results.
type matrix [side * side]float32

func newMatrix(seed int) (m matrix) {
	for i := range m {
		m[i] = float32((i*i*7+i*seed+seed)%5) - 2
	}
	return m
}

// realMatrix makes a matrix of random numbers between -1 and 1. Sums of such numbers are rounded.
func realMatrix(seed int) (m matrix) {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for i := range m {
		m[i] = 2*r.Float32() - 1
	}
	return m
}

func (m *matrix) times(o *matrix) (p matrix) {
	for j := range side {
		for k := range side {
			for i := range side {
				p[i+j*side] += m[i+k*side] * o[k+j*side]
			}
		}
	}
	return p
}

// want returns the expected result of the tests: (m·b + 2m)·b.
func (m *matrix) want(b *matrix) matrix {
	c := m.times(b)
	for i := range c {
		c[i] += 2 * m[i]
	}
	return c.times(b)
}

func (m *matrix) bytes() (p []byte) {
	for _, x := range m {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	return p
}

// A blas is a device with cuBLAS, a kernel, and the right factor of all products.
type blas struct {
	*testing.T
	lib   *cublas.Library
	dev   *gpu.Device
	saxpy *gpu.Kernel
	b     matrix // the right factor of all products
	right *gpu.Buffer
	calls atomic.Int64 // number of calls of native functions
}

const matrixSize = 4 * side * side

func openBlas(t *testing.T) *blas {
	t.Helper()
	keep := openGPU(t)
	lib, err := cublas.Open(dl.Options{})
	if err != nil {
		t.Skipf("without cuBLAS, whose file PUREGPU_CUBLAS_LIBRARY may name: %v", err)
	}
	t.Logf("cuBLAS %s, %s", lib.Path(), lib.Explain())
	drv, err := New(keep.lib)
	ok(t, err)
	x := &blas{T: t, lib: lib, b: newMatrix(3)}
	x.dev, err = gpu.Open(drv, 0, gpu.Options{Queues: 2})
	ok(t, err)
	t.Cleanup(func() { ok(t, x.dev.Close()) })
	code, err := x.dev.Load(kernels.Saxpy)
	ok(t, err)
	x.saxpy, err = code.Kernel("saxpy")
	ok(t, err)
	x.right = x.buffer(1)
	s := x.dev.Queue(0).NewStream()
	ok(t, s.Upload(x.right.All(), x.b.bytes()))
	ok(t, s.Wait(t.Context()))
	return x
}

// buffer allocates memory for n matrices.
func (x *blas) buffer(n uint64) *gpu.Buffer {
	x.Helper()
	b, err := x.dev.Alloc(gpu.DeviceMem, n*matrixSize)
	ok(x, err)
	return b
}

// multiplier makes a multiplier in a native operation, where the device is current, and computes
// one product. A library may load code or allocate memory at first use, and must not do so during a
// capture.
func (x *blas) multiplier() (m *cublas.Multiplier) {
	x.Helper()
	const size = 4 << 20
	work, err := x.dev.Alloc(gpu.DeviceMem, size)
	ok(x, err)
	s, scratch := x.dev.Queue(0).NewStream(), x.buffer(1)
	ok(x, s.Do(gpu.Native("", func(n gpu.NativeCall) (err error) {
		if m, err = x.lib.NewMultiplier(side, cuda.DevicePtr(work.Ptr()), size); err != nil {
			return err
		}
		return m.Multiply(Stream(n.Stream), cuda.DevicePtr(n.Ptrs[0]), cuda.DevicePtr(n.Ptrs[1]), cuda.DevicePtr(n.Ptrs[1]))
	}, scratch.All(), x.right.All())))
	ok(x, s.Wait(x.Context()))
	ok(x, scratch.Close())
	x.Cleanup(func() {
		ok(x, s.Do(gpu.Native("", func(gpu.NativeCall) error { return m.Close() })))
		ok(x, s.Wait(context.Background())) // the test's context has ended
		ok(x, work.Close())
	})
	return m
}

// product returns a function for a native operation. The function multiplies the matrices in the
// second and third range, and writes the product to the first range.
func (x *blas) product(m *cublas.Multiplier) func(gpu.NativeCall) error {
	return func(n gpu.NativeCall) error {
		x.calls.Add(1)
		return m.Multiply(Stream(n.Stream), cuda.DevicePtr(n.Ptrs[0]), cuda.DevicePtr(n.Ptrs[1]), cuda.DevicePtr(n.Ptrs[2]))
	}
}

// add returns a launch that adds twice the matrix in from to the matrix in to.
func (x *blas) add(to, from gpu.Range) gpu.Op {
	return gpu.Launch(x.saxpy, gpu.GridFor(side*side, 64), uint64(side*side), float32(2), from, to)
}

// same compares a downloaded matrix with the expected one.
func (x *blas) same(what string, got []byte, want matrix) {
	x.Helper()
	for i, w := range want {
		if g := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])); g != w {
			x.Fatalf("%s: element %d, %d is %v, want %v", what, i%side, i/side, g, w)
		}
	}
}

// TestGPUCuBLAS chains an upload, a cuBLAS product, a kernel, another product and a download on two
// queues. It compares the results with the host's and PyTorch's.
func TestGPUCuBLAS(t *testing.T) {
	x := openBlas(t)
	const whole, rounds = 100, 120 // rounds with exact integers, and all rounds
	host, err := gpu.NewSemaphore(0)
	ok(t, err)
	s, err := gpu.NewSemaphore(0)
	ok(t, err)
	q := [2]*gpu.Queue{x.dev.Queue(0), x.dev.Queue(1)}
	// One handle per queue.
	by := [2]func(gpu.NativeCall) error{x.product(x.multiplier()), x.product(x.multiplier())}
	a, c, d := x.buffer(1), x.buffer(1), x.buffer(1)
	x.calls.Store(0)
	in, got := make([]matrix, rounds), make([][]byte, rounds)
	v := uint64(0)
	for i := range got {
		m := &in[i]
		if *m = newMatrix(i); i >= whole {
			*m = realMatrix(i)
		}
		got[i] = make([]byte, matrixSize)
		steps := []func(o gpu.Order) error{
			func(o gpu.Order) error { return q[0].Submit(o, gpu.Upload(a.All(), m.bytes())) },
			func(o gpu.Order) error { return q[1].Submit(o, gpu.Native("", by[1], c.All(), a.All(), x.right.All())) },
			func(o gpu.Order) error { return q[0].Submit(o, x.add(c.All(), a.All())) },
			func(o gpu.Order) error { return q[0].Submit(o, gpu.Native("", by[0], d.All(), c.All(), x.right.All())) },
			func(o gpu.Order) error { return q[1].Submit(o, gpu.Download(got[i], d.All())) },
		}
		for k := range steps {
			o := gpu.Order{Wait: []gpu.Point{s.At(v + uint64(k))}, Signal: []gpu.Point{s.At(v + uint64(k) + 1)}}
			if k == 0 && i%2 == 1 { // the round begins when the host signals
				o.Wait = append(o.Wait, host.At(uint64(i)))
			}
			ok(t, steps[k](o))
		}
		v += uint64(len(steps))
		if i%2 == 1 {
			ok(t, host.Signal(uint64(i)))
		}
	}
	ok(t, s.Wait(t.Context(), v))
	for i := range whole {
		x.same(fmt.Sprintf("round %d", i), got[i], in[i].want(&x.b))
	}
	if n := x.calls.Load(); n != 2*rounds {
		t.Errorf("%d calls, want %d", n, 2*rounds)
	}
	t.Run("PyTorch", func(t *testing.T) {
		if testing.Short() {
			t.Skip("PyTorch takes its time")
		}
		// An element is some hundreds at most, so one float32 addition is off by at most 1.5e-5.
		// Factors of lower precision, such as TF32, would exceed the bound.
		const bound = "1e-3"
		dir, all := t.TempDir(), make([]byte, 0, rounds*matrixSize)
		for i := range in {
			all = append(all, in[i].bytes()...)
		}
		for name, data := range map[string][]byte{"a": all, "b": x.b.bytes(), "got": bytes.Join(got, nil)} {
			ok(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		out, err := exec.CommandContext(t.Context(), "python3", "testdata/chain.py", fmt.Sprint(side), fmt.Sprint(whole), bound, dir).CombinedOutput()
		if e, is := errors.AsType[*exec.ExitError](err); errors.Is(err, exec.ErrNotFound) || is && e.ExitCode() == missing {
			t.Skipf("%v: %s", err, out)
		}
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		t.Log(strings.TrimSpace(string(out)))
	})
}

// TestGPUCuBLASRecorded records the products once, and executes them 1,000 times with different
// matrices.
func TestGPUCuBLASRecorded(t *testing.T) {
	x := openBlas(t)
	for _, mode := range []gpu.Mode{gpu.GraphMode, gpu.StreamMode} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			defer func(outer *testing.T) { x.T = outer }(x.T)
			x.T = t
			const inputs, outputs = 7, 100
			executions := uint64(1000)
			if testing.Short() {
				executions = outputs
			}
			c, err := x.dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
			ok(t, err)
			defer c.Close()
			in, err := c.Binding()
			ok(t, err)
			out, err := c.Binding()
			ok(t, err)
			middle := x.buffer(1)
			// One multiplier per command, because each multiplier has its own workspace.
			first, second := x.multiplier(), x.multiplier()
			from, to := in.Range(0, matrixSize), out.Range(0, matrixSize)
			one, err := c.Add(gpu.Native("", x.product(first), middle.All(), from, x.right.All()))
			ok(t, err)
			two, err := c.Add(x.add(middle.All(), from), one)
			ok(t, err)
			_, err = c.Add(gpu.Native("", x.product(second), to, middle.All(), x.right.All()), two)
			ok(t, err)
			ok(t, c.End())

			a, d := x.buffer(inputs), x.buffer(outputs)
			s, err := gpu.NewSemaphore(0)
			ok(t, err)
			up := x.dev.Queue(0).NewStream()
			var want []matrix
			for i := range uint64(inputs) {
				m := newMatrix(int(i) + 10)
				want = append(want, m.want(&x.b))
				ok(t, up.Upload(a.Range(i*matrixSize, matrixSize), m.bytes()))
			}
			ok(t, up.Wait(t.Context()))
			x.calls.Store(0)
			got, all := make([]byte, outputs*matrixSize), slices.Repeat([]int{-1}, outputs)
			compared := 0
			for v := range executions {
				i, slot := v*v%inputs, v%outputs // v%outputs is another output than in the previous execution
				all[slot] = int(i)
				o := gpu.Order{Wait: []gpu.Point{s.At(v)}, Signal: []gpu.Point{s.At(v + 1)}}
				ok(t, x.dev.Queue(int(v%2)).Submit(o, gpu.Execute(c, a.Range(i*matrixSize, matrixSize), d.Range(slot*matrixSize, matrixSize))))
				if slot == outputs-1 {
					down := x.dev.Queue(0).NewStream()
					ok(t, down.After(s.At(v+1)))
					ok(t, down.Download(got, d.All()))
					ok(t, down.Wait(t.Context()))
					for k, i := range all {
						x.same(fmt.Sprintf("after execution %d, output %d", v, k), got[k*matrixSize:], want[i])
						compared++
					}
				}
			}
			if v, err := s.Query(); v != executions || uint64(compared) != executions || err != nil {
				t.Errorf("%d executions are over and %d results were compared, %v; want %d", v, compared, err, executions)
			}
			// Without a graph an execution calls both functions. With a graph it calls the
			// functions whose ranges have changed, at least the second.
			least := 2 * executions
			if mode == gpu.GraphMode {
				least = executions
			}
			if n := uint64(x.calls.Load()); n < least || n > 2*executions {
				t.Errorf("%d executions called functions %d times; want %d to %d", executions, n, least, 2*executions)
			}
			t.Logf("%d executions called functions %d times", executions, x.calls.Load())
		})
	}
}
