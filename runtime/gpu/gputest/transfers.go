package gputest

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/puregpu/puregpu/runtime/gpu"
)

var transfers = []test{
	{name: "B99 fills of all widths, offsets and sizes change no neighbours", run: func(e *env) {
		b, s := e.buffer(96), e.sem()
		v := uint64(0)
		pattern := []byte{0xa1, 0xb2, 0xc3, 0xd4}
		for _, width := range []uint64{1, 2, 4, 8} {
			p := slices.Concat(pattern, pattern)[:width]
			for _, offset := range []uint64{0, 1, 2, 3, 4, 8, 12} {
				for _, n := range []uint64{0, 1, 2, 3, 5, 8} {
					if offset%width != 0 || offset+n*width > 96 {
						continue
					}
					e.must(e.q(0).Submit(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, gpu.Fill(b.All(), []byte{0xee})))
					e.must(e.q(1).Submit(between(s, v+1, s, v+2), gpu.Fill(b.Range(offset, n*width), p)))
					v += 2
					want := slices.Concat(bytes.Repeat([]byte{0xee}, int(offset)), bytes.Repeat(p, int(n)))
					want = append(want, bytes.Repeat([]byte{0xee}, 96-len(want))...)
					if got := e.read(b, gpu.Point{Semaphore: s, Value: v}); !bytes.Equal(got, want) {
						e.Fatalf("%d × %d bytes at %d:\n got %x\nwant %x", n, width, offset, got, want)
					}
				}
			}
		}
	}},
	{name: "B100 copies, updates and downloads of all offsets and sizes", run: func(e *env) {
		const size = 4096
		a, b, s := e.buffer(size), e.buffer(size), e.sem()
		r := rand.New(rand.NewPCG(1, 1))
		model, v := make([]byte, size), uint64(0)
		modelB := make([]byte, size)
		for range 150 {
			n := r.Uint64N(64) + 1
			if r.IntN(5) == 0 {
				n = r.Uint64N(size-64) + 1
			}
			at, to := r.Uint64N(size-n+1), r.Uint64N(size-n+1)
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			got := make([]byte, n)
			e.must(e.q(0).Submit(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, gpu.UploadCopy(a.Range(at, n), data)))
			e.must(e.q(1).Submit(between(s, v+1, s, v+2), gpu.Copy(b.Range(to, n), a.Range(at, n))))
			e.must(e.q(2).Submit(between(s, v+2, s, v+3), gpu.Download(got, b.Range(to, n))))
			v += 3
			copy(model[at:], data)
			copy(modelB[to:], data)
			e.wait(s, v)
			if !bytes.Equal(got, data) {
				e.Fatalf("%d bytes from %d to %d:\n got %x\nwant %x", n, at, to, got, data)
			}
		}
		if !bytes.Equal(e.read(a), model) || !bytes.Equal(e.read(b), modelB) {
			e.Error("the buffers differ from what they should be")
		}
	}},
	{name: "B100 large updates and downloads", run: func(e *env) {
		for _, n := range []uint64{64<<10 - 1, 64<<10 + 1, 1 << 20, 5<<20 + 3} {
			b, s := e.buffer(n), e.sem()
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(i * 7 >> 3)
			}
			e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(b.All(), data)))
			if got := e.read(b, gpu.Point{Semaphore: s, Value: 1}); !bytes.Equal(got, data) {
				e.Errorf("%d bytes came back changed", n)
			}
		}
	}},
	{name: "B101 fill, copy, fill", run: func(e *env) {
		a, b, s := e.buffer(4096), e.buffer(4096), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(a.All(), []byte{1})))
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.Fill(a.All(), []byte{2})))
		e.wait(s, 3)
		e.holds(a, 2)
		e.holds(b, 1)
	}},
	{name: "B53 a download is complete at its signal, not before", run: func(e *env) {
		b, host, s := e.buffer(64), e.sem(), e.sem()
		data := bytes.Repeat([]byte{0x11}, 64)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{0x22})))
		e.must(e.q(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: host, Value: 1}}, Signal: points(s, 2)}, gpu.Download(data, b.All())))
		e.wait(s, 1)
		if data[0] != 0x11 {
			e.Error("written before it was to run")
		}
		e.must(host.Signal(1))
		e.wait(s, 2)
		if data[0] != 0x22 || data[63] != 0x22 {
			e.Errorf("%x", data)
		}
	}},
	{name: "B99 fills of eight bytes with unlike halves, at all offsets and of all sizes", run: func(e *env) {
		const size = 160
		b, s := e.buffer(size), e.sem()
		v := uint64(0)
		for i, p := range [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}, {0, 0, 0, 0, 0, 0, 0, 0x80}, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, {9, 9, 9, 9, 9, 9, 9, 9}} {
			for offset := uint64(0); offset <= 40; offset += 8 {
				for _, n := range []uint64{0, 1, 2, 3, 4, 7, 8, 15} {
					e.must(e.q(i).Submit(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, gpu.Fill(b.All(), []byte{0xee})))
					e.must(e.q(i+1).Submit(between(s, v+1, s, v+2), gpu.Fill(b.Range(offset, 8*n), p)))
					v += 2
					want := bytes.Repeat([]byte{0xee}, size)
					copy(want[offset:], bytes.Repeat(p, int(n)))
					if got := e.read(b, gpu.Point{Semaphore: s, Value: v}); !bytes.Equal(got, want) {
						e.Fatalf("%d times %x at %d:\n got %x\nwant %x", n, p, offset, got, want)
					}
				}
			}
		}
	}},
	{name: "B99 a large fill of eight bytes", run: func(e *env) {
		const n = 1<<20 + 24
		b, s, p := e.buffer(n), e.sem(), []byte{1, 2, 3, 4, 5, 6, 7, 8}
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.Range(8, n-16), p)))
		want := bytes.Repeat(p, n/8)
		clear(want[:8])
		clear(want[n-8:])
		e.same("the buffer", e.read(b, gpu.Point{Semaphore: s, Value: 1}), want)
	}},
	{name: "B100 transfers of more than a stage block, whole and in part", options: small, run: func(e *env) {
		const size = 6*4096 + 99
		for _, n := range []uint64{4095, 4096, 4097, 2 * 4096, 3*4096 + 1, 6 * 4096} {
			for _, offset := range []uint64{0, 1, 64, 99} {
				for name, up := range map[string]func(dst gpu.Range, data []byte) gpu.Op{"update": gpu.UploadCopy, "upload": gpu.Upload} {
					b, s, data := e.buffer(size), e.sem(), random(int(n), offset)
					e.must(e.q(1).Submit(signal(s, 1), up(b.Range(offset, n), data)))
					got := make([]byte, n)
					e.must(e.q(2).Submit(between(s, 1, s, 2), gpu.Download(got, b.Range(offset, n))))
					e.wait(s, 2)
					e.same(name, got, data)
					want := make([]byte, size)
					copy(want[offset:], data)
					e.same(name, e.read(b), want)
					e.must(b.Close())
				}
			}
		}
	}},
	{name: "B100 an upload reads its data when it runs, a small one when it is called", options: small, run: func(e *env) {
		for _, n := range []int{100, 3 * 4096} {
			b, host, s := e.buffer(uint64(n)), e.sem(), e.sem()
			data := bytes.Repeat([]byte{1}, n)
			e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Upload(b.All(), data)))
			want := byte(1)
			if n > 4096 {
				want = 2
				for i := range data {
					data[i] = 2
				}
			} else {
				clear(data)
			}
			e.must(host.Signal(1))
			e.wait(s, 1)
			e.holds(b, want)
		}
	}},
	{name: "B100 B101 chains of transfers in pieces", options: small, run: func(e *env) {
		const n = 5*4096 + 7
		a, b, host, s := e.buffer(n), e.buffer(n), e.sem(), e.sem()
		data, got := random(n, 1), make([]byte, n)
		e.must(e.q(3).Submit(between(s, 3, s, 4), gpu.Download(got, b.All())))
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.Fill(b.Range(0, 1), []byte{0xaa})))
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Upload(a.All(), data)))
		e.must(host.Signal(1))
		e.wait(s, 4)
		data[0] = 0xaa
		e.same("what came back", got, data)
	}},
}
