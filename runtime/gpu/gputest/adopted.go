package gputest

import (
	"bytes"
	"errors"
	"strings"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// natively calls fn with the device d current. fn calls the driver directly, as code outside the
// runtime does.
func (e *env) natively(d *gpu.Device, fn func(v driver.Device) error) {
	e.Helper()
	s := e.sem()
	e.must(d.Queue(3).Submit(signal(s, 1), gpu.Native("", func(n gpu.NativeCall) error { return fn(n.Device) })))
	e.wait(s, 1)
}

// stream makes a native stream that the runtime does not know, and destroys it when the test ends.
func (e *env) stream(d *gpu.Device) (h driver.Stream) {
	e.Helper()
	e.hasNative()
	e.natively(d, func(v driver.Device) (err error) { h, err = v.NewStream(); return err })
	e.Cleanup(func() {
		e.natively(d, func(v driver.Device) error {
			err := v.DestroyStream(h)
			// The stream is busy until its last work is done.
			for errors.Is(err, driver.ErrBusy) && e.ctx.Err() == nil {
				err = v.DestroyStream(h)
			}
			return err
		})
	})
	return h
}

// adopt makes a native stream and a queue on this stream. When the test ends, the queue is closed
// and the stream is destroyed. If the driver cannot adopt streams, adopt skips the test.
func (e *env) adopt(d *gpu.Device) (*gpu.Queue, driver.Stream) {
	e.Helper()
	h := e.stream(d)
	q, err := interop.AdoptStream(d, h)
	if errors.Is(err, driver.ErrUnsupported) {
		e.Skip(err)
	}
	e.must(err)
	e.Cleanup(func() { e.must(q.Close()) })
	return q, h
}

var adopted = []test{
	{name: "B164 a native stream's work is ordered with its queue's work, and with other work by semaphores", run: func(e *env) {
		q, h := e.adopt(e.devs[0])
		if q.Device() != e.devs[0] || q.Priority() != 0 || !strings.HasPrefix(q.String(), "native stream 0x") {
			e.Errorf("%v, of priority %d", q, q.Priority())
		}
		const n = 80
		b, s, v, last := e.buffer(8*n), e.sem(), uint64(0), uint64(0)
		// Each step copies the result of the previous step.
		step := func(submit func(o gpu.Order, to, from gpu.Range)) {
			last++
			submit(between(s, v, s, v+1), b.Range(8*last, 8), b.Range(8*last-8, 8))
			v++
		}
		on := func(q *gpu.Queue) {
			step(func(o gpu.Order, to, from gpu.Range) { e.must(q.Submit(o, gpu.Copy(to, from))) })
		}
		e.must(e.q(1).Submit(between(s, v, s, v+1), gpu.Fill(b.Range(0, 8), []byte{9})))
		v++
		for last < n-4 {
			on(q)
			e.must(s.WaitIssued(e.ctx, v)) // the native copy must come after the queue's copy
			last++
			to := b.Ptr() + driver.Ptr(8*last)
			e.natively(e.devs[0], func(d driver.Device) error { return d.Copy(h, to, to-8, 8) })
			on(q)
			on(e.q(int(last)))
		}
		e.wait(s, v)
		e.same("what was handed on", e.read(b)[8*last:8*last+8], pattern([]byte{9}, 8))
		for range 20 { // two queues on one stream
			other, err := interop.AdoptStream(e.devs[0], h)
			e.must(err)
			t := e.sem()
			e.must(q.Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{3})))
			e.must(other.Submit(signal(t, 1), gpu.Copy(b.Range(8, 8), b.Range(0, 8))))
			e.must(t.WaitIssued(e.ctx, 1))
			e.must(other.Close())
			e.wait(t, 1)
			e.same("what another queue on the stream has copied", e.read(b)[8:16], pattern([]byte{3}, 8))
			e.must(q.Submit(signal(t, 2), gpu.Fill(b.All(), []byte{4})))
			e.wait(t, 2)
		}
		e.must(q.Flush())
		e.settled(e.devs[0])
	}},
	{name: "B164 a queue on a native stream takes every operation", kernels: true, run: func(e *env) {
		q, _ := e.adopt(e.devs[0])
		const n = 20
		b, got, s, word := e.buffer(64), make([]byte, 64), q.NewStream(), e.buffer(8)
		for _, m := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
			c := e.commands(m)
			to := c.binding()
			for i := range uint64(4) {
				c.fill(to.Range(8*i, 8), []byte{byte(i + 1)})
			}
			c.end()
			for range n { // alternately on the adopted queue and on queue 0
				e.must(s.Do(gpu.Execute(c.CommandBuffer, b.Range(0, 32))))
				e.must(inStream(s, e.q(0), gpu.Execute(c.CommandBuffer, b.Range(0, 32))))
			}
		}
		called := false
		e.must(s.Do(gpu.HostCall(func() error { called = true; return nil })))
		e.must(s.Fill(b.Range(32, 32), []byte{5}))
		e.must(s.Do(gpu.Native("", filling(8, 8), b.Range(56, 8))))
		e.must(s.Do(gpu.UploadCopy(b.Range(48, 8), bytes.Repeat([]byte{7}, 8))))
		e.must(s.Upload(word.All(), bytes.Repeat([]byte{6}, 8)))
		e.must(s.Copy(b.Range(40, 8), word.All()))
		e.must(s.Do(gpu.Barrier()))
		e.must(s.Download(got, b.All()))
		e.must(s.Wait(e.ctx))
		var want []byte
		for i := range byte(8) {
			want = append(want, bytes.Repeat([]byte{i + 1}, 8)...)
		}
		e.same("what is left", got, want)
		if !called {
			e.Error("a host call was not made")
		}
		out := e.buffer(4 * 64)
		launch := gpu.Launch(e.kernel(kernels.Basic, "index"), gpu.GridFor(64, 64), uint64(64), uint32(3), uint32(1), out)
		done := e.sem()
		e.must(q.Submit(signal(done, 1), launch))
		for i, w := range e.words(out, gpu.Point{Semaphore: done, Value: 1}) {
			if w != 3+uint32(i) {
				e.Fatalf("word %d is %d", i, w)
			}
		}
	}},
	{name: "B164 parked work on a native stream's queue, and work of another device", devices: 2, run: func(e *env) {
		e.pairs(func(x, y *gpu.Device) {
			q, _ := e.adopt(x)
			a, b, host, s := e.bufferOn(x, 64), e.bufferOn(y, 64), e.sem(), e.sem()
			e.must(y.Queue(0).Submit(between(s, 2, s, 3), gpu.Copy(b.All(), a.All())))
			e.must(q.Submit(between(s, 1, s, 2), gpu.Copy(a.Range(32, 32), a.Range(0, 32))))
			e.must(q.Submit(between(host, 1, s, 1), gpu.Fill(a.All(), []byte{6})))
			e.must(q.Submit(between(s, 3, s, 4), gpu.Fill(a.All(), []byte{7})))
			if n := x.Stats().Parked; n != 3 {
				e.Errorf("%d operations are parked, want 3", n)
			}
			e.must(host.Signal(1))
			e.wait(s, 4)
			e.holds(b, 6)
			e.holds(a, 7)
		})
	}},
	{name: "B165 a queue is closed while its work is in flight, and its stream stays usable", stall: true, run: func(e *env) {
		q, h := e.adopt(e.devs[0])
		b, host, s, parked := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.settled(e.devs[0])
		resume := e.h.Stall(0)
		e.must(q.Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(q.Submit(signal(s, 2), gpu.Copy(b.Range(0, 8), b.Range(8, 8))))
		e.must(s.WaitIssued(e.ctx, 2))
		e.must(q.Submit(between(host, 1, parked, 1), gpu.Fill(b.All(), []byte{2})))
		e.must(q.Submit(between(host, 1, parked, 2), gpu.HostCall(func() error { e.Error("a host call is made"); return nil })))
		e.must(q.Close())
		e.must(q.Close())
		e.failed(parked, 1, gpu.ErrClosed)
		for name, op := range map[string]gpu.Op{
			"fill":      gpu.Fill(b.All(), []byte{3}),
			"barrier":   gpu.Barrier(),
			"host call": gpu.HostCall(func() error { return nil }),
			"upload":    gpu.Upload(b.All(), make([]byte, 64)),
			"download":  gpu.Download(make([]byte, 64), b.All()),
			"free":      gpu.Free(b),
		} {
			late := e.sem()
			if err := q.Submit(signal(late, 1), op); !errors.Is(err, gpu.ErrClosed) || !strings.Contains(err.Error(), "native stream 0x") {
				e.Errorf("%s on a queue that was closed: %v", name, err)
			}
			e.failed(late, 1, gpu.ErrClosed)
		}
		e.at(s, 0)
		resume()
		e.wait(s, 2)
		e.must(host.Signal(2))
		// The stream still exists.
		e.natively(e.devs[0], func(d driver.Device) error { return d.Fill(h, b.Ptr(), 9, 1, 64) })
		again, err := interop.AdoptStream(e.devs[0], h)
		e.must(err)
		e.must(again.Submit(signal(s, 3), gpu.Copy(b.Range(0, 8), b.Range(8, 8))))
		e.holds(b, 9, gpu.Point{Semaphore: s, Value: 3})
		e.must(again.Close())
		e.must(again.Close())
		e.settled(e.devs[0])
	}},
	{name: "B165 the device's own queues are not closed, and queues on native streams with the device", run: func(e *env) {
		for i := range e.devs[0].Queues() {
			if err := e.q(i).Close(); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "queue") {
				e.Errorf("Close of queue %d = %v", i, err)
			}
		}
		h := e.stream(e.devs[0])
		d, err := gpu.Open(e.h.Driver, 0, gpu.Options{})
		e.must(err)
		q, err := interop.AdoptStream(d, h)
		if errors.Is(err, driver.ErrUnsupported) {
			e.must(d.Close())
			return
		}
		e.must(err)
		b, s, host := e.bufferOn(d, 64), e.sem(), e.sem()
		e.must(q.Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(q.Submit(between(host, 1, s, 2), gpu.Fill(b.All(), []byte{1})))
		e.must(d.Close())
		e.failed(s, 2, gpu.ErrClosed)
		if err := q.Submit(signal(e.sem(), 1), gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("after the device was closed: %v", err)
		}
		e.must(q.Close())
		if _, err := interop.AdoptStream(d, h); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("AdoptStream on a device that is closed: %v", err)
		}
		own := e.buffer(64)
		// The stream still exists.
		e.natively(e.devs[0], func(d driver.Device) error { return d.Fill(h, own.Ptr(), 3, 1, 64) })
		e.back(e.devs[0], h, host, 0)
		e.holds(own, 3)
	}},
	{name: "B172 queues that are adopted and closed repeatedly do not leak", run: func(e *env) {
		_, h := e.adopt(e.devs[0])
		b, s, d := e.buffer(64), e.sem(), e.devs[0]
		p, err := d.NewPool(gpu.PoolOptions{})
		e.must(err)
		defer p.Close()
		var first gpu.Stats
		for i := range uint64(200) {
			q, err := interop.AdoptStream(d, h)
			e.must(err)
			e.must(q.Submit(between(s, 4*i, s, 4*i+1), gpu.Fill(b.All(), []byte{1})))
			var m *gpu.Buffer
			err = e.q(1).Submit(between(s, 4*i+1, s, 4*i+2), gpu.Alloc(&m, p, 512))
			e.must(err)
			e.must(e.q(1).Submit(between(s, 4*i+2, s, 4*i+3), gpu.Free(m)))
			e.must(e.q(1).Submit(between(s, 4*i+3, s, 4*i+4), gpu.Fill(b.All(), []byte{1})))
			e.must(s.WaitIssued(e.ctx, 4*i+4))
			e.must(q.Close())
			if i%8 == 7 {
				e.wait(s, 4*i+4)
			}
			if i == 99 {
				e.settled(d)
				e.must(d.Trim())
				first = d.Stats()
			}
		}
		e.settled(d)
		e.must(d.Trim())
		// The numbers of Submissions and events vary a little with the timing. A hundred more queues
		// must not make them grow.
		if now := d.Stats(); now.Records.Held > first.Records.Held+10 || now.Events.Held > first.Events.Held+10 {
			e.Errorf("%+v, and %+v after half of them", now, first)
		}
	}},
	{name: "B166 streams that cannot be adopted", run: func(e *env) {
		d := e.devs[0]
		q, _ := e.adopt(d)
		var own driver.Stream
		s := e.sem()
		e.must(d.Queue(2).Submit(signal(s, 1), gpu.Native("", func(v gpu.NativeCall) error { own = v.Stream; return nil })))
		e.wait(s, 1)
		for _, bad := range []driver.Stream{0, own} {
			if _, err := interop.AdoptStream(d, bad); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("stream %#x: %v", uintptr(bad), err)
			}
		}
		for _, bad := range []driver.Stream{1, 2} {
			if _, err := interop.AdoptStream(d, bad); err == nil {
				e.Errorf("stream %#x is adopted", uintptr(bad))
			}
		}
		b := e.buffer(8)
		e.must(q.Submit(signal(s, 2), gpu.Fill(b.All(), []byte{1})))
		e.holds(b, 1, gpu.Point{Semaphore: s, Value: 2})
	}},
	{name: "B166 streams of another device cannot be adopted", devices: 2, run: func(e *env) {
		e.pairs(func(x, y *gpu.Device) {
			_, h := e.adopt(x)
			if _, err := interop.AdoptStream(y, h); err == nil || !strings.Contains(err.Error(), "adopt a stream on") {
				e.Errorf("a stream of another device: %v", err)
			}
		})
	}},
	{name: "B166 a stream that is being captured refuses a queue's work, and the capture continues", run: func(e *env) {
		d := e.devs[0]
		q, h := e.adopt(d)
		var graphs driver.Graphs
		captures := false
		e.natively(d, func(v driver.Device) error {
			graphs, captures = v.(driver.Graphs)
			captures = captures && v.Caps().Capture
			return nil
		})
		if !captures {
			e.Skip("the driver cannot capture")
		}
		b, host := e.buffer(64), e.sem()
		done := e.sem()
		e.must(q.Submit(signal(done, 1), gpu.Fill(b.All(), []byte{1})))
		e.wait(done, 1)
		parked := e.sem()
		e.must(q.Submit(between(host, 1, parked, 1), gpu.Fill(b.All(), []byte{8})))
		e.natively(d, func(v driver.Device) error { return v.(driver.Capturer).BeginCapture(h) })
		for range 2 {
			s := e.sem()
			e.must(q.Submit(signal(s, 1), gpu.Fill(b.All(), []byte{9})))
			var se *gpu.SubmitError
			if err := e.failed(s, 1, driver.ErrBusy); !errors.As(err, &se) || !strings.Contains(err.Error(), "captures") {
				e.Error(err)
			}
		}
		e.must(host.Signal(1))
		e.failed(parked, 1, driver.ErrBusy)
		var g driver.Graph
		e.natively(d, func(v driver.Device) (err error) {
			err = v.Fill(h, b.Ptr(), 2, 1, 32)
			var end error
			g, end = v.(driver.Capturer).EndCapture(h)
			return errors.Join(err, end)
		})
		e.must(q.Submit(signal(done, 2), gpu.Fill(b.All(), []byte{3})))
		e.holds(b, 3, gpu.Point{Semaphore: done, Value: 2})
		var x driver.Exec
		e.natively(d, func(v driver.Device) (err error) {
			if x, err = graphs.Instantiate(g); err == nil {
				err = graphs.LaunchGraph(h, x)
			}
			return errors.Join(err, graphs.DestroyGraph(g))
		})
		e.must(q.Submit(signal(done, 3), gpu.Fill(b.Range(60, 4), []byte{4}))) // after the graph
		e.same("what the graph leaves", e.read(b, gpu.Point{Semaphore: done, Value: 3}),
			append(append(pattern([]byte{2}, 32), pattern([]byte{3}, 28)...), 4, 4, 4, 4))
		e.natively(d, func(driver.Device) error { return graphs.DestroyExec(x) })
	}},
	{name: "B167 a native stream's queue uses memory of pools, and does not allocate it", run: func(e *env) {
		q, _ := e.adopt(e.devs[0])
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s, got := e.sem(), e.sem(), make([]byte, 64)
			b := e.alloc(1, between(host, 1, s, 1), p, 4096) // parked until the host signals
			e.must(q.Submit(between(s, 1, s, 2), gpu.Fill(b.Range(64, 64), []byte{5})))
			e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.Download(got, b.Range(64, 64))))
			e.must(e.q(1).Submit(between(s, 3, s, 4), gpu.Free(b)))
			e.must(host.Signal(1))
			e.wait(s, 4)
			e.same("what was filled", got, pattern([]byte{5}, 64))

			own := e.alloc(1, signal(s, 5), p, 512)
			for what, call := range map[string]func() error{
				"an allocation":            func() error { return q.Submit(gpu.Order{}, gpu.Alloc(new(*gpu.Buffer), p, 512)) },
				"an allocation with lists": func() error { return q.Submit(between(s, 5, s, 6), gpu.Alloc(new(*gpu.Buffer), p, 512)) },
				"a deallocation":           func() error { return q.Submit(between(s, 5, s, 6), gpu.Free(own)) },
				"a stream's allocation":    func() error { _, err := q.NewStream().Alloc(p, 512); return err },
				"a stream's deallocation":  func() error { return q.NewStream().Free(own) },
			} {
				if err := call(); !errors.Is(err, driver.ErrUnsupported) {
					e.Errorf("%s: %v", what, err)
				}
			}
			e.must(e.q(1).Submit(between(s, 5, s, 6), gpu.Free(own)))
			e.wait(s, 6)
			e.unused(p)
		})
	}},
	{name: "B168 the runtime records an event, and native work waits for it", run: func(e *env) {
		d := e.devs[0]
		h := e.stream(d)
		own, err := interop.NewEvent(d)
		e.must(err)
		q, s := e.q(0), e.sem()
		b, c := e.buffer(64), e.buffer(64)
		for i := range uint64(100) {
			e.must(q.Submit(between(s, 3*i, s, 3*i+1), gpu.Fill(b.All(), []byte{byte(i)})))
			e.must(q.Submit(between(s, 3*i+1, s, 3*i+2), interop.RecordEvent(own)))
			e.must(s.WaitIssued(e.ctx, 3*i+2))
			e.natively(d, func(v driver.Device) error {
				return errors.Join(v.StreamWait(h, own.Native()), v.Copy(h, c.Ptr(), b.Ptr(), 64))
			})
			e.back(d, h, s, 3*i+2)
		}
		e.holds(c, 99)
		if _, err := own.Export(); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("an event of this process alone is exported: %v", err)
		}
		e.must(own.Close())
	}},
	{name: "B168 an event that other code makes and records", run: func(e *env) {
		d := e.devs[0]
		h := e.stream(d)
		var native driver.Event
		e.natively(d, func(v driver.Device) (err error) { native, err = v.NewEvent(); return err })
		freed := make(chan struct{})
		theirs, err := interop.AdoptEvent(d, native, func() { close(freed) })
		e.must(err)
		if theirs.Native() != native || theirs.Device() != d {
			e.Errorf("event %#x, and it was %#x", uintptr(theirs.Native()), uintptr(native))
		}
		if _, err := interop.AdoptEvent(d, 0, nil); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("no event: %v", err)
		}
		b, s := e.buffer(64), e.sem()
		for i := range uint64(100) {
			e.natively(d, func(v driver.Device) error {
				return errors.Join(v.Fill(h, b.Ptr(), uint32(i+1), 1, 64), v.Record(native, h))
			})
			// With this wait, s reaches 2*i+1 when the work of the other code is done.
			e.must(e.q(int(i)).Submit(between(s, 2*i, s, 2*i+1), interop.WaitEvent(theirs)))
			e.must(e.q(int(i)+1).Submit(between(s, 2*i+1, s, 2*i+2), gpu.Copy(b.Range(0, 8), b.Range(8, 8))))
			e.wait(s, 2*i+2)
		}
		e.holds(b, 100)
		e.must(theirs.Close())
		<-freed
		if err := e.q(0).Submit(signal(s, 1000), interop.WaitEvent(theirs)); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("an event that was closed: %v", err)
		}
		e.natively(d, func(v driver.Device) error { // closing the adopted event has not destroyed the native event
			err := v.Record(native, h)
			for done := false; err == nil && !done; {
				done, err = v.Query(native)
			}
			return errors.Join(err, v.DestroyEvent(native))
		})
	}},
	{name: "B168 adopted events in use are not reported free", stall: true, run: func(e *env) {
		d := e.devs[0]
		h := e.stream(d)
		var native driver.Event
		e.natively(d, func(v driver.Device) (err error) { native, err = v.NewEvent(); return err })
		e.settled(d)
		freed := make(chan struct{}, 1)
		theirs, err := interop.AdoptEvent(d, native, func() { freed <- struct{}{} })
		e.must(err)
		b, s := e.buffer(64), e.sem()
		resume := e.h.Stall(0)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(e.q(0).Submit(between(s, 1, s, 2), interop.RecordEvent(theirs)))
		e.must(theirs.Close())
		e.must(e.q(0).Flush())
		if len(freed) > 0 {
			e.Error("its last record is not over")
		}
		resume()
		e.wait(s, 2)
		<-freed
		e.natively(d, func(v driver.Device) error { return errors.Join(v.StreamWait(h, native), v.Fill(h, b.Ptr(), 2, 1, 8)) })
		e.back(d, h, s, 2)
		e.natively(d, func(v driver.Device) error { return v.DestroyEvent(native) })
	}},
}

// back waits until the native stream h has done its work so far and s has reached v. Then the host
// signals the value v+1 of s.
func (e *env) back(d *gpu.Device, h driver.Stream, s *gpu.Semaphore, v uint64) {
	e.Helper()
	e.natively(d, func(dev driver.Device) error {
		ev, err := dev.NewEvent()
		if err != nil {
			return err
		}
		err = dev.Record(ev, h)
		for done := false; err == nil && !done; {
			done, err = dev.Query(ev)
		}
		return errors.Join(err, dev.DestroyEvent(ev))
	})
	e.wait(s, v)
	e.must(s.Signal(v + 1))
}
