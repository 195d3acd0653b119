package growing_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// wants fails the test unless err matches want and the text of err contains each of words.
func wants(t *testing.T, what string, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

// refused returns the error of an operation that a queue refuses.
func refused(dev *gpu.Device, op gpu.Op) error { return dev.Queue(0).Submit(gpu.Order{}, op) }

// TestGrow grows memory that work uses, and tests the sizes and the ranges.
func TestGrow(t *testing.T) {
	d := newSim(t, simdriver.Config{Memory: 8 * page})
	dev := openDevice(t, d, 0, gpu.Options{})
	m, err := growing.Reserve(dev, 1<<40+1, growing.Options{})
	must(t, err)
	b := m.Buffer()
	at := b.Ptr()
	if m.Max() != 1<<40+page || m.Size() != 0 || m.Granularity() != page || b.Size() != 0 || at == 0 || b.Kind() != gpu.DeviceMem || b.Bytes() != nil {
		t.Errorf("%d of %d bytes at %#x in pages of %d", m.Size(), m.Max(), uint64(at), m.Granularity())
	}
	s := dev.Queue(0).NewStream()
	wants(t, "nothing mapped", refused(dev, gpu.Fill(b.Range(0, 1), []byte{1})), gpu.ErrRange, "0 are mapped", "1099513724928 reserved")
	must(t, s.Do(gpu.Fill(b.All(), []byte{1}))) // nothing
	must(t, m.Grow(1))
	if m.Size() != page || b.Size() != page || b.All().Size != page || dev.Stats().Device.Live != page {
		t.Errorf("size %d, buffer %d, %+v", m.Size(), b.Size(), dev.Stats().Device)
	}
	must(t, s.Do(gpu.Fill(b.All(), []byte{1})))
	must(t, m.Grow(page)) // nothing
	must(t, m.Grow(0))
	must(t, m.Grow(3*page))
	if b.Ptr() != at || m.Buffer() != b {
		t.Error("the memory has moved")
	}
	must(t, s.Do(gpu.Fill(b.Range(page, 2*page), []byte{2})))
	got := content(t, s, b.All())
	if got[0] != 1 || got[page-1] != 1 || got[page] != 2 || got[3*page-1] != 2 {
		t.Error("the contents are wrong")
	}
	wants(t, "beyond", refused(dev, gpu.Fill(b.Range(3*page-1, 2), []byte{1})), gpu.ErrRange, "6291456 are mapped")
	wants(t, "beyond all", m.Grow(1<<41), gpu.ErrRange, "6291456 are mapped")
	st := dev.Stats().Device
	wants(t, "more than the device has", m.Grow(9*page), gpu.ErrOutOfMemory, "growing memory holds 6291456", "of which 6291456 are mapped")
	if m.Size() != 3*page || dev.Stats().Device.Live != st.Live || mapped(d, 0) != 3*page {
		t.Errorf("after that %d bytes, %+v", m.Size(), dev.Stats().Device)
	}
	must(t, m.Grow(8*page))
	must(t, m.Close())
	wants(t, "closed", m.Grow(1), gpu.ErrClosed)
	wants(t, "closed", m.Shrink(0), gpu.ErrClosed)
	wants(t, "closed", refused(dev, gpu.Fill(b.All(), []byte{1})), gpu.ErrClosed)
	eventually(t, "the memory is freed", func() bool { return mapped(d, 0) == 0 && d.Counters().Devices[0].Reservations == 0 }, dev)
	if st := dev.Stats(); st.Device.Live != 0 || st.Device.Peak != 8*page || st.Buffers != 0 {
		t.Errorf("%+v", st)
	}
}

// TestShrinkWaitsForUses shrinks memory that work uses. The pages stay until the work is over. A
// Grow before the work is over takes the pages back.
func TestShrinkWaitsForUses(t *testing.T) {
	for name, recorded := range map[string]gpu.Mode{"operations": -1, "recording": gpu.StreamMode, "graph": gpu.GraphMode} {
		t.Run(name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev := openDevice(t, d, 0, gpu.Options{})
			m := reserve(t, dev, 8*page, 4*page, growing.Options{})
			s, other := dev.Queue(0).NewStream(), dev.Queue(1).NewStream()
			op := gpu.Fill(m.Buffer().All(), []byte{7})
			if recorded >= 0 {
				c := testkit.CommandBuffer(t, dev, recorded)
				testkit.Recorded(t)(c.Add(op))
				must(t, c.End())
				op = gpu.Execute(c)
			}
			must(t, d.StallDevice(0))
			must(t, s.Do(op))
			must(t, m.Shrink(page+1))
			if m.Size() != 2*page {
				t.Errorf("%d bytes", m.Size())
			}
			wants(t, "a removed page", refused(dev, gpu.Fill(m.Buffer().Range(2*page, 4), []byte{1})), gpu.ErrRange, "4194304 are mapped")
			must(t, other.Do(gpu.Fill(m.Buffer().Range(2*page-4, 4), []byte{1})))
			must(t, m.Grow(3*page)) // takes a page back
			calls := testkit.Calls(d, 0, simdriver.OpMapPages)
			if calls != 4 || mapped(d, 0) != 4*page {
				t.Errorf("%d pages were mapped, and %d bytes are", calls, mapped(d, 0))
			}
			must(t, m.Shrink(0))
			if mapped(d, 0) != 4*page {
				t.Error("pages were unmapped under work")
			}
			must(t, d.ResumeDevice(0))
			must(t, s.Wait(minute(t)))
			eventually(t, "the pages are unmapped", func() bool { return mapped(d, 0) == 0 }, dev)
			must(t, other.Wait(minute(t)))
			must(t, m.Grow(page))
			must(t, s.Do(gpu.Fill(m.Buffer().All(), []byte{3})))
			if got := content(t, s, m.Buffer().All()); got[0] != 3 || got[page-1] != 3 {
				t.Error("the contents are wrong")
			}
			if recorded >= 0 { // the recording uses four pages
				err := s.Do(op)
				if err == nil {
					err = s.Wait(minute(t))
				}
				wants(t, "an execution", err, gpu.ErrRange, "2097152 are mapped")
				must(t, m.Grow(4*page))
				s = dev.Queue(0).NewStream()
				must(t, s.Do(op))
				if got := content(t, s, m.Buffer().All()); got[0] != 7 || got[4*page-1] != 7 {
					t.Error("the recording has not run")
				}
			}
		})
	}
}

// TestShrinkAfterParkedWork shrinks memory that submitted work uses, before the work is issued. If
// Shrink gets a point behind the work, the work runs. Without such a point the work fails, and the
// device is not lost.
func TestShrinkAfterParkedWork(t *testing.T) {
	ops := map[string]func(t *testing.T, dev *gpu.Device, r gpu.Range) gpu.Op{
		"fill": func(t *testing.T, _ *gpu.Device, r gpu.Range) gpu.Op { return gpu.Fill(r, []byte{7}) },
		"upload": func(t *testing.T, _ *gpu.Device, r gpu.Range) gpu.Op {
			return gpu.Upload(r, bytes.Repeat([]byte{7}, int(r.Size)))
		},
		"download": func(t *testing.T, _ *gpu.Device, r gpu.Range) gpu.Op { return gpu.Download(make([]byte, r.Size), r) },
		"launch": func(t *testing.T, dev *gpu.Device, r gpu.Range) gpu.Op {
			return gpu.Launch(kernel(t, dev, "index"), gpu.GridFor(16, 16), uint64(16), uint32(0), uint32(1), r)
		},
		"native": func(t *testing.T, _ *gpu.Device, r gpu.Range) gpu.Op {
			return gpu.Native("fill", func(c gpu.NativeCall) error { return c.Device.Fill(c.Stream, c.Ptrs[0], 7, 1, r.Size) }, r)
		},
		"execution": func(t *testing.T, dev *gpu.Device, r gpu.Range) gpu.Op {
			c := testkit.CommandBuffer(t, dev, gpu.GraphMode)
			testkit.Recorded(t)(c.Add(gpu.Fill(r, []byte{7})))
			must(t, c.End())
			return gpu.Execute(c)
		},
		"binding": func(t *testing.T, dev *gpu.Device, r gpu.Range) gpu.Op {
			c := testkit.CommandBuffer(t, dev, gpu.GraphMode)
			bound, err := c.Binding()
			must(t, err)
			testkit.Recorded(t)(c.Add(gpu.Fill(bound.Range(0, r.Size), []byte{7})))
			must(t, c.End())
			return gpu.Execute(c, r)
		},
		"nested": func(t *testing.T, dev *gpu.Device, r gpu.Range) gpu.Op {
			inner, c := testkit.CommandBuffer(t, dev, gpu.GraphMode), testkit.CommandBuffer(t, dev, gpu.GraphMode)
			testkit.Recorded(t)(inner.Add(gpu.Fill(r, []byte{7})))
			must(t, inner.End())
			testkit.Recorded(t)(c.Add(gpu.Execute(inner)))
			must(t, c.End())
			return gpu.Execute(c)
		},
	}
	for name, op := range ops {
		for _, ordered := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", ordered", false: ", not ordered"}[ordered], func(t *testing.T) {
				d := newSim(t, simdriver.Config{})
				dev := openDevice(t, d, 0, gpu.Options{})
				m := reserve(t, dev, 8*page, 2*page, growing.Options{})
				begin, s := testkit.NewSemaphore(t, 0), dev.Queue(0).NewStream()
				s.After(begin.At(1))
				must(t, s.Do(op(t, dev, m.Buffer().Range(page, page))))
				var after []gpu.Point
				if ordered {
					after = append(after, s.Point())
				}
				must(t, m.Shrink(0, after...))
				if !ordered {
					eventually(t, "the pages are unmapped", func() bool { return mapped(d, 0) == 0 }, dev)
				}
				must(t, begin.Signal(1))
				err := s.Wait(minute(t))
				if ordered {
					must(t, err)
				} else {
					wants(t, "the work", err, gpu.ErrRange, "0 are mapped")
				}
				eventually(t, "the pages are unmapped", func() bool { return mapped(d, 0) == 0 }, dev)
				must(t, m.Grow(page)) // the device works
				content(t, dev.Queue(0).NewStream(), m.Buffer().All())
			})
		}
	}
}

// TestShrinkPoints removes the same pages twice, with different points. The pages must stay mapped
// until the points of both calls are reached or have failed.
func TestShrinkPoints(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	m := reserve(t, dev, 8*page, 4*page, growing.Options{})
	first, second := testkit.NewSemaphore(t, 0), testkit.NewSemaphore(t, 0)
	must(t, m.Shrink(2*page, first.At(1)))
	must(t, m.Grow(4*page))
	must(t, m.Shrink(page, second.At(1), second.At(0)))
	must(t, second.Signal(1)) // work before first.At(1) may still use the pages
	s := dev.Queue(0).NewStream()
	content(t, s, m.Buffer().Range(0, 4))
	if mapped(d, 0) != 4*page {
		t.Error("pages were unmapped before the point of the first call")
	}
	first.Fail(io.EOF)
	eventually(t, "the pages are unmapped", func() bool { return mapped(d, 0) == page }, dev)
	wants(t, "a zero point", m.Shrink(0, gpu.Point{}), gpu.ErrArgument)
	must(t, m.Shrink(0, testkit.NewSemaphore(t, 0).At(1))) // never
	must(t, m.Close())
	eventually(t, "the memory is freed", func() bool { return mapped(d, 0) == 0 }, dev)
}

// TestShare shares pages of one memory with two others, and closes that memory first. The others
// must keep the pages.
func TestShare(t *testing.T) {
	needsSharing(t)
	d := newSim(t, simdriver.Config{Devices: 2})
	dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
	prefix := reserve(t, dev, 8*page, 3*page, growing.Options{})
	s := dev.Queue(0).NewStream()
	must(t, s.Do(gpu.Fill(prefix.Buffer().All(), []byte{5})))
	var all [2]*growing.Memory
	for i := range all {
		all[i] = reserve(t, dev, 4*page, 0, growing.Options{})
		must(t, all[i].Share(t.Context(), prefix, page, 2*page))
		must(t, all[i].Grow(3*page))
		must(t, s.Do(gpu.Fill(all[i].Buffer().Range(2*page, page), []byte{byte(i)})))
	}
	if st := dev.Stats().Device.Live; st != 5*page || mapped(d, 0) != 5*page {
		t.Errorf("%d bytes are counted, and %d mapped", st, mapped(d, 0))
	}
	must(t, s.Do(gpu.Fill(all[0].Buffer().Range(page, 4), []byte{9})))
	for i, m := range all {
		got := content(t, s, m.Buffer().All())
		if got[0] != 5 || got[page] != 9 || got[2*page] != byte(i) {
			t.Errorf("memory %d has %d, %d, %d", i, got[0], got[page], got[2*page])
		}
	}
	bad := map[string]error{
		"part of a page": all[0].Share(t.Context(), prefix, 1, page),
		"another device": reserve(t, other, 4*page, 0, growing.Options{}).Share(t.Context(), prefix, 0, page),
		"other pages":    reserve(t, dev, 4*page, 0, growing.Options{Page: 2 * page}).Share(t.Context(), prefix, 0, 2*page),
		"nothing":        all[0].Share(t.Context(), nil, 0, page),
	}
	for what, err := range bad {
		wants(t, what, err, gpu.ErrArgument)
	}
	wants(t, "too much", all[0].Share(t.Context(), prefix, 0, 2*page), gpu.ErrRange)
	wants(t, "pages that are not there", all[0].Share(t.Context(), prefix, 3*page, page), gpu.ErrRange, "6291456 are mapped")
	must(t, all[0].Share(t.Context(), all[0], 2*page, page)) // a page twice
	must(t, prefix.Close())
	must(t, all[1].Close())
	eventually(t, "unshared pages are freed", func() bool { return mapped(d, 0) == 3*page }, dev)
	if got := content(t, s, all[0].Buffer().All()); got[0] != 5 || got[page] != 9 || got[3*page] != 0 {
		t.Error("the contents are wrong")
	}
	more := reserve(t, dev, 2*page, page, growing.Options{})
	wants(t, "closed memory", more.Share(t.Context(), prefix, 0, page), gpu.ErrClosed)

	// Share waits until removed pages are unmapped.
	must(t, d.StallDevice(0))
	must(t, s.Do(gpu.Fill(all[0].Buffer().All(), []byte{1})))
	must(t, all[0].Shrink(3*page))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, "a context that has ended", all[0].Share(ctx, more, 0, page), context.Canceled)
	done := make(chan error)
	go func() { done <- all[0].Share(t.Context(), more, 0, page) }()
	must(t, d.ResumeDevice(0))
	must(t, s.Wait(minute(t)))
	must(t, <-done)
	if all[0].Size() != 4*page {
		t.Errorf("%d bytes", all[0].Size())
	}
}

// TestPeers uses memory on another device, with access and without.
func TestPeers(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 3})
	g, err := gpu.OpenGroup(d, gpu.Options{}, 0, 1, 2)
	must(t, err)
	t.Cleanup(func() { must(t, g.Close()) })
	devs := g.Devices()
	m := reserve(t, devs[0], 4*page, 2*page, growing.Options{Peers: devs[:2]})
	s, none := devs[1].Queue(0).NewStream(), devs[2].Queue(0).NewStream()
	must(t, s.Do(gpu.Fill(m.Buffer().All(), []byte{3})))
	must(t, s.Do(gpu.Launch(kernel(t, devs[1], "index"), gpu.GridFor(16, 16), uint64(16), uint32(4), uint32(1), m.Buffer())))
	must(t, s.Wait(minute(t)))
	wants(t, "a fill without access", refused(devs[2], gpu.Fill(m.Buffer().All(), []byte{4})), gpu.ErrArgument, "Options.Peers")
	if got := content(t, none, m.Buffer().Range(0, 2*page)); got[0] != 4 || got[page] != 3 { // copies need no access
		t.Errorf("%d and %d", got[0], got[page])
	}
	must(t, d.StallDevice(1))
	must(t, s.Do(gpu.Fill(m.Buffer().All(), []byte{6})))
	must(t, m.Shrink(page))
	content(t, devs[0].Queue(0).NewStream(), m.Buffer().Range(0, 4))
	if mapped(d, 0) != 2*page {
		t.Error("a page was unmapped under work of another device")
	}
	must(t, d.ResumeDevice(1))
	must(t, s.Wait(minute(t)))
	eventually(t, "the page is unmapped", func() bool { return mapped(d, 0) == page }, devs...)
	must(t, devs[1].Close())
	must(t, m.Grow(2*page)) // a closed peer gets no access

	apart := newSim(t, simdriver.Config{Devices: 2, Apart: true})
	dev, other := openDevice(t, apart, 0, gpu.Options{}), openDevice(t, apart, 1, gpu.Options{})
	far, err := growing.Reserve(dev, page, growing.Options{Peers: []*gpu.Device{other}})
	must(t, err)
	wants(t, "no link", far.Grow(page), gpu.ErrUnsupported)
	if far.Size() != 0 || mapped(apart, 0) != 0 {
		t.Errorf("%d bytes are left", mapped(apart, 0))
	}
	_, err = growing.Reserve(dev, page, growing.Options{Peers: []*gpu.Device{nil}})
	wants(t, "no peer", err, gpu.ErrArgument)
	_, err = growing.Reserve(dev, page, growing.Options{Peers: []*gpu.Device{devs[0]}})
	wants(t, "a peer of another driver", err, gpu.ErrArgument)
}

// TestOutOfMemory grows memory right after other memory was shrunk or closed. Grow must succeed.
// The runtime waits at most a second until the driver has freed unused memory. The test runs in a
// synctest bubble, so that this time does not pass while a busy machine delays the driver.
func TestOutOfMemory(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Memory: 4 * page})
			dev := openDevice(t, d, 0, gpu.Options{})
			a, b := reserve(t, dev, 4*page, 4*page, growing.Options{}), reserve(t, dev, 4*page, 0, growing.Options{})
			s := dev.Queue(0).NewStream()
			must(t, s.Do(gpu.Fill(a.Buffer().All(), []byte{1})))
			must(t, s.Wait(minute(t)))
			must(t, a.Shrink(page, s.Point()))
			must(t, b.Grow(2*page))
			must(t, a.Close())
			must(t, b.Grow(4*page))
			must(t, b.Shrink(0))
			x, err := dev.Alloc(gpu.DeviceMem, 4*page)
			must(t, err)
			must(t, x.Close())
			must(t, dev.Close())
		})
	}
}

// TestUnsupported tests devices without virtual memory, and wrong arguments.
func TestUnsupported(t *testing.T) {
	caps := simdriver.HIPCaps()
	dev := openDevice(t, newSim(t, simdriver.Config{Caps: &caps}), 0, gpu.Options{})
	_, err := growing.Reserve(dev, page, growing.Options{})
	wants(t, "HIP", err, gpu.ErrUnsupported, "Simulated GPU 0", "no physical memory at reserved addresses")
	dev = openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	for what, c := range map[string]struct {
		max  uint64
		o    growing.Options
		want error
	}{
		"no bytes":         {0, growing.Options{}, gpu.ErrArgument},
		"part of a page":   {page, growing.Options{Page: 4096}, gpu.ErrArgument},
		"too much":         {1 << 63, growing.Options{}, gpu.ErrOutOfMemory},
		"too much rounded": {1<<64 - 1, growing.Options{}, gpu.ErrOutOfMemory},
		"too large pages":  {1, growing.Options{Page: 1 << 63}, gpu.ErrOutOfMemory},
		"too many":         {1 << 60, growing.Options{}, gpu.ErrOutOfMemory},
	} {
		_, err := growing.Reserve(dev, c.max, c.o)
		wants(t, what, err, c.want)
	}
	m := reserve(t, dev, 10*page, 1, growing.Options{Page: 4 * page})
	if m.Max() != 12*page || m.Size() != 4*page || m.Granularity() != 4*page {
		t.Errorf("%d of %d bytes in pages of %d", m.Size(), m.Max(), m.Granularity())
	}
	_, err = dev.NewPool(gpu.PoolOptions{Over: m.Buffer()})
	wants(t, "a pool over it", err, gpu.ErrArgument, "growing memory")
	must(t, dev.Close())
	_, err = growing.Reserve(dev, page, growing.Options{})
	wants(t, "closed", err, gpu.ErrClosed)
	_, err = growing.Reserve(nil, page, growing.Options{})
	wants(t, "no device", err, gpu.ErrArgument)
}

// TestLost loses the device, or a peer, while the pages of a Shrink are in use.
func TestLost(t *testing.T) {
	for lost := range 2 {
		synctest.Test(t, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 2})
			dev, peer := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			m := reserve(t, dev, 4*page, 2*page, growing.Options{Peers: []*gpu.Device{peer}})
			s := peer.Queue(0).NewStream()
			must(t, d.StallDevice(1))
			must(t, s.Do(gpu.Fill(m.Buffer().All(), []byte{1})))
			must(t, m.Shrink(page))
			must(t, d.LoseDevice(lost, nil))
			on := []*gpu.Device{dev, peer}[lost].Queue(1).NewStream()
			if err := on.Do(gpu.Fill(m.Buffer().Range(0, 4), []byte{1})); err == nil {
				err = on.Wait(minute(t))
				wants(t, "work of the lost device", err, driver.ErrLost)
			}
			if lost == 0 {
				wants(t, "on the lost device", m.Grow(4*page), driver.ErrLost)
			} else {
				synctest.Wait()
				if mapped(d, 0) != 2*page {
					t.Error("a page that the lost device may use was unmapped")
				}
				if runtime.GOOS == "linux" {
					wants(t, "the place of the page", m.Share(t.Context(), m, 0, page), driver.ErrLost)
				}
				must(t, m.Grow(3*page))
			}
			must(t, d.ResumeDevice(1))
			dev.Close()
			peer.Close()
		})
	}
}

// TestReceivers calls the methods of a nil and of a zero Memory (B143).
func TestReceivers(t *testing.T) {
	testkit.Receivers(t, testkit.Receiver{Nil: (*growing.Memory)(nil)})
}

func kernel(t testing.TB, dev *gpu.Device, name string) *gpu.Kernel {
	t.Helper()
	x, err := dev.Load(simdriver.Image(name))
	must(t, err)
	k, err := x.Kernel(name)
	must(t, err)
	return k
}
