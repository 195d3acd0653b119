package kernels

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

func openSim(t testing.TB) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: Sim()}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// openGPU opens the first GPU, or skips the test.
func openGPU(t testing.TB) *gpu.Device {
	t.Helper()
	d, err := drivers.Best(drivers.WithoutSim())
	if errors.Is(err, drivers.ErrNoGPU) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// A world is a layer with random weights, and the state of some sequences, on a device. Worlds with
// the same Dims and seed are equal.
type world struct {
	t      testing.TB
	k      *Kernels
	dev    *gpu.Device
	stream *gpu.Stream
	source *rand.PCG
	r      *rand.Rand // of source
	d      Dims
	s      State
	b      *Buffers // of decode steps
	slots  int
	pages  []int32 // the page table that setPositions starts from

	norm                   gpu.Range
	table                  gpu.Range // the embeddings, and the matrix of the logits
	qkv, out, gateUp, down Matrix
	active, result         gpu.Slice[int32]
	closers                []interface{ Close() error }
}

func newWorld(t testing.TB, dev *gpu.Device, d Dims, slots int, invariant bool, seed uint64) *world {
	t.Helper()
	k, err := Open(dev, d, invariant)
	if errors.Is(err, gpu.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, k: k, dev: dev, stream: dev.Queue(0).NewStream(), source: rand.NewPCG(seed, 2), d: d, slots: slots}
	w.r = rand.New(w.source)
	t.Cleanup(w.close)
	w.b, err = k.NewBuffers(dev, MaxRows)
	if err != nil {
		t.Fatal(err)
	}
	w.closers = append(w.closers, w.b)
	width, heads := int(d.Width), int(d.Heads*d.HeadDim)
	w.norm = put(w, w.halves(width, 0.5, 1.5)).Range()
	w.table = put(w, w.halves(int(d.Vocab)*width, -1, 1)).Range()
	w.qkv, w.out = w.matrix(d.QKVRows(), width), w.matrix(width, heads)
	w.gateUp, w.down = w.matrix(2*int(d.FFN), width), w.matrix(width, int(d.FFN))

	// The first 4 slots have pages of their own, in random order, and the other slots share these
	// pages. In addition setPositions gives each slot a page of its own.
	pages := make([]int32, slots*int(d.MaxPages))
	shared := min(slots, 4) * int(d.MaxPages)
	for i, p := range w.r.Perm(shared) {
		pages[i] = int32(p)
	}
	for i := shared; i < len(pages); i += int(d.MaxPages) {
		for j, p := range w.r.Perm(shared)[:d.MaxPages] {
			pages[i+j] = int32(p)
		}
	}
	w.pages, w.s.Pages = pages, put(w, pages)
	w.s.Cache = put(w, w.halves((shared+slots)*d.PageBytes()/2, -1, 1)).Range()
	freq := make([]float32, d.HeadDim/2)
	for i := range freq {
		freq[i] = float32(math.Pow(10000, -2*float64(i)/float64(d.HeadDim)))
	}
	w.s.Freq = put(w, freq)
	w.s.Token, w.s.Position = put(w, w.ints(slots, int(d.Vocab))), put(w, make([]int32, slots))
	w.setPositions(w.ints(slots, int(d.MaxPages)*PageTokens))
	w.s.Sampling = put(w, make([]Sampling, slots))
	active := make([]int32, MaxRows)
	for i := range active {
		active[i] = int32(i % slots)
	}
	w.active, w.result = put(w, active), put(w, make([]int32, MaxRows))
	return w
}

// setPositions sets the position of each slot, and gives the slot a page of its own at that
// position. All pages of a slot are different, because a chunk writes several pages at once.
func (w *world) setPositions(positions []int32) {
	pages := slices.Clone(w.pages)
	for i, p := range positions {
		pages[i*int(w.d.MaxPages)+int(p)/PageTokens] = int32(min(w.slots, 4)*int(w.d.MaxPages) + i)
	}
	w.do(w.s.Position.Upload(positions), w.s.Pages.Upload(pages))
}

func (w *world) close() {
	for _, c := range w.closers {
		c.Close()
	}
	w.k.Close()
}

// do runs operations and waits for them.
func (w *world) do(ops ...gpu.Op) {
	w.t.Helper()
	if err := errors.Join(w.stream.Do(ops...), w.stream.Wait(context.Background())); err != nil {
		w.t.Fatal(err)
	}
}

// put returns device memory with the given elements.
func put[T any](w *world, list []T) gpu.Slice[T] {
	w.t.Helper()
	s, err := gpu.AllocSliceIn[T](w.stream, nil, len(list))
	if err != nil {
		w.t.Fatal(err)
	}
	w.closers = append(w.closers, s)
	w.do(s.Upload(list))
	return s
}

func get[T any](w *world, s gpu.Slice[T]) []T {
	w.t.Helper()
	list := make([]T, s.Len())
	w.do(s.Download(list))
	return list
}

func (w *world) half(v float64) uint16 {
	if w.d.Half == 1 {
		return uint16(smallfloat.ToFloat16(float32(v)))
	}
	return uint16(smallfloat.ToBFloat16(float32(v)))
}

func (w *world) float(v uint16) float64 {
	m := mem{d: w.d}
	return float64(m.float(v))
}

func (w *world) halves(n int, from, to float64) []uint16 {
	list := make([]uint16, n)
	for i := range list {
		list[i] = w.half(from + (to-from)*w.r.Float64())
	}
	return list
}

func (w *world) floats(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(w.r.NormFloat64())
	}
	return list
}

func (w *world) ints(n, below int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(w.r.IntN(below))
	}
	return list
}

// matrix returns a matrix whose products are about as large as the rows that it multiplies.
func (w *world) matrix(out, in int) Matrix {
	size := math.Sqrt(3 / float64(in))
	if w.d.FP8 == 0 {
		return Matrix{Data: put(w, w.halves(out*in, -size, size)).Range()}
	}
	bits, scales := make([]uint8, out*in), make([]float32, out)
	for i := range bits {
		bits[i] = uint8(smallfloat.ToFloat8E4M3(float32(448 * (2*w.r.Float64() - 1))))
	}
	for i := range scales {
		scales[i] = float32(size / 448 * (0.5 + w.r.Float64()))
	}
	return Matrix{Data: put(w, bits).Range(), Scale: put(w, scales)}
}

// fill sets the buffers that operations read to random numbers. So an operation does not depend on
// the results of earlier operations.
func (w *world) fill(b *Buffers, rows int) {
	d := &w.d
	w.do(b.X.Slice(0, rows*int(d.Width)).UploadCopy(w.floats(rows*int(d.Width))),
		b.H.Slice(0, rows*int(d.Width)).UploadCopy(w.halves(rows*int(d.Width), -2, 2)),
		b.Q.Slice(0, rows*int(d.Heads*d.HeadDim)).UploadCopy(w.halves(rows*int(d.Heads*d.HeadDim), -3, 3)),
		b.A.Slice(0, rows*int(d.Heads*d.HeadDim)).UploadCopy(w.halves(rows*int(d.Heads*d.HeadDim), -2, 2)),
		b.G.Slice(0, rows*int(d.FFN)).UploadCopy(w.halves(rows*int(d.FFN), -2, 2)))
}

// A step is an operation, with the buffer that has its result: floats or halves.
type step struct {
	name   string
	ops    func(rows int) []gpu.Op
	floats gpu.Slice[float32]
	halves gpu.Slice[uint16]
	width  int // of a row of the result
}

// steps returns the operations of a decode step. Tests run them one by one: see fill.
func (w *world) steps() []step {
	d, b := &w.d, w.b
	var f gpu.Slice[float32]
	var h gpu.Slice[uint16]
	width, heads, layer := int(d.Width), int(d.Heads*d.HeadDim), int(d.Layers)-1
	return []step{
		{"embed", func(n int) []gpu.Op { return w.k.Embed(n, w.active, &w.s, w.table, b) }, b.X, h, width},
		{"norm", func(n int) []gpu.Op { return w.k.Norm(n, w.norm, b) }, f, b.H, width},
		{"attend", func(n int) []gpu.Op { return w.k.Attend(n, w.active, &w.s, layer, b) }, f, b.A, heads},
		{"qkv", func(n int) []gpu.Op { return w.k.QKV(n, w.active, &w.s, layer, w.norm, w.qkv, b) }, f, b.Q, heads},
		{"out", func(n int) []gpu.Op { return w.k.Out(n, true, w.out, b) }, b.X, h, width},
		{"out without add", func(n int) []gpu.Op { return w.k.Out(n, false, w.out, b) }, b.X, h, width},
		{"gate and up", func(n int) []gpu.Op { return w.k.GateUp(n, w.norm, w.gateUp, b) }, f, b.G, int(d.FFN)},
		{"down", func(n int) []gpu.Op { return w.k.Down(n, true, w.down, b) }, b.X, h, width},
		{"logits", func(n int) []gpu.Op { return w.k.Logits(n, w.norm, w.table, b) }, b.Logits, h, int(d.Vocab)},
	}
}

// chunkSteps returns the operations on a chunk, with buffers of their own.
func (w *world) chunkSteps(rows, slot, position, n int) (*Buffers, []step) {
	d := &w.d
	b, err := w.k.NewChunkBuffers(w.dev, rows)
	if err != nil {
		w.t.Fatal(err)
	}
	w.closers = append(w.closers, b)
	width, heads, ffn, layer := int(d.Width), int(d.Heads*d.HeadDim), int(d.FFN), int(d.Layers)-1
	chunk, tokens := put(w, []int32{int32(slot), int32(position), int32(n)}), put(w, w.ints(rows, int(d.Vocab)))
	qkv, gateUp := put(w, w.halves(rows*d.QKVRows(), -2, 2)), put(w, w.halves(rows*2*ffn, -3, 3))
	var f gpu.Slice[float32]
	var h gpu.Slice[uint16]
	list := []step{
		{"embed chunk", func(n int) []gpu.Op { return w.k.EmbedChunk(n, tokens, w.table, b) }, b.X, h, width},
		{"attend chunk", func(n int) []gpu.Op { return w.k.AttendChunk(n, chunk, &w.s, layer, b) }, f, b.A, heads},
		{"rope chunk", func(n int) []gpu.Op { return w.k.RopeChunk(n, chunk, &w.s, layer, qkv, b) }, f, b.Q.Slice(0, n*heads), heads},
		{"swiglu", func(n int) []gpu.Op { return w.k.SwiGLU(n, gateUp, b) }, f, b.G, ffn},
		{"last", func(int) []gpu.Op { return w.k.Last(chunk, &w.s, b, w.b) }, w.b.X.Slice(0, width), h, width},
	}
	if d.FP8 == 1 {
		plain := put(w, make([]uint16, width*ffn))
		list = append(list, step{"dequantize", func(int) []gpu.Op { return w.k.Dequantize(width, ffn, w.down, plain) }, f, plain, ffn})
	}
	return b, list
}

// resultOf returns a step's results, of up to rows rows.
func (w *world) resultOf(s step, rows int) []float64 {
	var list []float64
	if s.halves == (gpu.Slice[uint16]{}) {
		for _, v := range get(w, s.floats.Slice(0, min(rows*s.width, s.floats.Len()))) {
			list = append(list, float64(v))
		}
		return list
	}
	for _, v := range get(w, s.halves.Slice(0, min(rows*s.width, s.halves.Len()))) {
		list = append(list, w.float(v))
	}
	return list
}

// differ returns the largest relative difference of two lists: |a - b| divided by the sum of |b|
// and the root mean square of all b.
func differ(a, b []float64) float64 {
	sum, worst := 0., 0.
	for _, v := range b {
		sum += v * v
	}
	size := math.Sqrt(sum/float64(len(b))) + 1e-9
	for i, v := range a {
		e := math.Abs(v-b[i]) / (size + math.Abs(b[i]))
		if !(e <= worst) { // also for NaN
			worst = e
		}
	}
	return worst
}

func (w *world) cache() gpu.Slice[uint16] {
	s, err := gpu.SliceOf[uint16](w.s.Cache)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}
