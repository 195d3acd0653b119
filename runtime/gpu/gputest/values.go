package gputest

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// number returns the 64-bit number at the start of a buffer that the host can access.
func number(b *gpu.Buffer) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
}

// numbers makes a buffer of n zeros of 8 bytes. If the device has no memory of this kind, or does
// not support values in memory, numbers skips the test.
func (e *env) numbers(d *gpu.Device, kind gpu.MemKind, n uint64) *gpu.Buffer {
	e.Helper()
	b, err := d.Alloc(kind, 8*n)
	if errors.Is(err, driver.ErrUnsupported) {
		e.Skip(err)
	}
	e.must(err)
	e.Cleanup(func() { b.Close() })
	return e.zeroed(b)
}

func (e *env) zeroed(b *gpu.Buffer) *gpu.Buffer {
	e.Helper()
	s, q := e.sem(), b.Device().Queue(0)
	e.must(q.Submit(signal(s, 1), gpu.Fill(b.All(), []byte{0})))
	err := q.Submit(between(s, 1, s, 2), interop.WriteValue(b.Range(0, 8), 0))
	if errors.Is(err, driver.ErrUnsupported) {
		e.wait(s, 1)
		e.Skip(err)
	}
	e.must(err)
	e.wait(s, 2)
	return b
}

// reaches waits until the number that the host sees is at least want.
func (e *env) reaches(at *atomic.Uint64, want uint64) {
	e.Helper()
	for at.Load() < want {
		if e.ctx.Err() != nil {
			e.Fatalf("%d does not come: it is %d", want, at.Load())
		}
		runtime.Gosched()
	}
}

var values = []test{
	{name: "B169 the host and a queue exchange a number", run: func(e *env) {
		own := make([]byte, 4096)
		for _, c := range []struct {
			kind string
			make func() (*gpu.Buffer, error)
		}{
			{"host", func() (*gpu.Buffer, error) { return e.devs[0].Alloc(gpu.HostMem, 16) }},
			{"write-combined", func() (*gpu.Buffer, error) { return e.devs[0].Alloc(gpu.WriteCombinedMem, 16) }},
			{"imported", func() (*gpu.Buffer, error) { return e.devs[0].ImportHost(own, nil) }},
		} {
			e.sub(c.kind, func(e *env) {
				b, err := c.make()
				if errors.Is(err, driver.ErrUnsupported) {
					e.Skip(err)
				}
				e.must(err)
				defer b.Close()
				e.zeroed(b)
				turns := uint64(10_000)
				if e.h.Brief {
					turns = 300
				}
				const ahead = 16
				at, data, s := number(b), e.buffer(8), e.q(0).NewStream()
				seen, err := e.devs[0].Alloc(gpu.HostMem, 8)
				e.must(err)
				defer seen.Close()
				submit := func(i uint64) {
					e.must(s.Do(interop.WaitValue(b.Range(0, 8), 2*i+1)))
					e.must(s.Copy(seen.All(), data.All()))
					e.must(s.Fill(data.All(), []byte{byte(i), byte(i >> 8), 0, 0, 0, 0, 0, 0}))
					e.must(s.Do(interop.WriteValue(b.Range(0, 8), 2*i+2))) // a reader that sees the value also sees what was written before it: here the host, the Copy to seen
				}
				for i := range min(turns, ahead) {
					submit(i)
				}
				for i := range turns {
					if now := at.Load(); now != 2*i {
						e.Fatalf("%d in turn %d", now, i)
					}
					at.Store(2*i + 1)
					e.reaches(at, 2*i+2)
					if got := seen.Bytes(); i > 0 && (got[0] != byte(i-1) || got[1] != byte((i-1)>>8)) {
						e.Fatalf("turn %d has brought %v", i, got)
					}
					if i+ahead < turns {
						submit(i + ahead)
					}
				}
				e.must(s.Wait(e.ctx))
			})
		}
	}},
	{name: "B169 two queues exchange a number, in memory of each kind", run: func(e *env) {
		const turns = 200
		check := func(e *env, r gpu.Range, x, y *gpu.Queue) {
			e.Helper()
			a, b := x.NewStream(), y.NewStream()
			data := e.buffer(8 * turns)
			for i := range uint64(turns) {
				e.must(a.Fill(data.Range(8*i, 4), []byte{byte(i)}))
				e.must(a.Do(interop.WriteValue(r, 2*i+1)))
				e.must(b.Do(interop.WaitValue(r, 2*i+1)))
				e.must(b.Copy(data.Range(8*i+4, 4), data.Range(8*i, 4)))
				e.must(b.Do(interop.WriteValue(r, 2*i+2)))
				// The work that writes this value has already been submitted.
				e.must(a.Do(interop.WaitValue(r, 2*i+2)))
			}
			e.must(a.Wait(e.ctx))
			e.must(b.Wait(e.ctx))
			for i, got := range e.read(data) {
				if got != byte(i/8) {
					e.Fatalf("byte %d is %d", i, got)
				}
			}
		}
		for kind, name := range map[gpu.MemKind]string{gpu.DeviceMem: "device", gpu.HostMem: "host", gpu.CommMem: "for communicators", gpu.ShareableMem: "shareable"} {
			e.sub(name, func(e *env) { check(e, e.numbers(e.devs[0], kind, 3).Range(8, 8), e.q(0), e.q(1)) })
		}
		e.eachPool(func(e *env, p *gpu.Pool) {
			s := e.sem()
			b := e.alloc(0, signal(s, 1), p, 4096)
			e.wait(s, 1)
			if o := p.Options(); o.Portable || o.Over != nil {
				e.zeroed(b)
				check(e, b.Range(16, 8), e.q(2), e.q(1))
			} else if e.caps(0).Values {
				err := errors.Join(e.q(0).Submit(signal(s, 2), interop.WriteValue(b.Range(16, 8), 1)), e.q(0).Submit(signal(s, 2), interop.WaitValue(b.Range(16, 8), 1)))
				if n := strings.Count(err.Error(), "of the driver's"); n != 2 || !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("of the driver's pool: %v", err)
				}
			}
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(b)))
		})
	}},
	{name: "B169 queues of two devices exchange a number", devices: 2, run: func(e *env) {
		e.pairs(func(x, y *gpu.Device) {
			b, s, t := e.numbers(x, gpu.HostMem, 2), e.sem(), e.sem()
			r := b.Range(8, 8)
			e.must(y.Queue(0).Submit(signal(s, 1), interop.WaitValue(r, 5)))
			e.must(y.Queue(0).Submit(between(s, 1, s, 2), interop.WriteValue(r, 6)))
			e.must(x.Queue(0).Submit(signal(t, 1), interop.WriteValue(r, 5)))
			e.must(x.Queue(0).Submit(between(t, 1, t, 2), interop.WaitValue(r, 6)))
			e.wait(t, 2)
			e.wait(s, 2)
		})
	}},
	{name: "B169 value operations are ordered with all work, parked and in streams", run: func(e *env) {
		b, host, s := e.numbers(e.devs[0], gpu.HostMem, 4), e.sem(), e.sem()
		data, got := e.buffer(8), make([]byte, 8)
		e.must(e.q(1).Submit(between(s, 3, s, 4), gpu.Download(got, data.All())))
		e.must(e.q(2).Submit(between(s, 2, s, 3), interop.WaitValue(b.Range(24, 8), 70)))
		e.must(e.q(1).Submit(between(s, 1, s, 2), interop.WriteValue(b.Range(24, 8), 77)))
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Fill(data.All(), []byte{3})))
		if n := e.devs[0].Stats().Parked; n != 4 {
			e.Errorf("%d are parked", n)
		}
		e.must(host.Signal(1))
		e.wait(s, 4)
		e.same("what was handed on", got, pattern([]byte{3}, 8))
		for _, v := range []uint64{0, 1, 1 << 32, math.MaxInt64} {
			t := e.q(0).NewStream()
			e.must(t.Do(interop.WriteValue(b.Range(8, 8), v)))
			e.must(t.Do(interop.WaitValue(b.Range(8, 8), v)))
			e.must(t.Wait(e.ctx))
			if now := (*[4]uint64)(unsafe.Pointer(unsafe.SliceData(b.Bytes())))[1]; now != v {
				e.Errorf("%d was written, and there is %d", v, now)
			}
		}
	}},
	{name: "B169 value operations in recordings, on bindings, and in the order of the recording", run: func(e *env) {
		b := e.numbers(e.devs[0], gpu.HostMem, 8)
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			x, y := c.binding(), c.binding()
			one := c.fill(y.Range(0, 8), []byte{1})
			at := c.add(interop.WriteValue(x.Range(0, 8), 3), one)
			c.copy(y.Range(8, 8), y.Range(0, 8), at)
			c.barrier()
			c.add(interop.WaitValue(x.Range(8, 8), 4))
			c.copy(y.Range(16, 8), y.Range(8, 8))
			c.fill(y.Range(24, 8), []byte{2})
			c.fill(y.Range(32, 8), []byte{2})
			c.end()
			data := e.buffer(80)
			for i := range uint64(2) {
				words := (*[8]atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
				words[2*i].Store(0)
				words[2*i+1].Store(0)
				s := e.sem()
				e.must(e.q(0).Submit(signal(s, 1), gpu.Execute(c.CommandBuffer, b.Range(16*i, 16), data.Range(40*i, 40))))
				e.must(e.q(0).Flush())
				e.reaches(&words[2*i], 3)
				e.at(s, 0)
				words[2*i+1].Store(4)
				e.wait(s, 1)
				e.same("what is left", e.read(data)[40*i:40*i+40], append(pattern([]byte{1}, 24), pattern([]byte{2}, 16)...))
			}
			open := e.commands(m)
			for name, record := range map[string]func() (gpu.Command, error){
				"4 bytes":     func() (gpu.Command, error) { return open.Add(interop.WriteValue(b.Range(0, 4), 1)) },
				"no multiple": func() (gpu.Command, error) { return open.Add(interop.WaitValue(b.Range(4, 8), 1)) },
				"too much":    func() (gpu.Command, error) { return open.Add(interop.WaitValue(b.Range(0, 8), 1<<63)) },
				"a binding":   func() (gpu.Command, error) { return open.Add(interop.WaitValue(open.binding().All(), 1)) },
			} {
				if at, err := record(); at != -1 || !errors.Is(err, gpu.ErrArgument) || !strings.HasPrefix(err.Error(), "gpu: command 0, value w") {
					e.Errorf("%s: %d, %v", name, at, err)
				}
			}
		})
	}},
	{name: "B170 a missing value blocks only its stream", run: func(e *env) {
		b, s, t := e.numbers(e.devs[0], gpu.HostMem, 1), e.sem(), e.sem()
		data := e.buffer(64)
		e.must(e.q(0).Submit(signal(s, 1), interop.WaitValue(b.All(), 1)))
		// This fill is behind the wait for the value, in the same stream.
		e.must(e.q(0).Submit(signal(t, 1), gpu.Fill(data.All(), []byte{1})))
		for i := range uint64(20) {
			u := e.sem()
			e.must(e.q(1+int(i)%3).Submit(signal(u, 1), gpu.Fill(data.All(), []byte{2})))
			e.wait(u, 1)
		}
		e.at(s, 0)
		e.at(t, 0)
		gone := errors.New("who was to write it is gone")
		s.Fail(gone)
		e.failed(s, 1, gone)
		e.at(t, 0)
		number(b).Store(1)
		e.wait(t, 1)
		e.holds(data, 1)
	}},
	{name: "B186 objects closed while a stream waits for a value are freed after it", run: func(e *env) {
		b, data := e.numbers(e.devs[0], gpu.HostMem, 2), e.buffer(64)
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			c.add(interop.WaitValue(b.Range(8, 8), 1))
			c.end()
			for name, wait := range map[string]func(o gpu.Order) error{
				"queue":     func(o gpu.Order) error { return e.q(0).Submit(o, interop.WaitValue(b.Range(8, 8), 1)) },
				"recording": func(o gpu.Order) error { return e.q(0).Submit(o, gpu.Execute(c.CommandBuffer)) },
			} {
				at, freed, s := &(*[2]atomic.Uint64)(unsafe.Pointer(number(b)))[1], make(chan struct{}), e.sem()
				at.Store(0)
				lent, err := e.devs[0].ImportHost(make([]byte, 4096), func() { close(freed) })
				e.must(err)
				e.must(wait(signal(s, 1)))
				e.must(s.WaitIssued(e.ctx, 1))
				e.must(lent.Close())
				// If the runtime freed the buffer lent now, the driver would wait until the stream
				// is empty, and the calls below would block.
				for i := range uint64(20) {
					u := e.sem()
					e.must(e.q(1).Submit(signal(u, 1), gpu.Fill(data.All(), []byte{byte(i)})))
					e.wait(u, 1)
				}
				select {
				case <-freed:
					e.Errorf("%s: the memory was given back before", name)
				default:
				}
				at.Store(1)
				e.wait(s, 1)
				select {
				case <-freed:
				case <-e.ctx.Done():
					e.Fatalf("%s: the memory was not given back", name)
				}
			}
		})
	}},
	{name: "B170 a signal before a wait for a value arrives before the value", run: func(e *env) {
		b, data := e.numbers(e.devs[0], gpu.HostMem, 1), e.buffer(64)
		for i := range uint64(50) {
			s := e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(data.All(), []byte{1})))
			e.must(e.q(0).Submit(signal(s, 2), interop.WaitValue(b.All(), i+1)))
			e.wait(s, 1)
			e.at(s, 1)
			number(b).Store(i + 1) // only now the host writes the value
			e.wait(s, 2)
		}
	}},
	{name: "B164 B170 a signal of a queue on a native stream does not wait for other code's later work", run: func(e *env) {
		b, data := e.numbers(e.devs[0], gpu.HostMem, 1), e.buffer(64)
		q, h := e.adopt(e.devs[0])
		for i := range uint64(50) {
			s, t := e.sem(), e.sem()
			e.must(q.Submit(signal(s, 1), gpu.Fill(data.All(), []byte{1})))
			e.must(q.Submit(signal(s, 2), gpu.Copy(data.Range(0, 8), data.Range(8, 8))))
			e.must(s.WaitIssued(e.ctx, 2))
			e.natively(e.devs[0], func(v driver.Device) error { return v.(driver.Values).WaitValue(h, b.Ptr(), i+1) })
			// A stream that waits for s does not wait for the value.
			e.must(e.q(1).Submit(between(s, 2, t, 1), gpu.Copy(data.Range(16, 8), data.Range(8, 8))))
			e.wait(t, 1)
			e.wait(s, 2)
			e.must(q.Submit(signal(t, 2), gpu.Fill(data.All(), []byte{2})))
			e.at(t, 1)
			number(b).Store(i + 1)
			e.wait(t, 2)
		}
	}},
	{name: "B170 a device is closed while a stream waits for a value, which comes meanwhile", run: func(e *env) {
		word := e.numbers(e.devs[0], gpu.HostMem, 1)
		d, err := gpu.Open(e.h.Driver, 0, gpu.Options{Queues: 1})
		e.must(err)
		r, s := word.All(), e.sem()
		e.must(d.Queue(0).Submit(signal(s, 1), interop.WaitValue(r, 1)))
		e.must(s.WaitIssued(e.ctx, 1))
		time.AfterFunc(10*time.Millisecond, func() { number(word).Store(1) })
		e.must(d.Close())
		e.wait(s, 1)
	}},
	{name: "B171 values that are refused", run: func(e *env) {
		d := e.devs[0]
		b, s := e.numbers(d, gpu.HostMem, 4), e.sem()
		read, err := d.ImportHostReadOnly(make([]byte, 4096), nil)
		if err == nil {
			defer read.Close()
			e.must(e.q(0).Submit(signal(s, 1), interop.WaitValue(read.Range(8, 8), 0)))
			e.wait(s, 1)
		} else {
			read = nil
		}
		managed, err := d.Alloc(gpu.ManagedMem, 16)
		if err != nil {
			managed = nil
		}
		for _, c := range []struct {
			name  string
			r     gpu.Range
			value uint64
			want  error
			write bool // only WriteValue is refused
		}{
			{"4 bytes", b.Range(0, 4), 1, gpu.ErrArgument, false},
			{"16 bytes", b.Range(0, 16), 1, gpu.ErrArgument, false},
			{"not aligned", b.Range(4, 8), 1, gpu.ErrArgument, false},
			{"too much", b.Range(8, 8), 1 << 63, gpu.ErrArgument, false},
			{"no buffer", gpu.Range{Size: 8}, 1, gpu.ErrArgument, false},
			{"outside", b.Range(32, 8), 1, gpu.ErrRange, false},
			{"managed", gpu.Range{Buffer: managed, Size: 8}, 1, gpu.ErrArgument, false},
			{"read only", gpu.Range{Buffer: read, Size: 8}, 1, gpu.ErrArgument, true},
		} {
			u := e.sem()
			errs := []error{e.q(0).Submit(signal(u, 1), interop.WriteValue(c.r, c.value))}
			if !c.write {
				errs = append(errs, e.q(0).Submit(signal(u, 1), interop.WaitValue(c.r, c.value)))
			}
			for _, err := range errs {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "value w") {
					e.Errorf("%s: %v", c.name, err)
				}
			}
			e.at(u, 0)
		}
	}},
	{name: "B171 a driver that has no values in memory says so", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.HostMem, 8)
		e.must(err)
		defer b.Close()
		has := e.q(0).Submit(gpu.Order{}, interop.WriteValue(b.All(), 1)) == nil
		c := e.commands(gpu.StreamMode)
		for _, err := range []error{e.q(0).Submit(gpu.Order{}, interop.WaitValue(b.All(), 0)), second(c.Add(interop.WriteValue(b.All(), 1))), second(c.Add(interop.WaitValue(b.All(), 0))),
			e.q(0).NewStream().Do(interop.WriteValue(b.All(), 1))} {
			if (err == nil) != has || err != nil && (!errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "value w")) {
				e.Error(err)
			}
		}
		e.settled(e.devs[0])
	}},
}
