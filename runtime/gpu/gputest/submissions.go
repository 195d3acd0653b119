package gputest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/puregpu/puregpu/runtime/gpu"
)

var submissions = []test{
	{name: "B52 a barrier signals after its waits", run: func(e *env) {
		host, a, b := e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Submit(gpu.Order{}, gpu.Barrier()))
		e.must(e.q(0).Submit(signal(a, 1), gpu.Barrier()))
		e.wait(a, 1)
		e.must(e.q(0).Submit(between(host, 1, b, 1), gpu.Barrier()))
		if err := b.Wait(ended, 1); err == nil {
			e.Error("signalled before its wait")
		}
		e.must(host.Signal(1))
		e.wait(b, 1)
	}},
	{name: "B53 a submission returns before the work is done, and signals after", stall: true, run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		resume := e.h.Stall(0)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{7})))
		for range 100 {
			e.at(s, 0)
		}
		resume()
		e.wait(s, 1)
		e.at(s, 1)
		e.holds(b, 7)
	}},
	{name: "B54 a submission with an unsatisfied wait returns at once, and nothing runs before the signal", run: func(e *env) {
		b, host, s := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).Submit(between(host, 5, s, 1), gpu.Fill(b.All(), []byte{7})))
		e.must(host.Signal(4))
		e.holds(b, 0)
		e.at(s, 0)
		e.must(host.Signal(6))
		e.wait(s, 1)
		e.holds(b, 7)
	}},
	{name: "B55 several waits and several signals", run: func(e *env) {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
			b, in, out := e.buffer(64), e.sems(3), e.sems(3)
			o := gpu.Order{}
			for i := range in {
				o.Wait = append(o.Wait, gpu.Point{Semaphore: in[i], Value: uint64(i + 1)})
				o.Signal = append(o.Signal, gpu.Point{Semaphore: out[i], Value: uint64(i + 7)})
			}
			e.must(e.q(0).Submit(o, gpu.Fill(b.All(), []byte{7})))
			for _, i := range order {
				e.holds(b, 0)
				e.must(in[i].Signal(uint64(i + 1)))
			}
			for i := range out {
				e.wait(out[i], uint64(i+7))
				e.at(out[i], uint64(i+7))
			}
			e.holds(b, 7)
		}
	}},
	{name: "B56 waiting before the signal across queues", run: func(e *env) {
		a, b, s := e.buffer(64), e.buffer(64), e.sem()
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(a.All(), []byte{9})))
		e.wait(s, 2)
		e.holds(b, 9)
	}},
	{name: "B57 fan-out to different values before the signals", run: func(e *env) {
		const n = 12
		s, out := e.sem(), e.sems(n)
		for i := range out {
			e.must(e.q(i).Submit(between(s, uint64(i+1), out[i], 1), gpu.Barrier()))
		}
		for _, v := range []uint64{1, 2, 5, 11, 12} {
			e.must(s.Signal(v))
			for i := range out {
				if uint64(i+1) <= v {
					e.wait(out[i], 1)
				} else if err := out[i].Wait(ended, 1); err == nil {
					e.Errorf("value %d is released at %d", i+1, v)
				}
			}
		}
	}},
	{name: "B58 a waiting submission does not delay the next", run: func(e *env) {
		a, b, host, s := e.buffer(64), e.buffer(64), e.sem(), e.sem()
		for range 10 {
			e.must(e.q(0).Submit(gpu.Order{Wait: points(host, 1)}, gpu.Fill(a.All(), []byte{1})))
		}
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{2})))
		e.wait(s, 1)
		e.holds(b, 2)
		e.holds(a, 0)
		e.must(host.Signal(1))
	}},
	{name: "B59 a submission keeps the closed objects that it uses", run: func(e *env) {
		a, b, host, s := e.buffer(64), e.buffer(64), e.sem(), e.sem()
		wait, sig := points(host, 1), points(s, 1)
		e.must(e.q(0).Submit(gpu.Order{Wait: wait, Signal: sig}, gpu.Fill(a.All(), []byte{5})))
		wait[0], sig[0] = gpu.Point{}, gpu.Point{} // Submit has copied the lists
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		e.must(a.Close())
		if err := e.q(0).Submit(gpu.Order{}, gpu.Fill(a.All(), []byte{1})); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("use of a closed buffer: %v", err)
		}
		e.must(host.Signal(1))
		e.wait(s, 2)
		e.holds(b, 5)
	}},
	{name: "B60 the data of an update is captured by the call", run: func(e *env) {
		b, host, s := e.buffer(1000), e.sem(), e.sem()
		data := bytes.Repeat([]byte{3}, 1000)
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.UploadCopy(b.All(), data)))
		for i := range data {
			data[i] = 4
		}
		e.must(host.Signal(1))
		e.wait(s, 1)
		e.holds(b, 3)
	}},
	{name: "B71 a waiter is issued when its producer is issued, not when it completes", stall: true, calls: true, run: func(e *env) {
		a, b, host, s := e.buffer(64), e.buffer(64), e.sem(), e.sem()
		e.must(e.q(2).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		e.must(e.q(1).Submit(between(host, 1, s, 1), gpu.Fill(a.All(), []byte{8})))
		waits, copies := e.h.Calls(0, "wait"), e.h.Calls(0, "copy")
		resume := e.h.Stall(0)
		e.must(host.Signal(1))
		e.until("the copy is issued", func() bool { return e.h.Calls(0, "copy") == copies+1 })
		if n := e.h.Calls(0, "wait") - waits; n != 1 {
			e.Errorf("%d waits of streams for events, want 1", n)
		}
		e.at(s, 0)
		resume()
		e.wait(s, 2)
		e.holds(b, 8)
	}},
	{name: "B73 chains, forwards and in reverse, on one queue and on several", run: func(e *env) {
		const n = 300
		for _, queues := range []int{1, 4} {
			for _, reverse := range []bool{false, true} {
				b, s := e.buffer(n+1), e.sem()
				e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(b.Range(0, 1), []byte{42})))
				for k := range uint64(n) {
					i := k
					if reverse {
						i = n - 1 - k
					}
					e.must(e.q(int(i)%queues).Submit(between(s, i+1, s, i+2), gpu.Copy(b.Range(i+1, 1), b.Range(i, 1))))
				}
				e.wait(s, n+1)
				e.at(s, n+1)
				e.holds(b, 42)
			}
		}
	}},
	{name: "B74 bursts of more than the event pool has", run: func(e *env) {
		const rounds, burst = 64, 64
		b, s := e.buffer(4*burst), e.sem()
		for r := range uint32(rounds) {
			o := gpu.Order{}
			done := e.sems(burst)
			if r > 0 {
				o.Wait = points(s, uint64(r))
			}
			end := gpu.Order{Signal: points(s, uint64(r+1))}
			for i := range uint64(burst) {
				o.Signal = points(done[i], 1)
				e.must(e.q(int(i)).Submit(o, gpu.Fill(b.Range(4*i, 4), binary.LittleEndian.AppendUint32(nil, r<<16|uint32(i)))))
				end.Wait = append(end.Wait, gpu.Point{Semaphore: done[i], Value: 1})
			}
			e.must(e.q(int(r)).Submit(end, gpu.Barrier()))
		}
		e.wait(s, rounds)
		for i, w := range e.words(b) {
			if w != (rounds-1)<<16|uint32(i) {
				e.Fatalf("word %d is %#x", i, w)
			}
		}
	}},
	{name: "B75 a barrier orders work on several queues", run: func(e *env) {
		b, parts, s := e.buffer(400), e.sems(4), e.sem()
		o := gpu.Order{Signal: points(s, 1)}
		for i := range uint64(4) {
			e.must(e.q(int(i)).Submit(signal(parts[i], 1), gpu.Fill(b.Range(100*i, 100), []byte{1})))
			o.Wait = append(o.Wait, gpu.Point{Semaphore: parts[i], Value: 1})
		}
		e.must(e.q(0).Submit(o, gpu.Barrier()))
		e.holds(b, 1, gpu.Point{Semaphore: s, Value: 1})
	}},
	{name: "B76 long lists", run: func(e *env) {
		for _, hostly := range []bool{true, false} {
			a, b, in, out := e.buffer(200), e.buffer(64), e.sems(200), e.sems(200)
			o := gpu.Order{}
			for i := range in {
				o.Wait = append(o.Wait, gpu.Point{Semaphore: in[i], Value: 1})
				o.Signal = append(o.Signal, gpu.Point{Semaphore: out[i], Value: 1})
			}
			e.must(e.q(0).Submit(o, gpu.Fill(b.All(), []byte{1})))
			for i := range in {
				if hostly {
					e.must(in[i].Signal(1))
				} else {
					e.must(e.q(i).Submit(signal(in[i], 1), gpu.Fill(a.Range(uint64(i), 1), []byte{0})))
				}
			}
			e.must(gpu.WaitAll(e.ctx, o.Signal...))
			e.holds(b, 1)
		}
	}},
	{name: "B75 a value raised by one of two devices, in any order of discovery", run: func(e *env) {
		// The runtime may notice that the end of a chain is done before it notices the beginning.
		b := e.buffer(64)
		for range 200 {
			s, x := e.sem(), e.sem()
			data := make([]byte, 64)
			e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{6})))
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Download(data, b.All())))
			e.must(e.q(2).Submit(between(s, 2, x, 1), gpu.Barrier()))
			e.wait(x, 1)
			if data[63] != 6 {
				e.Fatal("an operation that waited for the download is done, but the data has not arrived")
			}
			e.must(s.Signal(3))
			e.must(e.q(0).Submit(between(s, 3, s, 4), gpu.Fill(b.All(), []byte{0})))
			e.wait(s, 4)
			e.at(s, 4)
		}
	}},
	{name: "B71 a chain submitted in reverse is issued as a whole with its first", stall: true, calls: true, run: func(e *env) {
		const n = 20
		b, host, s := e.buffer(n+1), e.sem(), e.sem()
		for i := uint64(n); i >= 1; i-- {
			e.must(e.q(int(i)).Submit(between(s, i, s, i+1), gpu.Copy(b.Range(i, 1), b.Range(i-1, 1))))
		}
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Fill(b.Range(0, 1), []byte{9})))
		copies := e.h.Calls(0, "copy")
		resume := e.h.Stall(0)
		e.must(host.Signal(1))
		e.until("all are issued", func() bool {
			st := e.devs[0].Stats()
			return e.h.Calls(0, "copy") == copies+n && st.Parked == 0 && st.InFlight == n+1
		})
		e.at(s, 0)
		resume()
		e.wait(s, n+1)
		e.holds(b, 9)
	}},
	{name: "B52 chains of 100,000 barriers, after a host signal and after work", run: func(e *env) {
		n, b := uint64(100_000), e.buffer(64)
		if e.h.Brief {
			n = 1000
		}
		for _, behindWork := range []bool{false, true} {
			gate, s := e.sem(), e.sem()
			for i := range n / 2 {
				e.must(e.q(int(i)).Submit(between(s, i+1, s, i+2), gpu.Barrier()))
			}
			if behindWork {
				e.must(e.q(1).Submit(between(gate, 1, s, 1), gpu.Fill(b.All(), []byte{5})))
			} else {
				e.must(e.q(1).Submit(between(gate, 1, s, 1), gpu.Barrier()))
			}
			e.must(gate.Signal(1))
			for i := range n / 2 {
				e.must(e.q(int(i)).Submit(between(s, n/2+i+1, s, n/2+i+2), gpu.Barrier()))
			}
			e.wait(s, n+1)
			e.at(s, n+1)
			e.settled(e.devs[0])
		}
		e.holds(b, 5)
	}},
	{name: "B62 Pick returns the allowed queue with the least work", stall: true, run: func(e *env) {
		d, b, s := e.devs[0], e.buffer(64), e.sem()
		resume := e.h.Stall(0)
		v := uint64(0)
		for i, n := range []int{3, 1, 2, 1} {
			for range n {
				v++
				e.must(e.q(i).Submit(signal(s, v), gpu.Fill(b.Range(uint64(i), 1), []byte{1})))
			}
		}
		e.until("all is issued", func() bool { return d.Stats().InFlight == 7 })
		for affinity, want := range map[uint64]int{0: 1, 1<<64 - 1: 1, 0b0001: 0, 0b0101: 2, 0b1100: 3, 0b1001: 3, 1 << 2: 2, 1<<63 | 1: 0} {
			if q, err := d.Pick(affinity); err != nil || q != d.Queue(want) {
				e.Errorf("affinity %#b: another queue than %d, %v", affinity, want, err)
			}
		}
		for _, affinity := range []uint64{1 << 4, 1 << 63} {
			if q, err := d.Pick(affinity); q != nil || !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("affinity %#x: %v, %v", affinity, q, err)
			}
		}
		if d.Queues() != 4 || d.Queue(5) != d.Queue(1) || d.Queue(-1) != d.Queue(3) || d.Queue(2).Device() != d {
			e.Error("queues are not counted modulo their number")
		}
		resume()
		e.settled(d)
	}},
	{name: "B62 Pick prefers a queue that the waits come from", stall: true, run: func(e *env) {
		d, b, s, host, done, bad := e.devs[0], e.buffer(64), e.sems(5), e.sem(), e.sem(), e.sem()
		e.must(e.q(3).Submit(signal(done, 1), gpu.Fill(b.All(), []byte{1})))
		e.wait(done, 1)
		e.settled(d)
		bad.Fail(io.EOF)
		resume := e.h.Stall(0)
		for i, n := range []uint64{3, 1, 2, 1} {
			for v := range n {
				e.must(e.q(i).Submit(signal(s[i], v+1), gpu.Fill(b.Range(uint64(i), 1), []byte{1})))
			}
		}
		e.must(e.q(3).Submit(between(s[0], 2, s[4], 1), gpu.Barrier()))
		e.until("all is issued", func() bool { return d.Stats().InFlight == 8 })
		at := func(s *gpu.Semaphore, v uint64) gpu.Point { return gpu.Point{Semaphore: s, Value: v} }
		for name, x := range map[string]struct {
			affinity uint64
			waits    []gpu.Point
			want     int
		}{
			"nothing":                               {0, nil, 1},
			"one queue's":                           {0, points(s[0], 2), 0},
			"a value that is reached on the way":    {0, points(s[2], 1), 2},
			"two queues'":                           {0, []gpu.Point{at(s[0], 1), at(s[2], 2)}, 2},
			"two queues', the other way round":      {0, []gpu.Point{at(s[2], 2), at(s[0], 1)}, 2},
			"one of those allowed":                  {0b0101, []gpu.Point{at(s[0], 1), at(s[1], 1)}, 0},
			"none of those allowed":                 {0b1100, points(s[0], 1), 3},
			"a barrier's, behind the work it is of": {0, points(s[4], 1), 0},
			"what nobody was given":                 {0, []gpu.Point{at(host, 1), at(s[3], 2)}, 1},
			"what is done":                          {0, points(done, 1), 1},
			"what is done, and one queue's":         {0, []gpu.Point{at(done, 1), at(s[0], 1)}, 0},
			"what has failed":                       {0, points(bad, 1), 1},
		} {
			if q, err := d.PickAfter(x.affinity, x.waits...); err != nil || q != d.Queue(x.want) {
				e.Errorf("%s: another queue than %d, %v", name, x.want, err)
			}
		}
		for name, x := range map[string]struct {
			affinity uint64
			wait     gpu.Point
		}{
			"no queue":         {1 << 4, at(s[0], 1)},
			"no semaphore":     {0, gpu.Point{Value: 1}},
			"too high a value": {0, at(s[0], gpu.MaxValue+1)},
		} {
			if q, err := d.PickAfter(x.affinity, x.wait); q != nil || !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%s: %v, %v", name, q, err)
			}
		}
		resume()
		e.settled(d)
	}},
	{name: "B140 a flush reports whether the device takes work, and changes nothing", run: func(e *env) {
		b, host, s := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(e.q(0).Flush())
		e.at(s, 0)
		e.must(host.Signal(1))
		e.must(e.q(0).Flush())
		e.until("what is flushed is done without anybody waiting", func() bool {
			e.must(e.q(0).Flush())
			v, err := s.Query()
			e.must(err)
			return v == 1
		})
		e.settled(e.devs[0])
	}},
}
