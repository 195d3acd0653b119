package gputest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// filling returns a function for Native. The function fills n bytes at the start of the call's last
// range.
func filling(with byte, n uint64) func(gpu.NativeCall) error {
	return func(v gpu.NativeCall) error {
		return v.Device.Fill(v.Stream, v.Ptrs[len(v.Ptrs)-1], uint32(with), 1, n)
	}
}

// copying returns a function for Native. The function copies n bytes from the call's second range
// to the first.
func copying(n uint64) func(gpu.NativeCall) error {
	return func(v gpu.NativeCall) error { return v.Device.Copy(v.Stream, v.Ptrs[0], v.Ptrs[1], n) }
}

// hasNative skips the rest of the test if the driver gives no access to its streams.
func (e *env) hasNative() {
	e.Helper()
	if err := e.q(0).Submit(gpu.Order{}, gpu.Native("", func(gpu.NativeCall) error { return nil })); errors.Is(err, driver.ErrUnsupported) {
		e.Skip(err)
	} else {
		e.must(err)
	}
}

// native records a native function.
func (r *recorder) native(fn func(gpu.NativeCall) error, uses []gpu.Range, after ...gpu.Command) gpu.Command {
	r.e.Helper()
	return r.add(gpu.Native("", fn, uses...), after...)
}

var natives = []test{
	{name: "B155 native work is in the order of all work, submitted forwards and backwards", run: func(e *env) {
		e.hasNative()
		const n = 40
		for _, backwards := range []bool{false, true} {
			b, s := e.buffer(8*n), e.sem()
			for i := range uint64(n) {
				v := i
				if backwards {
					v = n - 1 - i
				}
				q, o := e.q(int(v)), gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}
				to, from := b.Range(8*v, 8), b.Range(8*max(v, 1)-8, 8)
				switch {
				case v == 0:
					e.must(q.Submit(o, gpu.Native("", filling(7, 8), to)))
				case v%3 == 0:
					e.must(q.Submit(o, gpu.Copy(to, from)))
				default:
					e.must(q.Submit(o, gpu.Native("", copying(8), to, from)))
				}
			}
			e.wait(s, n)
			e.holds(b, 7)
		}
	}},
	{name: "B155 native work of one device is in order with work of another", devices: 2, run: func(e *env) {
		e.hasNative()
		e.pairs(func(x, y *gpu.Device) {
			a, b, host, s := e.bufferOn(x, 64), e.bufferOn(y, 64), e.sem(), e.sem()
			e.must(y.Queue(0).Submit(between(s, 2, s, 3), gpu.Native("", filling(3, 8), b.All())))
			e.must(y.Queue(1).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
			e.must(x.Queue(0).Submit(between(host, 1, s, 1), gpu.Native("", filling(2, 64), a.All())))
			e.must(x.Queue(1).Submit(between(s, 3, s, 4), gpu.Native("", filling(4, 64), a.All())))
			e.must(host.Signal(1))
			e.wait(s, 4)
			e.same("a copy", e.read(b), append(pattern([]byte{3}, 8), pattern([]byte{2}, 56)...))
			e.holds(a, 4)
		})
	}},
	{name: "B155 native work on memory of pools, in queues and in streams", run: func(e *env) {
		e.hasNative()
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s, got := e.sem(), e.sem(), make([]byte, 64)
			b := e.alloc(0, between(host, 1, s, 1), p, 4096) // parked until the host signals
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Native("", filling(5, 64), b.Range(64, 64))))
			e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.Download(got, b.Range(64, 64))))
			e.must(e.q(0).Submit(between(s, 3, s, 4), gpu.Free(b)))
			e.must(host.Signal(1))
			e.wait(s, 4)
			e.same("what was filled", got, pattern([]byte{5}, 64))

			t := e.q(3).NewStream()
			c, err := t.Alloc(p, 4096)
			e.must(err)
			e.must(t.Fill(c.Range(0, 64), []byte{1}))
			e.must(t.Do(gpu.Native("", filling(6, 32), c.All())))
			e.must(t.Download(got, c.Range(0, 64)))
			e.must(t.Free(c))
			e.must(t.Wait(e.ctx))
			e.same("what a stream leaves", got, append(pattern([]byte{6}, 32), pattern([]byte{1}, 32)...))
			e.unused(p)
		})
	}},
	{name: "B155 a driver that gives no access to its streams says so", run: func(e *env) {
		nothing := func(gpu.NativeCall) error { return nil }
		err := e.q(0).Submit(gpu.Order{}, gpu.Native("", nothing))
		c, made := e.devs[0].NewCommandBuffer(gpu.CommandOptions{})
		e.must(made)
		defer c.Close()
		at, recorded := c.Add(gpu.Native("", nothing))
		if (err == nil) != (recorded == nil) || (at < 0) != (recorded != nil) {
			e.Errorf("%v, and recorded as command %d, %v", err, at, recorded)
		}
		for _, err := range []error{err, recorded, e.q(0).NewStream().Do(gpu.Native("", nothing))} {
			if err != nil && (!errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "native")) {
				e.Error(err)
			}
		}
	}},
	{name: "B156 a function is called once, after its waits, and not if a wait fails", run: func(e *env) {
		e.hasNative()
		host, s, never := e.sem(), e.sem(), e.sem()
		var calls atomic.Int32
		count := func(gpu.NativeCall) error { calls.Add(1); return nil }
		b := e.buffer(64)
		for v := range uint64(8) {
			e.must(e.q(int(v)).Submit(gpu.Order{Wait: points(host, v/2+1), Signal: points(e.sem(), 1)}, gpu.Native("", count, b.All())))
		}
		e.must(e.q(0).Submit(between(never, 1, s, 1), gpu.Native("", count, b.All())))
		if n := calls.Load(); n != 0 {
			e.Errorf("%d calls before there is a signal", n)
		}
		for v := range uint64(4) {
			e.must(host.Signal(v + 1))
			e.until("its waits are over", func() bool { return calls.Load() == int32(2*v+2) })
		}
		never.Fail(io.ErrNoProgress)
		e.failed(s, 1, io.ErrNoProgress)
		e.must(e.q(0).Submit(between(never, 2, e.sem(), 1), gpu.Native("", count)))
		e.settled(e.devs[0])
		if n := calls.Load(); n != 8 {
			e.Errorf("%d calls, want 8", n)
		}
	}},
	{name: "B115 B156 the device is current in a function, and a change there does not reach the caller", devices: 2, run: func(e *env) {
		e.hasNative()
		if e.h.Current == nil {
			e.Skip("there is no current device")
		}
		var own [2]any // the result of Current for each device
		locked(func() {
			for i := range own {
				e.h.SetCurrent(i)
				own[i] = e.h.Current()
			}
		})
		check := func(i int) func(gpu.NativeCall) error {
			return func(v gpu.NativeCall) error {
				if now := e.h.Current(); now != own[i] {
					e.Errorf("a function on device %d: %v is current, want %v", i, now, own[i])
				}
				e.h.SetCurrent(1 - i)
				return nil
			}
		}
		locked(func() {
			for device := -1; device < 2; device++ {
				if device >= 0 {
					e.h.SetCurrent(device)
				}
				before := e.h.Current()
				for i, d := range e.devs[:2] {
					host, s := e.sem(), e.sem()
					e.must(d.Queue(0).Submit(signal(s, 1), gpu.Native("", check(i))))
					e.must(d.Queue(0).Submit(between(host, 1, s, 2), gpu.Native("", check(i))))
					e.must(host.Signal(1))
					e.wait(s, 2)
					for _, m := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode, gpu.GraphMode} {
						c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
						if m == gpu.GraphMode && errors.Is(err, driver.ErrUnsupported) {
							continue
						}
						e.must(err)
						for range 4 {
							_, err = c.Add(gpu.Native("", check(i)))
							e.must(err)
						}
						e.must(c.End())
						for range 2 {
							s := e.sem()
							e.must(d.Queue(0).Submit(signal(s, 1), gpu.Execute(c)))
							e.wait(s, 1)
						}
						e.must(c.Close())
					}
				}
				if after := e.h.Current(); after != before {
					e.Errorf("%v is current, and %v was", after, before)
				}
			}
		})
	}},
	{name: "B157 an error of a function, or a panic, fails its signals and nothing else", run: func(e *env) {
		e.hasNative()
		b, host := e.buffer(64), e.sem()
		for i, fn := range []func(gpu.NativeCall) error{
			func(gpu.NativeCall) error { return io.ErrNoProgress },
			func(v gpu.NativeCall) error { return errors.Join(filling(1, 64)(v), io.ErrNoProgress) },
			func(gpu.NativeCall) error { panic("no") },
		} {
			for _, parked := range []bool{false, true} {
				s, x, y := e.sem(), e.sem(), e.sem()
				o := gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 1}}}
				at := uint64(i + 1)
				if parked {
					o.Wait = points(host, at)
				}
				e.must(e.q(0).Submit(o, gpu.Native("", fn, b.All())))
				e.must(e.q(1).Submit(between(x, 1, y, 1), gpu.Barrier()))
				if parked {
					e.must(host.Signal(at))
				}
				for _, s := range []*gpu.Semaphore{s, x, y} {
					var se *gpu.SubmitError
					var p *gpu.PanicError
					err := s.Wait(e.ctx, 1)
					if !errors.As(err, &se) || se.Op != "native" || errors.As(err, &p) != (i == 2) || i < 2 && !errors.Is(err, io.ErrNoProgress) {
						e.Errorf("function %d: Wait = %v", i, err)
					}
				}
				z := e.sem()
				e.must(e.q(0).Submit(signal(z, 1), gpu.Native("", filling(9, 64), b.All())))
				e.holds(b, 9, gpu.Point{Semaphore: z, Value: 1})
			}
		}
		e.settled(e.devs[0])
	}},
	{name: "B157 memory of native work is held until the stream has passed the work, also after an error", stall: true, run: func(e *env) {
		e.hasNative()
		for _, fail := range []error{nil, io.ErrNoProgress} {
			d, own, mem, freed, s := e.devs[0], e.buffer(64), make([]byte, 64<<10), make(chan struct{}, 1), e.sem()
			b, err := d.ImportHost(mem, func() { freed <- struct{}{} })
			if errors.Is(err, driver.ErrUnsupported) {
				e.Skip(err)
			}
			e.must(err)
			e.settled(d)
			resume := e.h.Stall(0)
			e.must(e.q(0).Submit(signal(s, 1), gpu.Native("", func(v gpu.NativeCall) error { return errors.Join(filling(8, 64)(v), fail) }, b.All())))
			if fail != nil {
				e.failed(s, 1, fail)
			}
			e.must(b.Close())
			e.must(e.q(0).Flush())
			if len(freed) > 0 {
				e.Errorf("after %v it is let go of while the stream has it", fail)
			}
			resume()
			behind := e.sem()
			e.must(e.q(0).Submit(signal(behind, 1), gpu.Fill(own.All(), []byte{1})))
			e.wait(behind, 1)
			<-freed
			e.same("the memory", mem[:64], pattern([]byte{8}, 64))
		}
	}},
	{name: "B158 a slow parked function delays neither the signalling goroutine nor other queues", run: func(e *env) {
		e.hasNative()
		for _, m := range []gpu.Mode{-1, gpu.StreamMode, gpu.AutoMode} {
			b, host, s, x, cont := e.buffer(64), e.sem(), e.sem(), e.sem(), make(chan struct{})
			fn := func(v gpu.NativeCall) error { <-cont; return filling(2, 8)(v) }
			if m < 0 {
				e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Native("", fn, b.All())))
			} else {
				c := e.commands(m)
				c.native(fn, []gpu.Range{c.binding().Range(0, 8)})
				c.end()
				e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Execute(c.CommandBuffer, b.Range(0, 8))))
			}
			e.must(e.q(1).Submit(between(host, 1, x, 1), gpu.Fill(b.Range(8, 56), []byte{2})))
			e.must(host.Signal(1))
			e.wait(x, 1)
			e.at(s, 0)
			close(cont)
			e.wait(s, 1)
			e.holds(b, 2)
		}
	}},
	{name: "B159 recorded native work uses its ranges' addresses in every execution", run: func(e *env) {
		e.hasNative()
		e.eachMode(func(e *env, m gpu.Mode) {
			fixed, with := e.buffer(64), byte(1)
			c := e.commands(m)
			to := c.binding()
			fill := c.fill(fixed.All(), []byte{1})
			one := c.native(func(v gpu.NativeCall) error {
				// The function fills its last range, and then copies from it to its first range.
				return errors.Join(filling(with+1, 8)(v), copying(4)(v))
			}, []gpu.Range{fixed.Range(8, 4), to.Range(8, 8)}, fill)
			// This function's range is not in a binding.
			two := c.native(filling(5, 4), []gpu.Range{fixed.Range(32, 4)}, fill)
			c.copy(to.Range(0, 4), fixed.Range(8, 4), one, two)
			c.copy(to.Range(4, 4), fixed.Range(32, 4), one, two)
			c.barrier()
			c.native(copying(4), []gpu.Range{to.Range(16, 4), to.Range(8, 4)})
			c.end()
			want := []byte{2, 2, 2, 2, 5, 5, 5, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}
			a, b := e.buffer(20), e.buffer(4096)
			host, err := e.devs[0].Alloc(gpu.HostMem, 64)
			e.must(err)
			defer host.Close()
			ranges := []gpu.Range{a.All(), a.All(), b.Range(1000, 20), host.Range(4, 20), b.Range(4, 20), a.All()}
			for i, r := range ranges {
				c.execute(i, r)
				e.same("an execution", e.read(r.Buffer)[r.Offset:r.Offset+20], want)
			}
			// Many executions are in flight or parked, on several queues. Each has a range of its
			// own.
			const n = 30
			big, start, s := e.buffer(32*n), e.sem(), e.sem()
			for i := range uint64(n) {
				o := gpu.Order{Wait: points(s, i), Signal: points(s, i+1)}
				if i == 5 {
					o.Wait = append(o.Wait, gpu.Point{Semaphore: start, Value: 1})
				}
				e.must(e.q(int(i)).Submit(o, gpu.Execute(c.CommandBuffer, big.Range(32*i, 20))))
			}
			e.must(start.Signal(1))
			e.wait(s, n)
			e.same("executions far ahead", e.read(big), pattern(append(bytes.Clone(want), make([]byte, 12)...), 32*n))
		})
	}},
	{name: "B159 recorded native work in nested recordings", run: func(e *env) {
		e.hasNative()
		e.eachMode(func(e *env, m gpu.Mode) {
			inner := e.commands(m)
			x := inner.binding()
			inner.native(copying(8), []gpu.Range{x.Range(8, 8), x.Range(0, 8)}, inner.native(filling(4, 8), []gpu.Range{x.Range(0, 8)}))
			inner.end()
			b := e.buffer(64)
			outer := e.commands(m)
			y := outer.binding()
			outer.fill(y.Range(0, 16), []byte{1})
			outer.barrier()
			outer.add(gpu.Execute(inner.CommandBuffer, y.Range(0, 16)))
			outer.barrier()
			at := outer.add(gpu.Execute(inner.CommandBuffer, b.Range(32, 16)))
			outer.copy(y.Range(0, 8), b.Range(40, 8), at)
			outer.end()
			for _, at := range []uint64{0, 16, 48, 0} {
				c := e.buffer(64)
				outer.execute(0, c.Range(at, 16))
				e.same("what is bound", e.read(c)[at:at+16], pattern([]byte{4}, 16))
				e.same("what is not", e.read(b)[32:48], pattern([]byte{4}, 16))
			}
		})
	}},
	{name: "B159 a function whose work changes each time, and a failing one", run: func(e *env) {
		e.hasNative()
		e.eachMode(func(e *env, m gpu.Mode) {
			b, calls, fail := e.buffer(1<<12), uint64(0), false
			c := e.commands(m)
			c.native(func(v gpu.NativeCall) error {
				if fail {
					return io.ErrNoProgress
				}
				calls++
				for i := range calls {
					if err := v.Device.Fill(v.Stream, v.Ptrs[0]+driver.Ptr(8*i), uint32(calls), 1, 8); err != nil {
						return err
					}
				}
				return nil
			}, []gpu.Range{c.binding().Range(0, 64)})
			c.end()
			for i := range uint64(4) {
				at := 512 * i
				c.execute(0, b.Range(at, 512))
				if got, n := e.read(b)[at:at+512], 8*calls; !bytes.Equal(got[:n], pattern([]byte{byte(calls)}, n)) || got[n] != 0 {
					e.Errorf("execution %d, after %d calls: %v", i, calls, got[:n+1])
				}
			}
			fail = true
			s := e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Execute(c.CommandBuffer, b.Range(2048, 512))))
			e.failed(s, 1, io.ErrNoProgress)
			fail, calls = false, 0
			c.execute(0, b.Range(3072, 512))
			e.same("the execution after one that failed", e.read(b)[3072:3080], pattern([]byte{byte(calls)}, 8))
		})
	}},
}
