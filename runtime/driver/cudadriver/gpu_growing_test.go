package cudadriver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
)

// TestGPUGrowing grows a cache on the GPU, with pages of several sizes, while a graph that contains
// the cache's address runs. It prints how long the calls take, and checks every byte that the graph
// has copied.
func TestGPUGrowing(t *testing.T) {
	if !openGPU(t).Caps().VirtualMem {
		t.Skip("the device has no virtual memory")
	}
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer func() { ok(t, dev.Close()) }()
	free, _, err := dev.MemInfo()
	ok(t, err)
	total := min(free/4, 8<<30) &^ (512<<20 - 1)
	if total == 0 {
		t.Skipf("%d bytes are free", free)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	table := &strings.Builder{}
	fmt.Fprintf(table, "%s, %d MiB\n%-10s %12s %12s %12s %12s %12s\n", dev.Info().Name, total>>20, "page", "grow", "share", "fill GB/s", "take back", "unmap")
	for _, page := range []uint64{0, 32 << 20, 256 << 20} {
		m, err := growing.Reserve(dev, 4*total, growing.Options{Page: page})
		ok(t, err)
		at := m.Buffer().Ptr()
		ok(t, m.Grow(1))
		page = m.Granularity()
		s := dev.Queue(0).NewStream()
		ok(t, s.Fill(m.Buffer().Range(0, 64), []byte{9}))

		c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
		ok(t, err)
		to, err := c.Binding()
		ok(t, err)
		_, err = c.Add(gpu.Copy(to.Range(0, 64), m.Buffer().Range(0, 64)))
		ok(t, err)
		ok(t, c.End())
		for size := page; size < total; size = min(2*size, total) { // the memory grows while the graph runs
			ok(t, s.Do(gpu.Execute(c, m.Buffer().Range(size-64, 64))))
			ok(t, m.Grow(min(2*size, total)))
		}
		ok(t, s.Do(gpu.Execute(c, m.Buffer().Range(total-64, 64))))
		got := make([]byte, 64)
		for size := page; ; size = min(2*size, total) {
			ok(t, s.Do(gpu.Download(got, m.Buffer().Range(size-64, 64))))
			ok(t, s.Wait(ctx))
			for i, b := range got {
				if b != 9 {
					t.Fatalf("byte %d behind %d bytes is %d", i, size-64, b)
				}
			}
			if size == total {
				break
			}
		}
		ok(t, c.Close())
		if m.Buffer().Ptr() != at {
			t.Errorf("the memory has moved")
		}

		idle := func(want uint64) time.Duration { // waits until the driver has given memory back
			began := time.Now()
			for dev.Stats().Device.Live != want && ctx.Err() == nil {
				time.Sleep(20 * time.Microsecond)
			}
			ok(t, ctx.Err())
			return time.Since(began)
		}
		ok(t, m.Shrink(0, s.Point()))
		idle(0)
		began := time.Now()
		ok(t, m.Grow(total))
		grow := time.Since(began)

		other, err := growing.Reserve(dev, total, growing.Options{Page: page})
		ok(t, err)
		began = time.Now()
		ok(t, other.Share(ctx, m, 0, total))
		share := time.Since(began)

		began = time.Now()
		for range 4 {
			ok(t, s.Fill(other.Buffer().All(), []byte{1, 2, 3, 4}))
		}
		ok(t, s.Wait(ctx))
		fill := float64(4*total) / time.Since(began).Seconds() / 1e9
		ok(t, other.Close())

		ok(t, s.Fill(m.Buffer().All(), []byte{5, 0, 0, 0})) // still uses the pages when Shrink is called
		ok(t, m.Shrink(0, s.Point()))
		began = time.Now()
		ok(t, m.Grow(total))
		back := time.Since(began)
		ok(t, s.Wait(ctx))
		ok(t, m.Shrink(0, s.Point()))
		unmap := idle(0)
		fmt.Fprintf(table, "%-10s %12v %12v %12.0f %12v %12v\n", fmt.Sprint(page>>20, " MiB"), grow.Round(time.Microsecond), share.Round(time.Microsecond),
			fill, back.Round(time.Microsecond), unmap.Round(time.Microsecond))
		ok(t, m.Close())
	}
	fmt.Print(table)
}
