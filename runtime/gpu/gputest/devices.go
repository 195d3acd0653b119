package gputest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/puregpu/puregpu/runtime/gpu"
)

var devices = []test{
	{name: "B116 B117 a wait before and after the signal, between any two devices", devices: every, run: func(e *env) {
		e.pairs(func(p, c *gpu.Device) {
			for _, waitFirst := range []bool{true, false} {
				for _, byHost := range []bool{true, false} {
					host, s, x := e.sem(), e.sem(), e.sem()
					a, b := e.bufferOn(p, 64), e.bufferOn(c, 64)
					steps := []func(){
						func() { e.must(c.Queue(0).Submit(between(s, 1, x, 1), gpu.Fill(b.All(), []byte{2}))) },
						func() {
							if byHost {
								e.must(s.Signal(1))
							} else {
								e.must(p.Queue(1).Submit(between(host, 1, s, 1), gpu.Fill(a.All(), []byte{1})))
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
					e.must(a.Close())
					e.must(b.Close())
				}
			}
		})
	}},
	{name: "B117 devices of a driver wait for each other without the host", devices: 2, stall: true, calls: true, run: func(e *env) {
		a, b, s := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		waits, copies := e.h.Calls(1, "wait"), e.h.Calls(1, "copy")
		resume := e.h.Stall(0)
		e.must(e.devs[0].Queue(0).Submit(signal(s, 1), gpu.Fill(a.All(), []byte{4})))
		e.must(e.devs[1].Queue(0).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		e.until("the copy is issued", func() bool { return e.h.Calls(1, "copy") == copies+1 })
		if n := e.h.Calls(1, "wait") - waits; n != 1 {
			e.Errorf("%d waits of streams for events, want 1", n)
		}
		e.at(s, 0)
		resume()
		e.wait(s, 2)
		e.holds(b, 4)
	}},
	{name: "B116 fan-in from all devices, fan-out to them, and diamonds", devices: every, run: func(e *env) {
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
				e.must(d.Queue(i).Submit(between(s, 2*round+1, x, 1), gpu.Fill(bufs[i].All(), []byte{byte(round)})))
				all = append(all, gpu.Point{Semaphore: x, Value: 1})
			}
			e.must(e.devs[round%uint64(len(e.devs))].Queue(3).Submit(gpu.Order{Wait: all, Signal: points(s, 2*round+2)}, gpu.Barrier()))
			e.must(s.Signal(2*round + 1))
			e.wait(s, 2*round+2)
		}
		for _, b := range bufs {
			e.holds(b, 49)
		}
	}},
	{name: "B116 a chain that alternates between two devices", devices: every, run: func(e *env) {
		e.pairs(func(first, second *gpu.Device) {
			const n = 40
			devs, s := [2]*gpu.Device{first, second}, e.sem()
			mem := [2]*gpu.Buffer{e.bufferOn(first, n+2), e.bufferOn(second, n+2)}
			for i := uint64(n); i >= 1; i-- {
				e.must(devs[i%2].Queue(int(i)).Submit(between(s, i, s, i+1), gpu.Copy(mem[i%2].Range(i+1, 1), mem[(i+1)%2].Range(i, 1))))
			}
			e.must(first.Queue(0).Submit(signal(s, 1), gpu.Fill(mem[0].Range(1, 1), []byte{77})))
			if got := e.fetch(mem[n%2], points(s, n+1)...); got[n+1] != 77 {
				e.Errorf("%v arrived", got[n+1])
			}
			e.must(mem[0].Close())
			e.must(mem[1].Close())
		})
	}},
	{name: "B116 copies around a ring of all devices, all at once", devices: every, run: func(e *env) {
		const rounds, size = 50, 1 << 16
		n := len(e.devs)
		s, mem := e.sems(n), make([][2]*gpu.Buffer, n)
		for i, d := range e.devs {
			mem[i] = [2]*gpu.Buffer{e.bufferOn(d, size), e.bufferOn(d, size)}
		}
		// When s[i] is at v, device i has received data in mem[i][v%2], and sends the data to the
		// next device. The send also waits until the device's previous send is done, and until the
		// next device has sent on the data that this send overwrites.
		for v := uint64(rounds); v >= 1; v-- {
			for i, d := range e.devs {
				next, after := (i+1)%n, (i+2)%n
				wait := []gpu.Point{{Semaphore: s[i], Value: v}, {Semaphore: s[after], Value: v}, {Semaphore: s[next], Value: v}}
				o := gpu.Order{Wait: wait, Signal: points(s[next], v+1)}
				e.must(d.Queue(int(v)).Submit(o, gpu.Copy(mem[next][(v+1)%2].All(), mem[i][v%2].All())))
			}
		}
		for i, d := range e.devs {
			e.must(d.Queue(0).Submit(signal(s[i], 1), gpu.Fill(mem[i][1].All(), []byte{byte(i)})))
		}
		for i := range e.devs {
			want := byte(((i-rounds)%n + n) % n)
			e.same("what came around", e.fetch(mem[i][(rounds+1)%2], points(s[i], rounds+1)...), bytes.Repeat([]byte{want}, size))
		}
	}},
	{name: "B116 fan-in and fan-out of many queues, and a diamond between devices", devices: every, run: func(e *env) {
		const width = 12
		n := len(e.devs)
		var bufs []*gpu.Buffer
		for _, d := range e.devs {
			bufs = append(bufs, e.bufferOn(d, 4*width))
		}
		for _, topFirst := range []bool{true, false} {
			for top := range n {
				host, s, end := e.sem(), e.sem(), e.sem()
				var mid []gpu.Point
				middle := func() {
					// Copy i reads word 0 of bufs[top], and writes word i of bufs[d]. The closure
					// named first fills word 0.
					for i := uint64(2); i < width; i++ {
						x := e.sem()
						d := int(i) % n
						e.must(e.devs[d].Queue(int(i)).Submit(between(s, 1, x, 1), gpu.Copy(bufs[d].Range(4*i, 4), bufs[top].Range(0, 4))))
						mid = append(mid, gpu.Point{Semaphore: x, Value: 1})
					}
				}
				first := func() {
					e.must(e.devs[top].Queue(3).Submit(between(host, 1, s, 1), gpu.Fill(bufs[top].Range(0, 4), []byte{byte(top + 5)})))
				}
				if topFirst {
					first()
					middle()
				} else {
					middle()
					first()
				}
				e.must(e.devs[(top+1)%n].Queue(0).Submit(gpu.Order{Wait: mid, Signal: points(end, 1)}, gpu.Barrier()))
				e.must(host.Signal(1))
				e.wait(end, 1)
				for i := uint64(2); i < width; i++ {
					got := make([]byte, 4)
					x := e.sem()
					d := int(i) % n
					e.must(e.devs[d].Queue(1).Submit(between(end, 1, x, 1), gpu.Download(got, bufs[d].Range(4*i, 4))))
					e.wait(x, 1)
					e.same("a piece", got, bytes.Repeat([]byte{byte(top + 5)}, 4))
				}
			}
		}
	}},
	{name: "B86 B87 a device is closed while another one uses its buffer", devices: 2, stall: true, run: func(e *env) {
		a, b, host := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		s := e.sems(3)
		e.must(e.q(0).Submit(signal(s[0], 1), gpu.Fill(a.All(), []byte{6})))
		e.wait(s[0], 1)
		resume := e.h.Stall(1)
		q := e.devs[1].Queue(0)
		e.must(q.Submit(signal(s[1], 1), gpu.Copy(b.All(), a.All())))
		// This copy waits for the host, which signals after the source's device has been closed.
		e.must(q.Submit(between(host, 1, s[2], 1), gpu.Copy(b.All(), a.All())))
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
		if err := q.Submit(gpu.Order{}, gpu.Copy(b.All(), a.All())); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a buffer of a closed device: %v", err)
		}
		data, x := make([]byte, 64), e.sem()
		e.must(q.Submit(signal(x, 1), gpu.Download(data, b.All())))
		e.wait(x, 1)
		e.same("what was copied", data, bytes.Repeat([]byte{6}, 64))
	}},
	{name: "B86 B116 a device is closed while another one waits for it", devices: 2, stall: true, run: func(e *env) {
		a, b, never := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		s := e.sems(4)
		resume := e.h.Stall(0)
		e.must(e.q(0).Submit(signal(s[0], 1), gpu.Fill(a.All(), []byte{1})))
		e.must(e.devs[1].Queue(0).Submit(between(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{2})))
		e.must(e.q(0).Submit(between(never, 1, s[2], 1), gpu.Fill(a.All(), []byte{3})))
		e.must(e.devs[1].Queue(1).Submit(between(s[2], 1, s[3], 1), gpu.Fill(b.All(), []byte{4})))
		closed := make(chan error, 1)
		go func() { closed <- e.devs[0].Close() }()
		e.failed(s[3], 1, gpu.ErrClosed)
		resume()
		e.must(<-closed)
		e.wait(s[1], 1)
		x := e.sem()
		data := make([]byte, 64)
		e.must(e.devs[1].Queue(2).Submit(between(s[1], 1, x, 1), gpu.Download(data, b.All())))
		e.wait(x, 1)
		e.same("what was filled", data, bytes.Repeat([]byte{2}, 64))
	}},
}
