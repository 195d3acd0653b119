package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// open opens the first n devices of a driver, or skips the test.
func open(t *testing.T, d driver.Driver, n int) []*gpu.Device {
	t.Helper()
	g, err := gpu.OpenGroup(d, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	if all := g.Devices(); len(all) >= n {
		return all[:n]
	}
	t.Skipf("there are fewer than %d GPUs", n)
	return nil
}

func simulated(t *testing.T, n int, c simdriver.Config) []*gpu.Device {
	t.Helper()
	c.Devices, c.Kernels = n, Sim()
	return open(t, simdriver.New(c), n)
}

func real(t *testing.T, n int) []*gpu.Device {
	t.Helper()
	d, err := drivers.Best(drivers.WithoutSim())
	if errors.Is(err, drivers.ErrNoGPU) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return open(t, d, n)
}

// ranks makes a rank on each device.
func ranks(t *testing.T, devices []*gpu.Device, patience time.Duration) []*Sum {
	t.Helper()
	sums, err := New(t.Context(), devices, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range sums {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return sums
}

// A rank adds numbers with recordings.
type rank struct {
	*Sum
	stream  *gpu.Stream
	x, part gpu.Slice[float32]
	made    map[int]*gpu.CommandBuffer // the key is the count of numbers
}

func newRank(t *testing.T, s *Sum, most int) *rank {
	t.Helper()
	x, err1 := gpu.AllocSlice[float32](s.dev, gpu.DeviceMem, most)
	part, err2 := gpu.AllocSlice[float32](s.dev, gpu.DeviceMem, most)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	r := &rank{Sum: s, stream: s.dev.Queue(0).NewStream(), x: x, part: part, made: map[int]*gpu.CommandBuffer{}}
	t.Cleanup(func() {
		r.stream.Wait(context.Background())
		for _, c := range r.made {
			c.Close()
		}
		x.Close()
		part.Close()
	})
	return r
}

// add queues three sums of the first n numbers, in one recording.
func (r *rank) add(t *testing.T, n int) {
	t.Helper()
	c := r.made[n]
	if c == nil {
		var err error
		if c, err = r.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := c.Add(r.Op(r.x, r.part, n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.End(); err != nil {
			t.Fatal(err)
		}
		r.made[n] = c
	}
	if err := r.stream.Do(gpu.Execute(c)); err != nil {
		t.Fatal(err)
	}
}

// Lengths of sums. With those in the slice lengths, no block of the kernel needs more than one
// round. With the first and the last in the slice rounds, block 0 needs a second round.
var lengths, rounds = []int{4, 512, 2048, 2052, 512 * 130, 512, 4}, []int{most, 4, 2052, most - 36}

const most = blocks*capacity*4 + 40 // so many numbers that block 0 gets a second row

// check adds arrays of the given lengths. The result of each rank must equal, bit by bit, the
// host's sum in the order of the ranks. The blocks' tags begin with start, or with 1 if start is 0.
func check(t *testing.T, devices []*gpu.Device, patience time.Duration, start uint32, lengths []int) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []*rank
	var parts [][]float32
	for _, s := range ranks(t, devices, patience) {
		r, part := newRank(t, s, most), make([]float32, most)
		for i := range part {
			part[i] = rnd.Float32() - 0.5
		}
		if err := r.stream.Do(r.x.Fill(0), r.part.UploadCopy(part)); err != nil {
			t.Fatal(err)
		}
		if start != 0 {
			r.stream.Do(s.state.Slice(1, 1+blocks).Fill(start))
		}
		all, parts = append(all, r), append(parts, part)
	}
	want := make([]float32, most)
	for _, n := range lengths {
		for range 2 {
			for _, r := range all {
				r.add(t, n)
			}
			for range 3 {
				for i := range want[:n] {
					for _, part := range parts {
						want[i] += part[i]
					}
				}
			}
		}
	}
	for _, r := range all {
		got := make([]float32, most)
		r.stream.Do(r.x.Download(got))
		if err := errors.Join(r.stream.Wait(t.Context()), r.Err()); err != nil {
			t.Fatalf("rank %d: %v", r.Rank(), err)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("rank %d of %d: number %d is %v, want %v", r.Rank(), r.Count(), i, got[i], want[i])
			}
		}
	}
}

func TestSum(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		if testing.Short() && n > 2 {
			break
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) { check(t, simulated(t, n, simdriver.Config{}), 5*time.Minute, 0, lengths) })
	}
	t.Run("rounds", func(t *testing.T) { check(t, simulated(t, 2, simdriver.Config{}), 5*time.Minute, 1<<32-4, rounds) })
}

func TestGPUSum(t *testing.T) {
	devices := real(t, 2)
	for range 20 {
		check(t, devices, 2*time.Second, 0, lengths)
		check(t, devices, 2*time.Second, 1<<32-4, rounds)
	}
}

// checkNorm adds rows of several sizes, and compares sums and norms with the host's.
func checkNorm(t *testing.T, devices []*gpu.Device, patience time.Duration) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	sums := ranks(t, devices, patience)
	for _, c := range []struct {
		rows, width int
		half        int32
	}{{2, 128, 0}, {5, 3072, 0}, {1, 2048, 1}, {130, 64, 1}, {3, 9216, 0}, {64, 2048, 0}} {
		n := c.rows * c.width
		number := func(v float32) (uint16, float64) {
			if c.half == 1 {
				h := smallfloat.ToFloat16(v)
				return uint16(h), float64(h.Float32())
			}
			h := smallfloat.ToBFloat16(v)
			return uint16(h), float64(h.Float32())
		}
		weight, weights, want := make([]uint16, c.width), make([]float64, c.width), make([]float32, n)
		for i := range weight {
			weight[i], weights[i] = number(rnd.Float32() + 0.5)
		}
		var all []*rank
		var to []gpu.Slice[uint16]
		for _, s := range sums {
			r, part := newRank(t, s, n), make([]float32, n)
			for i := range part {
				part[i] = rnd.Float32() - 0.5
				want[i] += part[i]
			}
			w, err1 := gpu.AllocSlice[uint16](s.dev, gpu.DeviceMem, c.width)
			h, err2 := gpu.AllocSlice[uint16](s.dev, gpu.DeviceMem, n)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			err := r.stream.Do(r.x.Fill(0), r.part.UploadCopy(part), w.UploadCopy(weight),
				r.OpNorm(r.x, r.part, c.rows, c.width, Norm{w.Range(), 1e-5, c.half, h}))
			if err != nil {
				t.Fatal(err)
			}
			all, to = append(all, r), append(to, h)
		}
		for k, r := range all {
			x, h := make([]float32, n), make([]uint16, n)
			r.stream.Do(r.x.Download(x), to[k].Download(h))
			if err := errors.Join(r.stream.Wait(t.Context()), r.Err()); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			for row := range c.rows {
				squares := 0.0
				for _, v := range want[row*c.width:][:c.width] {
					squares += float64(v) * float64(v)
				}
				inverse := 1 / math.Sqrt(squares/float64(c.width)+1e-5)
				for i := range c.width {
					at := row*c.width + i
					norm := float64(want[at]) * inverse * weights[i]
					got := float64(smallfloat.BFloat16(h[at]).Float32())
					if c.half == 1 {
						got = float64(smallfloat.Float16(h[at]).Float32())
					}
					if x[at] != want[at] || math.Abs(got-norm) > math.Abs(norm)/200+1e-6 {
						t.Fatalf("%+v, rank %d: number %d of row %d is %v, want %v; its norm is %v, want %v", c, k, i, row, x[at], want[at], got, norm)
					}
				}
			}
		}
	}
}

func TestNorm(t *testing.T)    { checkNorm(t, simulated(t, 2, simdriver.Config{}), 5*time.Minute) }
func TestGPUNorm(t *testing.T) { checkNorm(t, real(t, 2), 2*time.Second) }

// lost checks that a rank gives up if no other rank launches sums.
func lost(t *testing.T, devices []*gpu.Device) {
	sums := ranks(t, devices, 50*time.Millisecond)
	r := newRank(t, sums[0], 8192)
	for range 20 {
		r.add(t, 8192)
	}
	if err := r.stream.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sums[0].Err(); err == nil || !strings.Contains(err.Error(), "rank 0 waited 50ms for the numbers of rank 1") {
		t.Errorf("rank 1 is missing: %v", err)
	}
	if err := sums[1].Err(); err != nil {
		t.Errorf("rank 1: %v", err)
	}
}

func TestLost(t *testing.T)    { lost(t, simulated(t, 2, simdriver.Config{})) }
func TestGPULost(t *testing.T) { lost(t, real(t, 2)) }

func TestRefuses(t *testing.T) {
	devices := simulated(t, 2, simdriver.Config{})
	for _, n := range []int{0, 1, 9} {
		if _, err := New(t.Context(), make([]*gpu.Device, n), 0); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%d devices: %v", n, err)
		}
	}
	if _, err := New(t.Context(), simulated(t, 2, simdriver.Config{Apart: true}), 0); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("devices without a link: %v", err)
	}
	r := newRank(t, ranks(t, devices, 0)[0], 64)
	for _, n := range []int{0, -4, 6, 68} {
		if err := r.stream.Do(r.Op(r.x, r.part, n)); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("a sum of %d numbers: %v", n, err)
		}
	}
}

// TestGPUTimes prints the time of a sum in a recording of many.
func TestGPUTimes(t *testing.T) {
	devices := real(t, 2)
	var all []*rank
	for _, s := range ranks(t, devices, 0) {
		all = append(all, newRank(t, s, 512*4096))
	}
	for _, n := range []int{2048, 4096, 16 * 4096, 64 * 4096, 512 * 4096} {
		const executions = 100 // of three sums
		run := func() {
			for range executions {
				for _, r := range all {
					r.add(t, n)
				}
			}
			for _, r := range all {
				if err := errors.Join(r.stream.Wait(t.Context()), r.Err()); err != nil {
					t.Fatal(err)
				}
			}
		}
		run()
		start := time.Now()
		run()
		t.Logf("a sum of %7d numbers: %.2f µs", n, float64(time.Since(start).Nanoseconds())/(3*executions)/1e3)
	}
}
