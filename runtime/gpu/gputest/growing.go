package gputest

import (
	"encoding/binary"
	"errors"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// growing reserves growing memory of a device, and maps some pages. It returns the memory and the
// size of a page. If the device has no growing memory, the test is skipped.
func (e *env) growing(d *gpu.Device, max, pages uint64, o growing.Options) (m *growing.Memory, page uint64) {
	e.Helper()
	m, err := growing.Reserve(d, max, o)
	if errors.Is(err, gpu.ErrUnsupported) && !gpu.Inside(d).Engine.Caps.VirtualMem {
		e.Skip("the device has none")
	}
	e.must(err)
	e.Cleanup(func() { e.must(m.Close()) })
	e.must(m.Grow(pages * m.Granularity()))
	return m, m.Granularity()
}

var growingMemory = []test{
	{name: "B204 memory grows at one address, under work and recordings", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, mode gpu.Mode) {
			m, page := e.growing(e.devs[0], 1<<30, 1, growing.Options{})
			b, at := m.Buffer(), m.Buffer().Ptr()
			const words = 64
			k, c := e.kernel(kernels.Basic, "words"), e.commands(mode)
			n := paramOf(c, uint64(words))
			c.add(gpu.Launch(k, gpu.GridFor(int(8*page/4), 256), n, b.Range(page/2, words*4), b.Range(0, words*4)))
			c.end()
			s := e.q(0).NewStream()
			want := random(int(page/2), 1)
			e.must(s.Do(gpu.Upload(b.Range(0, page/2), want)))
			// From the second execution on, the launch uses pages that were mapped after End.
			for i := range uint64(3) {
				e.must(s.Do(gpu.Execute(c.CommandBuffer).With(n.Value(page / 2 / 4 << i))))
				e.must(m.Grow(page << (i + 1)))
				e.must(s.Do(gpu.Copy(b.Range(page<<i, page<<i), b.Range(0, page<<i))))
			}
			got := make([]byte, m.Size())
			e.must(s.Do(gpu.Download(got, b.All())))
			e.must(s.Wait(e.ctx))
			for i := uint64(0); i < m.Size(); i += page / 2 {
				e.same("half a page", got[i:i+page/2], want)
			}
			if b.Ptr() != at || m.Size() != 8*page || b.Size() != m.Size() || e.devs[0].Stats().Device.Live < m.Size() {
				e.Errorf("%d bytes at %#x, which was %#x; %+v", m.Size(), uint64(b.Ptr()), uint64(at), e.devs[0].Stats().Device)
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Fill(b.Range(8*page-4, 8), []byte{1})); !errors.Is(err, gpu.ErrRange) {
				e.Errorf("beyond the mapped size: %v", err)
			}
			if err := m.Grow(2 << 30); !errors.Is(err, gpu.ErrRange) || m.Size() != 8*page {
				e.Errorf("beyond the reserved size: %v", err)
			}
		})
	}},
	{name: "B205 shrinking takes pages from new work, and keeps them for issued work", run: func(e *env) {
		m, page := e.growing(e.devs[0], 1<<30, 4, growing.Options{})
		b, s, start := m.Buffer(), e.q(0).NewStream(), e.sem()
		c := e.commands(gpu.AutoMode)
		c.add(gpu.Fill(b.Range(3*page, page), []byte{7}))
		c.end()
		got := make([]byte, 4*page)
		s.After(start.At(1))
		e.must(s.Do(gpu.Fill(b.All(), []byte{5}), gpu.Execute(c.CommandBuffer), gpu.Download(got, b.All())))
		e.must(m.Shrink(page, s.Point()))
		if m.Size() != page || b.Size() != page {
			e.Errorf("%d bytes", m.Size())
		}
		if err := e.q(1).Submit(gpu.Order{}, gpu.Fill(b.Range(page, 4), []byte{1})); !errors.Is(err, gpu.ErrRange) {
			e.Errorf("a removed page: %v", err)
		}
		e.must(start.Signal(1))
		e.must(s.Wait(e.ctx))
		if got[0] != 5 || got[3*page-1] != 5 || got[3*page] != 7 || got[4*page-1] != 7 {
			e.Error("the work before has not run")
		}
		e.until("the pages are freed", func() bool { return e.devs[0].Stats().Device.Live == page })
		t := e.q(1).NewStream()
		err := t.Do(gpu.Execute(c.CommandBuffer))
		if err == nil {
			err = t.Wait(e.ctx)
		}
		if !errors.Is(err, gpu.ErrRange) {
			e.Errorf("a recording with a removed page: %v", err)
		}
		e.must(m.Grow(4 * page))
		e.must(s.Do(gpu.Execute(c.CommandBuffer), gpu.Download(got[:8], b.Range(4*page-8, 8)), gpu.Download(got[8:16], b.Range(0, 8))))
		e.must(s.Wait(e.ctx))
		if got[0] != 7 || got[8] != 5 {
			e.Errorf("%v after it has grown again", got[:16])
		}
	}},
	{name: "B206 memories share pages", run: func(e *env) {
		first, page := e.growing(e.devs[0], 1<<30, 2, growing.Options{})
		second, _ := e.growing(e.devs[0], 1<<30, 1, growing.Options{})
		want := random(int(2*page), 3)
		s := e.q(0).NewStream()
		e.must(s.Do(gpu.Upload(first.Buffer().All(), want)))
		err := second.Share(e.ctx, first, page, page)
		if errors.Is(err, gpu.ErrUnsupported) {
			e.Skip("the simulated GPU cannot share pages on this platform")
		}
		e.must(err)
		e.must(second.Share(e.ctx, first, 0, page))
		e.must(second.Grow(4 * page))
		if n := e.devs[0].Stats().Device.Live; n != 4*page {
			e.Errorf("%d bytes are counted", n)
		}
		e.must(s.Do(gpu.Fill(second.Buffer().Range(2*page, 4), []byte{1, 2, 3, 4})))
		e.must(s.Wait(e.ctx)) // the upload reads want until then
		binary.LittleEndian.PutUint32(want, 0x04030201)
		e.same("the first", e.read(first.Buffer()), want)
		e.must(first.Close())
		got := make([]byte, 2*page)
		e.must(s.Do(gpu.Download(got, second.Buffer().Range(page, 2*page))))
		e.must(s.Wait(e.ctx))
		e.same("the second's shared pages", got, append(want[page:], want[:page]...))
		if err := second.Share(e.ctx, first, 0, page); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("of closed memory: %v", err)
		}
	}},
	{name: "B207 devices use growing memory if they were given access, and copy it anyway", devices: 2, run: func(e *env) {
		d, other := e.devs[0], e.devs[1]
		private, page := e.growing(d, 1<<30, 1, growing.Options{})
		open, err := growing.Reserve(d, 1<<30, growing.Options{Peers: []*gpu.Device{other}})
		e.must(err)
		e.Cleanup(func() { e.must(open.Close()) })
		linked := true
		if err := open.Grow(page); errors.Is(err, gpu.ErrUnsupported) {
			linked = false
		} else {
			e.must(err)
		}
		if err := other.Queue(0).Submit(gpu.Order{}, gpu.Fill(private.Buffer().Range(0, 4), []byte{1})); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("a fill without access: %v", err)
		}
		want := random(int(page), 5)
		got := make([]byte, page)
		t := other.Queue(0).NewStream()
		there := e.bufferOn(other, page)
		e.must(t.Do(gpu.Upload(there.All(), want), gpu.Copy(private.Buffer().All(), there.All()), gpu.Fill(there.All(), []byte{0}),
			gpu.Copy(there.All(), private.Buffer().All()), gpu.Download(got, there.All())))
		e.must(t.Wait(e.ctx))
		e.same("copies without access", got, want)
		if linked {
			e.must(t.Do(gpu.Fill(open.Buffer().All(), []byte{6}), gpu.Copy(there.All(), open.Buffer().All()), gpu.Download(got, there.All())))
			e.must(t.Wait(e.ctx))
			if got[0] != 6 || got[page-1] != 6 {
				e.Errorf("%d and %d", got[0], got[page-1])
			}
		}
	}},
}
