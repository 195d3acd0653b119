package gputest

import (
	"errors"
	"io"
	"runtime"

	"github.com/puregpu/puregpu/runtime/gpu"
)

var hostCalls = []test{
	{name: "B108 a host call runs after its waits and signals after it returns", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		data := make([]byte, 64)
		e.must(e.q(0).Submit(between(s, 2, s, 3), gpu.HostCall(func() error {
			if data[0] != 4 {
				e.Errorf("the host call finds %d", data[0])
			}
			e.at(s, 2)
			data[0] = 5
			return nil
		})))
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Download(data, b.All())))
		e.must(e.q(1).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{4})))
		e.wait(s, 3)
		if data[0] != 5 {
			e.Error("the host call has not run")
		}
		e.must(e.q(0).Submit(signal(s, 4), gpu.HostCall(func() error { return nil })))
		e.wait(s, 4)
	}},
	{name: "B108 an error of a host call, or a panic, fails all its signals", run: func(e *env) {
		host := e.sem()
		for i, fn := range []func() error{func() error { return io.ErrNoProgress }, func() error { panic("no") }} {
			for _, wait := range []bool{false, true} {
				s, x := e.sem(), e.sem()
				o := gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 1}}}
				if wait {
					o.Wait = points(host, uint64(i+1))
				}
				e.must(e.q(0).Submit(o, gpu.HostCall(fn)))
				if wait {
					e.must(host.Signal(uint64(i + 1)))
				}
				for _, s := range []*gpu.Semaphore{s, x} {
					err := s.Wait(e.ctx, 1)
					if err == nil || i == 0 && !errors.Is(err, io.ErrNoProgress) {
						e.Errorf("Wait = %v", err)
					}
				}
			}
		}
	}},
	{name: "B109 a host call whose wait fails does not run", run: func(e *env) {
		host, s := e.sem(), e.sem()
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.HostCall(func() error { e.Error("it runs"); return nil })))
		host.Fail(io.ErrNoProgress)
		e.failed(s, 1, io.ErrNoProgress)
	}},
	{name: "B108 a host call may submit, wait and close buffers", run: func(e *env) {
		b, s, x := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.HostCall(func() error {
			if err := e.q(0).Submit(signal(x, 1), gpu.Fill(b.All(), []byte{1})); err != nil {
				return err
			}
			return x.Wait(e.ctx, 1)
		})))
		e.wait(s, 1)
		e.holds(b, 1)
	}},
	{name: "B108 a notification signals when its waits are reached, and then calls its function", run: func(e *env) {
		b, host, s := e.buffer(64), e.sem(), e.sem()
		called, cont := make(chan uint64, 1), make(chan struct{})
		defer close(cont)
		note := func() {
			v, _ := s.Query()
			called <- v
			<-cont // the signals are given before the function returns
		}
		e.must(e.q(0).Submit(signal(s, 1), gpu.Notify(note)))
		e.wait(s, 1)
		if v := <-called; v != 1 {
			e.Errorf("called at %d", v)
		}
		x := e.sem()
		e.must(e.q(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 2}, {Semaphore: host, Value: 1}}, Signal: []gpu.Point{{Semaphore: s, Value: 3}, {Semaphore: x, Value: 1}}}, gpu.Notify(note)))
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{1})))
		e.must(e.q(2).Submit(between(x, 1, x, 2), gpu.Fill(b.All(), []byte{2})))
		e.wait(s, 2)
		e.at(x, 0)
		if len(called) > 0 {
			e.Error("called before its waits are reached")
		}
		e.must(host.Signal(1))
		e.wait(x, 2)
		if v := <-called; v != 3 {
			e.Errorf("called at %d", v)
		}
		e.holds(b, 2)
	}},
	{name: "B108 a failing notification function affects nothing else", run: func(e *env) {
		for _, fn := range []func(){func() { panic("no") }, runtime.Goexit} {
			s := e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Notify(fn)))
			e.wait(s, 1)
			e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Barrier()))
			e.wait(s, 2)
		}
	}},
	{name: "B109 a notification whose wait fails does not call", run: func(e *env) {
		host, failed, s, x := e.sem(), e.sem(), e.sem(), e.sem()
		failed.Fail(io.EOF)
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Notify(func() { e.Error("called") })))
		e.must(e.q(0).Submit(between(failed, 1, x, 1), gpu.Notify(func() { e.Error("called") })))
		host.Fail(io.ErrNoProgress)
		e.failed(s, 1, io.ErrNoProgress)
		e.failed(x, 1, io.EOF)
		e.must(e.devs[0].Close()) // if a function were called, Close would wait for it
	}},
	{name: "B108 a host call that ends its goroutine fails", run: func(e *env) {
		s, x := e.sem(), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.HostCall(func() error { runtime.Goexit(); return nil })))
		e.must(e.q(1).Submit(between(s, 1, x, 1), gpu.Barrier()))
		var se *gpu.SubmitError
		for _, s := range []*gpu.Semaphore{s, x} {
			if err := s.Wait(e.ctx, 1); !errors.As(err, &se) || se.Op != "host call" || se.Device != e.devs[0].Info().Name {
				e.Errorf("Wait = %v", err)
			}
		}
	}},
	{name: "B108 host calls delay neither each other nor the device", run: func(e *env) {
		b, s, cont := e.buffer(64), e.sems(3), make(chan struct{})
		e.must(e.q(0).Submit(signal(s[0], 1), gpu.HostCall(func() error { <-cont; return nil })))
		e.must(e.q(0).Submit(signal(s[1], 1), gpu.HostCall(func() error { return nil })))
		e.must(e.q(0).Submit(between(s[1], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
		e.wait(s[2], 1)
		e.at(s[0], 0)
		close(cont)
		e.wait(s[0], 1)
	}},
	{name: "B8 B119 functions that a semaphore calls may submit, signal and close", run: func(e *env) {
		b, s, x := e.buffer(64), e.sem(), e.sem()
		done := make(chan error, 1)
		s.OnReached(1, func(err error) {
			err = errors.Join(err, e.q(1).Submit(signal(x, 1), gpu.Fill(b.All(), []byte{3})), s.Signal(2), x.Wait(e.ctx, 1))
			done <- errors.Join(err, e.devs[0].Close())
		})
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		e.wait(s, 1)
		e.must(<-done)
		e.at(x, 1)
		e.at(s, 2)
	}},
}
