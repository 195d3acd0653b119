package gputest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// An origin makes one kind of memory. The function make returns nil if the device d has no memory
// of this kind.
type origin struct {
	name string
	make func(e *env, d *gpu.Device, n uint64) *gpu.Buffer
}

// fromPool allocates n bytes from the pool p of the device d, and waits for the allocation. If p is
// nil, it allocates from the current pool of d.
func (e *env) fromPool(d *gpu.Device, p *gpu.Pool, n uint64) *gpu.Buffer {
	e.Helper()
	s := e.sem()
	var b *gpu.Buffer
	err := d.Queue(0).Submit(signal(s, 1), gpu.Alloc(&b, p, n))
	e.must(err)
	e.wait(s, 1)
	e.Cleanup(func() { b.Close() })
	return b
}

// newPoolOf makes a pool. It returns nil if the driver does not support the options.
func (e *env) newPoolOf(d *gpu.Device, o gpu.PoolOptions) *gpu.Pool {
	e.Helper()
	p, err := d.NewPool(o)
	if errors.Is(err, driver.ErrUnsupported) {
		return nil
	}
	e.must(err)
	e.Cleanup(func() { p.Close() })
	return p
}

func (e *env) allocOn(d *gpu.Device, kind gpu.MemKind, n uint64) *gpu.Buffer {
	e.Helper()
	b, err := d.Alloc(kind, n)
	if errors.Is(err, driver.ErrUnsupported) {
		return nil
	}
	e.must(err)
	e.Cleanup(func() { b.Close() })
	return b
}

func (e *env) caps(index int) (c driver.Caps) {
	e.Helper()
	locked(func() {
		d, err := e.h.Driver.Open(index)
		if err != nil {
			e.Error(err)
			return
		}
		c = d.Caps()
		if err := errors.Join(d.Bind(), d.Close()); err != nil {
			e.Error(err)
		}
	})
	return c
}

// origins make memory of many kinds.
var origins = []origin{
	{"default pool", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer { return e.fromPool(d, nil, n) }},
	{"device", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer { return e.allocOn(d, gpu.DeviceMem, n) }},
	{"pool", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer {
		return e.fromPool(d, e.newPoolOf(d, gpu.PoolOptions{}), n)
	}},
	{"portable pool", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer {
		return e.fromPool(d, e.newPoolOf(d, gpu.PoolOptions{Portable: true}), n)
	}},
	{"import of pool memory", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer {
		b, err := interop.ImportPointer(d, e.fromPool(d, nil, n).Ptr(), n, nil)
		e.must(err)
		e.Cleanup(func() { b.Close() })
		return b
	}},
	{"shareable", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer { return e.allocOn(d, gpu.ShareableMem, n) }},
	{"import of a file", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer {
		b := e.allocOn(d, gpu.ShareableMem, n)
		if b == nil {
			return nil
		}
		b = e.viaFile(b, d)
		e.Cleanup(func() { b.Close() })
		return b
	}},
	{"host", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer { return e.allocOn(d, gpu.HostMem, n) }},
	{"managed", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer { return e.allocOn(d, gpu.ManagedMem, n) }},
	{"registered", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer {
		b, err := d.ImportHost(make([]byte, n), nil)
		if errors.Is(err, driver.ErrUnsupported) {
			return nil
		}
		e.must(err)
		e.Cleanup(func() { b.Close() })
		return b
	}},
	{"host pool", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer {
		p := e.newPoolOf(d, gpu.PoolOptions{Kind: gpu.HostMem})
		if p == nil {
			return nil
		}
		return e.fromPool(d, p, n)
	}},
	{"managed pool", func(e *env, d *gpu.Device, n uint64) *gpu.Buffer {
		p := e.newPoolOf(d, gpu.PoolOptions{Kind: gpu.ManagedMem})
		if p == nil {
			return nil
		}
		return e.fromPool(d, p, n)
	}},
}

// far reports whether another device may lack access to memory of this origin even if it has access
// to the memory's device. Only a queue of the memory's device can copy between such memory and a
// native pool of host memory.
func (o origin) far() bool {
	switch o.name {
	case "default pool", "pool", "portable pool", "import of pool memory", "shareable", "import of a file":
		return true
	}
	return false
}

// ungroupedAndGrouped runs a test on two devices without a group, and then on two devices of a
// group. A group does not give kernels access to the native pools of other devices.
func (e *env) ungroupedAndGrouped(run func(e *env)) {
	e.Helper()
	e.sub("no group", run)
	e.sub("group", func(e *env) {
		e.devs = e.group(gpu.Options{Queues: 4}).Devices()[:2]
		run(e)
	})
}

// copied uploads data to src, calls copy to copy src to dst, and checks dst.
func (e *env) copied(what string, dst, src *gpu.Buffer, seed uint64, copy func(o gpu.Order) error) {
	e.Helper()
	data, s := random(int(src.Size()), seed), e.sem()
	e.must(src.Device().Queue(0).Submit(signal(s, 1), gpu.Upload(src.All(), data)))
	if err := copy(between(s, 1, s, 2)); err != nil {
		e.Fatalf("%s: %v", what, err)
	}
	if err := s.Wait(e.ctx, 2); err != nil {
		e.Fatalf("%s: %v", what, err)
	}
	e.same(what, e.fetch(dst), data)
}

// worksOn returns functions that submit work to the first device, d. The work writes sevens to b by
// fills and kernels, not by copies.
func (e *env) worksOn(d *gpu.Device, b *gpu.Buffer) map[string]func(o gpu.Order) error {
	n := b.Size()
	works := map[string]func(o gpu.Order) error{
		"fill": func(o gpu.Order) error { return d.Queue(0).Submit(o, gpu.Fill(b.All(), []byte{7})) },
		"recorded fill": func(o gpu.Order) error {
			r := e.commands(gpu.AutoMode)
			if _, err := r.Add(gpu.Fill(b.All(), []byte{7})); err != nil {
				return err
			}
			r.end()
			return d.Queue(0).Submit(o, gpu.Execute(r.CommandBuffer))
		},
		"fill of what is bound": func(o gpu.Order) error {
			r := e.commands(gpu.AutoMode)
			r.fill(r.binding().Range(0, n), []byte{7})
			r.end()
			return d.Queue(0).Submit(o, gpu.Execute(r.CommandBuffer, b.All()))
		},
		"fill of what is bound further down": func(o gpu.Order) error {
			r, outer := e.commands(gpu.AutoMode), e.commands(gpu.AutoMode)
			r.fill(r.binding().Range(0, n), []byte{7})
			r.end()
			if _, err := outer.Add(gpu.Execute(r.CommandBuffer, outer.binding().Range(0, n))); err != nil {
				return err
			}
			outer.end()
			return d.Queue(0).Submit(o, gpu.Execute(outer.CommandBuffer, b.All()))
		},
	}
	if e.h.Kernels {
		k := e.kernel(kernels.Basic, "index")
		works["kernel"] = func(o gpu.Order) error { return d.Queue(0).Submit(o, indexOf(k, n/4, 7, 0, b.All())) }
		works["recorded kernel"] = func(o gpu.Order) error {
			r := e.commands(gpu.AutoMode)
			if _, err := r.Add(indexOf(k, n/4, 7, 0, b.All())); err != nil {
				return err
			}
			r.end()
			return d.Queue(0).Submit(o, gpu.Execute(r.CommandBuffer))
		}
	}
	return works
}

// peers are tests in which a device uses memory of another device: by copies, which need no access
// to the other device's pool, and by fills and kernels, which need access.
var peers = []test{
	{name: "B116 copies between the default pools of two devices without access to each other's", devices: 2, run: func(e *env) {
		e.ungroupedAndGrouped(func(e *env) {
			const n = 3000
			seed := uint64(0)
			e.pairs(func(from, to *gpu.Device) {
				for _, by := range []*gpu.Device{from, to} { // the device that copies
					var src *gpu.Buffer
					err := from.Queue(0).Submit(gpu.Order{}, gpu.Alloc(&src, nil, n))
					e.must(err)
					var dst *gpu.Buffer
					err = to.Queue(0).Submit(gpu.Order{}, gpu.Alloc(&dst, nil, n))
					e.must(err)
					what := fmt.Sprintf("from device %d to %d by %d", from.Info().Index, to.Info().Index, by.Info().Index)
					for _, parked := range []bool{false, true} {
						host, order := e.sem(), e.sem()
						if !parked {
							e.must(host.Signal(1))
						}
						seed++
						e.must(to.Queue(0).Submit(signal(order, 1), gpu.Fill(dst.All(), []byte{0})))
						e.copied(what, dst, src, seed, func(o gpu.Order) error {
							o.Wait = append(o.Wait, gpu.Point{Semaphore: host, Value: 1}, gpu.Point{Semaphore: order, Value: 1})
							err := by.Queue(1).Submit(o, gpu.Copy(dst.All(), src.All()))
							if parked {
								e.must(host.Signal(1))
							}
							return err
						})
					}
					e.must(src.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(src)))
					e.must(dst.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(dst)))
				}
			})
		})
	}},
	{name: "B116 recorded copies between the default pools of two devices", devices: 2, run: func(e *env) {
		e.ungroupedAndGrouped(func(e *env) {
			e.eachMode(func(e *env, m gpu.Mode) {
				const n = 3000
				e.pairs(func(d, other *gpu.Device) {
					c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
					e.must(err)
					defer c.Close()
					r := &recorder{c, e}
					mine, there := e.fromPool(d, nil, n), e.fromPool(other, nil, n)
					var late [2]*gpu.Buffer // the memory that each execution binds
					bound := [2]*gpu.Buffer{r.binding(), r.binding()}
					// The commands copy data to the other device and back, between recorded and
					// bound memory. Other commands come before, between and after the copies.
					scratch := e.fromPool(d, nil, n)
					r.fill(scratch.All(), []byte{1})
					r.fill(mine.Range(n/2, n/2), []byte{2})
					r.barrier()
					a := r.copy(there.Range(0, n), mine.All())
					b := r.copy(scratch.Range(0, n), there.All(), a)
					r.barrier()
					r.copy(bound[0].Range(0, n), scratch.All(), b)
					u := r.update(there.Range(0, 100), bytes.Repeat([]byte{3}, 100))
					r.fill(scratch.Range(0, n/2), []byte{4}, u)
					r.barrier()
					r.copy(mine.Range(0, 50), there.Range(75, 50))
					r.copy(bound[1].Range(50, 50), bound[0].Range(0, 50))
					r.copy(scratch.Range(0, n), bound[0].Range(0, n))
					r.end()
					for round, where := range [][2]*gpu.Device{{d, d}, {other, d}, {d, other}, {other, other}, {d, d}} {
						for i, x := range where {
							late[i] = e.fromPool(x, nil, n)
							s := e.sem()
							e.must(x.Queue(0).Submit(signal(s, 1), gpu.Fill(late[i].All(), []byte{0})))
							e.wait(s, 1)
						}
						data := random(n, uint64(round))
						e.store(mine, data)
						s := e.sem()
						e.must(d.Queue(round).Submit(signal(s, 1), gpu.Execute(c, late[0].Range(0, n), late[1].Range(0, n))))
						e.wait(s, 1)
						came := append(bytes.Clone(data[:n/2]), bytes.Repeat([]byte{2}, n/2)...)
						e.same("what is bound first", e.fetch(late[0]), came)
						e.same("what came back", e.fetch(scratch), came)
						e.same("what is bound second", e.fetch(late[1])[50:100], came[:50])
						e.same("the other device's", e.fetch(there), append(bytes.Repeat([]byte{3}, 100), came[100:]...))
						e.same("the first bytes", e.fetch(mine)[:50], append(bytes.Repeat([]byte{3}, 25), came[100:125]...))
						e.settled(d)
					}
				})
			})
		})
	}},
	{name: "B116 a recording is executed with another device's memory, and then with the device's own again", devices: 2, kernels: true, run: func(e *env) {
		const n = 64 // words
		e.eachMode(func(e *env, m gpu.Mode) {
			d, other := e.devs[0], e.devs[1]
			words := e.kernel(kernels.Basic, "words")
			c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
			e.must(err)
			defer c.Close()
			r := &recorder{c, e}
			to, from, copied := r.binding(), r.binding(), r.binding()
			r.add(wordsOf(words, n, to.Range(0, 4*n), from.Range(0, 4*n)))
			r.barrier()
			r.copy(copied.Range(0, 4*n), to.Range(0, 4*n))
			r.end()
			mem := func(x *gpu.Device) gpu.Range { return e.allocOn(x, gpu.DeviceMem, 4*n).All() }
			first, second, src, out := mem(d), mem(d), mem(d), mem(d)
			for round, binds := range [][2]gpu.Range{{first, out}, {second, mem(other)}, {second, out}, {first, out}, {first, mem(other)}, {second, out}} {
				data, s := random(4*n, uint64(round)), e.sem()
				e.store(src.Buffer, data)
				e.store(binds[0].Buffer, make([]byte, 4*n))
				e.must(d.Queue(0).Submit(signal(s, 1), gpu.Execute(c, binds[0], src, binds[1])))
				e.wait(s, 1)
				what := fmt.Sprintf("execution %d", round)
				e.same(what+", what the kernel wrote", e.fetch(binds[0].Buffer), data)
				e.same(what+", what was copied", e.fetch(binds[1].Buffer), data)
			}
		})
	}},
	{name: "B130 all devices of the driver use a pool of managed memory", devices: 2, run: func(e *env) {
		p := e.newPoolOf(e.devs[0], gpu.PoolOptions{Kind: gpu.ManagedMem})
		if p == nil {
			e.Skip("there is none")
		}
		s, other := e.sem(), e.devs[1]
		b := e.alloc(0, signal(s, 1), p, 64)
		e.must(other.Queue(0).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{9})))
		e.holds(b, 9, gpu.Point{Semaphore: s, Value: 2})
		e.must(p.Access(other, true))
		if err := p.Access(other, false); !errors.Is(err, driver.ErrUnsupported) {
			e.Errorf("ending the access: %v", err)
		}
		e.must(b.Device().Queue(0).Submit(signal(s, 3), gpu.Free(b)))
		e.wait(s, 3)
	}},
	{name: "B116 copies between memory of any origin on two devices, and with the host", devices: 2, run: func(e *env) {
		const n = 1000
		seed := uint64(100)
		caps := e.caps(0)
		hostPools := caps.HostPools && caps.Peers
		for _, a := range origins {
			e.sub("from "+a.name, func(e *env) {
				for _, b := range origins {
					e.pairs(func(from, to *gpu.Device) {
						src, dst := a.make(e, from, n), b.make(e, to, n)
						if src == nil || dst == nil {
							return
						}
						for _, by := range []*gpu.Device{from, to} {
							seed++
							what := fmt.Sprintf("%s of device %d to %s of device %d by device %d", a.name, from.Info().Index, b.name, to.Info().Index, by.Info().Index)
							if hostPools && (a.name == "host pool" && by == from && b.far() || b.name == "host pool" && by == to && a.far()) {
								s := e.sem()
								e.must(by.Queue(0).Submit(signal(s, 1), gpu.Copy(dst.All(), src.All())))
								e.failed(s, 1, driver.ErrUnsupported)
								continue
							}
							e.copied(what, dst, src, seed, func(o gpu.Order) error { return by.Queue(0).Submit(o, gpu.Copy(dst.All(), src.All())) })
						}
					})
				}
			})
		}
		for _, a := range origins {
			e.sub("with the host, "+a.name, func(e *env) {
				e.pairs(func(d, by *gpu.Device) {
					b := a.make(e, d, n)
					if b == nil {
						return
					}
					s, data, got, all := e.sem(), random(n, seed), make([]byte, n), make([]byte, n)
					e.must(by.Queue(1).Submit(signal(s, 1), gpu.UploadCopy(b.All(), data)))
					e.must(by.Queue(2).Submit(between(s, 1, s, 2), gpu.Download(got, b.All())))
					e.wait(s, 2)
					e.same("by the other device's queue", got, data)
					e.must(d.Queue(1).Submit(between(s, 2, s, 3), gpu.Download(all, b.All())))
					e.wait(s, 3)
					e.same("by the device's own queue", all, data)
				})
			})
		}
	}},
	{name: "B130 a fill or a kernel on another device's pool memory is refused until the pool gives access", devices: 2, run: func(e *env) {
		const n = 256
		d, other := e.devs[0], e.devs[1]
		if !e.caps(1).Pools {
			e.Skip("needs pools of the driver's")
		}
		p := e.newPoolOf(other, gpu.PoolOptions{})
		def, err := other.DefaultPool()
		e.must(err)
		for _, p := range []*gpu.Pool{def, p} {
			b := e.fromPool(other, p, n)
			s := e.sem()
			e.must(other.Queue(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
			e.wait(s, 1)
			works := e.worksOn(d, b)
			refused := func() {
				e.Helper()
				for what, work := range works {
					if err := work(gpu.Order{}); !errors.Is(err, gpu.ErrArgument) {
						e.Errorf("%s: %v", what, err)
					}
				}
			}
			refused()
			e.same("what nobody was let write", e.fetch(b), bytes.Repeat([]byte{1}, n))
			if err := p.Access(d, true); errors.Is(err, driver.ErrUnsupported) {
				continue // d cannot access memory of the other device
			} else {
				e.must(err)
			}
			for what, work := range works {
				s := e.sem()
				e.must(other.Queue(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
				e.must(work(between(s, 1, s, 2)))
				if got := e.fetch(b, points(s, 2)...); got[0] != 7 || got[n-4] != 7 {
					e.Errorf("%s: left %v", what, got)
				}
			}
			e.settled(d)
			if err := p.Access(d, false); errors.Is(err, driver.ErrUnsupported) {
				continue // the driver cannot end the access
			} else {
				e.must(err)
			}
			refused()
		}
	}},
	{name: "B191 another device can only copy shareable memory", devices: 2, run: func(e *env) {
		e.ungroupedAndGrouped(func(e *env) {
			d, other := e.devs[0], e.devs[1]
			own := e.allocOn(other, gpu.ShareableMem, 256)
			if own == nil {
				e.Skip("there is none")
			}
			for what, b := range map[string]*gpu.Buffer{"its own": own, "imported": e.viaFile(own, other)} {
				s := e.sem()
				e.must(other.Queue(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
				e.wait(s, 1)
				for doing, work := range e.worksOn(d, b) {
					if err := work(gpu.Order{}); !errors.Is(err, gpu.ErrArgument) {
						e.Errorf("%s, %s: %v", what, doing, err)
					}
				}
				e.must(d.Queue(0).Submit(between(s, 1, s, 2), gpu.UploadCopy(b.Range(8, 4), []byte{2, 2, 2, 2})))
				got := make([]byte, 16)
				e.must(d.Queue(1).Submit(between(s, 2, s, 3), gpu.Download(got, b.Range(0, 16))))
				e.wait(s, 3)
				e.same(what, got, []byte{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1})
				if b != own {
					e.must(b.Close())
				}
			}
			e.settled(d)
		})
	}},
}
