package gputest

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// eachPool runs a subtest with each of several pools of the first device's own memory.
func (e *env) eachPool(run func(e *env, p *gpu.Pool)) {
	e.Helper()
	d := e.devs[0]
	for _, x := range []struct {
		name string
		make func(e *env) (*gpu.Pool, error)
	}{
		{"default", func(e *env) (*gpu.Pool, error) { return d.DefaultPool() }},
		{"new", func(e *env) (*gpu.Pool, error) { return d.NewPool(gpu.PoolOptions{}) }},
		{"portable", func(e *env) (*gpu.Pool, error) { return d.NewPool(gpu.PoolOptions{Portable: true}) }},
		// The buffer's size is not a power of two.
		{"over a buffer", func(e *env) (*gpu.Pool, error) { return d.NewPool(gpu.PoolOptions{Over: e.buffer(1<<20 + 256)}) }},
	} {
		e.sub(x.name, func(e *env) {
			p, err := x.make(e)
			e.must(err)
			if def, err := d.DefaultPool(); p != def || err != nil {
				e.Cleanup(func() { e.must(p.Close()) })
			}
			run(e, p)
		})
	}
}

// byStream reports whether p is a native pool of device 0 whose memory must be freed in the stream
// that allocated it (Caps.PoolsByStream).
func (e *env) byStream(p *gpu.Pool) bool {
	o, caps := p.Options(), e.caps(0)
	return caps.Pools && caps.PoolsByStream && !o.Portable && o.Over == nil
}

func (e *env) sub(name string, run func(e *env)) {
	e.Helper()
	e.Run(name, func(t *testing.T) {
		part := *e
		part.T = t
		run(&part)
	})
}

// pool makes a pool of the first device.
func (e *env) pool(o gpu.PoolOptions) *gpu.Pool {
	e.Helper()
	p, err := e.devs[0].NewPool(o)
	e.must(err)
	e.Cleanup(func() { e.must(p.Close()) })
	return p
}

// alloc submits an allocation to queue q of the first device.
func (e *env) alloc(q int, o gpu.Order, p *gpu.Pool, size uint64) *gpu.Buffer {
	e.Helper()
	var b *gpu.Buffer
	err := e.q(q).Submit(o, gpu.Alloc(&b, p, size))
	e.must(err)
	return b
}

// memory returns a pool's statistics.
func (e *env) memory(p *gpu.Pool) gpu.PoolStats {
	e.Helper()
	s, err := p.Stats()
	e.must(err)
	return s
}

// unused waits until the work of the first device is done and no memory of the pool is in use.
func (e *env) unused(p *gpu.Pool) {
	e.Helper()
	e.settled(e.devs[0])
	e.until("the pool is unused", func() bool { return e.memory(p).Used == 0 })
}

var pools = []test{
	{name: "B179 an allocation after the point of a free reuses its memory at the pool's limit", run: func(e *env) {
		for _, portable := range []bool{false, true} {
			e.sub(map[bool]string{false: "the driver's, if it has some", true: "portable"}[portable], func(e *env) {
				const size, rounds = 4 << 20, 12
				p := e.pool(gpu.PoolOptions{MaxSize: size, Portable: portable})
				to, s := e.buffer(rounds), e.sem()
				for i := range uint64(rounds) {
					q := e.q(int(i))
					b := e.alloc(int(i), between(s, 4*i, s, 4*i+1), p, size)
					e.must(q.Submit(between(s, 4*i+1, s, 4*i+2), gpu.Fill(b.All(), []byte{byte(i + 1)})))
					e.must(q.Submit(between(s, 4*i+2, s, 4*i+3), gpu.Copy(to.Range(i, 1), b.Range(size-1, 1))))
					e.must(e.q(int(i+1)).Submit(between(s, 4*i+3, s, 4*i+4), gpu.Free(b)))
				}
				e.wait(s, 4*rounds)
				for i, x := range e.read(to, gpu.Point{Semaphore: s, Value: 4 * rounds}) {
					if x != byte(i+1) {
						e.Errorf("allocation %d was full of %d", i, x)
					}
				}
			})
		}
	}},
	{name: "B88 memory has its size and kind at once, and work after its allocation uses it", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s := e.sem(), e.sem()
			b := e.alloc(0, between(host, 1, s, 1), p, 1000)
			if b.Size() != 1000 || b.Kind() != gpu.DeviceMem || b.Device() != e.devs[0] || b.Ptr() != 0 || b.Bytes() != nil {
				e.Errorf("%d bytes of kind %d at %#x", b.Size(), b.Kind(), uint64(b.Ptr()))
			}
			got := make([]byte, 1000)
			e.must(e.q(1).Submit(between(s, 3, s, 4), gpu.Download(got, b.All())))
			e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.Fill(b.Range(10, 980), []byte{7})))
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{5})))
			e.must(host.Signal(1))
			e.wait(s, 4)
			want := bytes.Repeat([]byte{7}, 1000)
			copy(want, bytes.Repeat([]byte{5}, 10))
			copy(want[990:], bytes.Repeat([]byte{5}, 10))
			e.same("the memory", got, want)
			if b.Ptr() == 0 {
				e.Error("no address")
			}
			e.must(e.q(3).Submit(signal(s, 5), gpu.Free(b)))
			e.wait(s, 5)
		})
	}},
	{name: "B89 a waiting allocation delays no other work", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s, x := e.sem(), e.sem(), e.sem()
			b, ordinary := e.alloc(0, between(host, 1, s, 1), p, 256), e.buffer(64)
			e.must(e.q(0).Submit(signal(x, 1), gpu.Fill(ordinary.All(), []byte{1})))
			e.wait(x, 1)
			e.at(s, 0)
			if b.Ptr() != 0 {
				e.Error("it is there before its wait is reached")
			}
			e.must(host.Signal(1))
			e.wait(s, 1)
			e.must(e.q(0).Submit(signal(s, 2), gpu.Free(b)))
			e.wait(s, 2)
		})
	}},
	{name: "B90 allocations one after the other, without growth", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			s, v, reserved := e.sem(), uint64(0), uint64(0)
			for i := range 32 {
				b := e.alloc(i, between(s, v, s, v+1), p, 50_000)
				e.must(e.q(i).Submit(between(s, v+1, s, v+2), gpu.Fill(b.All(), []byte{byte(i)})))
				e.holds(b, byte(i), gpu.Point{Semaphore: s, Value: v + 2})
				e.must(e.q(i+1).Submit(between(s, v+2, s, v+3), gpu.Free(b)))
				v += 3
				e.wait(s, v)
				switch now := e.memory(p).Reserved; {
				case i == 0:
					reserved = now
				case now != reserved:
					e.Errorf("after %d: %d bytes, and %d after the first", i+1, now, reserved)
				}
			}
			e.unused(p)
		})
	}},
	{name: "B90 allocations in a pipeline, without growth", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s, v := e.sem(), e.sem(), uint64(0)
			first := e.alloc(0, signal(s, 1), p, 50_000)
			e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Free(first)))
			e.wait(s, 2)
			e.unused(p)
			before, live := e.memory(p).Reserved, e.devs[0].Stats().Buffers
			var got [32][8]byte
			chain := e.sem()
			start := gpu.Point{Semaphore: host, Value: 1}
			for i := range got {
				o := gpu.Order{Wait: []gpu.Point{{Semaphore: chain, Value: v}, start}, Signal: points(chain, v+1)}
				b := e.alloc(i, o, p, 50_000)
				e.must(e.q(i+1).Submit(between(chain, v+1, chain, v+2), gpu.Fill(b.All(), []byte{byte(i), 1})))
				e.must(e.q(i+2).Submit(between(chain, v+2, chain, v+3), gpu.Download(got[i][:], b.Range(40_000, 8))))
				e.must(e.q(i+i/3).Submit(between(chain, v+3, chain, v+4), gpu.Free(b)))
				v += 4
			}
			e.must(host.Signal(1))
			e.wait(chain, v)
			for i := range got {
				if want := byte(i); got[i] != [8]byte{want, 1, want, 1, want, 1, want, 1} {
					e.Errorf("%d: %x", i, got[i])
				}
			}
			e.unused(p)
			most := before
			if e.byStream(p) { // each queue may reserve memory of its own
				most *= uint64(e.devs[0].Queues())
			}
			if after := e.memory(p).Reserved; after < before || after > most {
				e.Errorf("it has grown from %d bytes to %d", before, after)
			}
			if n := e.devs[0].Stats().Buffers; n != live {
				e.Errorf("%d buffers, and %d before", n, live)
			}
		})
	}},
	{name: "B90 allocations of many queues at once do not mix", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			const rounds = 64
			type result struct {
				got  [rounds][4]byte
				done *gpu.Semaphore
				err  error
			}
			var all [4]result
			ended := make(chan int)
			for q := range all {
				all[q].done = e.sem()
				go func() {
					defer func() { ended <- q }()
					r := &all[q]
					for i := range rounds {
						var b *gpu.Buffer
						err := e.q(q).Submit(gpu.Order{}, gpu.Alloc(&b, p, 1024))
						err = errors.Join(err, e.q(q).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{byte(q), byte(i)})))
						err = errors.Join(err, e.q(q).Submit(signal(r.done, uint64(i+1)), gpu.Download(r.got[i][:], b.Range(512, 4))))
						if r.err = errors.Join(err, e.q(q).Submit(gpu.Order{}, gpu.Free(b))); r.err != nil {
							return
						}
					}
				}()
			}
			for range all {
				<-ended
			}
			for q := range all {
				e.must(all[q].err)
				e.wait(all[q].done, rounds)
				for i, got := range all[q].got {
					if want := [4]byte{byte(q), byte(i), byte(q), byte(i)}; got != want {
						e.Errorf("queue %d, %d: %x", q, i, got)
					}
				}
			}
			e.unused(p)
		})
	}},
	{name: "B91 memory cannot be used without an order after its allocation", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s, x := e.sem(), e.sem(), e.sems(4)
			b, other := e.alloc(0, between(host, 1, s, 1), p, 256), e.buffer(256)
			e.must(e.q(1).Submit(signal(x[0], 1), gpu.Fill(b.All(), []byte{1})))
			e.must(e.q(2).Submit(signal(x[1], 1), gpu.Copy(other.All(), b.All())))
			e.must(e.q(3).Submit(signal(x[2], 1), gpu.UploadCopy(b.All(), make([]byte, 256))))
			e.must(e.q(0).Submit(signal(x[3], 1), gpu.Free(b)))
			for i := range x {
				e.failed(x[i], 1, gpu.ErrUnallocated)
			}
			e.must(host.Signal(1))
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{2})))
			e.holds(b, 2, gpu.Point{Semaphore: s, Value: 2})
			e.must(e.q(0).Submit(signal(s, 3), gpu.Free(b)))
			e.wait(s, 3)
		})
	}},
	{name: "B91 freed memory cannot be used", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s, x, y := e.sem(), e.sem(), e.sem(), e.sem()
			b, other := e.alloc(0, signal(s, 1), p, 256), e.buffer(256)
			e.must(e.q(1).Submit(between(host, 1, x, 1), gpu.Fill(b.All(), []byte{1})))
			e.must(e.q(1).Submit(between(host, 1, y, 1), gpu.Free(b)))
			e.must(e.q(2).Submit(between(s, 1, s, 2), gpu.Free(b)))
			e.wait(s, 2)
			for name, err := range map[string]error{
				"fill":     e.q(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})),
				"copy":     e.q(0).Submit(gpu.Order{}, gpu.Copy(other.All(), b.All())),
				"copy to":  e.q(0).Submit(gpu.Order{}, gpu.Copy(b.All(), other.All())),
				"update":   e.q(0).Submit(gpu.Order{}, gpu.UploadCopy(b.All(), make([]byte, 256))),
				"download": e.q(0).Submit(gpu.Order{}, gpu.Download(make([]byte, 256), b.All())),
				"read":     e.q(0).Submit(gpu.Order{}, gpu.ReadFrom(b.All(), bytes.NewReader(make([]byte, 256)), 0)),
				"free":     e.q(0).Submit(gpu.Order{}, gpu.Free(b)),
			} {
				if !errors.Is(err, gpu.ErrUnallocated) {
					e.Errorf("%s: %v", name, err)
				}
			}
			if b.Ptr() != 0 || b.Bytes() != nil {
				e.Error("it has an address")
			}
			e.must(host.Signal(1))
			e.failed(x, 1, gpu.ErrUnallocated)
			e.failed(y, 1, gpu.ErrUnallocated)
			e.holds(other, 0)
			e.must(b.Close())
			e.unused(p)
		})
	}},
	{name: "B92 a free whose wait fails does not free", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			bad, s, x := e.sem(), e.sem(), e.sem()
			b := e.alloc(0, signal(s, 1), p, 256)
			e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{9})))
			e.must(e.q(1).Submit(between(bad, 1, x, 1), gpu.Free(b)))
			bad.Fail(io.EOF)
			e.failed(x, 1, io.EOF)
			y := e.sem() // signalled by work that waits for an already failed semaphore
			e.must(e.q(1).Submit(between(bad, 1, y, 1), gpu.Free(b)))
			e.failed(y, 1, io.EOF)
			e.holds(b, 9, gpu.Point{Semaphore: s, Value: 2})
			e.must(e.q(1).Submit(signal(s, 3), gpu.Free(b)))
			e.wait(s, 3)
			e.unused(p)
		})
	}},
	{name: "B92 memory whose allocation fails never exists", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			bad, s, x := e.sem(), e.sem(), e.sems(2)
			before := e.devs[0].Stats()
			b := e.alloc(0, between(bad, 1, s, 1), p, 256)
			e.must(e.q(0).Submit(between(s, 1, x[0], 1), gpu.Fill(b.All(), []byte{9})))
			bad.Fail(io.EOF)
			e.failed(x[0], 1, io.EOF)
			e.must(e.q(0).Submit(signal(x[1], 1), gpu.Fill(b.All(), []byte{9})))
			e.failed(x[1], 1, gpu.ErrUnallocated)
			e.must(b.Close())
			if after := e.devs[0].Stats(); after.Buffers != before.Buffers || after.Device != before.Device || after.Host != before.Host {
				e.Errorf("it counts: %+v after %+v", after, before)
			}
			e.unused(p)
		})
	}},
	{name: "B93 a free of an ordinary buffer is a barrier", run: func(e *env) {
		b, host, s := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Free(b)))
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Free(b)))
		e.at(s, 0)
		e.must(host.Signal(1))
		e.wait(s, 2)
		e.must(e.q(0).Submit(signal(s, 3), gpu.Fill(b.All(), []byte{4})))
		e.holds(b, 4, gpu.Point{Semaphore: s, Value: 3})
	}},
	{name: "B93 a free is work of its queue", stall: true, run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			d := e.devs[0]
			for origin := range 3 {
				s, next := e.sem(), origin+1
				b := e.alloc(origin, signal(s, 1), p, 256)
				e.wait(s, 1)
				e.settled(d)
				resume := e.h.Stall(0)
				// Pick must return the queue with less work, or the first queue if both have the
				// same amount.
				picks := func(want int) {
					e.until("the other queue has less to do, or the first one the same", func() bool {
						q, err := d.Pick(1<<origin | 1<<next)
						return q == d.Queue(want) && err == nil
					})
				}
				picks(origin)
				e.must(e.q(origin).Submit(signal(s, 2), gpu.Free(b)))
				e.until("it is issued", func() bool { return d.Stats().InFlight == 1 })
				picks(next)
				resume()
				e.wait(s, 2)
			}
			e.unused(p)
		})
	}},
	{name: "B94 without lists a free comes after the work of its queue", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			const rounds, n = 32, 100_000
			var got [rounds][]byte
			s := e.sems(rounds)
			for i := range got {
				got[i] = make([]byte, n)
				b := e.alloc(i, gpu.Order{}, p, n) // reuses the memory of earlier work if the pool can
				e.must(e.q(i).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{byte(i)})))
				e.must(e.q(i).Submit(signal(s[i], 1), gpu.Download(got[i], b.All())))
				e.must(e.q(i).Submit(gpu.Order{}, gpu.Free(b)))
			}
			for i := range got {
				e.wait(s[i], 1)
				e.same("what was in it", got[i], bytes.Repeat([]byte{byte(i)}, n))
			}
			e.unused(p)
		})
	}},
	{name: "B94 no order, no pool: the queue's own, and the current one", run: func(e *env) {
		d := e.devs[0]
		p := e.pool(gpu.PoolOptions{})
		for range 2 {
			b := e.alloc(1, gpu.Order{}, nil, 512)
			s := e.sem()
			e.must(e.q(1).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{3})))
			e.holds(b, 3, gpu.Point{Semaphore: s, Value: 1})
			current, err := d.CurrentPool()
			e.must(err)
			if used := e.memory(current).Used; used < 512 {
				e.Errorf("%d bytes are used", used)
			}
			e.must(e.q(1).Submit(gpu.Order{}, gpu.Free(b)))
			e.must(e.q(1).Submit(signal(s, 2), gpu.Fill(e.buffer(4).All(), []byte{1})))
			e.wait(s, 2)
			e.unused(current)
			e.must(d.SetCurrentPool(p))
		}
	}},
	{name: "B95 memory that is not freed on a queue is freed after its last use, once", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			d, host, s := e.devs[0], e.sem(), e.sem()
			live := d.Stats()
			b := e.alloc(0, signal(s, 1), p, 4096)
			e.wait(s, 1)
			size := uint64(4096)
			if p.Options().Over != nil { // the pool's buffer counts already
				size = 0
			}
			if st := d.Stats(); st.Buffers != live.Buffers+1 || st.Device.Live+st.Host.Live != live.Device.Live+live.Host.Live+size {
				e.Errorf("%+v", st)
			}
			e.must(e.q(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: host, Value: 1}, {Semaphore: s, Value: 1}}, Signal: points(s, 2)}, gpu.Fill(b.All(), []byte{1})))
			for range 2 {
				e.must(b.Close())
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Free(b)); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Free = %v", err)
			}
			if st := d.Stats(); st.Buffers != live.Buffers+1 {
				e.Errorf("freed while it is needed: %+v", st)
			}
			e.must(host.Signal(1))
			e.wait(s, 2)
			e.until("it is freed", func() bool { return d.Stats().Buffers == live.Buffers })
			e.unused(p)
			for name, err := range map[string]error{ // the calls return the same error as before the memory was freed
				"fill":     e.q(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})),
				"download": e.q(0).Submit(gpu.Order{}, gpu.Download(make([]byte, 4096), b.All())),
				"free":     e.q(0).Submit(gpu.Order{}, gpu.Free(b)),
			} {
				if !errors.Is(err, gpu.ErrClosed) {
					e.Errorf("%s: %v", name, err)
				}
			}
		})
	}},
	{name: "B95 memory closed before its allocation is also freed", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s := e.sem(), e.sem()
			b := e.alloc(0, between(host, 1, s, 1), p, 4096)
			e.must(b.Close())
			e.must(host.Signal(1))
			e.wait(s, 1)
			e.unused(p)
		})
	}},
	{name: "B97 memory of size 0", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			host, s := e.sem(), e.sem()
			b := e.alloc(0, between(host, 1, s, 1), p, 0)
			e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{1})))
			e.must(e.q(0).Submit(between(s, 2, s, 3), gpu.Free(b)))
			e.at(s, 0)
			e.must(host.Signal(1))
			e.wait(s, 3)
			e.must(b.Close())
			if used := e.memory(p).Used; used != 0 {
				e.Errorf("%d bytes are used", used)
			}
		})
	}},
	{name: "B98 memory goes from one queue to another in order", stall: true, run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			resume := e.h.Stall(0)
			x, y := e.sem(), e.sem()
			a := e.alloc(0, gpu.Order{}, p, 1<<20)
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Fill(a.All(), []byte{1})))
			first, second := make([]byte, 1<<20), make([]byte, 1<<20)
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Download(first, a.All())))
			e.must(e.q(0).Submit(signal(x, 1), gpu.Free(a)))
			// A pool over a buffer has no room for a and b at the same time.
			b := e.alloc(1, gpu.Order{}, p, 1<<20)
			e.must(e.q(1).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{2})))
			e.must(e.q(1).Submit(signal(y, 1), gpu.Download(second, b.All())))
			e.at(y, 0)
			resume()
			e.wait(x, 1)
			e.wait(y, 1)
			e.same("the first", first, bytes.Repeat([]byte{1}, 1<<20))
			e.same("the second", second, bytes.Repeat([]byte{2}, 1<<20))
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(b)))
		})
	}},
	{name: "B98 an allocation that waits for a free stays within a pool's limit", run: func(e *env) {
		for _, portable := range []bool{false, true} {
			const size = 32 << 20 // drivers allocate memory in large pieces
			p := e.pool(gpu.PoolOptions{MaxSize: size, Portable: portable})
			host, s, x := e.sem(), e.sem(), e.sem()
			a := e.alloc(0, signal(s, 1), p, size)
			e.must(e.q(0).Submit(between(host, 1, s, 2), gpu.Free(a)))
			b := e.alloc(1, between(s, 2, x, 1), p, size)
			e.must(e.q(1).Submit(between(x, 1, x, 2), gpu.Fill(b.Range(0, 64), []byte{5})))
			e.at(x, 0)
			e.must(host.Signal(1))
			e.wait(x, 2)
			// Drivers may round the limits of their own pools up.
			if m := e.memory(p); portable && m.ReservedHigh > size {
				e.Errorf("%d bytes were reserved, and %d are the limit", m.ReservedHigh, size)
			}
			e.must(e.q(0).Submit(signal(x, 3), gpu.Free(b)))
			e.wait(x, 3)
		}
	}},
	{name: "B98 an exhausted pool has memory again after a free", run: func(e *env) {
		p := e.pool(gpu.PoolOptions{Over: e.buffer(4096 + 256)})
		s := e.sem()
		all := e.alloc(0, signal(s, 1), p, 4096)
		none, x := e.sem(), e.sem()
		lost := e.alloc(0, signal(none, 1), p, 4096)
		e.failed(none, 1, driver.ErrOutOfMemory)
		e.must(lost.Close())
		e.must(e.q(0).Submit(signal(s, 2), gpu.Free(all)))
		some := e.alloc(1, signal(x, 1), p, 4096)
		e.wait(x, 1)
		e.must(e.q(0).Submit(signal(x, 2), gpu.Free(some)))
		e.wait(x, 2)
	}},
	{name: "B128 a pool of the host's memory", run: func(e *env) {
		for _, portable := range []bool{false, true} {
			p := e.pool(gpu.PoolOptions{Kind: gpu.HostMem, Portable: portable})
			s, dev := e.sem(), e.buffer(1000)
			b := e.alloc(0, signal(s, 1), p, 1000)
			e.wait(s, 1)
			if b.Kind() != gpu.HostMem || len(b.Bytes()) != 1000 {
				e.Fatalf("%d bytes of kind %d", len(b.Bytes()), b.Kind())
			}
			want := random(1000, 5)
			copy(b.Bytes(), want)
			e.must(e.q(0).Submit(signal(s, 2), gpu.Copy(dev.All(), b.All())))
			e.same("what the device got", e.read(dev, gpu.Point{Semaphore: s, Value: 2}), want)
			e.must(e.q(1).Submit(between(s, 2, s, 3), gpu.Fill(b.Range(8, 8), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
			e.wait(s, 3)
			e.same("what the host got", b.Bytes()[8:16], []byte{1, 2, 3, 4, 5, 6, 7, 8})
			e.must(e.q(0).Submit(signal(s, 4), gpu.Free(b)))
			e.wait(s, 4)
			if b.Bytes() != nil {
				e.Error("Bytes of deallocated memory is not nil")
			}
		}
	}},
	{name: "B128 a pool of managed memory, if the driver has it", run: func(e *env) {
		p, err := e.devs[0].NewPool(gpu.PoolOptions{Kind: gpu.ManagedMem, InitialSize: 4096})
		if !e.caps(0).ManagedPools {
			if p != nil || !errors.Is(err, driver.ErrUnsupported) {
				e.Errorf("%v, %v", p, err)
			}
			return
		}
		e.must(err)
		defer p.Close()
		s := e.sem()
		b := e.alloc(0, signal(s, 1), p, 1000)
		e.wait(s, 1)
		if b.Kind() != gpu.ManagedMem || len(b.Bytes()) != 1000 || p.Options().Portable {
			e.Fatalf("%d bytes of kind %d, %+v", len(b.Bytes()), b.Kind(), p.Options())
		}
		want := random(1000, 5)
		copy(b.Bytes(), want)
		e.must(e.q(1).Submit(signal(s, 2), gpu.Fill(b.Range(8, 8), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
		e.wait(s, 2)
		copy(want[8:], []byte{1, 2, 3, 4, 5, 6, 7, 8})
		e.same("what the host sees", b.Bytes(), want)
		e.must(e.q(0).Submit(signal(s, 3), gpu.Free(b)))
		e.wait(s, 3)
		e.unused(p)
	}},
	{name: "B128 a pool reports whether it is the driver's or portable", run: func(e *env) {
		caps := e.caps(0)
		def, err := e.devs[0].DefaultPool()
		e.must(err)
		for name, x := range map[string]struct {
			p        *gpu.Pool
			portable bool
		}{
			"the default pool":                 {def, !caps.Pools},
			"of the device's memory":           {e.pool(gpu.PoolOptions{}), !caps.Pools},
			"of the device's memory, portable": {e.pool(gpu.PoolOptions{Portable: true}), true},
			"of the host's memory":             {e.pool(gpu.PoolOptions{Kind: gpu.HostMem}), !caps.HostPools},
			"over a buffer":                    {e.pool(gpu.PoolOptions{Over: e.buffer(4096)}), true},
		} {
			if o := x.p.Options(); o.Portable != x.portable {
				e.Errorf("a pool %s: %+v", name, o)
			}
		}
	}},
	{name: "B128 memory is zero if the pool's options say so", run: func(e *env) {
		for _, o := range []gpu.PoolOptions{{Zero: true}, {Zero: true, Portable: true}, {Zero: true, Over: e.buffer(8192)}, {Zero: true, Kind: gpu.HostMem}} {
			p, s, v := e.pool(o), e.sem(), uint64(0)
			for range 3 {
				b := e.alloc(0, between(s, v, s, v+1), p, 5001)
				e.holds(b, 0, gpu.Point{Semaphore: s, Value: v + 1})
				e.must(e.q(1).Submit(between(s, v+1, s, v+2), gpu.Fill(b.All(), []byte{0xff})))
				e.must(e.q(0).Submit(between(s, v+2, s, v+3), gpu.Free(b)))
				v += 3
			}
			e.wait(s, v)
		}
	}},
	{name: "B128 a pool allocates up to its limit, and then reports that it is full", run: func(e *env) {
		const most = 64 << 20
		for _, portable := range []bool{false, true} {
			p := e.pool(gpu.PoolOptions{MaxSize: most, Portable: portable})
			s, x, y := e.sem(), e.sem(), e.sem()
			b := e.alloc(0, signal(s, 1), p, 1<<20)
			e.wait(s, 1)
			big := e.alloc(0, signal(x, 1), p, 4*most)
			err := e.failed(x, 1, driver.ErrOutOfMemory)
			var se *gpu.SubmitError
			if !errors.As(err, &se) || se.Op != "alloc" {
				e.Errorf("the failure is %v", err)
			}
			e.must(e.q(0).Submit(signal(y, 1), gpu.Fill(big.Range(0, 1), []byte{1})))
			e.failed(y, 1, gpu.ErrUnallocated)
			var now *gpu.Buffer
			// If the call succeeds, the use of the memory must fail.
			if err := e.q(0).Submit(gpu.Order{}, gpu.Alloc(&now, p, 4*most)); err == nil {
				z := e.sem()
				e.must(e.q(0).Submit(signal(z, 1), gpu.Fill(now.Range(0, 1), []byte{1})))
				e.failed(z, 1, gpu.ErrUnallocated)
				e.must(now.Close())
			} else if !errors.Is(err, driver.ErrOutOfMemory) {
				e.Errorf("Alloc = %v", err)
			}
			for i, size := range []uint64{math.MaxUint64, math.MaxUint64 - 254, 1 << 63, math.MaxInt64} {
				z, value := e.sem(), uint64(i)+1
				e.must(e.alloc(0, signal(z, value), p, size).Close())
				e.failed(z, value, driver.ErrOutOfMemory)
			}
			if st := e.memory(p); st.Reserved > most {
				e.Errorf("%+v", st)
			}
			e.must(big.Close())
			e.must(e.q(0).Submit(signal(s, 2), gpu.Free(b))) // the failures have not affected b
			e.wait(s, 2)
			e.unused(p)
		}
	}},
	{name: "B128 a pool has its initial size", run: func(e *env) {
		for _, portable := range []bool{false, true} {
			p := e.pool(gpu.PoolOptions{InitialSize: 3 << 20, Portable: portable})
			st := e.memory(p)
			if st.Reserved < 3<<20 || st.Used != 0 {
				e.Errorf("%+v", st)
			}
			s := e.sem()
			b := e.alloc(0, signal(s, 1), p, 1<<20)
			e.wait(s, 1)
			if now := e.memory(p); now.Reserved != st.Reserved || now.Used < 1<<20 {
				e.Errorf("%+v", now)
			}
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(b)))
		}
	}},
	{name: "B128 a pool's initial memory is free, also for an allocation of the whole limit", run: func(e *env) {
		const most = 32 << 20
		for _, portable := range []bool{false, true} {
			for range 4 {
				p, s := e.pool(gpu.PoolOptions{MaxSize: most, InitialSize: most / 4, Portable: portable}), e.sem()
				b := e.alloc(0, signal(s, 1), p, most)
				e.wait(s, 1)
				e.must(e.q(0).Submit(signal(s, 2), gpu.Free(b)))
				e.wait(s, 2)
			}
		}
	}},
	{name: "B128 statistics of pools add up", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			e.unused(p)
			s, v := e.sem(), uint64(0)
			var bufs []*gpu.Buffer
			for range 4 {
				bufs = append(bufs, e.alloc(0, signal(s, v+1), p, 1<<16))
				v++
			}
			e.wait(s, v)
			most := e.memory(p)
			if most.Used != 4<<16 || most.UsedHigh < most.Used || most.Reserved < most.Used || most.ReservedHigh < most.Reserved {
				e.Errorf("%+v", most)
			}
			for _, b := range bufs[:3] {
				e.must(e.q(0).Submit(signal(s, v+1), gpu.Free(b)))
				v++
			}
			e.wait(s, v)
			e.until("it is used no more", func() bool { return e.memory(p).Used == 1<<16 })
			if st := e.memory(p); st.UsedHigh != most.UsedHigh || st.ReservedHigh != most.ReservedHigh {
				e.Errorf("%+v, after %+v", st, most)
			}
			e.must(e.q(0).Submit(signal(s, v+1), gpu.Free(bufs[3])))
			e.wait(s, v+1)
			e.unused(p)
		})
	}},
	{name: "B128 a pool releases the memory that its options say", run: func(e *env) {
		for _, portable := range []bool{false, true} {
			p, s := e.pool(gpu.PoolOptions{Portable: portable}), e.sem()
			if n := p.Options().Threshold; n != gpu.KeepAll {
				e.Errorf("threshold %d", n)
			}
			b := e.alloc(0, signal(s, 1), p, 1<<20)
			e.must(e.q(0).Submit(signal(s, 2), gpu.Free(b)))
			e.wait(s, 2)
			e.unused(p)
			kept := e.memory(p)
			if kept.Reserved == 0 {
				e.Errorf("%+v", kept)
			}
			e.must(p.Trim(kept.Reserved))
			if st := e.memory(p); st.Reserved != kept.Reserved {
				e.Errorf("%+v", st)
			}
			e.until("it is given back", func() bool {
				e.must(p.Trim(0))
				return e.memory(p).Reserved == 0
			})
			e.must(p.SetThreshold(0))
			if n := p.Options().Threshold; n != 0 {
				e.Errorf("threshold %d", n)
			}
			b = e.alloc(0, signal(s, 3), p, 1<<20)
			e.must(e.q(0).Submit(signal(s, 4), gpu.Free(b)))
			e.wait(s, 4)
			e.until("it is given back", func() bool {
				if !portable {
					// The driver may give back a native pool's memory only in Trim, or when the
					// host waits for a whole stream.
					e.must(p.Trim(0))
				}
				return e.memory(p).Reserved == 0
			})
			e.must(p.SetThreshold(2048))
			if n := p.Options().Threshold; n != 2048 {
				e.Errorf("threshold %d", n)
			}
		}
	}},
	{name: "B128 when memory may go from one stream to another", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			all := gpu.Reuse{Events: !e.byStream(p), Opportunistic: true, Internal: true}
			if r, err := p.Reuse(); r != all || err != nil {
				e.Errorf("%+v, %v", r, err)
			}
			defer func() { e.must(p.SetReuse(all)) }()
			was := all
			for _, want := range []gpu.Reuse{{}, {Events: true}, {Opportunistic: true}, {Internal: true}} {
				err := p.SetReuse(want)
				if errors.Is(err, driver.ErrUnsupported) {
					want = was
				} else {
					e.must(err)
				}
				was = want
				if r, err := p.Reuse(); r != want || err != nil {
					e.Errorf("%+v, %v; want %+v", r, err, want)
				}
				s := e.sem()
				b := e.alloc(0, signal(s, 1), p, 4096)
				e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{6})))
				e.holds(b, 6, gpu.Point{Semaphore: s, Value: 2})
				e.must(e.q(0).Submit(signal(s, 3), gpu.Free(b)))
				e.wait(s, 3)
			}
		})
	}},
	{name: "B129 there is one default pool, and it stays open", run: func(e *env) {
		d := e.devs[0]
		p, err := d.DefaultPool()
		e.must(err)
		for range 2 {
			again, err := d.DefaultPool()
			current, err2 := d.CurrentPool()
			if again != p || current != p || err != nil || err2 != nil {
				e.Errorf("%p, %p, want %p; %v, %v", again, current, p, err, err2)
			}
		}
		if err := p.Close(); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("Close = %v", err)
		}
		if n := p.Options().Threshold; n != gpu.KeepAll {
			e.Errorf("threshold %d", n)
		}
		if p.Device() != d || p.Options().Kind != gpu.DeviceMem {
			e.Errorf("%+v", p.Options())
		}
		own := e.pool(gpu.PoolOptions{MaxSize: 1 << 30})
		if o := own.Options(); o.MaxSize != 1<<30 || own.Device() != d {
			e.Errorf("%+v", o)
		}
		e.must(d.SetCurrentPool(own))
		if current, err := d.CurrentPool(); current != own || err != nil {
			e.Errorf("the current pool is another: %v", err)
		}
		if again, err := d.DefaultPool(); again != p || err != nil {
			e.Errorf("the default pool is another: %v", err)
		}
		e.must(own.Close())
		if current, err := d.CurrentPool(); current != p || err != nil {
			e.Errorf("the current pool is not the default one: %v", err)
		}
		if err := d.SetCurrentPool(own); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("SetCurrentPool = %v", err)
		}
	}},
	{name: "B82 invalid pools and allocations", run: func(e *env) {
		d, s, other := e.devs[0], e.sem(), e.buffer(4096)
		closed := e.pool(gpu.PoolOptions{})
		for range 2 {
			e.must(closed.Close())
		}
		from := func(p *gpu.Pool, o gpu.Order, size uint64) error {
			var b *gpu.Buffer
			err := e.q(0).Submit(o, gpu.Alloc(&b, p, size))
			if (b == nil) != (err != nil) {
				e.Errorf("%v, %v", b, err)
			}
			return err
		}
		mk := func(o gpu.PoolOptions) error {
			p, err := d.NewPool(o)
			if (p == nil) != (err != nil) {
				e.Errorf("%v, %v", p, err)
			}
			return err
		}
		gone := e.buffer(64)
		e.must(gone.Close())
		def, err := d.DefaultPool()
		e.must(err)
		late := e.alloc(0, signal(s, 1), def, 64)
		e.wait(s, 1)
		_, stats := closed.Stats()
		_, reuse := closed.Reuse()
		for name, c := range map[string]struct{ err, kind error }{
			"managed memory":         {mk(gpu.PoolOptions{Kind: gpu.ManagedMem, Portable: true}), driver.ErrUnsupported},
			"managed, with a limit":  {mk(gpu.PoolOptions{Kind: gpu.ManagedMem, MaxSize: 1 << 20}), driver.ErrUnsupported},
			"no kind":                {mk(gpu.PoolOptions{Kind: 7}), gpu.ErrArgument},
			"more than the most":     {mk(gpu.PoolOptions{MaxSize: 1, InitialSize: 2}), gpu.ErrArgument},
			"over, with a size":      {mk(gpu.PoolOptions{Over: other, MaxSize: 1}), gpu.ErrArgument},
			"over, with a beginning": {mk(gpu.PoolOptions{Over: other, InitialSize: 1}), gpu.ErrArgument},
			"over, of another kind":  {mk(gpu.PoolOptions{Over: other, Kind: gpu.HostMem}), gpu.ErrArgument},
			"over what is closed":    {mk(gpu.PoolOptions{Over: gone}), gpu.ErrClosed},
			"over hardly anything":   {mk(gpu.PoolOptions{Over: e.buffer(gpu.Alignment - 1)}), gpu.ErrArgument},
			"over nothing":           {mk(gpu.PoolOptions{Over: e.buffer(0)}), gpu.ErrArgument},
			"over a pool's memory":   {mk(gpu.PoolOptions{Over: late}), gpu.ErrArgument},
			"all to begin with":      {mk(gpu.PoolOptions{InitialSize: math.MaxUint64}), driver.ErrOutOfMemory},
			"all, portable":          {mk(gpu.PoolOptions{InitialSize: math.MaxUint64, Portable: true}), driver.ErrOutOfMemory},
			"all, within a limit":    {mk(gpu.PoolOptions{InitialSize: math.MaxUint64, MaxSize: math.MaxUint64}), driver.ErrOutOfMemory},
			"half of all":            {mk(gpu.PoolOptions{InitialSize: 1 << 63}), driver.ErrOutOfMemory},
			"alloc of a closed pool": {from(closed, gpu.Order{}, 1), gpu.ErrClosed},
			"alloc of 0 of it":       {from(closed, gpu.Order{}, 0), gpu.ErrClosed},
			"alloc, no semaphore":    {from(nil, gpu.Order{Wait: []gpu.Point{{}}}, 1), gpu.ErrArgument},
			"alloc, a value":         {from(nil, signal(s, math.MaxUint64), 1), gpu.ErrArgument},
			"free of nothing":        {e.q(0).Submit(gpu.Order{}, gpu.Free(nil)), gpu.ErrArgument},
			"free, no semaphore":     {e.q(0).Submit(gpu.Order{Signal: []gpu.Point{{}}}, gpu.Free(late)), gpu.ErrArgument},
			"no current pool":        {d.SetCurrentPool(nil), gpu.ErrArgument},
			"statistics":             {stats, gpu.ErrClosed},
			"set threshold":          {closed.SetThreshold(1), gpu.ErrClosed},
			"reuse":                  {reuse, gpu.ErrClosed},
			"set reuse":              {closed.SetReuse(gpu.Reuse{}), gpu.ErrClosed},
			"trim":                   {closed.Trim(0), gpu.ErrClosed},
			"access":                 {closed.Access(d, true), gpu.ErrClosed},
			"access for nobody":      {def.Access(nil, true), gpu.ErrArgument},
			"no access for itself":   {def.Access(d, false), gpu.ErrArgument},
			"access for itself":      {def.Access(d, true), nil},
		} {
			if !errors.Is(c.err, c.kind) {
				e.Errorf("%s: %v; want %v", name, c.err, c.kind)
			}
		}
		e.at(s, 1)
		e.must(e.q(0).Submit(signal(s, 2), gpu.Free(late)))
		e.wait(s, 2)
		e.unused(def)
	}},
	{name: "B82 another device's pool", devices: 2, run: func(e *env) {
		d, other := e.devs[0], e.devs[1]
		p, err := other.NewPool(gpu.PoolOptions{})
		e.must(err)
		defer p.Close()
		var b *gpu.Buffer
		err = e.q(0).Submit(gpu.Order{}, gpu.Alloc(&b, p, 64))
		if b != nil || !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("Alloc = %v", err)
		}
		if err := d.SetCurrentPool(p); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("SetCurrentPool = %v", err)
		}
		over, err := d.NewPool(gpu.PoolOptions{Over: e.bufferOn(other, 64)})
		if over != nil || !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("NewPool = %v", err)
		}
	}},
	{name: "B130 memory of a pool on two devices", devices: 2, run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			other := e.devs[1]
			err := p.Access(other, true)
			if err != nil && !errors.Is(err, driver.ErrUnsupported) {
				e.Fatal(err)
			}
			s, there, nine := e.sem(), e.bufferOn(other, 1024), e.bufferOn(other, 1024)
			set := e.sem()
			e.must(other.Queue(0).Submit(signal(set, 1), gpu.Fill(nine.All(), []byte{9})))
			b := e.alloc(0, between(set, 1, s, 1), p, 1024)
			e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{8})))
			e.must(other.Queue(0).Submit(between(s, 2, s, 3), gpu.Copy(there.All(), b.All())))
			e.must(other.Queue(0).Submit(between(s, 3, s, 4), gpu.Copy(b.All(), nine.All())))
			e.holds(b, 9, gpu.Point{Semaphore: s, Value: 4})
			e.must(other.Queue(0).Submit(between(s, 4, s, 5), gpu.Free(b)))
			again := e.alloc(1, between(s, 5, s, 6), p, 1024)
			e.must(e.q(1).Submit(between(s, 6, s, 7), gpu.Fill(again.All(), []byte{1})))
			e.must(e.q(0).Submit(between(s, 7, s, 8), gpu.Free(again)))
			e.wait(s, 8)
			e.settled(other)
			e.holds(there, 8)
			e.unused(p)
			if err == nil {
				// A portable pool cannot end access.
				if err := p.Access(other, false); !errors.Is(err, driver.ErrUnsupported) {
					e.must(err)
				}
			}
		})
	}},
	{name: "B86 a pool is closed while its memory is used", run: func(e *env) {
		for _, o := range []gpu.PoolOptions{{}, {Portable: true}, {Over: e.buffer(1 << 16)}} {
			p, err := e.devs[0].NewPool(o)
			e.must(err)
			host, s, x := e.sem(), e.sem(), e.sem()
			b, left := e.alloc(0, signal(s, 1), p, 1024), e.alloc(0, signal(s, 2), p, 1024)
			parked := e.alloc(0, between(host, 1, x, 1), p, 1024)
			e.wait(s, 2)
			e.must(p.Close())
			e.must(p.Close())
			e.must(e.q(0).Submit(signal(s, 3), gpu.Fill(b.All(), []byte{5})))
			e.holds(b, 5, gpu.Point{Semaphore: s, Value: 3})
			if err := e.q(0).Submit(gpu.Order{}, gpu.Alloc(new(*gpu.Buffer), p, 16)); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Alloc = %v", err)
			}
			e.must(host.Signal(1)) // the parked Alloc fails, because the pool is closed
			e.failed(x, 1, gpu.ErrClosed)
			e.must(parked.Close())
			e.must(e.q(1).Submit(between(s, 3, s, 4), gpu.Free(b)))
			e.wait(s, 4)
			e.must(left.Close())
			if o.Over != nil { // the pool releases the buffer when its last memory is freed
				live := e.devs[0].Stats().Buffers
				e.must(o.Over.Close())
				e.until("the buffer is freed", func() bool { return e.devs[0].Stats().Buffers < live })
			}
		}
	}},
	{name: "B84 B85 a device is closed with memory of pools", run: func(e *env) {
		d := e.devs[0]
		host, s, x := e.sem(), e.sem(), e.sems(3)
		var all []*gpu.Pool
		for i, o := range []gpu.PoolOptions{{}, {Portable: true}, {Over: e.buffer(1 << 16)}, {Kind: gpu.HostMem}, {}, {Portable: true}} {
			p, err := d.NewPool(o)
			e.must(err)
			b := e.alloc(0, signal(s, uint64(i+1)), p, 1024)
			e.must(e.q(1).Submit(gpu.Order{Wait: points(s, uint64(i+1))}, gpu.Fill(b.All(), []byte{1})))
			all = append(all, p)
		}
		e.wait(s, 6)
		free := e.alloc(0, gpu.Order{}, nil, 1024)
		e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(free)))
		e.alloc(0, gpu.Order{}, nil, 1024)
		parked := e.alloc(0, between(host, 1, x[0], 1), all[0], 64)
		e.must(all[4].Close())
		e.must(all[5].Close())
		e.must(d.Close())
		e.failed(x[0], 1, gpu.ErrClosed)
		for _, p := range all {
			e.must(p.Close())
			if _, err := p.Stats(); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Stats = %v", err)
			}
		}
		var b *gpu.Buffer
		err := e.q(0).Submit(signal(x[1], 1), gpu.Alloc(&b, all[0], 64))
		if b != nil || !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("Alloc = %v", err)
		}
		e.failed(x[1], 1, gpu.ErrClosed)
		if err := e.q(0).Submit(signal(x[2], 1), gpu.Free(parked)); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("Free = %v", err)
		}
		e.failed(x[2], 1, gpu.ErrClosed)
		e.must(parked.Close())
		if _, err := d.NewPool(gpu.PoolOptions{}); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("NewPool = %v", err)
		}
		if _, err := d.DefaultPool(); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("DefaultPool = %v", err)
		}
		if _, err := d.CurrentPool(); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("CurrentPool = %v", err)
		}
		if st := d.Stats(); st.InFlight+st.Parked != 0 {
			e.Errorf("%+v", st)
		}
	}},
	{name: "B123 B124 what an allocation and a free cost the driver", calls: true, run: func(e *env) {
		p, err := e.devs[0].NewPool(gpu.PoolOptions{})
		e.must(err)
		defer p.Close()
		s := e.sem()
		warm := e.alloc(0, signal(s, 1), p, 1024)
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Free(warm)))
		e.wait(s, 2)
		count := func(ops ...string) (n uint64) {
			for _, op := range ops {
				n += e.h.Calls(0, op)
			}
			return n
		}
		allocs, other := count("alloc async", "free async"), count("record", "wait", "alloc", "free")
		b := e.alloc(0, gpu.Order{}, p, 1024)
		e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(b)))
		native := count("alloc async", "free async") - allocs
		switch n := count("record", "wait", "alloc", "free") - other; {
		case native == 2 && n > 0:
			e.Errorf("%d other calls", n)
		case native != 2 && native != 0:
			e.Errorf("%d calls", native)
		}
		e.settled(e.devs[0])
		// These operations are all on one queue, and each waits for the previous operation. Each
		// records at most one event. Only the first operation may make the stream wait.
		records, waits, v := count("record"), count("wait"), uint64(2)
		for range 10 {
			b := e.alloc(1, between(s, v, s, v+1), p, 1024)
			e.must(e.q(1).Submit(between(s, v+1, s, v+2), gpu.Free(b)))
			v += 2
		}
		if n := count("record") - records; n > 20 {
			e.Errorf("%d events for 20 submissions", n)
		}
		if n := count("wait") - waits; n > 1 {
			e.Errorf("%d waits on one stream", n)
		}
		e.wait(s, v)
		// Several waits for work of one stream become at most one native wait.
		x := e.sems(8)
		for i := range x {
			e.must(e.q(2).Submit(signal(x[i], 1), gpu.Fill(e.buffer(4).All(), []byte{1})))
		}
		waits = count("wait")
		var o gpu.Order
		for i := range x {
			o.Wait = append(o.Wait, gpu.Point{Semaphore: x[i], Value: 1})
		}
		o.Signal = points(s, v+1)
		b = e.alloc(3, o, p, 1024)
		if n := count("wait") - waits; n > 1 {
			e.Errorf("%d waits for one stream", n)
		}
		e.wait(s, v+1)
		e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(b)))
	}},
}
