package persist

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A bench is a model with random weights and a random cache on a device. Benches of the same sizes
// and seed are equal.
type bench struct {
	t      testing.TB
	dev    *gpu.Device
	stream *gpu.Stream
	dims   Dims
	args   Args
	list   []int32 // the slot's pages
	slot   int32
}

const slots = 3

// newBench makes a model. Its weights repeat a block of random numbers.
func newBench(t testing.TB, dev *gpu.Device, d Dims, seed uint64) *bench {
	t.Helper()
	b := &bench{t: t, dev: dev, stream: dev.Queue(0).NewStream(), dims: d, slot: 1}
	r := rand.New(rand.NewPCG(seed, 1))
	block := make([]uint16, 1<<22)
	spread := 1.7 / math.Sqrt(float64(d.Width))
	for i := range block {
		block[i] = b.bits((r.Float64()*2 - 1) * spread)
	}
	at := 0
	matrix := func(n int) gpu.Range {
		buf := b.alloc(n)
		for o := 0; o < n; {
			at = (at + 7919) % (len(block) / 2)
			m := min(n-o, len(block)-at)
			b.do(gpu.Upload(buf.Range(uint64(2*o), uint64(2*m)), gpu.BytesOf(block[at:at+m])))
			o += m
		}
		return buf.All()
	}
	vector := func(n int) gpu.Range {
		v := make([]uint16, n)
		for i := range v {
			v[i] = b.bits(0.5 + r.Float64())
		}
		buf := b.alloc(n)
		b.do(gpu.Upload(buf.All(), gpu.BytesOf(v)))
		return buf.All()
	}
	w, q, f := int(d.Width), int(d.Heads*d.HeadDim), int(d.FFN)
	for range d.Layers {
		b.args.Layers = append(b.args.Layers, Layer{
			Norm1: vector(w), QKV: matrix(d.qkv() * w), Out: matrix(w * q),
			Norm2: vector(w), GateUp: matrix(2 * f * w), Down: matrix(w * f),
		})
	}
	b.args.Embeddings, b.args.LastNorm, b.args.Head = matrix(int(d.Vocab)*w), vector(w), matrix(int(d.Vocab)*w)

	freq := make([]float32, d.HeadDim/2)
	for i := range freq {
		freq[i] = float32(math.Pow(10000, -2*float64(i)/float64(d.HeadDim)))
	}
	b.args.Freq = slice(b, freq)
	table := make([]int32, slots*d.MaxPages)
	for i, p := range r.Perm(int(d.MaxPages) + 5)[:d.MaxPages] {
		table[int(b.slot*d.MaxPages)+i] = int32(p)
	}
	b.list = table[b.slot*d.MaxPages : (b.slot+1)*d.MaxPages]
	b.args.Pages = slice(b, table)
	b.args.Active = slice(b, []int32{b.slot})
	b.args.Token, b.args.Position = slice(b, make([]int32, slots)), slice(b, make([]int32, slots))
	b.args.Logits = slice(b, make([]float32, d.Vocab))
	b.args.Cache = b.alloc((int(d.MaxPages) + 5) * d.pageBytes() / 2).All()
	return b
}

func (b *bench) bits(x float64) uint16 {
	if b.dims.Half != 0 {
		return uint16(smallfloat.ToFloat16(float32(x)))
	}
	return uint16(smallfloat.ToBFloat16(float32(x)))
}

// alloc allocates n 16-bit numbers.
func (b *bench) alloc(n int) *gpu.Buffer {
	b.t.Helper()
	buf, err := b.dev.Alloc(gpu.DeviceMem, uint64(2*n))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { buf.Close() })
	return buf
}

// slice uploads data to new memory.
func slice[T any](b *bench, data []T) gpu.Slice[T] {
	b.t.Helper()
	s, err := gpu.AllocSlice[T](b.dev, gpu.DeviceMem, len(data))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	b.do(s.Upload(data))
	return s
}

// do runs operations and waits for them.
func (b *bench) do(ops ...gpu.Op) {
	b.t.Helper()
	b.stream.Do(ops...)
	if err := b.stream.Wait(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

// fillCache writes random keys and values for the positions before the given one. All other numbers
// of the cache become NaN.
func (b *bench) fillCache(position int) {
	b.t.Helper()
	r := rand.New(rand.NewPCG(uint64(position), 2))
	all := make([]uint16, b.args.Cache.Size/2)
	for i := range all {
		all[i] = 0xffff
	}
	dim, page := int(b.dims.HeadDim), b.dims.pageBytes()/2
	for p, n := range b.list {
		for o := 0; o < page; o += dim {
			if p*PageTokens+o/dim%PageTokens < position {
				for i := range dim {
					all[int(n)*page+o+i] = b.bits(r.Float64()*2 - 1)
				}
			}
		}
	}
	b.do(gpu.Upload(b.args.Cache, gpu.BytesOf(all)))
}

// set writes the slot's token and position.
func (b *bench) set(token, position int) {
	b.t.Helper()
	i := int(b.slot)
	b.do(b.args.Token.Slice(i, i+1).UploadCopy([]int32{int32(token)}), b.args.Position.Slice(i, i+1).UploadCopy([]int32{int32(position)}))
}

func (b *bench) decoder(tune Tuning) *Decoder {
	b.t.Helper()
	c, err := New(context.Background(), b.dev, b.dims, b.args, tune)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return c
}

func (b *bench) logits() []float32 {
	b.t.Helper()
	to := make([]float32, b.dims.Vocab)
	b.do(b.args.Logits.Download(to))
	return to
}

// added downloads the keys and values of a position.
func (b *bench) added(position int) []uint16 {
	b.t.Helper()
	dim, page := int(b.dims.HeadDim), b.dims.pageBytes()/2
	all := make([]uint16, page)
	at := uint64(2 * page * int(b.list[position/PageTokens]))
	c := b.args.Cache
	b.do(gpu.Download(gpu.BytesOf(all), c.Buffer.Range(c.Offset+at, uint64(2*page))))
	var got []uint16
	for o := position % PageTokens * dim; o < page; o += PageTokens * dim {
		got = append(got, all[o:o+dim]...)
	}
	return got
}

func (b *bench) numbers(bits []uint16) []float32 {
	var to []float32
	for _, v := range bits {
		if b.dims.Half != 0 {
			to = append(to, smallfloat.Float16(v).Float32())
		} else {
			to = append(to, smallfloat.BFloat16(v).Float32())
		}
	}
	return to
}

// difference returns the norm of got - want, relative to the norm of want. The result is NaN if an
// element of got or want is NaN.
func difference(got, want []float32) float64 {
	var d, w float64
	for i := range want {
		x, y := float64(got[i]), float64(want[i])
		d, w = d+(x-y)*(x-y), w+y*y
	}
	return math.Sqrt(d / w)
}

// simulated opens a simulated GPU with the twin.
func simulated(t testing.TB) *gpu.Device {
	t.Helper()
	return open(t, simdriver.New(simdriver.Config{Memory: 1 << 33, Kernels: SimPersist(Twins{})}))
}

func open(t testing.TB, d driver.Driver) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}
