package gputest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/puregpu/puregpu/runtime/gpu"
)

var devices = []test{
	{name: "B116 B117 a wait before and after the signal, between devices", devices: 2, run: func(e *env) {
		for from := range 2 {
			p, c := e.devs[from], e.devs[1-from]
			for _, waitFirst := range []bool{true, false} {
				for _, byHost := range []bool{true, false} {
					host, s, x := e.sem(), e.sem(), e.sem()
					a, b := e.bufferOn(p, 64), e.bufferOn(c, 64)
					steps := []func(){
						func() { e.must(c.Queue(0).Fill(between(s, 1, x, 1), b.All(), []byte{2})) },
						func() {
							if byHost {
								e.must(s.Signal(1))
							} else {
								e.must(p.Queue(1).Fill(between(host, 1, s, 1), a.All(), []byte{1}))
								e.must(host.Signal(1))
							}
						},
					}
					if !waitFirst {
						slices.Reverse(steps)
					}
					for _, f := range steps {
						f()
					}
					e.wait(x, 1)
					e.holds(b, 2)
				}
			}
		}
	}},
	{name: "B117 devices of a driver wait for each other without the host", devices: 2, stall: true, calls: true, run: func(e *env) {
		a, b, s := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		waits, copies := e.h.Calls(1, "wait"), e.h.Calls(1, "copy")
		resume := e.h.Stall(0)
		e.must(e.devs[0].Queue(0).Fill(signal(s, 1), a.All(), []byte{4}))
		e.must(e.devs[1].Queue(0).Copy(between(s, 1, s, 2), b.All(), a.All()))
		e.until("the copy is issued", func() bool { return e.h.Calls(1, "copy") == copies+1 })
		if n := e.h.Calls(1, "wait") - waits; n != 1 {
			e.Errorf("%d waits of streams for events, want 1", n)
		}
		e.at(s, 0)
		resume()
		e.wait(s, 2)
		e.holds(b, 4)
	}},
	{name: "B116 fan-in from all devices, fan-out to them, and diamonds", devices: 2, run: func(e *env) {
		s := e.sem()
		var all []gpu.Point
		var bufs []*gpu.Buffer
		for _, d := range e.devs {
			bufs = append(bufs, e.bufferOn(d, 64))
		}
		for round := range uint64(50) {
			all = all[:0]
			for i, d := range e.devs {
				x := e.sem()
				e.must(d.Queue(i).Fill(between(s, 2*round+1, x, 1), bufs[i].All(), []byte{byte(round)}))
				all = append(all, gpu.Point{Semaphore: x, Value: 1})
			}
			e.must(e.devs[round%2].Queue(3).Barrier(gpu.Order{Wait: all, Signal: points(s, 2*round+2)}))
			e.must(s.Signal(2*round + 1))
			e.wait(s, 2*round+2)
		}
		for _, b := range bufs {
			e.holds(b, 49)
		}
	}},
	{name: "B116 a chain that goes to and fro", devices: 2, run: func(e *env) {
		const n = 200
		a, b, s := e.bufferOn(e.devs[0], n+2), e.bufferOn(e.devs[1], n+2), e.sem()
		for i := uint64(n); i >= 1; i-- {
			from, to := a, b
			if i%2 == 0 {
				from, to = b, a
			}
			e.must(e.devs[i%2].Queue(int(i)).Copy(between(s, i, s, i+1), to.Range(i+1, 1), from.Range(i, 1)))
		}
		e.must(e.q(0).Fill(signal(s, 1), a.Range(1, 1), []byte{77}))
		e.wait(s, n+1)
		if got := e.read(a); got[n+1] != 77 {
			e.Errorf("%v came through", got[n+1])
		}
	}},
	{name: "B116 fan-in and fan-out of many queues, and a diamond between devices", devices: 2, run: func(e *env) {
		const width = 12
		var bufs []*gpu.Buffer
		for _, d := range e.devs {
			bufs = append(bufs, e.bufferOn(d, 4*width))
		}
		for _, topFirst := range []bool{true, false} {
			for top := range 2 {
				host, s, end := e.sem(), e.sem(), e.sem()
				var mid []gpu.Point
				middle := func() {
					for i := uint64(2); i < width; i++ { // the first words are the tops'
						x := e.sem()
						d := int(i) % 2
						e.must(e.devs[d].Queue(int(i)).Copy(between(s, 1, x, 1), bufs[d].Range(4*i, 4), bufs[top].Range(0, 4)))
						mid = append(mid, gpu.Point{Semaphore: x, Value: 1})
					}
				}
				first := func() {
					e.must(e.devs[top].Queue(3).Fill(between(host, 1, s, 1), bufs[top].Range(0, 4), []byte{byte(top + 5)}))
				}
				if topFirst {
					first()
					middle()
				} else {
					middle()
					first()
				}
				e.must(e.devs[1-top].Queue(0).Barrier(gpu.Order{Wait: mid, Signal: points(end, 1)}))
				e.must(host.Signal(1))
				e.wait(end, 1)
				for i := uint64(2); i < width; i++ {
					got := make([]byte, 4)
					x := e.sem()
					e.must(e.devs[i%2].Queue(1).Download(between(end, 1, x, 1), got, bufs[i%2].Range(4*i, 4)))
					e.wait(x, 1)
					e.same("a piece", got, bytes.Repeat([]byte{byte(top + 5)}, 4))
				}
			}
		}
	}},
	{name: "B86 B87 a buffer of a device that is closed while another one uses it", devices: 2, stall: true, run: func(e *env) {
		a, b, host := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		s := e.sems(3)
		e.must(e.q(0).Fill(signal(s[0], 1), a.All(), []byte{6}))
		e.wait(s[0], 1)
		resume := e.h.Stall(1)
		q := e.devs[1].Queue(0)
		e.must(q.Copy(signal(s[1], 1), b.All(), a.All()))
		e.must(q.Copy(between(host, 1, s[2], 1), b.All(), a.All())) // too late, then
		e.until("the copy is issued", func() bool { return e.devs[1].Stats().InFlight == 1 })
		closed := make(chan error, 1)
		go func() { closed <- e.devs[0].Close() }()
		e.until("closing has begun", func() bool { return e.q(0).Flush() != nil })
		if len(closed) > 0 {
			e.Error("Close has not waited")
		}
		resume()
		e.must(<-closed)
		e.wait(s[1], 1)
		e.must(host.Signal(1))
		e.failed(s[2], 1, gpu.ErrClosed)
		if err := q.Copy(gpu.Order{}, b.All(), a.All()); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a buffer of a closed device: %v", err)
		}
		data, x := make([]byte, 64), e.sem()
		e.must(q.Download(signal(x, 1), data, b.All()))
		e.wait(x, 1)
		e.same("what was copied", data, bytes.Repeat([]byte{6}, 64))
	}},
	{name: "B86 B116 a device is closed that another one waits for", devices: 2, stall: true, run: func(e *env) {
		a, b, never := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		s := e.sems(4)
		resume := e.h.Stall(0)
		e.must(e.q(0).Fill(signal(s[0], 1), a.All(), []byte{1}))
		e.must(e.devs[1].Queue(0).Fill(between(s[0], 1, s[1], 1), b.All(), []byte{2}))
		e.must(e.q(0).Fill(between(never, 1, s[2], 1), a.All(), []byte{3}))
		e.must(e.devs[1].Queue(1).Fill(between(s[2], 1, s[3], 1), b.All(), []byte{4}))
		closed := make(chan error, 1)
		go func() { closed <- e.devs[0].Close() }()
		e.failed(s[3], 1, gpu.ErrClosed)
		resume()
		e.must(<-closed)
		e.wait(s[1], 1)
		x := e.sem()
		data := make([]byte, 64)
		e.must(e.devs[1].Queue(2).Download(between(s[1], 1, x, 1), data, b.All()))
		e.wait(x, 1)
		e.same("what was filled", data, bytes.Repeat([]byte{2}, 64))
	}},
}
