package gputest

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

var closing = []test{
	{name: "B84 after Close submissions fail, and so do their signals", run: func(e *env) {
		d, q := e.devs[0], e.q(0)
		b, allocated := e.buffer(64), e.sem()
		var mine *gpu.Buffer
		err := q.Submit(signal(allocated, 1), gpu.Alloc(&mine, nil, 64))
		e.must(err)
		e.wait(allocated, 1)
		e.must(d.Close())
		e.must(d.Close())
		for name, op := range map[string]gpu.Op{
			"barrier":   gpu.Barrier(),
			"fill":      gpu.Fill(b.All(), []byte{1}),
			"update":    gpu.UploadCopy(b.All(), make([]byte, 64)),
			"download":  gpu.Download(make([]byte, 64), b.All()),
			"host call": gpu.HostCall(func() error { return nil }),
			"notify":    gpu.Notify(func() { e.Error("called") }),
			"copy":      gpu.Copy(b.Range(0, 8), b.Range(8, 8)),
			"upload":    gpu.Upload(b.All(), make([]byte, 64)),
			"read":      gpu.ReadFrom(b.All(), &memory{}, 0),
			"write":     gpu.WriteTo(&memory{}, 0, b.All()),
			"nothing":   gpu.Fill(b.Range(0, 0), []byte{1}),
			"to a pool": gpu.Copy(mine.All(), b.All()),
			"of a pool": gpu.Download(make([]byte, 64), mine.All()),
			"free":      gpu.Free(mine),
		} {
			s := e.sem()
			if err := q.Submit(signal(s, 1), op); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("%s: %v", name, err)
			}
			e.failed(s, 1, gpu.ErrClosed)
		}
		if _, err := d.Alloc(gpu.DeviceMem, 16); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("alloc: %v", err)
		}
		if _, err := d.Load([]byte("x")); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("load: %v", err)
		}
		if err := q.Flush(); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("flush: %v", err)
		}
		if _, err := interop.ImportPointer(d, 1<<20, 8, nil); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("import: %v", err)
		}
		if _, err := d.ImportHost(make([]byte, 8), nil); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("import of the host's memory: %v", err)
		}
		e.must(b.Close())
	}},
	{name: "B84 B95 objects of a closed device may be used, and do nothing", kernels: true, run: func(e *env) {
		d := e.devs[0]
		x, err := d.Load(kernels.Basic)
		e.must(err)
		k, err := x.Kernel("words")
		e.must(err)
		b, s := e.buffer(64), e.sem()
		e.must(d.Close())
		if err := d.Queue(0).Submit(signal(s, 1), gpu.Launch(k, gpu.GridFor(16, 16), uint64(16), b.Ptr(), b.Ptr())); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("launch: %v", err)
		}
		e.failed(s, 1, gpu.ErrClosed)
		if _, err := x.Kernel("words"); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("kernel: %v", err)
		}
		if _, err := x.Global("table"); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("global: %v", err)
		}
		if k.Name() != "words" || b.Size() != 64 || b.Device() != d || b.Kind() != gpu.DeviceMem || d.Info().Name == "" {
			e.Error("a point that was reached is no longer reached")
		}
		if st := d.Stats(); st.Buffers+st.InFlight+st.Parked > 0 || st.Device.Live > 0 {
			e.Errorf("%+v", st)
		}
		for range 2 {
			e.must(x.Close())
			e.must(b.Close())
		}
	}},
	{name: "B85 Close waits for a host call that runs", run: func(e *env) {
		d, s, parked := e.devs[0], e.sem(), e.sem()
		begun, cont := make(chan struct{}), make(chan struct{})
		e.must(e.q(0).Submit(signal(s, 1), gpu.HostCall(func() error {
			close(begun)
			<-cont
			return nil
		})))
		e.must(e.q(0).Submit(between(s, 1, parked, 1), gpu.HostCall(func() error { e.Error("called"); return nil })))
		<-begun
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		e.until("closing has begun", func() bool { return e.q(0).Flush() != nil })
		e.failed(parked, 1, gpu.ErrClosed)
		if len(closed) > 0 {
			e.Error("Close has not waited")
		}
		close(cont)
		e.must(<-closed)
		e.at(s, 1)
	}},
	{name: "B85 B110 Close ends transfers in pieces", options: small, run: func(e *env) {
		const n = 64 * 4096 // more pieces than 8 goroutines can have in flight
		d, s := e.devs[0], e.sems(2)
		a, b := e.buffer(n), e.buffer(n)
		begun, cont := make(chan struct{}, 2), make(chan struct{})
		pass := func(p []byte, at int64) (int, error) {
			if at == 4096 {
				begun <- struct{}{}
				<-cont
			}
			return len(p), nil
		}
		e.must(e.q(0).Submit(signal(s[0], 1), gpu.ReadFrom(a.All(), reader(pass), 0)))
		e.must(e.q(1).Submit(signal(s[1], 1), gpu.WriteTo(writer(pass), 0, b.All())))
		<-begun
		<-begun
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		e.until("closing has begun", func() bool { return e.q(0).Flush() != nil })
		close(cont)
		e.must(<-closed)
		for i := range s {
			e.failed(s[i], 1, gpu.ErrClosed)
		}
	}},
	{name: "B85 Close fails work whose waits never end", run: func(e *env) {
		const n = 100
		b, never, s := e.buffer(64), e.sem(), e.sems(n)
		var chain []*gpu.Semaphore
		for i := range s {
			e.must(e.q(i).Submit(between(never, uint64(i+1), s[i], 1), gpu.Fill(b.All(), []byte{1})))
			x := e.sem()
			e.must(e.q(i+1).Submit(between(s[i], 1, x, 1), gpu.Fill(b.All(), []byte{1})))
			chain = append(chain, x)
		}
		got := make(chan error, 1)
		go func() { got <- s[n/2].Wait(e.ctx, 1) }()
		e.must(e.devs[0].Close())
		for i := range s {
			e.failed(s[i], 1, gpu.ErrClosed)
			e.failed(chain[i], 1, gpu.ErrClosed)
		}
		if err := <-got; !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("the waiter got %v", err)
		}
		e.at(never, 0)
		e.must(never.Signal(50)) // B86: the semaphore still works after Close
		e.must(never.Signal(500))
	}},
	{name: "B85 Close waits for work in flight", run: func(e *env) {
		b, s := e.buffer(1<<16), e.sem()
		for i := range uint64(50) {
			e.must(e.q(int(i)).Submit(gpu.Order{Wait: points(s, i), Signal: points(s, i+1)}, gpu.Fill(b.All(), []byte{byte(i)})))
		}
		e.must(e.devs[0].Close())
		e.at(s, 50)
	}},
	{name: "B85 Close from many goroutines at once", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		for v := range uint64(20) {
			e.must(e.q(int(v)).Submit(signal(s, v+1), gpu.Fill(b.Range(v%4, 1), []byte{1})))
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := e.devs[0].Close(); err != nil {
					e.Error(err)
				}
				e.at(s, 20)
			})
		}
		wg.Wait()
	}},
	{name: "B85 Close with barriers after work, and waiting barriers", stall: true, run: func(e *env) {
		b, s, x := e.buffer(64), e.sem(), e.sem()
		resume := e.h.Stall(0)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		for v := range uint64(100) {
			e.must(e.q(int(v)).Submit(between(s, v+1, s, v+2), gpu.Barrier()))
			e.must(e.q(int(v)).Submit(between(s, 1000, x, v+1), gpu.Barrier()))
		}
		got := make(chan error, 2)
		go func() { got <- s.Wait(e.ctx, 101) }()
		go func() { got <- x.Wait(e.ctx, 1) }()
		closed := make(chan error, 1)
		go func() { closed <- e.devs[0].Close() }()
		// The wait for x must end now, although the fill is still in flight.
		if err := <-got; !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("the barrier that waits: %v", err)
		}
		resume()
		e.must(<-got)
		e.must(<-closed)
		e.at(s, 101)
	}},
	{name: "B86 semaphores outlive the device", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(e.devs[0].Close())
		e.wait(s, 1)
		e.at(s, 1)
		e.must(s.Signal(2))
		s.Fail(io.EOF)
		e.failed(s, 1, io.EOF)
	}},
	{name: "B84 B85 Close while other goroutines submit", run: func(e *env) {
		b := e.buffer(5)
		var wg sync.WaitGroup
		stop := atomic.Bool{}
		for g := range 4 {
			wg.Go(func() {
				s, host := e.sem(), e.sem()
				for v := uint64(1); !stop.Load(); v++ {
					o := signal(s, v)
					if v%3 == 0 {
						o.Wait = points(host, v)
					}
					if err := e.q(g).Submit(o, gpu.Fill(b.Range(uint64(g), 1), []byte{byte(v)})); err != nil {
						if !errors.Is(err, gpu.ErrClosed) {
							e.Error(err)
						}
						break
					}
					if v%3 == 0 {
						host.Signal(v)
					}
					if err := s.Wait(e.ctx, v); err != nil {
						if !errors.Is(err, gpu.ErrClosed) {
							e.Error(err)
						}
						break
					}
				}
			})
		}
		s := e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.Range(4, 1), []byte{1})))
		e.wait(s, 1)
		e.must(e.devs[0].Close())
		stop.Store(true)
		wg.Wait()
	}},
}
