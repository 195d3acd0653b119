package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// memories is a scenario of pools of all kinds, and of recordings that are bound to their memory, hold it, or pass it on to other
// ones. What has gone well is as it is to be.
func memories(ctx context.Context, d driver.Driver, _ int, sound bool) error {
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2, Events: 2, StageSize: 256, Spin: -1, Poll: -1})
	if err != nil {
		return nil
	}
	defer dev.Close()
	const block = 512 // all that a pool may have
	cells, err := dev.Alloc(gpu.DeviceMem, 64)
	whole, err2 := dev.Alloc(gpu.HostMem, block)
	if err := errors.Join(err, err2); err != nil {
		return nil
	}
	var pools []*gpu.Pool
	for _, o := range []gpu.PoolOptions{
		{MaxSize: block, InitialSize: block},
		{MaxSize: block, Portable: true, Zero: true, Threshold: 1},
		{MaxSize: block, Kind: gpu.HostMem},
		{MaxSize: block, Kind: gpu.HostMem, Portable: true},
		{Over: whole},
	} {
		p, err := dev.NewPool(o)
		if err != nil {
			return nil
		}
		pools = append(pools, p)
	}
	whole.Close() // it stays while the pool does
	stream, err := way(dev, gpu.StreamMode)
	graph, err2 := way(dev, gpu.GraphMode)
	if err := errors.Join(err, err2); err != nil {
		return nil
	}
	var sems []*gpu.Semaphore
	at := func(i int) *gpu.Semaphore {
		for len(sems) <= i {
			s, _ := gpu.NewSemaphore(0)
			sems = append(sems, s)
		}
		return sems[i]
	}
	n := 0
	step := func(submit func(o gpu.Order) error) {
		o := order(at(n), 1, at(n+1), 1)
		if n++; submit(o) != nil {
			at(n).Fail(errNoMemory)
		}
	}
	cell := func(i int) gpu.Range { return cells.Range(8*uint64(i), 8) }
	value, got := []byte{1, 2, 3, 4, 5, 6, 7, 8}, make([]byte, 8)
	step(func(o gpu.Order) error { return dev.Queue(0).Fill(o, cell(0), value) })
	for i, p := range pools { // each takes it on to the next cell
		q, other := dev.Queue(i%2), dev.Queue(1-i%2)
		var b *gpu.Buffer
		step(func(o gpu.Order) (err error) { b, err = q.Alloca(o, p, block); return err })
		if b == nil {
			continue
		}
		c := graph
		if i == 1 {
			c = stream
		}
		if i == 2 { // it is recorded before it is there
			if c, err = dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode}); err != nil {
				return nil
			}
			if record(dev, c, cell(i+1), b.Range(8, 16), cell(i)) != nil {
				return nil
			}
			step(func(o gpu.Order) error { return other.Execute(o, c) })
			c.Close()
		} else {
			step(func(o gpu.Order) error { return other.Execute(o, c, cell(i+1), b.Range(8, 16), cell(i)) })
		}
		if i == 1 {
			sems[0].Signal(1) // what came before was parked
		}
		if i == 3 {
			b.Close() // it goes with this use
			continue
		}
		step(func(o gpu.Order) error { return other.Dealloca(o, b) })
	}
	sems[0].Signal(1) // if there was no memory
	beyond, _ := gpu.NewSemaphore(0)
	if _, err := dev.Queue(0).Alloca(gpu.Order{Signal: pts(beyond, 1)}, pools[0], 2*block); err != nil {
		beyond.Fail(err)
	}
	step(func(o gpu.Order) error { return dev.Queue(0).Download(o, got, cell(len(pools))) })
	for _, q := range []int{0, 1} {
		dev.Queue(q).Flush()
	}
	graph.Close()
	for _, p := range pools[1:] {
		defer p.Close()
	}
	for i, s := range sems {
		err = s.Wait(ctx, 1)
		if ctx.Err() != nil {
			return fmt.Errorf("semaphore %d is neither reached nor failed", i)
		}
		if sound && err != nil {
			return fmt.Errorf("semaphore %d: %w", i, err)
		}
	}
	if want := []byte{1, 2, 3, 4, 5, 6, 7, 9}; err == nil && !bytes.Equal(got, want) {
		return fmt.Errorf("%x came, and %x was to", got, want)
	}
	switch err := beyond.Wait(ctx, 1); {
	case ctx.Err() != nil:
		return errors.New("an alloca beyond a limit is neither reached nor failed")
	case err == nil, sound && !errors.Is(err, driver.ErrOutOfMemory):
		return fmt.Errorf("an alloca beyond a limit: %w", err)
	}
	return nil
}

// way records a way from what is bound last to what is bound first through what is bound between them, with two of another
// recording.
func way(dev *gpu.Device, m gpu.Mode) (*gpu.CommandBuffer, error) {
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: m})
	if err != nil {
		return nil, err
	}
	x, err := c.Binding()
	middle, err2 := c.Binding()
	y, err3 := c.Binding()
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	return c, record(dev, c, x.Range(0, 8), middle.Range(0, 16), y.Range(0, 8))
}

// record has another recording copy from one range to another, through the second half of a third, and ends.
func record(dev *gpu.Device, c *gpu.CommandBuffer, to, middle, from gpu.Range) error {
	child, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	if err != nil {
		return err
	}
	defer child.Close()
	x, err := child.Binding()
	y, err2 := child.Binding()
	at, err3 := child.Copy(x.Range(0, 8), y.Range(0, 8))
	_, err4 := child.Fill(x.Range(7, 1), []byte{9}, at)
	if err := errors.Join(err, err2, err3, err4, child.End()); err != nil {
		return err
	}
	middle.Offset, middle.Size = middle.Offset+8, 8
	err = c.Execute(child, middle, from)
	_, err2 = c.Barrier()
	err3 = c.Execute(child, to, middle)
	return errors.Join(err, err2, err3, c.End())
}
