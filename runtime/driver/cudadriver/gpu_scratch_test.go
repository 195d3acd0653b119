package cudadriver

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// TestGPUScratch runs layers of several widths with outputs in scratch memory of a recording, and a
// branch around each pair of layers except the last. 1,000 executions on several queues, ordered
// only by the recording, must give the same results as layers with buffers.
func TestGPUScratch(t *testing.T) {
	openGraphs(t)
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Queues: 3})
	ok(t, err)
	defer dev.Close()
	code, err := dev.Load(kernels.Dense)
	ok(t, err)
	dense, err := code.Kernel("dense")
	ok(t, err)
	code, err = dev.Load(kernels.Saxpy)
	ok(t, err)
	saxpy, err := code.Kernel("saxpy")
	ok(t, err)

	const (
		batch      = 4
		layers     = 16
		inputs     = 7
		executions = 1000
		ends       = 256 // elements of the network's input and output
		size       = 4 * batch * ends
	)
	width := func(layer int) uint64 { // width of a layer's output
		if layer%2 == 1 || layer == layers {
			return ends
		}
		return []uint64{64, 512, 320, 1024}[layer/2%4]
	}
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n uint64) *gpu.Buffer {
		t.Helper()
		x := make([]float32, n)
		for i := range x {
			x[i] = (2*r.Float32() - 1) / 16
		}
		b, err := dev.Alloc(gpu.DeviceMem, 4*n)
		ok(t, err)
		s := dev.Queue(0).NewStream()
		ok(t, s.Upload(b.All(), unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*n)))
		ok(t, s.Wait(t.Context()))
		return b
	}
	const widest = 1024
	w, b, in := random(widest*widest), random(widest), random(inputs*batch*ends)

	// record records the layers, and gets the memory between them from the function alloc. After
	// each pair of layers except the last, a kernel adds the pair's input to its output.
	record := func(t *testing.T, mode gpu.Mode, alloc func(c *gpu.CommandBuffer, n uint64) *gpu.Buffer) *gpu.CommandBuffer {
		t.Helper()
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
		ok(t, err)
		from, err := c.Binding()
		ok(t, err)
		to, err := c.Binding()
		ok(t, err)
		x, aside, was := from.Range(0, size), from.Range(0, size), uint64(ends)
		var last []gpu.Command
		for l := range layers {
			n := width(l)
			y := to.Range(0, size)
			if l < layers-1 {
				y = alloc(c, 4*batch*n).All()
			} else {
				n = ends
			}
			grid := gpu.Grid{Blocks: [3]uint32{uint32(n+63) / 64, batch}, Threads: [3]uint32{64}}
			at, err := c.Add(gpu.Launch(dense, grid, was, n, uint64(batch), w.Range(0, 4*was*n), b.Range(0, 4*n), x, y), last...)
			ok(t, err)
			last = []gpu.Command{at}
			if n == ends && l < layers-1 {
				at, err := c.Add(gpu.Launch(saxpy, gpu.GridFor(batch*ends, 64), uint64(batch*ends), float32(1), aside, y), last...)
				ok(t, err)
				last, aside = []gpu.Command{at}, y
			}
			x, was = y, n
		}
		ok(t, c.End())
		return c
	}
	sum := uint64(0)
	plain := record(t, gpu.StreamMode, func(_ *gpu.CommandBuffer, n uint64) *gpu.Buffer {
		b, err := dev.Alloc(gpu.DeviceMem, n)
		ok(t, err)
		sum += n
		return b
	})
	defer plain.Close()
	outs, err := dev.Alloc(gpu.DeviceMem, inputs*size)
	ok(t, err)
	s, want := dev.Queue(0).NewStream(), make([]byte, inputs*size)
	for i := range uint64(inputs) {
		ok(t, s.Do(gpu.Execute(plain, in.Range(i*size, size), outs.Range(i*size, size))))
	}
	ok(t, s.Download(want, outs.All()))
	ok(t, s.Wait(t.Context()))
	if bytes.Equal(want[:size], want[size:2*size]) || bytes.Equal(want[:size], make([]byte, size)) {
		t.Fatal("the network does nothing with its input")
	}
	for _, mode := range []gpu.Mode{gpu.GraphMode, gpu.StreamMode} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			c := record(t, mode, func(c *gpu.CommandBuffer, n uint64) *gpu.Buffer {
				b, err := c.Scratch(n)
				ok(t, err)
				return b
			})
			defer c.Close()
			need, err := c.ScratchSize()
			ok(t, err)
			if need >= sum/2 {
				t.Errorf("%d bytes of scratch memory, where the buffers have %d", need, sum)
			}
			const slots = 50
			outs, err := dev.Alloc(gpu.DeviceMem, slots*size)
			ok(t, err)
			defer outs.Close()
			got := make([]byte, slots*size)
			var points []gpu.Point
			for v := range uint64(executions) {
				i, slot := v*v%inputs, v%slots
				s, err := gpu.NewSemaphore(0)
				ok(t, err)
				ok(t, dev.Queue(int(v%3)).Submit(gpu.Order{Signal: []gpu.Point{s.At(1)}}, gpu.Execute(c, in.Range(i*size, size), outs.Range(slot*size, size))))
				if points = append(points, s.At(1)); slot < slots-1 {
					continue
				}
				down := dev.Queue(0).NewStream()
				ok(t, down.After(points...))
				ok(t, down.Download(got, outs.All()))
				ok(t, down.Wait(t.Context()))
				points = points[:0]
				for k := range uint64(slots) {
					j := v - slots + 1 + k
					if i := j * j % inputs; !bytes.Equal(got[k*size:][:size], want[i*size:][:size]) {
						t.Fatalf("execution %d has other outputs than without scratch memory", j)
					}
				}
			}
			t.Logf("%d bytes of scratch memory, where the buffers have %d", need, sum)
		})
	}
}
