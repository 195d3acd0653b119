package gputest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// group opens all devices as a group.
func (e *env) group(o gpu.Options) *gpu.Group {
	e.Helper()
	g, err := gpu.OpenGroup(e.h.Driver, o)
	e.must(err)
	e.Cleanup(func() {
		if err := g.Close(); err != nil {
			e.Errorf("close: %v", err)
		}
	})
	return g
}

// stranger opens a device of another driver.
func (e *env) stranger(o gpu.Options) *gpu.Device {
	e.Helper()
	d, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, o)
	e.must(err)
	e.Cleanup(func() {
		if err := d.Close(); err != nil {
			e.Errorf("close: %v", err)
		}
	})
	return d
}

// reachable reports whether kernels of the first device may use the second device's memory if both
// are in a group.
func (e *env) reachable() (yes bool) {
	e.Helper()
	locked(func() {
		var devs []driver.Device
		for i := range 2 {
			d, err := e.h.Driver.Open(i)
			if err != nil {
				e.Error(err)
				return
			}
			devs = append(devs, d)
		}
		if peers, ok := devs[0].(driver.Peers); ok && devs[0].Caps().Peers {
			err := devs[0].Bind()
			if err == nil {
				err = peers.EnablePeer(devs[1])
			}
			if yes = err == nil; !yes && !errors.Is(err, driver.ErrUnsupported) {
				e.Error(err)
			}
		}
		for _, d := range devs {
			if err := errors.Join(d.Bind(), d.Close()); err != nil {
				e.Error(err)
			}
		}
	})
	return yes
}

// fetch downloads a buffer of any device.
func (e *env) fetch(b *gpu.Buffer, after ...gpu.Point) []byte {
	e.Helper()
	data, s := make([]byte, b.Size()), e.sem()
	e.must(b.Device().Queue(0).Submit(gpu.Order{Wait: after, Signal: points(s, 1)}, gpu.Download(data, b.All())))
	e.wait(s, 1)
	return data
}

// store uploads to a buffer of any device.
func (e *env) store(b *gpu.Buffer, data []byte) {
	e.Helper()
	s := e.sem()
	e.must(b.Device().Queue(0).Submit(signal(s, 1), gpu.Upload(b.All(), data)))
	e.wait(s, 1)
}

var groups = []test{
	{name: "B131 groups of all devices, of some, and of none", devices: 2, run: func(e *env) {
		infos, err := e.h.Driver.Devices()
		e.must(err)
		g := e.group(gpu.Options{Queues: 3})
		if len(g.Devices()) != len(infos) {
			e.Errorf("%d devices", len(g.Devices()))
		}
		for i, d := range g.Devices() {
			if d.Info() != infos[i] {
				e.Errorf("device %d is %s", i, d.Info().Name)
			}
			if d.Queues() != 3 {
				e.Errorf("device %d has %d queues", i, d.Queues())
			}
		}
		g.Devices()[0] = nil
		if g.Devices()[0] == nil {
			e.Error("changing the result of Devices changes the group")
		}
		host, s := e.sem(), e.sem()
		e.must(host.Signal(1))
		e.must(g.Devices()[1].Queue(2).Submit(between(host, 1, s, 1), gpu.Fill(e.bufferOn(g.Devices()[1], 64).All(), []byte{1})))
		e.wait(s, 1)

		some, err := gpu.OpenGroup(e.h.Driver, gpu.Options{}, 1, 0)
		e.must(err)
		if d := some.Devices(); len(d) != 2 || d[0].Info() != infos[1] || d[1].Info() != infos[0] {
			e.Errorf("devices 1 and 0 are %v", d)
		}
		e.must(some.Close())
		e.must(some.Close())
		if _, err := gpu.NewGroup(some.Devices()...); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a group of closed devices: %v", err)
		}
		if _, err := gpu.OpenGroup(e.h.Driver, gpu.Options{}, 0, 1, 0); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("a device twice: %v", err)
		}
		if g, err := gpu.OpenGroup(e.h.Driver, gpu.Options{}, 0, len(infos)); g != nil || err == nil {
			e.Errorf("a device that there is not: %v", err)
		}
		if _, err := gpu.OpenGroup(e.h.Driver, gpu.Options{Queues: 65}); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("options that nobody takes: %v", err)
		}
		for what, devs := range map[string][]*gpu.Device{"none": nil, "nil": {e.devs[0], nil}, "twice": {e.devs[0], e.devs[1], e.devs[0]}} {
			if _, err := gpu.NewGroup(devs...); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%s: %v", what, err)
			}
		}
	}},
	{name: "B131 a group of devices of two drivers", devices: 2, run: func(e *env) {
		other := e.stranger(gpu.Options{Queues: 2})
		g, err := gpu.NewGroup(e.devs[0], other, e.devs[1])
		e.must(err)
		if !slices.Equal(g.Devices(), []*gpu.Device{e.devs[0], other, e.devs[1]}) {
			e.Errorf("its devices are %v", g.Devices())
		}
		pools, err := g.NewPools(gpu.PoolOptions{})
		e.must(err)
		s, v := e.sem(), uint64(0)
		for i, q := range queuesOf(g) { // the work of each queue comes after that of the previous queue
			p := pools[slices.Index(g.Devices(), q.Device())]
			var b *gpu.Buffer
			err := q.Submit(between(s, v, s, v+1), gpu.Alloc(&b, p, 64))
			e.must(err)
			e.must(q.Submit(between(s, v+1, s, v+2), gpu.Fill(b.All(), []byte{byte(i)})))
			e.must(q.Submit(between(s, v+2, s, v+3), gpu.Free(b)))
			v += 3
		}
		e.wait(s, v)
		for _, p := range pools {
			e.must(p.Close())
		}
	}},
	{name: "B131 code on all devices", devices: 2, kernels: true, run: func(e *env) {
		g := e.group(gpu.Options{})
		all, err := g.Load(kernels.Basic)
		e.must(err)
		if len(all) != len(g.Devices()) {
			e.Fatalf("%d executables", len(all))
		}
		for i, d := range g.Devices() {
			k, err := all[i].Kernel("index")
			e.must(err)
			b, s := e.bufferOn(d, 64), e.sem()
			e.must(d.Queue(0).Submit(signal(s, 1), gpu.Launch(k, gpu.GridFor(16, 16), uint64(16), uint32(i), uint32(1), b.Ptr())))
			if got := e.fetch(b, points(s, 1)...); binary.LittleEndian.Uint32(got[60:]) != uint32(i)+15 {
				e.Errorf("device %d: %v", i, got)
			}
		}
		for _, x := range all {
			e.must(x.Close())
		}
		if all, err := g.Load([]byte("no code")); all != nil || err == nil {
			e.Errorf("no code: %v", err)
		}
	}},
	{name: "B131 kernels on the memory of another device", devices: 2, kernels: true, run: func(e *env) {
		if !e.reachable() {
			e.Skip("the devices have no way to each other")
		}
		enabled := func() (n uint64) {
			if e.h.Calls != nil {
				n = e.h.Calls(0, "enable peer")
			}
			return n
		}
		before := enabled()
		g := e.group(gpu.Options{})
		if n := enabled() - before; e.h.Calls != nil && n != uint64(len(g.Devices())-1) {
			e.Errorf("%d devices were let in", n)
		}
		const n = 1024
		k := e.kernelOn(g.Devices()[0], "words")
		words := func(o gpu.Order, dst, src driver.Ptr) {
			e.must(g.Devices()[0].Queue(0).Submit(o, gpu.Launch(k, gpu.GridFor(n, 128), uint64(n), dst, src)))
		}
		mine, a, b, s := e.bufferOn(g.Devices()[0], 4*n), e.bufferOn(g.Devices()[1], 4*n), e.bufferOn(g.Devices()[1], 4*n), e.sem()
		data := random(4*n, 1)
		e.must(g.Devices()[1].Queue(0).Submit(signal(s, 1), gpu.Upload(a.All(), data)))
		words(between(s, 1, s, 2), mine.Ptr(), a.Ptr())
		words(between(s, 2, s, 3), b.Ptr(), mine.Ptr())
		e.same("what was read there and written there", e.fetch(b, points(s, 3)...), data)
	}},
	{name: "B131 pools that all devices use", devices: 2, run: func(e *env) {
		reach := e.reachable()
		for _, portable := range []bool{false, true} {
			g := e.group(gpu.Options{})
			pools, err := g.NewPools(gpu.PoolOptions{Portable: portable})
			e.must(err)
			for i, p := range pools {
				if p.Device() != g.Devices()[i] {
					e.Errorf("pool %d is of another device", i)
				}
			}
			if !reach && !portable {
				continue // other devices cannot use these pools
			}
			a, b := g.Devices()[0].Queue(0), g.Devices()[1].Queue(0)
			s, back := e.sem(), make([]byte, 256)
			var x *gpu.Buffer
			err = a.Submit(signal(s, 1), gpu.Alloc(&x, pools[0], 256))
			e.must(err)
			by := b
			if !reach {
				by = a
			}
			e.must(by.Submit(between(s, 1, s, 2), gpu.Fill(x.All(), []byte{7, 8})))
			var y *gpu.Buffer
			err = b.Submit(between(s, 2, s, 3), gpu.Alloc(&y, pools[1], 256))
			e.must(err)
			e.must(a.Submit(between(s, 3, s, 4), gpu.Copy(y.All(), x.All())))
			e.must(a.Submit(between(s, 4, s, 5), gpu.Download(back, y.All())))
			e.must(b.Submit(between(s, 5, s, 6), gpu.Free(y)))
			e.must(a.Submit(between(s, 6, s, 7), gpu.Free(x)))
			e.wait(s, 7)
			if back[0] != 7 || back[255] != 8 {
				e.Errorf("portable %t: %v arrived", portable, back[:4])
			}
			for _, p := range pools {
				e.must(p.Close())
			}
		}
		if _, err := e.group(gpu.Options{}).NewPools(gpu.PoolOptions{Kind: gpu.ManagedMem, MaxSize: 1}); !errors.Is(err, driver.ErrUnsupported) {
			e.Errorf("pools that nobody makes: %v", err)
		}
	}},
	{name: "B116 copies between any two devices in all orders of wait and signal", devices: every, run: func(e *env) {
		const n = 3000
		e.pairs(func(from, to *gpu.Device) {
			for _, by := range []*gpu.Device{from, to} { // the device that copies
				for _, waitFirst := range []bool{true, false} {
					for _, byHost := range []bool{true, false} {
						src, dst := e.bufferOn(from, n), e.bufferOn(to, n)
						data := random(n, uint64(from.Info().Index))
						host, s, x := e.sem(), e.sem(), e.sem()
						steps := []func(){
							func() { e.must(by.Queue(1).Submit(between(s, 1, x, 1), gpu.Copy(dst.All(), src.All()))) },
							func() {
								if byHost {
									e.store(src, data)
									e.must(s.Signal(1))
								} else {
									e.must(from.Queue(2).Submit(between(host, 1, s, 1), gpu.Upload(src.All(), data)))
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
						e.same("the copy", e.fetch(dst, points(x, 1)...), data)
						e.must(src.Close())
						e.must(dst.Close())
					}
				}
			}
		})
	}},
	{name: "B116 a chain over all queues of a group", devices: 2, run: func(e *env) {
		g := e.group(gpu.Options{Queues: 3})
		const n = 150
		var bufs []*gpu.Buffer
		for _, d := range g.Devices() {
			bufs = append(bufs, e.bufferOn(d, n+1))
		}
		on := func(i uint64) (*gpu.Queue, *gpu.Buffer) {
			// Operation i is on device i modulo the number of devices. Each round over the devices
			// uses the next queue.
			k, turn := int(i)%len(bufs), int(i)/len(bufs)
			return g.Devices()[k].Queue(turn % 3), bufs[k]
		}
		for i, backwards := range []bool{true, false} {
			s, value := e.sem(), byte(98+i)
			for i := range uint64(n) {
				if backwards {
					i = n - 1 - i
				}
				_, from := on(i)
				q, to := on(i + 1)
				e.must(q.Submit(between(s, i+1, s, i+2), gpu.Copy(to.Range(i+1, 1), from.Range(i, 1))))
			}
			q, first := on(0)
			e.must(q.Submit(signal(s, 1), gpu.Fill(first.Range(0, 1), []byte{value})))
			_, last := on(n)
			if got := e.fetch(last, points(s, n+1)...); got[n] != value {
				e.Errorf("%d arrived, want %d", got[n], value)
			}
		}
	}},
	{name: "B116 random work over a group matches a sequential model", devices: 2, run: func(e *env) {
		for seed := range uint64(8) {
			randomGroup(e, seed)
		}
	}},
	{name: "B132 copies between drivers", run: func(e *env) {
		const stage = 4096
		other := e.stranger(gpu.Options{StageSize: stage / 2, Queues: 2})
		mine, err := gpu.Open(e.h.Driver, 0, gpu.Options{StageSize: stage})
		e.must(err)
		e.Cleanup(func() { e.must(mine.Close()) })
		for _, n := range []uint64{0, 1, 100, stage / 2, stage/2 + 1, stage, stage + 1, 5*stage + 77} {
			a, b, c := e.bufferOn(mine, n+16), e.bufferOn(other, n+16), e.bufferOn(mine, n+16)
			data := random(int(n), n)
			// In the first round a queue of one driver copies, in the second a queue of the other
			// driver.
			for _, q := range []*gpu.Queue{mine.Queue(0), other.Queue(1)} {
				s := e.sem()
				e.must(mine.Queue(0).Submit(signal(s, 1), gpu.Upload(a.Range(3, n), data)))
				e.must(q.Submit(between(s, 1, s, 2), gpu.Copy(b.Range(5, n), a.Range(3, n))))
				e.must(q.Submit(between(s, 2, s, 3), gpu.Copy(c.Range(1, n), b.Range(5, n))))
				got := e.fetch(c, points(s, 3)...)
				e.same("what came back", got[1:1+n], data)
				if got[0] != 0 || got[n+1] != 0 {
					e.Error("it wrote more than that")
				}
				z := e.sem()
				e.must(mine.Queue(0).Submit(signal(z, 1), gpu.Fill(c.All(), []byte{0})))
				e.wait(z, 1)
			}
		}
		a, b := e.bufferOn(mine, 64), e.bufferOn(other, 64)
		for what, c := range map[string]struct {
			dst, src gpu.Range
			want     error
		}{
			"too far there": {a.All(), b.Range(1, 64), gpu.ErrRange},
			"too far here":  {a.Range(1, 64), b.All(), gpu.ErrRange},
			"other sizes":   {a.All(), b.Range(0, 63), gpu.ErrArgument},
		} {
			if err := mine.Queue(0).Submit(gpu.Order{}, gpu.Copy(c.dst, c.src)); !errors.Is(err, c.want) {
				e.Errorf("%s: %v", what, err)
			}
		}
		third := e.stranger(gpu.Options{})
		if err := third.Queue(0).Submit(gpu.Order{}, gpu.Copy(a.All(), b.All())); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("a queue of neither driver: %v", err)
		}
	}},
	{name: "B132 a copy between drivers keeps its buffers", run: func(e *env) {
		const n = 3<<20 + 5
		other := e.stranger(gpu.Options{})
		data := random(n, 3)
		pool, err := other.NewPool(gpu.PoolOptions{})
		e.must(err)
		for _, pooled := range []bool{false, true} {
			host, s := e.sem(), e.sem()
			a, err := e.devs[0].Alloc(gpu.DeviceMem, n)
			e.must(err)
			b, err := other.Alloc(gpu.DeviceMem, n)
			if pooled {
				err = other.Queue(0).Submit(gpu.Order{}, gpu.Alloc(&b, pool, n))
			}
			e.must(err)
			c := e.buffer(n)
			e.must(e.q(0).Submit(signal(s, 1), gpu.Upload(a.All(), data)))
			e.must(e.q(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: host, Value: 1}, {Semaphore: s, Value: 1}}, Signal: points(s, 2)}, gpu.Copy(b.All(), a.All())))
			e.must(e.q(1).Submit(between(s, 2, s, 3), gpu.Copy(c.All(), b.All())))
			if pooled {
				e.must(other.Queue(0).Submit(between(s, 3, s, 4), gpu.Free(b)))
			}
			e.must(a.Close()) // the copies still use a
			e.must(b.Close())
			e.must(host.Signal(1))
			e.wait(s, 3)
			e.same("what came back", e.read(c), data)
			if pooled {
				e.wait(s, 4)
			}
		}
		e.must(pool.Close())
	}},
	{name: "B81 B86 a copy between drivers, one of which is closed", run: func(e *env) {
		for closeOther := range 2 {
			other := e.stranger(gpu.Options{StageSize: 4096})
			mine, err := gpu.Open(e.h.Driver, 0, gpu.Options{StageSize: 4096})
			e.must(err)
			a, b := e.bufferOn(mine, 1<<20), e.bufferOn(other, 1<<20)
			host, s := e.sem(), e.sem()
			// This copy is issued. It is running, or done.
			e.must(mine.Queue(0).Submit(signal(s, 1), gpu.Copy(b.All(), a.All())))
			// This copy is parked, and never runs.
			e.must(mine.Queue(0).Submit(between(host, 1, s, 2), gpu.Copy(a.All(), b.All())))
			if closeOther == 1 {
				e.must(other.Close())
			} else {
				e.must(mine.Close())
			}
			e.must(host.Signal(1))
			e.failed(s, 2, gpu.ErrClosed)
			for _, q := range []*gpu.Queue{mine.Queue(0), other.Queue(0)} {
				x := e.sem()
				if err := q.Submit(signal(x, 1), gpu.Copy(a.All(), b.All())); err == nil {
					err = x.Wait(e.ctx, 1)
					if !errors.Is(err, gpu.ErrClosed) {
						e.Errorf("after it is closed: %v", err)
					}
				} else if !errors.Is(err, gpu.ErrClosed) {
					e.Errorf("after it is closed: %v", err)
				}
			}
			e.must(mine.Close())
		}
	}},
	{name: "B86 a group is closed while its devices use each other", devices: 2, run: func(e *env) {
		for range 10 {
			g, err := gpu.OpenGroup(e.h.Driver, gpu.Options{Queues: 2})
			e.must(err)
			var bufs []*gpu.Buffer
			queues := queuesOf(g)
			for _, q := range queues {
				b, err := q.Device().Alloc(gpu.DeviceMem, 21*64)
				e.must(err)
				bufs = append(bufs, b)
			}
			never, s := e.sem(), e.sems(len(queues))
			for v := range uint64(20) {
				for i, q := range queues {
					next := (i + 2) % len(queues)
					// Copy when the source has been written, and when s[next] is at v.
					wait := []gpu.Point{{Semaphore: s[i], Value: v}, {Semaphore: s[next], Value: v}}
					e.must(q.Submit(gpu.Order{Wait: wait, Signal: points(s[next], v+1)},
						gpu.Copy(bufs[next].Range(64*(v+1), 64), bufs[i].Range(64*v, 64))))
				}
			}
			x := e.sem()
			e.must(queues[0].Submit(between(never, 1, x, 1), gpu.Barrier()))
			e.must(g.Close())
			e.failed(x, 1, gpu.ErrClosed)
			for _, s := range s {
				if err := s.Wait(e.ctx, 20); err != nil && !errors.Is(err, gpu.ErrClosed) {
					e.Errorf("work at the time of Close: %v", err)
				}
			}
		}
	}},
}

// kernelOn loads a kernel of kernels.Basic on a device.
func (e *env) kernelOn(d *gpu.Device, name string) *gpu.Kernel {
	e.Helper()
	x, err := d.Load(kernels.Basic)
	e.must(err)
	e.Cleanup(func() { x.Close() })
	k, err := x.Kernel(name)
	e.must(err)
	return k
}

// randomGroup makes random fills and copies on the devices of a group. Semaphores order the
// operations, which are submitted in random order. The result must be as if the operations ran one
// after the other, in the order in which randomGroup made them.
func randomGroup(e *env, seed uint64) {
	const ops, size = 200, 256
	r := rand.New(rand.NewPCG(seed, 116))
	g := e.group(gpu.Options{Queues: 2, Events: 4})
	host, queues := e.sem(), queuesOf(g)
	type memory struct {
		b     *gpu.Buffer
		model []byte
		wrote []gpu.Point // the point of the last write
		read  []gpu.Point // the points of the reads since the last write
	}
	var mem []*memory
	for i := range 3 * len(g.Devices()) {
		mem = append(mem, &memory{b: e.bufferOn(g.Devices()[i%len(g.Devices())], size), model: make([]byte, size)})
	}
	var todo []func()
	var all []gpu.Point
	for range ops {
		done := gpu.Point{Semaphore: e.sem(), Value: 1 + r.Uint64N(5)}
		o := gpu.Order{Signal: []gpu.Point{done}}
		if r.IntN(4) == 0 {
			o.Wait = append(o.Wait, gpu.Point{Semaphore: host, Value: 1 + r.Uint64N(3)})
		}
		q, at, n := queues[r.IntN(len(queues))], r.Uint64N(size), uint64(0)
		n = r.Uint64N(size-at) + 1
		dst := mem[r.IntN(len(mem))]
		o.Wait = append(append(o.Wait, dst.wrote...), dst.read...)
		src := mem[r.IntN(len(mem))]
		if src == dst || r.IntN(3) == 0 {
			v := byte(r.Uint32())
			todo = append(todo, func() { e.must(q.Submit(o, gpu.Fill(dst.b.Range(at, n), []byte{v}))) })
			for j := range n {
				dst.model[at+j] = v
			}
		} else {
			from := r.Uint64N(size - n + 1)
			o.Wait = append(o.Wait, src.wrote...)
			src.read = append(src.read, done)
			todo = append(todo, func() { e.must(q.Submit(o, gpu.Copy(dst.b.Range(at, n), src.b.Range(from, n)))) })
			copy(dst.model[at:at+n], src.model[from:from+n])
		}
		dst.wrote, dst.read = []gpu.Point{done}, nil
		all = append(all, done)
	}
	r.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	for i, f := range todo {
		f()
		if i%(ops/3) == ops/3-1 { // signal the next value after each third of the operations
			e.must(host.Signal(uint64(i/(ops/3)) + 1))
		}
	}
	e.must(gpu.WaitAll(e.ctx, all...))
	for i, m := range mem {
		if got := e.fetch(m.b); !slices.Equal(got, m.model) {
			e.Errorf("seed %d: buffer %d differs from the model", seed, i)
		}
	}
}
