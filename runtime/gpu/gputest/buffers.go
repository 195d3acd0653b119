package gputest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// memories are several kinds of memory. The host can access all of them except the first, which is
// the device's own.
var memories = []struct {
	name  string
	alloc func(e *env, size uint64) (*gpu.Buffer, error)
}{
	{"the device's", func(e *env, size uint64) (*gpu.Buffer, error) { return e.devs[0].Alloc(gpu.DeviceMem, size) }},
	{"the host's", func(e *env, size uint64) (*gpu.Buffer, error) { return e.devs[0].Alloc(gpu.HostMem, size) }},
	{"of both", func(e *env, size uint64) (*gpu.Buffer, error) { return e.devs[0].Alloc(gpu.ManagedMem, size) }},
	{"the program's", func(e *env, size uint64) (*gpu.Buffer, error) {
		// A slice of at least 64 KiB has memory pages of its own, which no other import uses.
		return e.devs[0].ImportHost(make([]byte, max(size, 64<<10))[:size], nil)
	}},
	{"of a pool", func(e *env, size uint64) (*gpu.Buffer, error) { return e.hostPool(false, size), nil }},
	{"of a portable pool", func(e *env, size uint64) (*gpu.Buffer, error) { return e.hostPool(true, size), nil }},
}

// hostPool allocates a buffer from a new pool of host memory.
func (e *env) hostPool(portable bool, size uint64) *gpu.Buffer {
	e.Helper()
	p, s := e.pool(gpu.PoolOptions{Kind: gpu.HostMem, Portable: portable}), e.sem()
	b := e.alloc(0, signal(s, 1), p, size)
	e.wait(s, 1)
	return b
}

// eachVisible runs a subtest with each kind of memory that the host can access.
func (e *env) eachVisible(run func(e *env, alloc func(size uint64) *gpu.Buffer)) {
	e.Helper()
	for _, x := range memories[1:] {
		e.sub(x.name, func(e *env) {
			run(e, func(size uint64) *gpu.Buffer {
				e.Helper()
				b, err := x.alloc(e, size)
				if errors.Is(err, driver.ErrUnsupported) {
					e.Skip("there is none")
				}
				e.must(err)
				e.Cleanup(func() { b.Close() })
				if uint64(len(b.Bytes())) != size {
					e.Fatalf("the host sees %d bytes, want %d", len(b.Bytes()), size)
				}
				return b
			})
		})
	}
}

// parts returns parts of a buffer: the whole, a tail, a head, some in the middle, and an empty one.
func parts(b *gpu.Buffer) []gpu.Range {
	n := b.Size()
	return []gpu.Range{b.All(), b.Range(9, n-9), b.Range(0, n/2), b.Range(24, 16), b.Range(n/4-3, n/2+5), b.Range(5, 1), b.Range(n, 0)}
}

var buffers = []test{
	{name: "B91 a closed buffer cannot be used", run: func(e *env) {
		b := e.buffer(64)
		e.must(b.Close())
		e.must(b.Close())
		if err := e.q(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("Fill = %v", err)
		}
	}},
	{name: "B95 a buffer is freed with its last use, once", run: func(e *env) {
		d := e.devs[0]
		host, s := e.sem(), e.sem()
		b, err := d.Alloc(gpu.DeviceMem, 1<<16)
		e.must(err)
		if st := d.Stats(); st.Buffers != 1 || st.Device.Live != 1<<16 {
			e.Errorf("%+v", st)
		}
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(b.Close())
		if st := d.Stats(); st.Buffers != 1 {
			e.Errorf("freed while it is needed: %+v", st)
		}
		e.must(host.Signal(1))
		e.wait(s, 1)
		e.until("it is freed", func() bool { return d.Stats().Buffers == 0 })
		if st := d.Stats(); st.Device != (gpu.ByteStats{Peak: 1 << 16, Allocated: 1 << 16}) || st.Host.Live != 0 {
			e.Errorf("%+v", st)
		}
	}},
	{name: "B97 a buffer of size 0", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.DeviceMem, 0)
		e.must(err)
		s := e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), b.All())))
		e.must(e.q(0).Submit(between(s, 2, s, 3), gpu.UploadCopy(b.All(), nil)))
		e.must(e.q(0).Submit(between(s, 3, s, 4), gpu.Download(nil, b.All())))
		e.wait(s, 4)
		if err := e.q(0).Submit(gpu.Order{}, gpu.Fill(b.Range(0, 1), []byte{1})); !errors.Is(err, gpu.ErrRange) {
			e.Errorf("Fill = %v", err)
		}
		e.must(b.Close())
	}},
	{name: "B97 memory of the host", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.HostMem, 256)
		e.must(err)
		defer b.Close()
		s, dev := e.sem(), e.buffer(256)
		for i := range b.Bytes() {
			b.Bytes()[i] = byte(i)
		}
		e.must(e.q(0).Submit(signal(s, 1), gpu.Copy(dev.All(), b.All())))
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(b.All(), []byte{0xaa})))
		e.wait(s, 2)
		for i, x := range e.read(dev) {
			if x != byte(i) {
				e.Fatalf("byte %d is %d", i, x)
			}
		}
		if x := b.Bytes()[255]; x != 0xaa {
			e.Errorf("the host sees %#x", x)
		}
	}},
	{name: "B97 memory of both", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.ManagedMem, 256)
		if errors.Is(err, errors.ErrUnsupported) {
			e.Skip("there is none")
		}
		e.must(err)
		defer b.Close()
		s := e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{0x55})))
		e.wait(s, 1)
		if x := b.Bytes(); len(x) != 256 || x[7] != 0x55 {
			e.Errorf("the host sees %d bytes", len(x))
		}
	}},
	{name: "B97 imported memory belongs to the program", run: func(e *env) {
		own := e.buffer(64)
		b, err := interop.ImportPointer(e.devs[0], own.Ptr()+16, 32, nil)
		e.must(err)
		s := e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{9})))
		e.wait(s, 1)
		e.must(b.Close())
		got := e.read(own)
		if got[15] != 0 || got[16] != 9 || got[47] != 9 || got[48] != 0 {
			e.Errorf("%x", got)
		}
	}},
	{name: "B97 transfers of the program's memory need no staging copy, and release it once", run: func(e *env) {
		d, mem := e.devs[0], random(5000, 1)
		freed := make(chan struct{}, 2)
		var bufs []*gpu.Buffer
		var own []byte
		for _, f := range []func(){nil, func() { freed <- struct{}{} }} {
			own = slices.Clone(mem)
			b, err := d.ImportHost(own, f)
			if errors.Is(err, driver.ErrUnsupported) {
				e.Skip("host memory cannot be imported")
			}
			e.must(err)
			bufs = append(bufs, b)
			if b.Size() != 5000 || b.Kind() != gpu.HostMem || len(b.Bytes()) != 5000 || &b.Bytes()[0] != &own[0] {
				e.Errorf("%d bytes of kind %d", b.Size(), b.Kind())
			}
			dev, s := e.buffer(5000), e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Copy(dev.All(), b.All())))
			e.same("what the device got", e.read(dev, gpu.Point{Semaphore: s, Value: 1}), mem)
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(b.Range(1, 4998), []byte{0x5a})))
			e.wait(s, 2)
			if own[0] != mem[0] || own[1] != 0x5a || own[4998] != 0x5a || own[4999] != mem[4999] {
				e.Error("the host does not see what the device wrote")
			}
		}
		// The imports count as buffers, but their bytes do not count.
		if st := d.Stats(); st.Buffers != 4 || st.Device.Live != 10_000 || st.Host.Live != 0 {
			e.Errorf("%+v", st)
		}
		for _, b := range bufs {
			for range 2 {
				e.must(b.Close())
			}
		}
		<-freed
		e.until("they are let go of", func() bool { return d.Stats().Buffers == 2 })
		if len(freed) > 0 {
			e.Error("the function was called twice")
		}
		again, err := d.ImportHost(own, nil) // it is no longer registered
		e.must(err)
		e.must(again.Close())
	}},
	{name: "B97 the program's memory stays imported while it is used", run: func(e *env) {
		d, mem := e.devs[0], make([]byte, 256)
		freed := make(chan struct{}, 2)
		b, err := d.ImportHost(mem, func() { freed <- struct{}{} })
		if errors.Is(err, driver.ErrUnsupported) {
			e.Skip("host memory cannot be imported")
		}
		e.must(err)
		host, s := e.sem(), e.sem()
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Fill(b.All(), []byte{1})))
		e.must(b.Close())
		if st := d.Stats(); st.Buffers != 1 || len(freed) > 0 {
			e.Errorf("let go of while it is needed: %+v", st)
		}
		e.must(host.Signal(1))
		e.wait(s, 1)
		<-freed
		e.same("the memory", mem, bytes.Repeat([]byte{1}, 256))
		left, err := d.ImportHost(mem, func() { freed <- struct{}{} })
		e.must(err)
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Fill(left.All(), []byte{2})))
		e.must(d.Close()) // Close calls left's function when the fill has ended
		<-freed
		e.same("the memory", mem, bytes.Repeat([]byte{2}, 256))
		e.must(left.Close())
		if len(freed) > 0 {
			e.Error("the function was called twice")
		}
	}},
	{name: "B97 imports of nothing", run: func(e *env) {
		freed := make(chan struct{}, 1)
		for _, mem := range [][]byte{nil, {}} {
			b, err := e.devs[0].ImportHost(mem, func() { freed <- struct{}{} })
			e.must(err)
			s := e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{1})))
			e.wait(s, 1)
			if b.Size() != 0 || b.Bytes() != nil {
				e.Errorf("%d bytes", b.Size())
			}
			e.must(b.Close())
			e.settled(e.devs[0])
			<-freed
		}
	}},
	{name: "B95 the lender of memory is told once that it is no longer used", run: func(e *env) {
		d, own, host, s := e.devs[0], e.buffer(64), e.sem(), e.sem()
		freed := make(chan struct{}, 2)
		b, err := interop.ImportPointer(d, own.Ptr(), 64, func() { freed <- struct{}{} })
		e.must(err)
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Fill(b.All(), []byte{3})))
		e.must(b.Close())
		e.must(host.Signal(1))
		e.wait(s, 1)
		<-freed
		e.holds(own, 3)
		left, err := interop.ImportPointer(d, own.Ptr(), 64, func() { freed <- struct{}{} })
		e.must(err)
		if left.Kind() != gpu.DeviceMem || left.Bytes() != nil || left.Ptr() != own.Ptr() || left.Device() != d {
			e.Error("it is another")
		}
		e.must(d.Close())
		<-freed
		e.must(left.Close())
		if len(freed) > 0 {
			e.Error("the function was called twice")
		}
	}},
	{name: "B97 a closed buffer of size 0 is no longer in use", run: func(e *env) {
		for _, kind := range []driver.MemKind{gpu.DeviceMem, gpu.HostMem} {
			b, err := e.devs[0].Alloc(kind, 0)
			e.must(err)
			s := e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Upload(b.All(), nil)))
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.ReadFrom(b.All(), &memory{}, 5)))
			e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.WriteTo(&memory{}, 5, b.All())))
			e.wait(s, 3)
			if b.Kind() != kind || b.Bytes() != nil {
				e.Errorf("kind %d", b.Kind())
			}
			e.must(b.Close())
			e.until("it is freed", func() bool { return e.devs[0].Stats().Buffers == 0 })
		}
	}},
	{name: "B97 memory of every kind, of all sizes", run: func(e *env) {
		d := e.devs[0]
		for _, kind := range []gpu.MemKind{gpu.DeviceMem, gpu.HostMem, gpu.ManagedMem} {
			for _, n := range []uint64{1, 3, 256, 4097, 1<<20 + 1} {
				b, err := d.Alloc(kind, n)
				if kind == gpu.ManagedMem && errors.Is(err, driver.ErrUnsupported) {
					e.Log("there is no memory of both")
					break
				}
				e.must(err)
				visible := n
				if kind == gpu.DeviceMem {
					visible = 0
				}
				if b.Size() != n || b.Kind() != kind || b.Device() != d || b.Ptr() == 0 || uint64(len(b.Bytes())) != visible {
					e.Errorf("%d bytes of kind %d at %#x, of which the host sees %d; want %d of %d", b.Size(), b.Kind(), b.Ptr(), len(b.Bytes()), n, kind)
				}
				s := e.sem()
				e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{0x5a})))
				e.holds(b, 0x5a, gpu.Point{Semaphore: s, Value: 1})
				e.must(b.Close())
			}
		}
		e.until("all is freed", func() bool { return d.Stats().Buffers == 0 })
	}},
	{name: "B97 the device reads the host's writes, whole and in part", options: small, run: func(e *env) {
		e.eachVisible(func(e *env, alloc func(size uint64) *gpu.Buffer) {
			const n = 2*4096 + 100
			b, dev, host, s, v := alloc(n), e.buffer(n), e.sem(), e.sems(3), uint64(0)
			want := make([]byte, n)
			clear(b.Bytes())
			for _, all := range [][]byte{random(n, 1), pattern([]byte{0xa1, 0xb2, 0xc3, 0xd4}, n), make([]byte, n)} {
				for _, r := range parts(b) {
					v++
					got, file := make([]byte, r.Size), &memory{data: make([]byte, n)}
					e.must(e.q(0).Submit(between(host, v, s[0], v), gpu.Copy(dev.Range(r.Offset, r.Size), r)))
					e.must(e.q(1).Submit(between(host, v, s[1], v), gpu.Download(got, r)))
					e.must(e.q(2).Submit(between(host, v, s[2], v), gpu.WriteTo(file, int64(r.Offset), r)))
					data := all[:r.Size]
					copy(b.Bytes()[r.Offset:], data)
					copy(want[r.Offset:], data)
					e.must(host.Signal(v))
					for _, s := range s {
						e.wait(s, v)
					}
					e.same("what was copied", e.read(dev), want)
					e.same("what was downloaded", got, data)
					e.same("the file", file.data[r.Offset:][:r.Size], data)
					e.same("what the host sees", b.Bytes(), want)
				}
			}
		})
	}},
	{name: "B97 the host reads the device's writes, whole and in part", options: small, run: func(e *env) {
		e.eachVisible(func(e *env, alloc func(size uint64) *gpu.Buffer) {
			const n = 2*4096 + 100
			b, dev, host, s, v := alloc(n), e.buffer(n), e.sem(), e.sem(), uint64(0)
			data := random(n, 2)
			e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(dev.All(), data)))
			e.wait(s, 1)
			fill := func(o gpu.Order, r gpu.Range, p []byte) []byte {
				if w := uint64(len(p)); r.Offset%w+r.Size%w != 0 {
					p = p[:1]
				}
				e.must(e.q(0).Submit(o, gpu.Fill(r, p)))
				return pattern(p, r.Size)
			}
			for name, write := range map[string]func(o gpu.Order, r gpu.Range) []byte{
				"zeros":             func(o gpu.Order, r gpu.Range) []byte { return fill(o, r, []byte{0}) },
				"a fill of 1 byte":  func(o gpu.Order, r gpu.Range) []byte { return fill(o, r, []byte{0x5a}) },
				"a fill of 2 bytes": func(o gpu.Order, r gpu.Range) []byte { return fill(o, r, []byte{1, 2}) },
				"a fill of 4 bytes": func(o gpu.Order, r gpu.Range) []byte { return fill(o, r, []byte{1, 2, 3, 4}) },
				"a fill of 8 bytes": func(o gpu.Order, r gpu.Range) []byte { return fill(o, r, []byte{1, 2, 3, 4, 5, 6, 7, 8}) },
				"a copy": func(o gpu.Order, r gpu.Range) []byte {
					e.must(e.q(1).Submit(o, gpu.Copy(r, dev.Range(0, r.Size))))
					return data
				},
				"an update": func(o gpu.Order, r gpu.Range) []byte {
					e.must(e.q(2).Submit(o, gpu.UploadCopy(r, data[:r.Size])))
					return data
				},
				"an upload": func(o gpu.Order, r gpu.Range) []byte {
					e.must(e.q(3).Submit(o, gpu.Upload(r, data[:r.Size])))
					return data
				},
				"a read from a file": func(o gpu.Order, r gpu.Range) []byte {
					e.must(e.q(0).Submit(o, gpu.ReadFrom(r, bytes.NewReader(data), 0)))
					return data
				},
				"a part of the file's": func(o gpu.Order, r gpu.Range) []byte {
					e.must(e.q(1).Submit(o, gpu.ReadFrom(r, bytes.NewReader(append([]byte{1, 2, 3}, data...)), 3)))
					return data
				},
			} {
				for _, r := range parts(b) {
					v++
					wrote := write(between(host, v, s, v+1), r)[:r.Size]
					want := pattern([]byte{0xee}, n)
					copy(b.Bytes(), want)
					copy(want[r.Offset:], wrote)
					e.must(host.Signal(v))
					e.wait(s, v+1)
					e.same(name, b.Bytes(), want)
				}
			}
		})
	}},
	{name: "B97 B102 recordings use memory that the host can access, recorded and bound", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			e.eachVisible(func(e *env, alloc func(size uint64) *gpu.Buffer) {
				const n = 96
				fixed, dev, c := alloc(n), e.buffer(2*n), e.commands(m)
				in, out := c.binding(), c.binding()
				c.copy(dev.Range(0, n), in.Range(0, n))
				c.copy(dev.Range(n, n), fixed.All())
				c.fill(out.Range(0, n), []byte{1, 2})
				c.barrier()
				c.update(out.Range(5, 3), []byte{7, 8, 9})
				c.copy(out.Range(33, 40), in.Range(20, 40))
				c.fill(fixed.Range(8, 16), []byte{1, 2, 3, 4, 5, 6, 7, 8})
				c.update(fixed.Range(31, 2), []byte{5, 6})
				c.copy(fixed.Range(64, 20), in.Range(1, 20))
				c.end()
				x, y, near := alloc(n), alloc(n), e.buffer(n)
				host, s, v := e.sem(), e.sem(), uint64(0)
				// Both ranges are in memory made by alloc, then one of them is in the device's own
				// memory, then both are in memory made by alloc again.
				for _, bound := range [][2]*gpu.Buffer{{x, y}, {y, x}, {x, near}, {near, y}, {x, y}} {
					v++
					input, own := random(n, v), random(n, 100+v)
					e.must(e.q(int(v)).Submit(between(host, 2*v, s, v), gpu.Execute(c.CommandBuffer, bound[0].All(), bound[1].All())))
					if bound[0] == near {
						e.must(e.q(0).Submit(signal(host, 2*v-1), gpu.UploadCopy(near.All(), input)))
						e.wait(host, 2*v-1)
					} else {
						copy(bound[0].Bytes(), input)
					}
					copy(fixed.Bytes(), own)
					e.must(host.Signal(2 * v))
					e.wait(s, v)
					e.same("what the device read", e.read(dev), slices.Concat(input, own))
					want := pattern([]byte{1, 2}, n)
					copy(want[5:], []byte{7, 8, 9})
					copy(want[33:], input[20:60])
					got := bound[1].Bytes()
					if bound[1] == near {
						got = e.read(near)
					}
					e.same("what was bound", got, want)
					copy(own[8:], []byte{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8})
					copy(own[31:], []byte{5, 6})
					copy(own[64:], input[1:21])
					e.same("what was not", fixed.Bytes(), own)
				}
			})
		})
	}},
	{name: "B97 B107 kernels use memory that the host can access", kernels: true, run: func(e *env) {
		const n = 500
		index, words := e.kernel(kernels.Basic, "index"), e.kernel(kernels.Basic, "words")
		check := func(e *env, b *gpu.Buffer, submit func(o gpu.Order) error) {
			host, s := e.sem(), e.sem()
			e.must(submit(between(host, 1, s, 1)))
			in := b.Bytes()[4*n:]
			data := random(4*n, 7)
			copy(in, data)
			clear(b.Bytes()[:4*n])
			e.must(host.Signal(1))
			e.wait(s, 1)
			for i := range n {
				if w := binary.LittleEndian.Uint32(b.Bytes()[4*i:]); w != uint32(9+4*i) {
					e.Fatalf("word %d is %d", i, w)
				}
			}
			e.same("what the host wrote", in, data)
		}
		e.eachVisible(func(e *env, alloc func(size uint64) *gpu.Buffer) {
			b, dev := alloc(8*n), e.buffer(4*n)
			check(e, b, func(o gpu.Order) error {
				s := e.sem()
				return errors.Join(
					e.q(0).Submit(gpu.Order{Wait: o.Wait, Signal: points(s, 1)}, indexOf(index, n, 9, 4, b.Range(0, 4*n))),
					e.q(1).Submit(gpu.Order{Wait: points(s, 1), Signal: o.Signal}, wordsOf(words, n, dev.All(), b.Range(4*n, 4*n))))
			})
			e.same("what the device read", e.read(dev), b.Bytes()[4*n:])
			e.eachMode(func(e *env, m gpu.Mode) {
				to, c := e.buffer(4*n), e.commands(m)
				x := c.binding()
				c.add(indexOf(index, n, 9, 4, x.Range(0, 4*n)))
				c.add(wordsOf(words, n, to.All(), b.Range(4*n, 4*n)))
				c.end()
				check(e, b, func(o gpu.Order) error { return e.q(2).Submit(o, gpu.Execute(c.CommandBuffer, b.All())) })
				e.same("what the device read", e.read(to), b.Bytes()[4*n:])
			})
		})
	}},
	{name: "B97 copies between memories of all kinds", run: func(e *env) {
		const size = 256
		var all []*gpu.Buffer
		var names []string
		var want [][]byte
		for _, x := range memories {
			b, err := x.alloc(e, size)
			if errors.Is(err, driver.ErrUnsupported) {
				e.Logf("there is no memory that is %s", x.name)
				continue
			}
			e.must(err)
			e.Cleanup(func() { b.Close() })
			all, names, want = append(all, b), append(names, x.name), append(want, nil)
		}
		// The function copies calls do for every pair of buffers, also for a buffer and itself. It
		// makes the same copies in the slice want.
		copies := func(do func(dst, src gpu.Range)) {
			for i, src := range all {
				for j, dst := range all {
					from, to, n := uint64(i+7*j), uint64(130+9*i+j), uint64(3+i*j)
					do(dst.Range(to, n), src.Range(from, n))
					copy(want[j][to:to+n], want[i][from:from+n])
				}
			}
		}
		begin := func() {
			s := e.sems(len(all))
			for i, b := range all {
				want[i] = random(size, uint64(i))
				e.must(e.q(i).Submit(signal(s[i], 1), gpu.UploadCopy(b.All(), want[i])))
				e.wait(s[i], 1)
			}
		}
		check := func(e *env) {
			for i, b := range all {
				e.same(names[i], e.read(b), want[i])
				if b.Kind() != gpu.DeviceMem {
					e.same("what the host sees", b.Bytes(), want[i])
				}
			}
		}
		begin()
		s, v := e.sem(), uint64(0)
		copies(func(dst, src gpu.Range) {
			e.must(e.q(int(v)).Submit(between(s, v, s, v+1), gpu.Copy(dst, src)))
			v++
		})
		e.wait(s, v)
		check(e)
		e.eachMode(func(e *env, m gpu.Mode) {
			begin()
			c := e.commands(m)
			copies(func(dst, src gpu.Range) {
				c.copy(dst, src)
				c.barrier()
			})
			c.end()
			c.execute(1)
			check(e)
		})
	}},
}
