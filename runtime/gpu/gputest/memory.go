package gputest

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var memoryKinds = []test{
	{name: "B97 the kinds of memory, and their alignment", run: func(e *env) {
		d := e.devs[0]
		for kind := gpu.DeviceMem; kind <= gpu.ShareableMem; kind++ {
			if kind == gpu.CommMem && !e.h.Comms {
				continue
			}
			for _, size := range []uint64{1, 100, 4096, 1<<20 + 1} {
				b, err := d.Alloc(kind, size)
				if !d.Has(kind) {
					if b != nil || !errors.Is(err, driver.ErrUnsupported) {
						e.Errorf("Alloc of kind %d, which there is not: %v", kind, err)
					}
					continue
				}
				e.must(err)
				if b.Ptr() == 0 || b.Ptr()%gpu.Alignment != 0 || b.Kind() != kind {
					e.Errorf("%d bytes of kind %d are at %#x, of kind %d", size, kind, b.Ptr(), b.Kind())
				}
				e.must(b.Close())
			}
		}
		if d.Has(-1) || d.Has(gpu.ShareableMem+1) {
			e.Error("there are kinds that there are not")
		}
		e.eachPool(func(e *env, p *gpu.Pool) {
			s := e.sem()
			for v, size := range []uint64{1, 100, 4096} {
				b := e.alloc(0, signal(s, uint64(v)+1), p, size)
				e.wait(s, uint64(v)+1)
				if b.Ptr() == 0 || b.Ptr()%gpu.Alignment != 0 {
					e.Errorf("%d bytes are at %#x", size, b.Ptr())
				}
				e.must(b.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			}
		})
	}},
	{name: "B97 memory that the host writes to and devices read", run: func(e *env) {
		d := e.devs[0]
		b, err := d.Alloc(gpu.WriteCombinedMem, 4096)
		e.must(err)
		if n := d.Stats().Host.Live; n < 4096 {
			e.Errorf("%d bytes of the host's", n)
		}
		want := random(4096, 7)
		copy(b.Bytes(), want)
		dev, s := e.buffer(4096), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Copy(dev.All(), b.All())))
		e.must(b.Close())
		e.same("what the host wrote", e.read(dev, gpu.Point{Semaphore: s, Value: 1}), want)
		if _, err := d.NewPool(gpu.PoolOptions{Kind: gpu.WriteCombinedMem}); !errors.Is(err, driver.ErrUnsupported) {
			e.Errorf("NewPool = %v", err)
		}
	}},
	{name: "B127 prefetched managed memory moves, and keeps its contents", run: func(e *env) {
		const size = 1 << 20
		d, q := e.devs[0], e.q(0)
		if !d.Has(gpu.ManagedMem) {
			e.Skip("there is none")
		}
		b, err := d.Alloc(gpu.ManagedMem, size)
		e.must(err)
		defer b.Close()
		want := random(size, 3)
		copy(b.Bytes(), want)
		host, s := e.sem(), e.sem()
		err = q.Submit(between(host, 1, s, 1), gpu.Prefetch(b.All(), gpu.DeviceMem))
		if errors.Is(err, driver.ErrUnsupported) {
			e.Skip("it cannot be moved")
		}
		e.must(err)
		e.must(q.Submit(between(s, 1, s, 2), gpu.Fill(b.Range(16, 16), []byte{0xcc})))
		e.must(e.q(1).Submit(between(s, 2, s, 3), gpu.Prefetch(b.Range(4096, 8192), gpu.HostMem)))
		e.must(q.Submit(between(s, 3, s, 4), gpu.Prefetch(b.Range(0, 0), gpu.HostMem)))
		e.must(host.Signal(1))
		e.wait(s, 4)
		copy(want[16:], pattern([]byte{0xcc}, 16))
		e.same("what the host sees", b.Bytes(), want)

		plain := e.buffer(64)
		for what, c := range map[string]struct{ err, kind error }{
			"other memory":          {q.Submit(signal(s, 5), gpu.Prefetch(plain.All(), gpu.DeviceMem)), gpu.ErrArgument},
			"no memory":             {q.Submit(signal(s, 5), gpu.Prefetch(gpu.Range{}, gpu.DeviceMem)), gpu.ErrArgument},
			"more than there is":    {q.Submit(signal(s, 5), gpu.Prefetch(b.Range(1, size), gpu.DeviceMem)), gpu.ErrRange},
			"to where there is not": {q.Submit(signal(s, 5), gpu.Prefetch(b.All(), gpu.ManagedMem)), gpu.ErrArgument},
		} {
			if !errors.Is(c.err, c.kind) {
				e.Errorf("%s: %v", what, c.err)
			}
		}
		e.must(s.Signal(5)) // the refused calls have not signalled 5
	}},
	{name: "B97 read-only memory of the program", run: func(e *env) {
		d, q := e.devs[0], e.q(0)
		mem := random(1<<16, 5)
		want := append([]byte(nil), mem...)
		freed := make(chan struct{}, 2)
		b, err := d.ImportHostReadOnly(mem, func() { freed <- struct{}{} })
		if errors.Is(err, driver.ErrUnsupported) {
			e.Skip("memory of the program's own cannot be pinned")
		}
		e.must(err)
		dev, s := e.buffer(1<<16), e.sem()
		e.must(q.Submit(signal(s, 1), gpu.Copy(dev.All(), b.All())))
		e.same("what was imported", e.read(dev, gpu.Point{Semaphore: s, Value: 1}), want)

		c := e.commands(gpu.AutoMode)
		from, to := c.binding(), c.binding()
		c.copy(to.Range(0, 64), from.Range(0, 64))
		small := b.Range(0, 64)
		for what, err := range map[string]error{
			"fill":            q.Submit(signal(s, 2), gpu.Fill(small, []byte{1})),
			"copy":            q.Submit(signal(s, 2), gpu.Copy(small, dev.Range(0, 64))),
			"update":          q.Submit(signal(s, 2), gpu.UploadCopy(small, make([]byte, 64))),
			"upload":          q.Submit(signal(s, 2), gpu.Upload(b.All(), make([]byte, 1<<16))),
			"read":            q.Submit(signal(s, 2), gpu.ReadFrom(small, &memory{}, 0)),
			"recorded fill":   second(c.Add(gpu.Fill(small, []byte{1}))),
			"recorded copy":   second(c.Add(gpu.Copy(small, dev.Range(0, 64)))),
			"recorded update": second(c.Add(gpu.UploadCopy(small, make([]byte, 64)))),
			"a pool over it":  second(d.NewPool(gpu.PoolOptions{Kind: gpu.HostMem, Over: b})),
		} {
			if !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%s: %v", what, err)
			}
		}
		c.end()
		e.must(q.Submit(signal(s, 2), gpu.WriteTo(&memory{data: make([]byte, 64)}, 0, small)))
		e.wait(s, 2)
		e.must(q.Submit(signal(s, 3), gpu.Execute(c.CommandBuffer, small, dev.Range(4096, 64))))
		if err := q.Submit(signal(s, 4), gpu.Execute(c.CommandBuffer, dev.Range(0, 64), small)); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("Execute = %v", err)
		}
		copy(want[4096:], want[:64])
		e.same("what was bound", e.read(dev, gpu.Point{Semaphore: s, Value: 3}), want)
		e.must(b.Close())
		<-freed
		// The memory can be imported again after it was released.
		again, err := d.ImportHostReadOnly(mem, nil)
		e.must(err)
		e.must(again.Close())
		empty, err := d.ImportHostReadOnly(nil, nil)
		e.must(err)
		e.must(empty.Close())
		if len(freed) > 0 {
			e.Error("the function was called twice")
		}
	}},
	{name: "B198 memory of the program is imported again right after Close", run: func(e *env) {
		const n = 1 << 16
		d, s := e.devs[0], e.q(0).NewStream()
		mem, dev := random(n, 6), e.buffer(n)
		for i := range 50 {
			b, err := d.ImportHost(mem, nil)
			if errors.Is(err, driver.ErrUnsupported) {
				e.Skip("memory of the program's own cannot be pinned")
			}
			if err != nil {
				e.Fatalf("import %d: %v", i, err)
			}
			e.must(s.Copy(dev.All(), b.All()))
			e.must(s.Wait(e.ctx))
			e.must(b.Close())
		}
	}},
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }
