package kernels

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestTimes prints how fast each operation is, and a whole decode step. PUREGPU_LLAMA_TIMES=1
// enables the test. Each figure is the least of several executions of a recording that runs the
// operation once with each layer's weights, so that the weights come from memory and not from a
// cache.
func TestTimes(t *testing.T) {
	if os.Getenv("PUREGPU_LLAMA_TIMES") == "" {
		t.Skip("PUREGPU_LLAMA_TIMES is not set")
	}
	dev := openGPU(t)
	fmt.Printf("%s\n", dev.Info().Name)
	for _, fp8 := range []int32{0, 1} {
		d := Dims{Layers: 16, Width: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 5632, Vocab: 32000, MaxPages: 64, Eps: 1e-5, RopeFactor: 1, FP8: fp8}
		for _, invariant := range []bool{false, true} {
			b := newTimes(t, dev, d, invariant)
			if fp8 == 0 && !invariant {
				b.copy()
			}
			for _, rows := range []int{1, 2, 8, 16, 32, 64} {
				if (invariant || fp8 == 1) && rows != 1 && rows != 16 && rows != 64 {
					continue
				}
				b.rows(rows)
			}
			if !invariant {
				b.chunk(256, 256)
				b.chunk(512, 0)
			}
			b.world.close()
			if fp8 == 1 {
				break
			}
		}
	}
}

// A modelTimes is a world with separate weights for each layer. All slots are at their 512th token.
type modelTimes struct {
	*world
	layers []timesLayer
}

type timesLayer struct{ qkv, out, gateUp, down Matrix }

func newTimes(t *testing.T, dev *gpu.Device, d Dims, invariant bool) *modelTimes {
	w := newWorld(t, dev, d, MaxRows, invariant, 1)
	b := &modelTimes{world: w}
	bytes := 2
	if d.FP8 == 1 {
		bytes = 1
	}
	matrix := func(from Matrix, out, in int) Matrix {
		buf, err := dev.Alloc(gpu.DeviceMem, uint64(out*in*bytes))
		if err != nil {
			t.Fatal(err)
		}
		w.closers = append(w.closers, buf)
		w.do(gpu.Copy(buf.All(), from.Data))
		return Matrix{Data: buf.All(), Scale: from.Scale}
	}
	for range d.Layers {
		b.layers = append(b.layers, timesLayer{matrix(w.qkv, d.QKVRows(), int(d.Width)), matrix(w.out, int(d.Width), int(d.Heads*d.HeadDim)),
			matrix(w.gateUp, 2*int(d.FFN), int(d.Width)), matrix(w.down, int(d.Width), int(d.FFN))})
	}
	w.setPositions(make([]int32, MaxRows))
	b.reset()
	w.fill(w.b, MaxRows)
	return b
}

// reset sets all slots to their 512th token.
func (b *modelTimes) reset() {
	positions := make([]int32, MaxRows)
	for i := range positions {
		positions[i] = 511
	}
	b.do(b.s.Position.Upload(positions))
}

// time returns the least duration of a recording of all the operations.
func (b *modelTimes) time(ops []gpu.Op) time.Duration {
	b.t.Helper()
	c, err := b.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	for _, op := range ops {
		if _, err := c.Add(op); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := c.End(); err != nil {
		b.t.Fatal(err)
	}
	timing, err := b.dev.NewTiming()
	if err != nil {
		b.t.Fatal(err)
	}
	defer timing.Close()
	least := time.Duration(math.MaxInt64)
	for range 12 {
		b.do(gpu.Execute(c).Timed(timing))
		took, err := timing.Duration()
		if err != nil {
			b.t.Fatal(err)
		}
		least = min(least, took)
	}
	return least
}

// copy prints how fast a copy of device memory is.
func (b *modelTimes) copy() {
	const size = 1 << 30
	var two [2]*gpu.Buffer
	for i := range two {
		var err error
		if two[i], err = b.dev.Alloc(gpu.DeviceMem, size); err != nil {
			b.t.Fatal(err)
		}
		defer two[i].Close()
	}
	took := b.time([]gpu.Op{gpu.Copy(two[0].All(), two[1].All())})
	fmt.Printf("copy of device memory: %.0f GB/s read and written\n", 2*size/float64(took.Nanoseconds()))
}

// rows prints the times of the operations of a decode step.
func (b *modelTimes) rows(rows int) {
	d, k := &b.d, b.k
	width, each := int(d.Width), 2
	if d.FP8 == 1 {
		each = 1
	}
	fmt.Printf("\n%d rows, invariant: %v, FP8: %v\n", rows, b.k.invariant, d.FP8 == 1)
	print := func(name string, bytes int, f func(layer int) []gpu.Op) {
		var ops []gpu.Op
		for layer := range int(d.Layers) {
			ops = append(ops, f(layer)...)
		}
		took := b.time(ops)
		us := float64(took.Nanoseconds()) / 1e3 / float64(d.Layers)
		fmt.Printf("%-10s %7.2f µs  %6.0f GB/s\n", name, us, float64(bytes)/us/1e3)
	}
	qkv, out := d.QKVRows()*width*each, width*int(d.Heads*d.HeadDim)*each
	gateUp, down := 2*int(d.FFN)*width*each, int(d.FFN)*width*each
	kv := rows * 512 * d.PageBytes() / PageTokens / int(d.Layers)
	print("norm", rows*width*6, func(int) []gpu.Op { return k.Norm(rows, b.norm, b.b) })
	print("qkv", qkv, func(i int) []gpu.Op { return k.QKV(rows, b.active, &b.s, i, b.norm, b.layers[i].qkv, b.b) })
	print("attend", kv, func(i int) []gpu.Op { return k.Attend(rows, b.active, &b.s, i, b.b) })
	print("out", out, func(i int) []gpu.Op { return k.Out(rows, true, b.layers[i].out, b.b) })
	print("gate, up", gateUp, func(i int) []gpu.Op { return k.GateUp(rows, b.norm, b.layers[i].gateUp, b.b) })
	print("down", down, func(i int) []gpu.Op { return k.Down(rows, true, b.layers[i].down, b.b) })
	logits := int(d.Vocab) * width * 2
	print("logits", logits, func(int) []gpu.Op { return k.Logits(rows, b.norm, b.table, b.b) }) // larger than the device's cache
	for _, s := range []struct {
		name string
		s    Sampling
	}{{"greedy", Sampling{}}, {"random", Sampling{Temperature: 1, TopP: 1}}, {"top-k, p", Sampling{Temperature: 1, TopP: 0.9, TopK: 50}}} {
		all := make([]Sampling, MaxRows)
		for i := range all {
			all[i] = s.s
		}
		b.do(b.s.Sampling.Upload(all))
		print(s.name, rows*int(d.Vocab)*4, func(int) []gpu.Op { return k.Sample(rows, b.active, &b.s, b.b, b.result) })
		b.reset()
	}
	b.do(b.s.Sampling.Upload(make([]Sampling, MaxRows)))

	step := k.Embed(rows, b.active, &b.s, b.table, b.b)
	for i, l := range b.layers {
		step = append(step, k.QKV(rows, b.active, &b.s, i, b.norm, l.qkv, b.b)...)
		step = append(step, k.Attend(rows, b.active, &b.s, i, b.b)...)
		step = append(step, k.Out(rows, true, l.out, b.b)...)
		step = append(step, k.GateUp(rows, b.norm, l.gateUp, b.b)...)
		step = append(step, k.Down(rows, true, l.down, b.b)...)
	}
	step = append(step, k.Logits(rows, b.norm, b.table, b.b)...)
	step = append(step, k.Sample(rows, b.active, &b.s, b.b, b.result)...)
	took := b.time(step)
	bytes := int(d.Layers)*(qkv+out+gateUp+down+kv) + logits
	fmt.Printf("%-10s %7.1f µs  %6.0f GB/s, %d launches\n", "all", float64(took.Nanoseconds())/1e3, float64(bytes)/float64(took.Nanoseconds()), len(step))
	b.reset()
}

// chunk prints the times of the operations on a chunk of rows tokens at a position.
func (b *modelTimes) chunk(rows, position int) {
	buffers, steps := b.chunkSteps(rows, 2, position, rows)
	b.fill(buffers, rows)
	steps = append(steps, step{name: "norm", ops: func(n int) []gpu.Op { return b.k.Norm(n, b.norm, buffers) }})
	fmt.Printf("\na chunk of %d tokens at position %d, FP8: %v\n", rows, position, b.d.FP8 == 1)
	for _, s := range steps {
		var ops []gpu.Op
		for range 16 {
			ops = append(ops, s.ops(rows)...)
		}
		fmt.Printf("%-14s %7.2f µs\n", s.name, float64(b.time(ops).Nanoseconds())/16e3)
	}
}
