package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

// memories is a scenario with pools of several kinds, and with recordings that bind pool memory,
// hold it, or pass it to nested recordings. If the last step succeeds, the result must be right.
func memories(ctx context.Context, d driver.Driver, _ int, sound bool) error {
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2, Events: 2, StageSize: 256, Spin: -1, Poll: -1})
	if err != nil {
		return nil
	}
	defer dev.Close()
	const block = 512 // the limit of each pool
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
	whole.Close() // the pool keeps the memory alive
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
	step(func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Fill(cell(0), value)) })
	for i, p := range pools { // memory of each pool passes the value on from cell i to cell i+1
		q, other := dev.Queue(i%2), dev.Queue(1-i%2)
		var b *gpu.Buffer
		step(func(o gpu.Order) (err error) { b, err = testkit.AllocIn(q, o, p, block); return err })
		if b == nil {
			continue
		}
		c := graph
		if i == 1 {
			c = stream
		}
		if i == 2 { // record the buffer, whose allocation may still be parked
			if c, err = dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode}); err != nil {
				return nil
			}
			if record(dev, c, cell(i+1), b.Range(8, 16), cell(i)) != nil {
				return nil
			}
			for range 2 {
				step(func(o gpu.Order) error { return other.Submit(o, gpu.Execute(c)) })
			}
			c.Close()
		} else {
			step(func(o gpu.Order) error { return other.Submit(o, gpu.Execute(c, cell(i+1), b.Range(8, 16), cell(i))) })
		}
		if i == 1 {
			sems[0].Signal(1) // releases the work so far, which is parked
		}
		if i == 3 {
			b.Close() // the memory is freed after this use
			continue
		}
		step(func(o gpu.Order) error { return other.Submit(o, gpu.Free(b)) })
	}
	sems[0].Signal(1) // again, because the loop may have skipped this signal
	beyond, _ := gpu.NewSemaphore(0)
	if _, err := testkit.AllocIn(dev.Queue(0), gpu.Order{Signal: pts(beyond, 1)}, pools[0], 2*block); err != nil {
		beyond.Fail(err)
	}
	step(func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Download(got, cell(len(pools)))) })
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
			return fmt.Errorf("semaphore %d is neither reached nor failed\n%s", i, dump(dev))
		}
		if sound && err != nil {
			return fmt.Errorf("semaphore %d: %w", i, err)
		}
	}
	if want := []byte{1, 2, 3, 4, 5, 6, 7, 9}; err == nil && !bytes.Equal(got, want) {
		return fmt.Errorf("%x arrived, want %x", got, want)
	}
	switch err := beyond.Wait(ctx, 1); {
	case ctx.Err() != nil:
		return fmt.Errorf("an alloca beyond a limit is neither reached nor failed\n%s", dump(dev))
	case err == nil, sound && !errors.Is(err, driver.ErrOutOfMemory):
		return fmt.Errorf("an alloca beyond a limit: %w", err)
	}
	return nil
}

// others is a scenario in which other code uses the device. The other code puts work into an
// adopted stream, between submissions of that stream's queue. It also records events and waits for
// events. The scenario waits for values in memory too.
func others(ctx context.Context, d driver.Driver, _ int, sound bool) error {
	v, err := d.Open(0)
	if err != nil {
		return nil
	}
	var h driver.Stream
	var theirs driver.Event
	defer func() { // runs after the runtime's device is closed
		testkit.Natively(v, func() error {
			v.Bind() // again, because a fault may have hit the Bind of Natively
			for h != 0 && ctx.Err() == nil && errors.Is(v.DestroyStream(h), driver.ErrBusy) {
				time.Sleep(10 * time.Microsecond)
			}
			if theirs != 0 {
				v.DestroyEvent(theirs)
			}
			return v.Close()
		})
	}()
	if testkit.Natively(v, func() (err error) {
		if h, err = v.NewStream(); err == nil {
			theirs, err = v.NewEvent()
		}
		return err
	}) != nil {
		return nil
	}
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2, Events: 2, StageSize: 256, Spin: -1, Poll: -1})
	if err != nil {
		return nil
	}
	defer dev.Close()
	q, err := interop.AdoptStream(dev, h)
	if err != nil {
		return nil
	}
	cells, err := dev.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		return nil
	}
	word, err := dev.Alloc(gpu.HostMem, 8)
	if err != nil {
		return nil
	}
	number := (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(word.Bytes())))
	own, err := interop.NewEvent(dev)
	if err != nil {
		return nil
	}
	var lent sync.WaitGroup
	lent.Add(1)
	back, err := interop.AdoptEvent(dev, theirs, lent.Done)
	if err != nil {
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
	ptr := func(i int) driver.Ptr { return cells.Ptr() + driver.Ptr(8*i) }
	value, got := []byte{1, 2, 3, 4, 5, 6, 7, 8}, make([]byte, 8)
	step(func(o gpu.Order) error { return q.Submit(o, gpu.Fill(cell(0), value)) })
	step(func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Copy(cell(1), cell(0))) })
	step(func(o gpu.Order) error { return dev.Queue(0).Submit(o, interop.RecordEvent(own)) })
	sems[0].Signal(1) // releases the work so far, which is parked
	if sems[n].WaitIssued(ctx, 1) == nil {
		err := testkit.Natively(v, func() error {
			err := v.StreamWait(h, own.Native())
			if err == nil {
				err = v.Copy(h, ptr(2), ptr(1), 8)
			}
			if err == nil {
				err = v.Record(theirs, h)
			}
			return err
		})
		if err != nil { // without the event, nothing orders later work after the other code's work
			sems[n].Fail(err)
		}
	}
	step(func(o gpu.Order) error { return dev.Queue(1).Submit(o, interop.WaitEvent(back)) })
	step(func(o gpu.Order) error { return dev.Queue(1).Submit(o, gpu.Copy(cell(3), cell(2))) })
	if v.Caps().Values {
		ready, _ := gpu.NewSemaphore(0)
		if dev.Queue(1).Submit(order(at(n), 1, ready, 1), interop.WaitValue(word.All(), 5)) != nil {
			ready.Fail(errNoMemory)
		}
		step(func(o gpu.Order) error { return q.Submit(o, interop.WriteValue(word.All(), 5)) })
		if sems[n].Wait(ctx, 1) != nil {
			// The WriteValue has failed, so write the value here for the waiting stream.
			number.Store(5)
		}
		step(func(o gpu.Order) error {
			return q.Submit(gpu.Order{Wait: append(o.Wait, pts(ready, 1)...), Signal: o.Signal}, gpu.Copy(cell(4), cell(3)))
		})
	} else {
		step(func(o gpu.Order) error { return q.Submit(o, gpu.Copy(cell(4), cell(3))) })
	}
	var b *gpu.Buffer
	step(func(o gpu.Order) (err error) { b, err = testkit.AllocIn(dev.Queue(0), o, nil, 64); return err })
	if b != nil {
		step(func(o gpu.Order) error { return q.Submit(o, gpu.Copy(b.Range(8, 8), cell(4))) })
		step(func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Copy(cell(5), b.Range(8, 8))) })
		step(func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Free(b)) })
	}
	step(func(o gpu.Order) error {
		return q.Submit(o, gpu.Native("", func(n gpu.NativeCall) error { return n.Device.Copy(n.Stream, ptr(6), ptr(5), 8) }, cells.All()))
	})
	last := n
	closing, _ := gpu.NewSemaphore(0)
	q.Submit(order(closing, 1, at(n+1), 1), gpu.Fill(cell(7), value)) // fails when the queue is closed
	n++
	if err := sems[last].WaitIssued(ctx, 1); ctx.Err() != nil {
		return fmt.Errorf("semaphore %d is neither issued nor failed: %w\n%s", last, err, dump(dev))
	}
	q.Close()
	// Wait for the other code's work, which uses the event and the memory. Wait again if a fault
	// hits the wait.
	for range 3 {
		if testkit.Natively(v, func() error { return testkit.Drain(v, h) }) == nil {
			break
		}
	}
	back.Close()
	own.Close()
	end, _ := gpu.NewSemaphore(0)
	if err := dev.Queue(1).Submit(order(sems[last], 1, end, 1), gpu.Download(got, cell(6))); err != nil {
		end.Fail(err)
	}
	for i, s := range append(sems, end) {
		err = s.Wait(ctx, 1)
		if ctx.Err() != nil {
			return fmt.Errorf("semaphore %d is neither reached nor failed\n%s", i, dump(dev))
		}
		if sound && (err == nil) != (i != last+1) {
			return fmt.Errorf("semaphore %d: %w", i, err)
		}
	}
	if sound && !bytes.Equal(got, value) {
		return fmt.Errorf("%x arrived, want %x", got, value)
	}
	dev.Close()
	lent.Wait()
	return nil
}

// handOn is a scenario with pools that have room for one block. Two streams and a queue take turns
// with the block. At the end the scenario closes the buffers, because some may not have been freed:
// a Free fails after failed work.
func handOn(ctx context.Context, d driver.Driver, _ int, sound bool) error {
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 3, Events: 2, StageSize: 256, Spin: -1, Poll: -1})
	if err != nil {
		return nil
	}
	defer dev.Close()
	const block, n = 512, 5
	for _, o := range []gpu.PoolOptions{{MaxSize: block}, {MaxSize: block, Portable: true, Zero: true}} {
		// Use new memory each time, because a failed stream may still use the old memory.
		cells, err := dev.Alloc(gpu.DeviceMem, 3*n)
		if err != nil {
			return nil
		}
		p, err := dev.NewPool(o)
		if err != nil {
			return nil
		}
		defer p.Close()
		// Two streams and a queue pass one block on. Each waits for the point of the previous free.
		var held []*gpu.Buffer
		streams := []*gpu.Stream{dev.Queue(0).NewStream(), dev.Queue(1).NewStream()}
		q, s := dev.Queue(2), new(gpu.Semaphore)
		last := s.At(0)
		for k := range uint64(n) {
			for i, st := range streams {
				st.After(last)
				b, err := st.Alloc(p, block)
				if err != nil {
					break
				}
				held = append(held, b)
				st.Fill(b.All(), []byte{byte(k)})
				st.Copy(cells.Range(uint64(i)*n+k, 1), b.Range(block-1, 1))
				st.Free(b)
				last = st.Point()
			}
			b, err := testkit.AllocIn(q, gpu.Order{Wait: []gpu.Point{last}, Signal: pts(s, 4*k+1)}, p, block)
			if err == nil {
				held = append(held, b)
				err = errors.Join(q.Submit(order(s, 4*k+1, s, 4*k+2), gpu.Fill(b.All(), []byte{byte(k)})),
					q.Submit(order(s, 4*k+2, s, 4*k+3), gpu.Copy(cells.Range(2*n+k, 1), b.Range(block-1, 1))),
					q.Submit(gpu.Order{Wait: pts(s, 4*k+3), Signal: pts(s, 4*k+4)}, gpu.Free(b)))
			}
			if err != nil {
				s.Fail(err)
				break
			}
			last = s.At(4*k + 4)
		}
		errs := []error{streams[0].Wait(ctx), streams[1].Wait(ctx), s.Wait(ctx, 4*n)}
		closeAll(held)
		if ctx.Err() != nil {
			return fmt.Errorf("a stream or queue waits for memory for ever\n%s", dump(dev))
		}
		if err := errors.Join(errs...); err != nil {
			if sound {
				return err
			}
			continue
		}
		done, _ := gpu.NewSemaphore(0)
		got := make([]byte, 3*n)
		if dev.Queue(0).Submit(gpu.Order{Signal: pts(done, 1)}, gpu.Download(got, cells.All())) != nil || done.Wait(ctx, 1) != nil {
			continue
		}
		for i, x := range got {
			if sound && x != byte(i%n) {
				return fmt.Errorf("%v arrived", got)
			}
		}
	}
	return nil
}

func closeAll(buffers []*gpu.Buffer) {
	for _, b := range buffers {
		b.Close()
	}
}

// way makes a recording with three bindings. An execution copies from the last binding to the
// second one, and from there to the first one. Each of the two copies is an execution of a nested
// recording (see record).
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

// record adds two executions of a nested recording to c, and then ends c. The nested recording
// copies 8 bytes and sets the last of the copied bytes to 9. The first execution copies the range
// named from; its destination is the second half of middle. The second execution copies this half;
// its destination is the range named to.
func record(dev *gpu.Device, c *gpu.CommandBuffer, to, middle, from gpu.Range) error {
	child, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	if err != nil {
		return err
	}
	defer child.Close()
	x, err := child.Binding()
	y, err2 := child.Binding()
	at, err3 := child.Add(gpu.Copy(x.Range(0, 8), y.Range(0, 8)))
	_, err4 := child.Add(gpu.Fill(x.Range(7, 1), []byte{9}), at)
	if err := errors.Join(err, err2, err3, err4, child.End()); err != nil {
		return err
	}
	middle.Offset, middle.Size = middle.Offset+8, 8
	_, err = c.Add(gpu.Execute(child, middle, from))
	_, err2 = c.Add(gpu.Barrier())
	_, err3 = c.Add(gpu.Execute(child, to, middle))
	return errors.Join(err, err2, err3, c.End())
}

// scenario uses most features of the runtime on a group of devices. If a call that the rest needs
// fails, scenario ends early and returns nil. It returns an error if something that it waits for
// never ends. If sound is set, it also returns an error if work fails.
func scenario(ctx context.Context, d driver.Driver, devices int, sound bool) (err error) {
	var devs []*gpu.Device
	var lent sync.WaitGroup // counts imported memory that devices have not released yet
	defer func() {
		for _, dev := range devs {
			dev.Close() // returns an error if the fault hits it
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			lent.Wait()
		}()
		select {
		case <-back:
		case <-ctx.Done():
			err = errors.Join(err, errors.New("memory that was lent has not come back"))
		}
	}()
	const size = 600 // transferred in three pieces
	v, err := d.Open(0)
	if err != nil {
		return nil
	}
	caps := v.Caps()
	testkit.Natively(v, func() error {
		v.Bind() // again, because a fault may have hit the first Bind
		return v.Close()
	})
	for i := range devices {
		// Spinning and polling would make many more native calls.
		dev, err := gpu.Open(d, i, gpu.Options{Queues: 2, Events: 2, StageSize: 256, Spin: -1, Poll: -1})
		if err != nil {
			return nil
		}
		devs = append(devs, dev)
	}
	// Group only two devices: the number of driver calls grows with the square of the group's size.
	if _, err := gpu.NewGroup(devs[max(0, devices-2):]...); err != nil {
		return nil
	}
	first, second := devs[0], devs[min(1, devices-1)]
	var bufs []*gpu.Buffer
	for _, dev := range append([]*gpu.Device{first, second}, devs[min(2, devices):]...) {
		b, err := dev.Alloc(gpu.DeviceMem, size)
		if err != nil {
			return nil
		}
		bufs = append(bufs, b)
	}
	x, err := first.Load(simdriver.Image("index", "stamp", "table=64"))
	if err != nil {
		return nil
	}
	if y, _, err := compile.Compile(first, compile.Source{Text: "extern \"C\" __global__ void index();"}); err == nil {
		_, err = y.Kernel("index")
		y.Close()
		if err != nil {
			return nil
		}
	} else if !errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	k, err := x.Kernel("index")
	stamp, err2 := x.Kernel("stamp")
	if err := errors.Join(err, err2); err != nil {
		return nil
	}
	table, err := x.Global("table")
	if err != nil {
		return nil
	}
	lent.Add(1)
	own, err := second.ImportHost(make([]byte, 64), lent.Done)
	if err != nil {
		lent.Done()
		return nil
	}
	lent.Add(1)
	part, err := interop.ImportPointer(first, bufs[0].Ptr()+8, 64, lent.Done)
	if err != nil {
		lent.Done()
		return nil
	}
	managed, err := second.Alloc(gpu.ManagedMem, 64)
	if err != nil {
		return nil
	}
	var recordings []*gpu.CommandBuffer
	for _, m := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		c, err := recording(first, caps, k, stamp, m)
		if err != nil {
			return nil
		}
		recordings = append(recordings, c)
	}
	pool, err := second.NewPool(gpu.PoolOptions{Portable: true, Zero: true, Threshold: 1, InitialSize: 64})
	if err != nil {
		return nil
	}
	defer pool.Close()
	var lasting, left *gpu.Buffer // pool memory
	data, file := make([]byte, size), &memoryFile{data: make([]byte, size)}
	ptr := bufs[0].Ptr()
	a, b := bufs[0], bufs[1]
	q := func(dev, i int) *gpu.Queue { return []*gpu.Device{first, second}[dev].Queue(i) }
	steps := []func(o gpu.Order) error{
		func(o gpu.Order) error { return q(0, 0).Submit(o, gpu.Fill(a.All(), []byte{1})) },
		func(o gpu.Order) error { return q(0, 1).Submit(o, gpu.UploadCopy(a.Range(0, 128), data[:128])) },
		func(o gpu.Order) error { return q(1, 0).Submit(o, gpu.Copy(b.All(), a.All())) },
		func(o gpu.Order) error {
			return q(0, 0).Submit(o, gpu.Launch(k, gpu.Grid{Threads: [3]uint32{64}}, uint64(64), uint32(1), uint32(1), ptr))
		},
		func(o gpu.Order) error {
			return q(0, 1).Submit(o, stamped(caps, stamp, a.Range(0, 8), a.Range(8, 8)))
		},
		func(o gpu.Order) error { return q(0, 1).Submit(o, gpu.Copy(a.Range(0, 64), a.Range(64, 64))) },
		func(o gpu.Order) error { return q(0, 0).Submit(o, gpu.Native("", nativeFill([]byte{1, 2}), a.All())) },
		func(o gpu.Order) error { return q(1, 1).Submit(o, gpu.Barrier()) },
		func(o gpu.Order) error { return q(1, 1).Submit(o, gpu.HostCall(func() error { return nil })) },
		func(o gpu.Order) error { return q(1, 0).Submit(o, gpu.Fill(b.All(), []byte{3, 0, 0, 0, 1, 0, 0, 0})) },
		func(o gpu.Order) error { return q(0, 0).Submit(o, gpu.Barrier()) },
		func(o gpu.Order) error { return q(0, 0).Submit(o, gpu.Download(data[:100], b.Range(0, 100))) },
		func(o gpu.Order) error { return q(0, 1).Submit(o, gpu.Upload(a.All(), data)) },
		func(o gpu.Order) error { return q(1, 1).Submit(o, gpu.WriteTo(file, 0, b.All())) },
		func(o gpu.Order) error { return q(1, 0).Submit(o, gpu.Notify(func() {})) },
		func(o gpu.Order) error { return q(0, 0).Submit(o, gpu.ReadFrom(a.Range(0, 400), file, 100)) },
		func(o gpu.Order) error { return q(1, 1).Submit(o, gpu.Copy(own.All(), managed.All())) },
		func(o gpu.Order) error { return q(0, 0).Submit(o, gpu.Fill(table.All(), []byte{1, 2})) },
		func(o gpu.Order) error { return q(0, 1).Submit(o, gpu.Fill(part.All(), []byte{4})) },
		func(o gpu.Order) (err error) { lasting, err = testkit.AllocIn(q(0, 0), o, nil, 64); return err },
		func(o gpu.Order) error { return execute(q(0, 1), o, recordings[0], a, lasting) },
		func(o gpu.Order) error { return execute(q(0, 0), o, recordings[1], lasting, a) },
		func(o gpu.Order) error { return execute(q(0, 1), o, recordings[1], a, lasting) },
		func(o gpu.Order) (err error) { left, err = testkit.AllocIn(q(1, 0), o, pool, 100); return err },
		func(o gpu.Order) error {
			if lasting == nil {
				return errNoMemory
			}
			return q(0, 1).Submit(o, gpu.Free(lasting))
		},
		func(o gpu.Order) error {
			if left == nil {
				return errNoMemory
			}
			defer left.Close() // the memory is freed after this use
			return q(1, 1).Submit(o, gpu.Fill(left.All(), []byte{1, 2}))
		},
		func(o gpu.Order) error {
			b, err := testkit.AllocIn(q(0, 0), gpu.Order{}, nil, 64)
			if err != nil {
				return err
			}
			return errors.Join(q(0, 0).Submit(gpu.Order{}, gpu.Free(b)), q(0, 0).Submit(o, gpu.Barrier()))
		},
		func(o gpu.Order) error { return q(0, 1).Submit(o, gpu.Download(data, a.All())) },
	}
	for i := 2; i < devices; i++ { // copy from device to device
		steps = append(steps, func(o gpu.Order) error { return devs[i].Queue(i%2).Submit(o, gpu.Copy(bufs[i].All(), bufs[i-1].All())) })
	}
	var sems []*gpu.Semaphore
	for range len(steps) + 3 {
		s, _ := gpu.NewSemaphore(0)
		sems = append(sems, s)
	}
	host, last, linked := sems[0], sems[len(steps)+1], sems[len(steps)+2]
	sems[5].Link(1, linked, 7)
	told := make(chan error, 1)
	sems[2].OnReached(1, func(err error) { told <- err })
	for i, submit := range steps {
		o := order(sems[i], 1, sems[i+1], 1)
		if i >= 5 {
			o.Wait = append(o.Wait, gpu.Point{Semaphore: sems[i-3], Value: 1})
		}
		if i == 4 {
			gpu.SignalAll(pts(host, 1)...) // releases the work so far, which is parked
		}
		if err := submit(o); err != nil {
			sems[i+1].Fail(err)
		}
	}
	if q, err := second.Pick(2); err != nil {
		return err
	} else if err := q.Submit(order(host, 1, last, 1), gpu.Fill(b.Range(0, 0), []byte{1})); err != nil {
		last.Fail(err)
	}
	for _, dev := range devs {
		dev.Queue(0).Flush()
	}
	for _, b := range []*gpu.Buffer{b, own, part, table} {
		b.Close()
	}
	recordings[0].Close()
	second.Trim() // returns an error if the fault hits it
	x.Close()
	for i, s := range sems {
		err := s.Wait(ctx, 1)
		if ctx.Err() != nil {
			return fmt.Errorf("semaphore %d is neither reached nor failed\n%s", i, dump(devs...))
		}
		if sound && err != nil {
			return fmt.Errorf("semaphore %d: %w", i, err)
		}
	}
	first.Trim()
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return errors.New("a function that waits for a semaphore was not called")
	}
}

var errNoMemory = errors.New("an alloca was refused")

// recording records commands of many kinds, for two bindings of 64 bytes.
func recording(d *gpu.Device, caps driver.Caps, k, stamp *gpu.Kernel, m gpu.Mode) (*gpu.CommandBuffer, error) {
	c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
	if err != nil {
		return nil, err
	}
	x, err1 := c.Binding()
	y, err2 := c.Binding()
	index, err3 := c.Add(gpu.Launch(k, gpu.Grid{Threads: [3]uint32{8}}, uint64(8), uint32(1), uint32(1), x.Range(0, 32)))
	if err3 != nil {
		return c, err3
	}
	reads, err := c.Add(stamped(caps, stamp, x.Range(32, 8), x.Range(0, 8)), index)
	if err != nil {
		return c, err
	}
	_, err4 := c.Add(gpu.UploadCopy(x.Range(32, 8), make([]byte, 8)), reads)
	_, err5 := c.Add(gpu.Fill(x.Range(40, 24), []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	_, err6 := c.Add(gpu.Barrier())
	_, err7 := c.Timestamp()
	_, err8 := c.Add(gpu.HostCall(func() error { return nil }))
	_, err9 := c.Add(gpu.Native("", nativeFill([]byte{7}), x.Range(63, 1)))
	_, err10 := c.Add(gpu.Barrier())
	scratch, err11 := c.Scratch(64)
	if err11 != nil {
		return c, err11
	}
	at, err12 := c.Add(gpu.Copy(scratch.All(), x.Range(0, 64)))
	_, err13 := c.Add(gpu.Copy(y.Range(0, 64), scratch.All()), at)
	// Use other memory, because a binding may be pool memory, where a stream cannot wait for or
	// write values.
	word, err14 := d.Alloc(gpu.HostMem, 8)
	if err14 == nil {
		_, err14 = c.Add(interop.WriteValue(word.All(), 5))
		if err14 == nil {
			_, err14 = c.Add(interop.WaitValue(word.All(), 5))
		} else if errors.Is(err14, driver.ErrUnsupported) {
			err14 = nil
		}
		word.Close() // the recording holds it
	}
	return c, errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err12, err13, err14, c.End())
}

// stamped returns a launch of the kernel "stamp" with the attributes that the capabilities allow.
func stamped(caps driver.Caps, k *gpu.Kernel, to, from gpu.Range) gpu.Op {
	a := gpu.LaunchAttrs{Cooperative: caps.Cooperative, Dependent: caps.DependentLaunch, Priority: caps.PriorityRange[1], Carveout: 50}
	if caps.Clusters {
		a.Cluster = [3]uint32{2, 1, 1}
	}
	return gpu.Launch(k, gpu.Grid{Blocks: [3]uint32{4}, Threads: [3]uint32{32}, Attrs: a}, to, from)
}

// execute executes a recording that the function recording has made.
func execute(q *gpu.Queue, o gpu.Order, c *gpu.CommandBuffer, x, y *gpu.Buffer) error {
	if x == nil || y == nil {
		return errNoMemory
	}
	return q.Submit(o, gpu.Execute(c, x.Range(0, 64), y.Range(0, 64)))
}

// A memoryFile is a file in memory, of a fixed size.
type memoryFile struct {
	mu   sync.Mutex
	data []byte
}

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.NewReader(f.data).ReadAt(p, at)
}

func (f *memoryFile) WriteAt(p []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copy(f.data[at:], p), nil
}
