package gputest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

var mixed = []test{
	{name: "B63 a host waits for all of the host's and a device's semaphores", run: func(e *env) {
		b := e.buffer(64)
		for _, hostFirst := range []bool{true, false} {
			host, dev, gate := e.sem(), e.sem(), e.sem()
			e.must(e.q(0).Submit(between(gate, 1, dev, 1), gpu.Fill(b.All(), []byte{1})))
			got := make(chan error, 1)
			go func() {
				got <- gpu.WaitAll(e.ctx, gpu.Point{Semaphore: host, Value: 1}, gpu.Point{Semaphore: dev, Value: 1})
			}()
			steps := []*gpu.Semaphore{host, gate}
			if !hostFirst {
				slices.Reverse(steps)
			}
			e.must(steps[0].Signal(1))
			if !hostFirst {
				e.wait(dev, 1)
			}
			if len(got) > 0 {
				e.Error("the wait for all returned when one point was reached")
			}
			e.must(steps[1].Signal(1))
			e.must(<-got)
		}
	}},
	{name: "B64 a host waits for any of the host's and a device's semaphores", run: func(e *env) {
		b := e.buffer(64)
		for _, byDevice := range []bool{true, false} {
			host, dev, gate := e.sem(), e.sem(), e.sem()
			e.must(e.q(0).Submit(between(gate, 1, dev, 1), gpu.Fill(b.All(), []byte{1})))
			got := make(chan int, 1)
			go func() {
				i, err := gpu.WaitAny(e.ctx, gpu.Point{Semaphore: host, Value: 1}, gpu.Point{Semaphore: dev, Value: 1})
				if err != nil {
					i = -1
				}
				got <- i
			}()
			want := 0
			if byDevice {
				want = 1
				e.must(gate.Signal(1))
			} else {
				e.must(host.Signal(1))
			}
			if i := <-got; i != want {
				e.Errorf("WaitAny = %d, want %d", i, want)
			}
			if !byDevice {
				e.must(gate.Signal(1))
			}
		}
	}},
	{name: "B65 a semaphore between two submissions can be queried", run: func(e *env) {
		b, gate, s1, s2 := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Submit(signal(s1, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(e.q(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s1, Value: 1}, {Semaphore: gate, Value: 1}}, Signal: points(s2, 1)}, gpu.Fill(b.All(), []byte{2})))
		e.until("the first is done", func() bool { v, err := s1.Query(); e.must(err); return v == 1 })
		e.at(s2, 0)
		e.must(gate.Signal(1))
		e.wait(s2, 1)
		e.at(s1, 1)
		e.holds(b, 2)
	}},
	{name: "B65 a query finds a completed value although a higher one is not", stall: true, devices: 2, run: func(e *env) {
		a, b, s := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		resume := e.h.Stall(1)
		e.must(e.devs[0].Queue(0).Submit(signal(s, 1), gpu.Fill(a.All(), []byte{1})))
		e.must(e.devs[1].Queue(0).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{1})))
		e.until("the first is done", func() bool { v, err := s.Query(); e.must(err); return v == 1 })
		resume()
		e.wait(s, 2)
	}},
	{name: "B66 two goroutines wait for one of two values", run: func(e *env) {
		b, gate, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem(), e.sem()
		e.must(e.q(2).Submit(between(s, 1, x, 1), gpu.Fill(b.Range(0, 1), []byte{1})))
		e.must(e.q(3).Submit(between(s, 2, y, 1), gpu.Fill(b.Range(1, 1), []byte{1})))
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.Range(2, 1), []byte{1})))
		e.must(e.q(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: gate, Value: 1}}, Signal: points(s, 2)}, gpu.Fill(b.Range(3, 1), []byte{1})))
		e.wait(x, 1)
		e.at(y, 0)
		e.must(gate.Signal(1))
		e.wait(y, 1)
	}},
	{name: "B67 two goroutines wait for different values", run: func(e *env) {
		b, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Submit(between(s, 1, x, 1), gpu.Fill(b.Range(0, 1), []byte{1})))
		e.must(e.q(0).Submit(between(s, 2, y, 1), gpu.Fill(b.Range(1, 1), []byte{1})))
		e.must(s.Signal(1))
		e.wait(x, 1)
		e.at(y, 0)
		e.must(s.Signal(2))
		e.wait(y, 1)
	}},
	{name: "B68 a wait for a device and for a host, in either order", run: func(e *env) {
		b := e.buffer(64)
		for _, hostFirst := range []bool{true, false} {
			host, s, x := e.sem(), e.sem(), e.sem()
			e.must(e.q(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: host, Value: 1}}, Signal: points(x, 1)}, gpu.Fill(b.All(), []byte{2})))
			if hostFirst {
				e.must(host.Signal(1))
				e.at(x, 0)
				e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
			} else {
				e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
				e.wait(s, 1)
				e.at(x, 0)
				e.must(host.Signal(1))
			}
			e.wait(x, 1)
			e.holds(b, 2)
		}
	}},
	{name: "B69 a device signals a device and a host", run: func(e *env) {
		b, s, x := e.buffer(64), e.sem(), e.sem()
		told := make(chan error, 1)
		s.OnReached(1, func(err error) { told <- err })
		e.must(e.q(1).Submit(between(s, 1, x, 1), gpu.Fill(b.All(), []byte{2})))
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		e.wait(s, 1)
		e.wait(x, 1)
		e.must(<-told)
		e.holds(b, 2)
	}},
	{name: "B70 a wait for a lower value than the signalled one", run: func(e *env) {
		b, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(1).Submit(between(s, 3, x, 1), gpu.Fill(b.All(), []byte{2})))
		e.must(e.q(0).Submit(signal(s, 7), gpu.Fill(b.All(), []byte{1})))
		e.must(e.q(1).Submit(between(s, 3, y, 1), gpu.Fill(b.All(), []byte{2})))
		e.wait(x, 1)
		e.wait(y, 1)
		e.wait(s, 2)
		e.at(s, 7)
	}},
	{name: "B28 a wait for a device ends with its context, and the device continues", stall: true, run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		resume := e.h.Stall(0)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		ctx, cancel := context.WithTimeout(e.ctx, 2*time.Millisecond)
		defer cancel()
		if err := s.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			e.Errorf("Wait = %v", err)
		}
		resume()
		e.wait(s, 1)
	}},
	{name: "B9 a host signals a list, up to the first invalid point", run: func(e *env) {
		b, s, x := e.buffer(64), e.sems(3), e.sems(3)
		for i := range s {
			e.must(e.q(i).Submit(between(s[i], 2, x[i], 1), gpu.Fill(b.Range(uint64(i), 1), []byte{1})))
		}
		e.must(s[1].Signal(3))
		err := gpu.SignalAll(gpu.Point{Semaphore: s[0], Value: 2}, gpu.Point{Semaphore: s[1], Value: 2}, gpu.Point{Semaphore: s[2], Value: 2})
		if !errors.Is(err, gpu.ErrValue) {
			e.Errorf("SignalAll = %v", err)
		}
		e.wait(x[0], 1)
		e.wait(x[1], 1)
		e.at(s[2], 0)
		e.at(x[2], 0)
		e.must(gpu.SignalAll(gpu.Point{Semaphore: s[2], Value: 2}, gpu.Point{Semaphore: s[0], Value: 3}))
		e.wait(x[2], 1)
	}},
}
