package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
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
	made    map[int]*gpu.CommandBuffer // by the count of numbers
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

// Lengths of sums that take one round, and of sums that take several.
var lengths, rounds = []int{4, 512, 2048, 2052, 512, 4}, []int{most, 4, 2052, most, most / 2, 4, most - 36}

const most = 2*blocks*threads*4 + 40

// check adds arrays of the lengths, and compares the ranks' bits with sums in the order of the ranks.
// The blocks' tags begin with start, or with 1 if start is 0.
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

// lost launches sums on the first of several ranks only.
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
