//go:build linux && (amd64 || arm64) && !nogpu

package persist

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// spinLimit makes the kernel trap if a wait takes more than 4e9 clock cycles, about two seconds.
const spinLimit = "-DSPIN_LIMIT=4000000000ll"

// The kernel and its twin round keys and values to 16 bits, some of them to different neighbours.
// Only the kernel also rounds the numbers that its blocks exchange.
const tolerance = 1e-2

// openGPU opens the GPU, or skips the test.
func openGPU(t testing.TB) *gpu.Device {
	t.Helper()
	d, err := drivers.Open(drivers.CUDA)
	if err != nil {
		t.Skip(err)
	}
	dev := open(t, d)
	if !Supported(dev) {
		t.Skip(dev.Info().Arch, "cannot run the kernel")
	}
	t.Logf("%s, %d multiprocessors", dev.Info().Name, dev.Info().Processors)
	return dev
}

// correct returns the model sizes that tests compare with the twin.
func correct() map[string]Dims {
	wide := fullSize() // the same layers, but fewer of them, and a smaller vocabulary
	wide.Layers, wide.Vocab, wide.MaxPages = 2, 500, 130
	half := halfSize()
	half.MaxPages = 130
	tiny := tinySize()
	tiny.MaxPages = 130
	return map[string]Dims{"wide": wide, "half": half, "tiny": tiny}
}

// contexts are numbers of tokens in a sequence, including the token of the step.
var contexts = []int{1, 2, 15, 16, 17, 18, 33, 511, 512, 513, 2048}

// TestGPUEqualsTwin compares the kernel with its twin: logits, and the keys and values that a step
// adds to the cache. The numbers of the cache that the step must not use are NaN.
func TestGPUEqualsTwin(t *testing.T) {
	dev := openGPU(t)
	for name, d := range correct() {
		t.Run(name, func(t *testing.T) {
			want := newBench(t, simulated(t), d, 3)
			twin := want.decoder(Tuning{})
			got := newBench(t, dev, d, 3)
			var kernels []*Decoder
			tunes := variants[:1]
			if name == "wide" {
				tunes = slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return v.wrong() })
			}
			var all []Tuning
			for _, v := range tunes {
				v.Defines = append(slices.Clone(v.Defines), spinLimit)
				all = append(all, v.Tuning)
			}
			warm(t, dev, d, all...)
			for _, tune := range all {
				kernels = append(kernels, got.decoder(tune))
			}
			for _, n := range contexts {
				want.fillCache(n - 1)
				want.set(n%500%int(d.Vocab), n-1)
				want.do(twin.Op())
				logits, added := want.logits(), want.numbers(want.added(n-1))
				got.fillCache(n - 1)
				for i, k := range kernels {
					got.set(n%500%int(d.Vocab), n-1)
					got.do(got.args.Logits.Fill(-7), k.Op())
					e, c := difference(got.logits(), logits), difference(got.numbers(got.added(n-1)), added)
					if i == 0 {
						t.Logf("%d tokens: logits differ by %.2g, the cache by %.2g", n, e, c)
					}
					if !(e < tolerance) || !(c < tolerance) {
						t.Errorf("%s, %d tokens: logits differ by %.2g, the cache by %.2g", tunes[i].name, n, e, c)
					}
				}
			}
		})
	}
}

// TestGPUSequence decodes a sequence with a recording on a GPU, and with a recording on a simulated
// GPU. The logits must agree.
func TestGPUSequence(t *testing.T) {
	dev := openGPU(t)
	d := correct()["tiny"]
	want, got := newBench(t, simulated(t), d, 4), newBench(t, dev, d, 4)
	recs := map[*bench]*gpu.CommandBuffer{}
	for _, b := range []*bench{want, got} {
		b.fillCache(0)
		recs[b] = record(b, b.decoder(Tuning{Defines: []string{spinLimit}}), 1)
	}
	for position := range 100 {
		for b, rec := range recs {
			b.set(position*31%int(d.Vocab), position)
			b.do(gpu.Execute(rec))
		}
		if e := difference(got.logits(), want.logits()); !(e < tolerance) {
			t.Errorf("position %d: logits differ by %.2g", position, e)
		}
	}
}

// TestGPURepeated checks that decoding the same token many times gives the same bits each time. A
// race shows as a difference, a wrong order of waits as a trap.
func TestGPURepeated(t *testing.T) {
	dev := openGPU(t)
	for name, d := range correct() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dev, d, 5)
			for _, n := range []int{1, 17, 1000} {
				b.fillCache(n - 1)
				b.set(3, n-1)
				for _, tune := range []Tuning{{}, {Stages: 3}, {Hint: 50, Copies: 1}} {
					tune.Defines = append(tune.Defines, spinLimit)
					c := b.decoder(tune)
					b.do(c.Op())
					first := b.logits()
					rec := record(b, c, 10)
					for i := range 100 {
						b.do(gpu.Execute(rec))
						if !slices.Equal(b.logits(), first) {
							t.Fatalf("%d tokens, %+v: decoding the token differs after %d times", n, tune, 10*i+10)
						}
					}
				}
			}
		})
	}
}

// warm compiles tunings concurrently, so that they are in the cache on disk when a decoder needs
// them.
func warm(t *testing.T, dev *gpu.Device, d Dims, tunes ...Tuning) {
	t.Helper()
	start := time.Now()
	var wait sync.WaitGroup
	for _, tune := range tunes {
		p, err := d.plan(dev.Info().Processors, int(dev.Info().SharedOptIn), 1, tune)
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			code, _, err := CompilePersist(dev, compile.Options{Options: p.options()})
			if err != nil {
				t.Error(err)
				return
			}
			code.Close()
		})
	}
	wait.Wait()
	t.Logf("compiled %d variants in %v", len(tunes), time.Since(start))
}

// streams measures the bandwidth of a device's memory.
var streams = compile.Source{Name: "streams.cu", Text: `
extern "C" __global__ void copy(const uint4 *from, uint4 *to, unsigned long long n)
{
	for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (unsigned long long)gridDim.x * blockDim.x)
		to[i] = from[i];
}

extern "C" __global__ void read(const uint4 *from, uint4 *to, unsigned long long n)
{
	uint4 a = make_uint4(0, 0, 0, 0);
	unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x, i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	for (; i + 3 * stride < n; i += 4 * stride) {
		uint4 v[4];
#pragma unroll
		for (int j = 0; j < 4; j++)
			v[j] = from[i + j * stride];
#pragma unroll
		for (int j = 0; j < 4; j++)
			a.x ^= v[j].x, a.y ^= v[j].y, a.z ^= v[j].z, a.w ^= v[j].w;
	}
	if (a.x == 1 && a.y == 2 && a.z == 3 && a.w == 5)
		*to = a;
}
`}

// bandwidth returns the best bandwidths of a copy (bytes read and written) and of reading, in GB/s.
func bandwidth(t *testing.T, dev *gpu.Device) (copied, read float64) {
	code, _, err := compile.Compile(dev, streams)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	const size = 1 << 30
	b := &bench{t: t, dev: dev, stream: dev.Queue(0).NewStream()}
	from, to := b.alloc(size/2), b.alloc(size/2)
	b.do(gpu.Fill(from.All(), []byte{1, 2, 3, 4}))
	for _, c := range []struct {
		name  string
		bytes float64
		best  *float64
	}{{"copy", 2 * size, &copied}, {"read", size, &read}} {
		k, err := code.Kernel(c.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, blocks := range []int{4, 8, 16, 32, 512} {
			grid := gpu.Grid{Blocks: [3]uint32{uint32(blocks * dev.Info().Processors)}, Threads: [3]uint32{512}}
			for range 8 {
				took := timed(b, gpu.Launch(k, grid, from, to, uint64(size/16)))
				*c.best = max(*c.best, c.bytes/took.Seconds()/1e9)
			}
		}
	}
	return copied, read
}

// timed returns how long the device takes for an operation.
func timed(b *bench, op gpu.Op) time.Duration {
	b.t.Helper()
	timing, err := b.dev.NewTiming()
	if err != nil {
		b.t.Fatal(err)
	}
	defer timing.Close()
	b.do(op.Timed(timing))
	took, err := timing.Duration()
	if err != nil {
		b.t.Fatal(err)
	}
	return took
}

// TestGPUTimes prints the time of a token for each tuning, and the bandwidth as a share of a copy
// kernel's bandwidth. The test is skipped unless PUREGPU_LLAMA_TIMES is 1. Choose variants by
// PUREGPU_LLAMA_VARIANTS, a list of names.
func TestGPUTimes(t *testing.T) {
	if os.Getenv("PUREGPU_LLAMA_TIMES") != "1" {
		t.Skip("PUREGPU_LLAMA_TIMES=1 measures")
	}
	dev := openGPU(t)
	copied, read := bandwidth(t, dev)
	d := fullSize()
	b := newBench(t, dev, d, 6)
	b.fillCache(int(d.MaxPages)*PageTokens - 1)
	const steps = 20
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
		fmt.Fprintln(os.Stderr, lines[len(lines)-1]) // at once, because a later variant may hang
	}
	say("%s: a copy kernel has %.0f GB/s, a reading one %.0f", dev.Info().Name, copied, read)
	say("%-22s %8s %6s %6s %9s %9s %7s %9s", "variant", "context", "regs", "stages", "best µs", "median", "GB/s", "of copy")
	var right []float32
	chosen := variants
	if names := os.Getenv("PUREGPU_LLAMA_VARIANTS"); names != "" {
		chosen = slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return !slices.Contains(strings.Split(names, ","), v.name) })
	}
	var tunes []Tuning
	for _, v := range chosen {
		tunes = append(tunes, v.Tuning)
	}
	warm(t, dev, d, tunes...)
	for i, v := range chosen {
		p, err := d.plan(dev.Info().Processors, int(dev.Info().SharedOptIn), 1, v.Tuning)
		if err != nil {
			t.Error(v.name, err)
			continue
		}
		c := b.decoder(v.Tuning)
		rec := record(b, c, steps)
		all := []int{512}
		if i < 2 {
			all = []int{512, 1024, 2048, 4096}
		}
		for _, n := range all {
			b.set(5, n-1)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			b.stream.Do(gpu.Execute(rec))
			if err := b.stream.Wait(ctx); err != nil {
				say("%s: %v", v.name, err)
				os.Exit(1) // do not close the device, which would wait for the kernel that hangs
			}
			cancel()
			var took []time.Duration
			for range 15 {
				took = append(took, timed(b, gpu.Execute(rec))/steps)
			}
			slices.Sort(took)
			median := took[len(took)/2]
			bytes := d.weights() + float64(2*d.Layers*d.KVHeads*d.HeadDim*2)*float64(n)
			rate := bytes / median.Seconds() / 1e9
			say("%-22s %8d %6d %6d %9.1f %9.1f %7.0f %8.1f%%", v.name, n, c.code.Decode.Kernel().Info().Registers, p.Stages,
				us(took[0]), us(median), rate, 100*rate/copied)
			if n == 512 && !v.wrong() {
				if right == nil {
					right = b.logits()
				} else if e := difference(b.logits(), right); !(e < tolerance) {
					t.Errorf("%s: logits differ from the first variant's by %.2g", v.name, e)
				}
			}
		}
	}
	t.Logf("\n%s", strings.Join(lines, "\n"))
}

func us(d time.Duration) float64 { return d.Seconds() * 1e6 }

// weights returns how many bytes of weights the decoder reads for one token.
func (d *Dims) weights() float64 {
	w, q, f := float64(d.Width), float64(d.Heads*d.HeadDim), float64(d.FFN)
	return 2 * (float64(d.Layers)*(w*float64(d.qkv())+w*q+3*w*f+2*w) + float64(d.Vocab)*w)
}

// realTwo opens two GPUs, or skips the test.
func realTwo(t *testing.T) []*gpu.Device {
	t.Helper()
	d, err := drivers.Open(drivers.CUDA)
	if err != nil {
		t.Skip(err)
	}
	devices := two(t, d)
	if !Supported(devices[0]) {
		t.Skip(devices[0].Info().Arch, "cannot run the kernel")
	}
	return devices
}

// TestGPUTeam compares two GPUs with one.
func TestGPUTeam(t *testing.T) {
	half := tinySize()
	half.Half, half.RopeFactor = 1, 1.2
	wide := doubleSize()
	wide.Layers, wide.Vocab, wide.MaxPages = 3, 500, 20
	half.MaxPages = 20
	for name, d := range map[string]Dims{"bfloat16": tinySize(), "float16": half, "wide": wide} {
		t.Run(name, func(t *testing.T) { testTeam(t, realTwo(t), d, tolerance, 200, 200) })
	}
}

func TestGPUTeamLost(t *testing.T) { testLost(t, realTwo(t)) }
