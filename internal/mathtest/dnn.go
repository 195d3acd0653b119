package mathtest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/dnn"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// convShapes have one, two or three dimensions.
var convShapes = []dnn.ConvShape{
	{Batch: 2, In: 8, Out: 16, Size: []int{9, 11}, Kernel: []int{3, 3}, Padding: []int{1, 1}},
	{Batch: 1, In: 3, Out: 5, Size: []int{13, 7}, Kernel: []int{5, 3}, Stride: []int{2, 1}, Padding: []int{2, 0}},
	{Batch: 3, In: 16, Out: 8, Size: []int{7, 5}, Kernel: []int{1, 1}, Bias: true, ReLU: true},
	{Batch: 2, In: 8, Out: 24, Size: []int{12, 17}, Kernel: []int{3, 3}, Dilation: []int{2, 3}, Padding: []int{1, 4}, Bias: true},
	{Batch: 1, In: 12, Out: 6, Size: []int{8, 9}, Kernel: []int{3, 2}, Groups: 3, ReLU: true},
	{Batch: 2, In: 16, Out: 16, Size: []int{10, 6}, Kernel: []int{3, 3}, Groups: 16, Padding: []int{1, 1}, Bias: true, ReLU: true},
	{Batch: 2, In: 8, Out: 8, Size: []int{29}, Kernel: []int{5}, Stride: []int{3}, Padding: []int{2}, Bias: true, ReLU: true},
	{Batch: 1, In: 8, Out: 8, Size: []int{5, 7, 6}, Kernel: []int{3, 1, 2}, Stride: []int{1, 2, 1}, Padding: []int{1, 0, 1}},
}

// Conv checks convolutions of convShapes, with all element types.
func Conv(t *testing.T, dev *gpu.Device, lib *dnn.Library) {
	for i, s := range convShapes {
		for _, s.ChannelsLast = range []bool{false, true} {
			for _, s.TF32 = range []bool{false, true} {
				name := fmt.Sprintf("%d channels last %v", i, s.ChannelsLast)
				if s.TF32 {
					t.Run(name+" TF32", func(t *testing.T) { convolution(t, dev, lib, s, f32, 0x1p-9) })
					continue
				}
				t.Run(name+" float32", func(t *testing.T) { convolution(t, dev, lib, s, f32, 0x1p-18) })
				t.Run(name+" Float16", func(t *testing.T) { convolution(t, dev, lib, s, f16, 0x1p-18) })
				t.Run(name+" BFloat16", func(t *testing.T) { convolution(t, dev, lib, s, bf16, 0x1p-18) })
			}
		}
	}
}

// randoms returns elements between -1 and 1.
func randoms[T dnn.Element](r *rand.Rand, e element[T], n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = e.to(2*r.Float64() - 1)
	}
	return all
}

// count returns the number of elements of a tensor with the given dimensions.
func count(dims ...int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// convolution checks convolutions of one shape, in a recording and then in a stream. The tolerance
// has two parts: e.eps is relative to the result, and the parameter product to the sum of the
// absolute terms.
func convolution[T dnn.Element](t *testing.T, dev *gpu.Device, lib *dnn.Library, s dnn.ConvShape, e element[T], product float64) {
	plan, err := dnn.NewConv[T](lib, s)
	must(t, err)
	r, groups := rand.New(rand.NewPCG(21, 22)), max(s.Groups, 1)
	outSize := s.OutSize()
	xs, ws := randoms(r, e, s.Batch*s.In*count(s.Size...)), randoms(r, e, s.Out*s.In/groups*count(s.Kernel...))
	biases, n := []T(nil), s.Batch*s.Out*count(outSize...)
	var bias gpu.Slice[T]
	if s.Bias {
		biases = randoms(r, e, s.Out)
		bias = slice(t, dev, biases)
	}
	x, w, y := slice(t, dev, xs), slice(t, dev, ws), slice(t, dev, make([]T, n))
	all, st := twice(t, dev, n, func(y gpu.Slice[T]) gpu.Op { return plan.Forward(y, x, w, bias) }), dev.Queue(0).NewStream()
	must(t, st.Do(plan.Forward(y, x, w, bias)))
	all = append(all, download(t, st, y)...)

	index := func(channels int, size []int, outer, channel int, at []int) int { // returns the index of an element
		i := outer
		if !s.ChannelsLast {
			i = i*channels + channel
		}
		for d, v := range at {
			i = i*size[d] + v
		}
		if s.ChannelsLast {
			i = i*channels + channel
		}
		return i
	}
	or := func(list []int, d, otherwise int) int {
		if list == nil {
			return otherwise
		}
		return list[d]
	}
	for image := range s.Batch {
		for channel := range s.Out {
			each(outSize, func(at []int) {
				sum, size := 0.0, 0.0
				each(s.Kernel, func(k []int) {
					from := make([]int, len(k))
					for d := range from {
						from[d] = at[d]*or(s.Stride, d, 1) - or(s.Padding, d, 0) + k[d]*or(s.Dilation, d, 1)
						if from[d] < 0 || from[d] >= s.Size[d] {
							return
						}
					}
					for c := range s.In / groups {
						of := channel/(s.Out/groups)*(s.In/groups) + c
						f := e.from(xs[index(s.In, s.Size, image, of, from)]) * e.from(ws[index(s.In/groups, s.Kernel, channel, c, k)])
						sum, size = sum+f, size+math.Abs(f)
					}
				})
				want := sum
				if s.Bias {
					want += e.from(biases[channel])
				}
				if s.ReLU {
					want = max(want, 0)
				}
				for i := range 3 {
					got := e.from(all[i*n+index(s.Out, outSize, image, channel, at)])
					if !(math.Abs(got-want) <= e.eps*(math.Abs(want)+math.Abs(sum))+product*(size+1)) {
						t.Fatalf("%+v: image %d, channel %d, %v is %v; want %v", s, image, channel, at, got, want)
					}
				}
			})
		}
	}
	must(t, plan.Close())
	if err := st.Do(plan.Forward(y, x, w, bias)); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a closed plan: %v", err)
	}
}

// each calls a function with every position in a block of the given size.
func each(size []int, fn func(at []int)) {
	at := make([]int, len(size))
	for range count(size...) {
		fn(at)
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < size[d] {
				break
			}
			at[d] = 0
		}
	}
}

// twice records an operation, executes the recording twice, and returns the results one after the
// other.
func twice[T any](t *testing.T, dev *gpu.Device, n int, op func(y gpu.Slice[T]) gpu.Op) []T {
	t.Helper()
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	must(t, err)
	to, err := gpu.BindingSlice[T](rec, n)
	must(t, err)
	_, err = rec.Add(op(to))
	must(t, err)
	must(t, rec.End())
	y, z, st := slice(t, dev, make([]T, n)), slice(t, dev, make([]T, n)), dev.Queue(0).NewStream()
	must(t, st.Do(gpu.Execute(rec, y.Range()), gpu.Execute(rec, z.Range())))
	all := append(download(t, st, y), download(t, st, z)...)
	must(t, rec.Close())
	return all
}

var attentionShapes = []dnn.AttentionShape{
	{Batch: 2, Heads: 3, Queries: 17, HeadDim: 64},
	{Batch: 1, Heads: 2, Queries: 33, HeadDim: 8, Causal: true},
	{Batch: 2, Heads: 6, KVHeads: 2, Queries: 71, HeadDim: 40, Causal: true},
	{Batch: 1, Heads: 4, KVHeads: 1, Queries: 5, Keys: 130, HeadDim: 128, Causal: true},
	{Batch: 3, Heads: 8, KVHeads: 4, Queries: 1, Keys: 77, HeadDim: 128, Causal: true, Scale: 0.2},
	{Batch: 1, Heads: 2, Queries: 19, Keys: 3, HeadDim: 96, Scale: 1},
	{Batch: 1, Heads: 2, Queries: 64, Keys: 128, HeadDim: 64, Causal: true},
	{Batch: 4, Heads: 4, KVHeads: 2, Queries: 1, Keys: 150, HeadDim: 64, Lengths: true},
	{Batch: 3, Heads: 2, Queries: 50, HeadDim: 64, Causal: true, Lengths: true},
	{Batch: 3, Heads: 2, Queries: 20, Keys: 91, HeadDim: 32, Lengths: true},
	{Batch: 3, Heads: 2, Queries: 20, Keys: 91, HeadDim: 128, Causal: true, Lengths: true},
}

// Attention checks attention of attentionShapes, with both element types.
func Attention(t *testing.T, dev *gpu.Device, lib *dnn.Library) {
	for i, s := range attentionShapes { // making a plan is slow, so each type has one order of tokens only
		ok := t.Run(fmt.Sprintf("%d Float16", i), func(t *testing.T) { attention(t, dev, lib, s, f16) })
		s.TokensFirst = true
		ok = t.Run(fmt.Sprintf("%d BFloat16 tokens first", i), func(t *testing.T) { attention(t, dev, lib, s, bf16) }) && ok
		if _, _, err := dev.MemInfo(); !ok && err != nil {
			t.Fatal(err) // the device is lost, so the other shapes would fail too
		}
	}
}

// attention checks attention of one shape, in a recording and then in a stream.
func attention[T dnn.Half](t *testing.T, dev *gpu.Device, lib *dnn.Library, s dnn.AttentionShape, e element[T]) {
	plan, err := dnn.NewAttention[T](lib, s)
	must(t, err)
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.Keys == 0 {
		s.Keys = s.Queries
	}
	if s.Scale == 0 {
		s.Scale = 1 / math.Sqrt(float64(s.HeadDim))
	}
	r, n, m := rand.New(rand.NewPCG(23, 24)), count(s.Batch, s.Heads, s.Queries, s.HeadDim), count(s.Batch, s.KVHeads, s.Keys, s.HeadDim)
	qs, ks, vs := randoms(r, e, n), randoms(r, e, m), randoms(r, e, m)
	for i := range qs { // larger queries, so that attention prefers some keys
		qs[i] = e.to(4 * e.from(qs[i]))
	}
	q, k, v, out := slice(t, dev, qs), slice(t, dev, ks), slice(t, dev, vs), slice(t, dev, make([]T, n))
	queries, keys := make([]int32, s.Batch), make([]int32, s.Batch)
	for b := range s.Batch {
		queries[b], keys[b] = int32(s.Queries), int32(s.Keys)
		if s.Lengths {
			queries[b], keys[b] = int32(1+r.IntN(s.Queries)), int32(1+r.IntN(s.Keys))
			if s.Causal {
				queries[b] = min(queries[b], keys[b])
			}
		}
	}
	forward := func(out gpu.Slice[T]) gpu.Op { return plan.Forward(out, q, k, v) }
	if s.Lengths {
		queries, keys := slice(t, dev, queries), slice(t, dev, keys)
		forward = func(out gpu.Slice[T]) gpu.Op { return plan.ForwardLengths(out, q, k, v, queries, keys) }
	}
	all, st := twice(t, dev, n, forward), dev.Queue(0).NewStream()
	must(t, st.Do(forward(out)))
	all = append(all, download(t, st, out)...)

	index := func(heads, tokens, b, h, i, d int) int { // index of an element
		if s.TokensFirst {
			return ((b*tokens+i)*heads+h)*s.HeadDim + d
		}
		return ((b*heads+h)*tokens+i)*s.HeadDim + d
	}
	for b := range s.Batch {
		for h := range s.Heads {
			of := h * s.KVHeads / s.Heads
			for i := range int(queries[b]) {
				weights, total := make([]float64, keys[b]), 0.0
				for j := range weights {
					if s.Causal && j > i+len(weights)-int(queries[b]) {
						break
					}
					dot := 0.0
					for d := range s.HeadDim {
						dot += e.from(qs[index(s.Heads, s.Queries, b, h, i, d)]) * e.from(ks[index(s.KVHeads, s.Keys, b, of, j, d)])
					}
					weights[j] = math.Exp(dot * s.Scale)
					total += weights[j]
				}
				for d := range s.HeadDim {
					want, size := 0.0, 0.0
					for j, weight := range weights {
						f := weight / total * e.from(vs[index(s.KVHeads, s.Keys, b, of, j, d)])
						want, size = want+f, size+math.Abs(f)
					}
					for k := range 3 {
						got := e.from(all[k*n+index(s.Heads, s.Queries, b, h, i, d)])
						if !(math.Abs(got-want) <= e.eps*(size+math.Abs(want))+0x1p-14) {
							t.Fatalf("%+v: sequence %d, head %d, query %d, element %d is %v; want %v", s, b, h, i, d, got, want)
						}
					}
				}
			}
		}
	}
	must(t, plan.Close())
}

// Softmax checks softmax of all element types, in a recording, and in place in a stream.
func Softmax(t *testing.T, dev *gpu.Device, lib *dnn.Library) {
	t.Run("float32", func(t *testing.T) { softmax(t, dev, lib, f32) })
	t.Run("Float16", func(t *testing.T) { softmax(t, dev, lib, f16) })
	t.Run("BFloat16", func(t *testing.T) { softmax(t, dev, lib, bf16) })
}

// softmax checks results in memory that begins at a multiple of 16 bytes, and in memory that does
// not: cuDNN takes any address of an element.
func softmax[T dnn.Element](t *testing.T, dev *gpu.Device, lib *dnn.Library, e element[T]) {
	r, st := rand.New(rand.NewPCG(25, 26)), dev.Queue(0).NewStream()
	for _, size := range [][2]int{{1, 1}, {3, 7}, {5, 1000}, {129, 33}, {2, 5003}} {
		rows, cols := size[0], size[1]
		n := rows * cols
		xs := randoms(r, e, n)
		for i := range xs {
			xs[i] = e.to(10 * e.from(xs[i]))
		}
		x := slice(t, dev, xs)
		all := twice(t, dev, n, func(y gpu.Slice[T]) gpu.Op { return dnn.Softmax(lib, y, x, cols) })
		must(t, st.Do(dnn.Softmax(lib, x, x, cols)))
		all = append(all, download(t, st, x)...)
		y := slice(t, dev, append(make([]T, 1), xs...)).Slice(1, 1+n)
		must(t, st.Do(dnn.Softmax(lib, y, y, cols)))
		all = append(all, download(t, st, y)...)
		for i := range rows {
			total := 0.0
			for _, v := range xs[i*cols : (i+1)*cols] {
				total += math.Exp(e.from(v))
			}
			for j := range cols {
				want := math.Exp(e.from(xs[i*cols+j])) / total
				for k := range 4 {
					if got := e.from(all[k*n+i*cols+j]); !(math.Abs(got-want) <= (e.eps+0x1p-19)*want+0x1p-24) {
						t.Fatalf("%d × %d: element (%d, %d) is %v; want %v", rows, cols, i, j, got, want)
					}
				}
			}
		}
	}
}

// normShapes have even and odd numbers of columns.
var normShapes = []dnn.NormShape{{Rows: 2, Cols: 4096, Epsilon: 0.01}, {Rows: 129, Cols: 72}, {Rows: 4, Cols: 77}}

// Norm checks normalizations of all element types, in recordings and in streams.
func Norm(t *testing.T, dev *gpu.Device, lib *dnn.Library) {
	for _, s := range normShapes {
		for _, s.RMS = range []bool{false, true} {
			name := fmt.Sprintf("%d x %d RMS %v", s.Rows, s.Cols, s.RMS)
			t.Run(name+" float32", func(t *testing.T) { norm(t, dev, lib, s, f32) })
			t.Run(name+" Float16", func(t *testing.T) { norm(t, dev, lib, s, f16) })
			t.Run(name+" BFloat16", func(t *testing.T) { norm(t, dev, lib, s, bf16) })
		}
	}
}

func norm[T dnn.Element](t *testing.T, dev *gpu.Device, lib *dnn.Library, s dnn.NormShape, e element[T]) {
	plan, err := dnn.NewNorm[T](lib, s)
	must(t, err)
	r, n := rand.New(rand.NewPCG(27, 28)), s.Rows*s.Cols
	xs, scales, biases := randoms(r, e, n), randoms(r, e, s.Cols), randoms(r, e, s.Cols)
	x, y, scale, bias := slice(t, dev, xs), slice(t, dev, make([]T, n)), slice(t, dev, scales), gpu.Slice[T]{}
	if !s.RMS {
		bias = slice(t, dev, biases)
	}
	forward, st := func(y gpu.Slice[T]) gpu.Op { return plan.Forward(y, x, scale, bias) }, dev.Queue(0).NewStream()
	all := twice(t, dev, n, forward)
	must(t, st.Do(forward(y)))
	all = append(all, download(t, st, y)...)
	epsilon := s.Epsilon
	if epsilon == 0 {
		epsilon = 1e-5
	}
	for i := range s.Rows {
		sum, squares := 0.0, 0.0
		for _, x := range xs[i*s.Cols : (i+1)*s.Cols] {
			v := e.from(x)
			sum, squares = sum+v, squares+v*v
		}
		mean, variance := sum/float64(s.Cols), squares/float64(s.Cols)
		if s.RMS {
			mean = 0
		}
		variance -= mean * mean
		for j := range s.Cols {
			want := (e.from(xs[i*s.Cols+j]) - mean) / math.Sqrt(variance+epsilon) * e.from(scales[j])
			size := math.Abs(want)
			if !s.RMS {
				want += e.from(biases[j])
			}
			for k := range 3 {
				if got := e.from(all[k*n+i*s.Cols+j]); !(math.Abs(got-want) <= e.eps*math.Abs(want)+0x1p-19*(1+size)) {
					t.Fatalf("%+v: element (%d, %d) is %v; want %v", s, i, j, got, want)
				}
			}
		}
	}
	must(t, plan.Close())
}

// DNNTogether checks that two plans of one library give the same results in two streams, in a
// recording and in submissions to a queue, all at the same time.
func DNNTogether(t *testing.T, dev *gpu.Device, lib *dnn.Library) {
	conv, err := dnn.NewConv[smallfloat.BFloat16](lib, dnn.ConvShape{Batch: 2, In: 16, Out: 32, Size: []int{9, 9}, Kernel: []int{3, 3}, Bias: true, ReLU: true})
	must(t, err)
	attention, err := dnn.NewAttention[smallfloat.BFloat16](lib, dnn.AttentionShape{Batch: 2, Heads: 2, Queries: 49, HeadDim: 16, Causal: true})
	must(t, err)
	const n = 2 * 32 * 7 * 7 // number of elements of each result, and of queries, keys and values
	r := rand.New(rand.NewPCG(29, 30))
	x, w, b := slice(t, dev, randoms(r, bf16, 2*16*9*9)), slice(t, dev, randoms(r, bf16, 32*16*9)), slice(t, dev, randoms(r, bf16, 32))
	k, v := slice(t, dev, randoms(r, bf16, n)), slice(t, dev, randoms(r, bf16, n))
	type pair struct {
		y, out gpu.Slice[smallfloat.BFloat16]
	}
	results := func() pair {
		return pair{slice(t, dev, make([]smallfloat.BFloat16, n)), slice(t, dev, make([]smallfloat.BFloat16, n))}
	}
	ops := func(p pair) [2]gpu.Op {
		return [2]gpu.Op{conv.Forward(p.y, x, w, b), attention.Forward(p.out, p.y, k, v)}
	}
	all := []pair{results(), results(), results(), results()}
	st, other, executions := dev.Queue(0).NewStream(), dev.Queue(0).NewStream(), dev.Queue(0).NewStream()
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
	must(t, err)
	for _, op := range ops(all[2]) {
		_, err := rec.Add(op)
		must(t, err)
	}
	must(t, rec.End())
	done := new(gpu.Semaphore)
	for i := range uint64(20) {
		first, second := ops(all[0]), ops(all[1])
		must(t, st.Do(first[:]...))
		must(t, other.Do(second[:]...))
		must(t, executions.Do(gpu.Execute(rec)))
		queued := ops(all[3])
		must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{done.At(2 * i)}, Signal: []gpu.Point{done.At(2*i + 1)}}, queued[0]))
		must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{done.At(2*i + 1)}, Signal: []gpu.Point{done.At(2*i + 2)}}, queued[1]))
	}
	must(t, done.Wait(minute(t), 40))
	want := download(t, st, all[0].out)
	for i, s := range []*gpu.Stream{other, executions, st} {
		for j, got := range download(t, s, all[i+1].out) {
			if got != want[j] {
				t.Fatalf("way %d: element %d is %v; want %v", i+1, j, got, want[j])
			}
		}
	}
	must(t, errors.Join(rec.Close(), attention.Close())) // closing the library closes the other plan
}

// DNNRefused checks that package dnn refuses wrong arguments.
func DNNRefused(t *testing.T, dev *gpu.Device, lib *dnn.Library) {
	good := dnn.ConvShape{Batch: 1, In: 4, Out: 8, Size: []int{5, 5}, Kernel: []int{3, 3}}
	for name, change := range map[string]func(*dnn.ConvShape){
		"no images":       func(s *dnn.ConvShape) { s.Batch = 0 },
		"no channels":     func(s *dnn.ConvShape) { s.In = 0 },
		"four dimensions": func(s *dnn.ConvShape) { s.Size = []int{2, 2, 2, 2} },
		"dimensions":      func(s *dnn.ConvShape) { s.Kernel = []int{3} },
		"stride":          func(s *dnn.ConvShape) { s.Stride = []int{0, 1} },
		"strides":         func(s *dnn.ConvShape) { s.Stride = []int{1} },
		"padding":         func(s *dnn.ConvShape) { s.Padding = []int{-1, 0} },
		"groups":          func(s *dnn.ConvShape) { s.Groups = 3 },
		"a large kernel":  func(s *dnn.ConvShape) { s.Kernel = []int{6, 3} },
		"a large stride":  func(s *dnn.ConvShape) { s.Kernel, s.Stride = []int{6, 3}, []int{7, 7} },
		"too large":       func(s *dnn.ConvShape) { s.Size = []int{1 << 29, 1 << 29} },
	} {
		s := good
		change(&s)
		if _, err := dnn.NewConv[float32](lib, s); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	attention := dnn.AttentionShape{Batch: 1, Heads: 4, Queries: 3, HeadDim: 8}
	for name, change := range map[string]func(*dnn.AttentionShape){
		"no sequences":     func(s *dnn.AttentionShape) { s.Batch = 0 },
		"heads of keys":    func(s *dnn.AttentionShape) { s.KVHeads = 3 },
		"elements":         func(s *dnn.AttentionShape) { s.HeadDim = 12 },
		"keys":             func(s *dnn.AttentionShape) { s.Keys = -1 },
		"too few to see":   func(s *dnn.AttentionShape) { s.Keys, s.Causal = 2, true },
		"no scale":         func(s *dnn.AttentionShape) { s.Scale = math.NaN() },
		"a scale below 0":  func(s *dnn.AttentionShape) { s.Scale = -1 },
		"many of the keys": func(s *dnn.AttentionShape) { s.Keys = math.MaxInt },
	} {
		s := attention
		change(&s)
		if _, err := dnn.NewAttention[smallfloat.BFloat16](lib, s); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := dnn.NewConv[float32](nil, good); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no library: %v", err)
	}
	if _, err := dnn.NewAttention[smallfloat.BFloat16](new(dnn.Library), attention); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("a zero library: %v", err)
	}

	for _, s := range []dnn.NormShape{{Rows: 0, Cols: 8}, {Rows: 1 << 30, Cols: 1 << 30}, {Rows: 1, Cols: 8, Epsilon: -1}, {Rows: 1, Cols: 8, Epsilon: math.NaN()}} {
		if _, err := dnn.NewNorm[float32](lib, s); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	rms, err := dnn.NewNorm[float32](lib, dnn.NormShape{Rows: 1, Cols: 32, RMS: true})
	must(t, err)
	conv, err := dnn.NewConv[float32](lib, good)
	must(t, err)
	plan, err := dnn.NewAttention[smallfloat.BFloat16](lib, attention)
	must(t, err)
	attention.Lengths = true
	lengths, err := dnn.NewAttention[smallfloat.BFloat16](lib, attention)
	must(t, err)
	q, numbers := slice(t, dev, make([]smallfloat.BFloat16, 4*96)), slice(t, dev, make([]int32, 8))
	out, k, v := q.Slice(96, 192), q.Slice(192, 288), q.Slice(288, 384)
	q = q.Slice(0, 96)
	y, x, w := slice(t, dev, make([]float32, 72)), slice(t, dev, make([]float32, 100)), slice(t, dev, make([]float32, 288))
	none, both := gpu.Slice[float32]{}, slice(t, dev, make([]float32, 101))
	for name, op := range map[string]gpu.Op{
		"no plan":        new(dnn.Conv[float32]).Forward(y, x, w, none),
		"a short result": conv.Forward(y.Slice(0, 71), x, w, none),
		"a bias":         conv.Forward(y, x, w, y.Slice(0, 8)),
		"no weights":     conv.Forward(y, x, none, none),
		"no alignment":   conv.Forward(y, both.Slice(1, 101), w, none),
		"overlapping":    conv.Forward(both.Slice(0, 72), both.Slice(0, 100), w, none),
		"lengths":        plan.ForwardLengths(out, q, k, v, numbers.Slice(0, 1), numbers.Slice(4, 5)),
		"without them":   lengths.Forward(out, q, k, v),
		"many lengths":   lengths.ForwardLengths(out, q, k, v, numbers.Slice(0, 2), numbers.Slice(4, 5)),
		"heads":          plan.Forward(out, q, k, v.Slice(0, 95)),
		"no attention":   new(dnn.Attention[smallfloat.BFloat16]).Forward(out, q, k, v),
		"a norm's bias":  rms.Forward(y.Slice(0, 32), x.Slice(0, 32), w.Slice(0, 32), w.Slice(32, 64)),
		"a norm's scale": rms.Forward(y.Slice(0, 32), x.Slice(0, 32), w.Slice(0, 31), none),
		"no norm":        new(dnn.Norm[float32]).Forward(y, x, w, none),
		"no library":     dnn.Softmax(nil, x, x, 10),
		"no columns":     dnn.Softmax(lib, x, x, 0),
		"columns":        dnn.Softmax(lib, x, x, 11),
		"a softmax":      dnn.Softmax(lib, y, x, 10),
		"shifted":        dnn.Softmax(lib, both.Slice(0, 100), both.Slice(1, 101), 10),
		"no function":    lib.Call("x", 0, nil),
	} {
		if err := dev.Queue(0).NewStream().Do(op); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, conv.Close())
	must(t, conv.Close())
}
