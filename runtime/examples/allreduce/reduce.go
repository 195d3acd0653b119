package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// input is element i of a rank. Sums are exact, in whichever order, for up to 16,000 ranks.
func input(rank, i int) float32 { return float32((7*i + 13*rank) % 1000) }

// reduce submits all that is to be done on the channels of this process, with n elements on each, waits, and checks.
func reduce(ctx context.Context, channels []*gpu.Channel, n int, w io.Writer) error {
	done := make([]*gpu.Semaphore, len(channels))
	data := make([][]float32, len(channels))
	for i, c := range channels {
		data[i] = make([]float32, n)
		for j := range data[i] {
			data[i][j] = input(c.Rank(), j)
		}
		var err error
		if done[i], err = submit(ctx, c, data[i]); err != nil {
			return fmt.Errorf("rank %d: %w", c.Rank(), err)
		}
	}
	sums := hostSums(channels[0].Count(), n)
	for i, c := range channels {
		if err := done[i].Wait(ctx, 3); err != nil {
			return fmt.Errorf("rank %d: %w", c.Rank(), err)
		}
		for j, got := range data[i] {
			if got != sums[j] {
				return fmt.Errorf("rank %d of %d on %s: element %d is %v, want %v", c.Rank(), c.Count(), c.Device().Info().Name, j, got, sums[j])
			}
		}
		fmt.Fprintf(w, "allreduce: rank %d of %d on %s: sums of %d elements: ok\n", c.Rank(), c.Count(), c.Device().Info().Name, n)
	}
	return nil
}

// submit submits an upload, a reduction and a download. The semaphore is at 3 when data has the sums.
func submit(ctx context.Context, c *gpu.Channel, data []float32) (*gpu.Semaphore, error) {
	dev := c.Device()
	mem, err1 := dev.Alloc(gpu.DeviceMem, uint64(4*len(data)))
	done, err2 := gpu.NewSemaphore(0)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	q := dev.Queue(0)
	return done, errors.Join( // each returns at once; only the values order them, on the queue and the channel
		q.Upload(gpu.Order{Signal: at(done, 1)}, mem.All(), raw(data)),
		c.Submit(ctx, gpu.Order{Wait: at(done, 1), Signal: at(done, 2)}, gpu.AllReduce(mem.All(), mem.All(), gpu.Float32, gpu.Sum())),
		q.Download(gpu.Order{Wait: at(done, 2), Signal: at(done, 3)}, raw(data), mem.All()))
}

// hostSums returns what all ranks should have.
func hostSums(ranks, n int) []float32 {
	sums := make([]float32, n)
	for r := range ranks {
		for j := range sums {
			sums[j] += input(r, j)
		}
	}
	return sums
}

// at is a list of one point.
func at(s *gpu.Semaphore, value uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: value}} }

// raw is the memory of floats.
func raw(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}
