package simdriver_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestMemory(t *testing.T) {
	_, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]
	s := stream(t, v)
	src := []byte("0123456789abcdef")
	dev, peer := alloc(t, v, driver.DeviceMem, 16), alloc(t, w, driver.DeviceMem, 16)
	host, managed := alloc(t, w, driver.HostMem, 16), alloc(t, v, driver.ManagedMem, 16)
	if dev.Host != nil || dev.Kind != driver.DeviceMem || dev.Size != 16 || dev.Ptr%256 != 0 {
		t.Errorf("device memory %+v", dev)
	}
	for _, m := range []driver.Mem{host, managed} {
		if m.Host == nil || m.Ptr != driver.Ptr(uintptr(m.Host)) || m.Ptr%256 != 0 {
			t.Errorf("host memory %+v", m)
		}
	}
	check(t, v.Upload(s, dev.Ptr, unsafe.Pointer(&src[0]), 16))
	check(t, v.Copy(s, peer.Ptr, dev.Ptr, 16))
	check(t, v.Copy(s, host.Ptr, peer.Ptr, 16))
	check(t, v.Copy(s, managed.Ptr+4, host.Ptr, 12))
	check(t, v.Fill(s, managed.Ptr, 'x', 1, 4))
	check(t, drain(t, v, s))
	if got := unsafe.Slice((*byte)(host.Host), 16); !bytes.Equal(got, src) {
		t.Errorf("host memory %q", got)
	}
	if got := read(t, w, managed.Ptr, 16); string(got) != "xxxx0123456789ab" {
		t.Errorf("managed memory %q", got)
	}
	for _, c := range []struct {
		pattern uint32
		width   int
		count   uint64
		offset  driver.Ptr
		want    string
	}{
		{0xffffff41, 1, 3, 1, "0AAA456789abcdef"},
		{0x4241, 2, 3, 4, "0123ABABABabcdef"},
		{0x44434241, 4, 3, 4, "0123ABCDABCDABCD"},
		{0x44434241, 4, 0, 4, "0123456789abcdef"},
		{0x44434241, 1, 16, 0, "AAAAAAAAAAAAAAAA"},
	} {
		check(t, v.Upload(s, dev.Ptr, unsafe.Pointer(&src[0]), 16))
		check(t, v.Fill(s, dev.Ptr+c.offset, c.pattern, c.width, c.count))
		check(t, drain(t, v, s))
		if got := read(t, v, dev.Ptr, 16); string(got) != c.want {
			t.Errorf("fill %+v: %q", c, got)
		}
	}
	// A call that returns an error does not lose the device.
	refused(t, v.Fill(s, dev.Ptr, 0, 3, 1), simdriver.ErrInvalidValue)
	refused(t, v.Upload(s, dev.Ptr, nil, 1), simdriver.ErrInvalidValue)
	refused(t, v.Download(s, nil, dev.Ptr, 1), simdriver.ErrInvalidValue)
	check(t, v.Copy(s, 1, 2, 0)) // a copy of 0 bytes accesses no memory
	check(t, drain(t, v, s))
}

func TestFillStrided(t *testing.T) {
	_, vs := open(t, simdriver.Config{})
	v := vs[0]
	s := stream(t, v)
	m := alloc(t, v, driver.DeviceMem, 32)
	for _, c := range []struct {
		offset        driver.Ptr
		stride, count uint64
		want          string
	}{
		{0, 4, 3, "abcdabcdabcd...................."},
		{0, 8, 4, "abcd....abcd....abcd....abcd...."},
		{4, 12, 3, "....abcd........abcd........abcd"},
		{28, 4096, 1, "............................abcd"},
		{28, 1 << 63, 1, "............................abcd"},
		{8, 16, 0, "................................"},
	} {
		check(t, v.Fill(s, m.Ptr, '.', 1, 32))
		check(t, v.FillStrided(s, m.Ptr+c.offset, 0x64636261, c.stride, c.count))
		check(t, drain(t, v, s))
		if got := read(t, v, m.Ptr, 32); string(got) != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	for _, stride := range []uint64{0, 1, 3, 6} {
		refused(t, v.FillStrided(s, m.Ptr, 0, stride, 1), simdriver.ErrInvalidValue, "multiple of 4")
	}
	refused(t, v.FillStrided(0, m.Ptr, 0, 4, 1), simdriver.ErrInvalidHandle)
	check(t, drain(t, v, s))
}

// TestViolations tests accesses that no GPU allows. Each access is found when it executes, and
// loses the device.
func TestViolations(t *testing.T) {
	type env struct {
		v          driver.Device
		s          driver.Stream
		a, freed   driver.Mem // 64 bytes
		host       driver.Mem // 64 bytes
		hostFreed  driver.Mem
		registered []byte
		f          driver.Function
	}
	buf := make([]byte, 128)
	bp := unsafe.Pointer(&buf[0])
	for _, c := range []struct {
		name string
		do   func(env) error
		want simdriver.AccessError // Addr is an offset from Base, and Base is not compared
		say  string
	}{
		{"fill too long", func(e env) error { return e.v.Fill(e.s, e.a.Ptr+32, 0, 4, 9) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 32, Size: 36, Length: 64}, "only 32 bytes remain"},
		{"fill behind", func(e env) error { return e.v.Fill(e.s, e.a.Ptr+68, 0, 4, 1) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 68, Size: 4, Length: 64}, "4 bytes after the end"},
		{"fill without end", func(e env) error { return e.v.Fill(e.s, e.a.Ptr, 0, 4, 1<<63) },
			simdriver.AccessError{Op: simdriver.OpFill, Size: 1<<64 - 1, Length: 64}, "only 64 bytes remain"},
		{"fill not aligned", func(e env) error { return e.v.Fill(e.s, e.a.Ptr+2, 0, 4, 1) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 2, Size: 4, Align: 4, Length: 64}, "not a multiple of 4"},
		{"strided fill too long", func(e env) error { return e.v.FillStrided(e.s, e.a.Ptr+4, 0, 20, 4) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 4, Size: 64, Length: 64}, "only 60 bytes remain"},
		{"strided fill not aligned", func(e env) error { return e.v.FillStrided(e.s, e.a.Ptr+2, 0, 8, 2) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 2, Size: 12, Align: 4, Length: 64}, "not a multiple of 4"},
		{"strided fill without end", func(e env) error { return e.v.FillStrided(e.s, e.a.Ptr, 0, 1<<62, 1<<62) },
			simdriver.AccessError{Op: simdriver.OpFill, Size: 1<<64 - 1, Length: 64}, "only 64 bytes remain"},
		{"strided fill around all addresses", func(e env) error { return e.v.FillStrided(e.s, e.a.Ptr, 0, 4, 1<<62) },
			simdriver.AccessError{Op: simdriver.OpFill, Size: 1<<64 - 1, Length: 64}, "only 64 bytes remain"},
		{"fill freed", func(e env) error { return e.v.Fill(e.s, e.freed.Ptr+8, 0, 1, 1) },
			simdriver.AccessError{Op: simdriver.OpFill, Addr: 8, Size: 1, Length: 64, Freed: true}, "was freed"},
		{"copy from nothing", func(e env) error { return e.v.Copy(e.s, e.a.Ptr, 8, 8) },
			simdriver.AccessError{Op: simdriver.OpCopy}, "illegal access to 8 bytes at 0x8"},
		{"copy to another device's range", func(e env) error { return e.v.Copy(e.s, e.a.Ptr+1<<48, e.a.Ptr, 8) },
			simdriver.AccessError{Op: simdriver.OpCopy}, "no allocation is near"},
		{"copy out of all ranges", func(e env) error { return e.v.Copy(e.s, 1<<63+5, e.a.Ptr, 8) },
			simdriver.AccessError{Op: simdriver.OpCopy}, "illegal access"},
		{"copy to before", func(e env) error { return e.v.Copy(e.s, e.a.Ptr-8, e.a.Ptr, 8) },
			simdriver.AccessError{Op: simdriver.OpCopy}, "8 bytes before the allocation of 64 bytes"},
		{"copy too long", func(e env) error { return e.v.Copy(e.s, e.a.Ptr, e.host.Ptr+1, 64) },
			simdriver.AccessError{Op: simdriver.OpCopy, Addr: 1, Size: 64, Length: 64}, "only 63"},
		{"upload too long", func(e env) error { return e.v.Upload(e.s, e.a.Ptr, bp, 65) },
			simdriver.AccessError{Op: simdriver.OpUpload, Size: 65, Length: 64}, "only 64"},
		{"upload from beyond host memory", func(e env) error { return e.v.Upload(e.s, e.a.Ptr, unsafe.Add(e.host.Host, 32), 33) },
			simdriver.AccessError{Op: simdriver.OpUpload, Addr: 32, Size: 33, Length: 64}, "only 32"},
		{"download to freed host memory", func(e env) error { return e.v.Download(e.s, e.hostFreed.Host, e.a.Ptr, 8) },
			simdriver.AccessError{Op: simdriver.OpDownload, Size: 8, Length: 64, Freed: true}, "was freed"},
		{"download to beyond registered memory", func(e env) error {
			return e.v.Download(e.s, unsafe.Pointer(&e.registered[0]), e.a.Ptr, 33)
		}, simdriver.AccessError{Op: simdriver.OpDownload, Size: 33, Length: 32}, "only 32"},
		{"view too long", func(e env) error { return launch(e.v, e.s, e.f, unsafe.Pointer(&e.a.Ptr), ptr(17), ptr(4)) },
			simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Size: 68, Length: 64}, "kernel view on stream"},
		{"view of freed", func(e env) error { return launch(e.v, e.s, e.f, unsafe.Pointer(&e.freed.Ptr), ptr(1), ptr(4)) },
			simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Size: 4, Length: 64, Freed: true}, "was freed"},
		{"view not aligned", func(e env) error {
			p := e.a.Ptr + 2
			return launch(e.v, e.s, e.f, unsafe.Pointer(&p), ptr(1), ptr(4))
		}, simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Addr: 2, Size: 4, Align: 4, Length: 64}, "not a multiple of 4"},
		{"view of negative length", func(e env) error {
			return launch(e.v, e.s, e.f, unsafe.Pointer(&e.a.Ptr), ptr(-1), ptr(4))
		}, simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Size: 1<<64 - 1, Length: 64}, "only 64"},
		{"view behind an argument", func(e env) error {
			return launch(e.v, e.s, e.f, unsafe.Pointer(&e.a.Ptr), ptr(17), ptr(4))
		}, simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Size: 68, Length: 64}, "argument 0, counted from 0, points there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{
				"view": func(g *simdriver.Grid, p driver.Ptr, n, width int64) {
					simdriver.View[uint32](g, p, int(n)) // ignores the error, as a kernel might
				},
			})})
			v := vs[0]
			e := env{v: v, s: stream(t, v), registered: make([]byte, 32)}
			e.freed = alloc(t, v, driver.DeviceMem, 64)
			e.a, e.host, e.hostFreed = alloc(t, v, driver.DeviceMem, 64), alloc(t, v, driver.HostMem, 64), alloc(t, v, driver.HostMem, 64)
			must(v.Register(unsafe.Pointer(&e.registered[0]), 32))(t)
			e.f = function(t, v, "view")
			check(t, v.Free(e.freed))
			check(t, v.Free(e.hostFreed))
			done := record(t, v, e.s)
			check(t, wait(t, v, done))

			check(t, d.StallStream(e.s))
			check(t, c.do(e))
			behind := record(t, v, e.s)
			pending(t, v, behind) // the access is found only when it executes
			check(t, d.ResumeStream(e.s))
			err := wait(t, v, behind)
			refused(t, err, driver.ErrLost, c.say)
			var got *simdriver.AccessError
			if !errors.As(err, &got) {
				t.Fatalf("%T", errors.Unwrap(err))
			}
			if got.Op != c.want.Op || got.Kernel != c.want.Kernel || got.Stream != e.s || got.Device != 0 {
				t.Errorf("%+v", got)
			}
			if c.want.Length != 0 {
				x := *got
				x.Addr, x.Base, x.Stream = x.Addr-x.Base, 0, 0
				if x != c.want {
					t.Errorf("%+v, want %+v", x, c.want)
				}
			}
			// The error persists, even for events that were complete before. Other devices do not
			// have the error.
			_, err = v.Query(done)
			refused(t, err, driver.ErrLost)
			refused(t, v.Fill(e.s, e.a.Ptr, 0, 1, 1), driver.ErrLost)
			_, err = v.NewStream()
			refused(t, err, driver.ErrLost)
			check(t, drain(t, vs[1], stream(t, vs[1])))
			refused(t, v.Free(e.a), driver.ErrLost)
			refused(t, v.Free(e.a), simdriver.ErrInvalidValue) // the memory was freed although Free returned an error
		})
	}
}

// ptr returns the address of an argument.
func ptr(n int64) unsafe.Pointer { return unsafe.Pointer(&n) }

// TestBlame checks that the error of an access names all arguments that are its address.
func TestBlame(t *testing.T) {
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"view": func(g *simdriver.Grid, n int64, p, q driver.Ptr) { simdriver.View[uint32](g, p, int(n)) },
	})})
	v := vs[0]
	s, a := stream(t, v), alloc(t, v, driver.DeviceMem, 64)
	check(t, launch(v, s, function(t, v, "view"), ptr(17), unsafe.Pointer(&a.Ptr), unsafe.Pointer(&a.Ptr)))
	refused(t, drain(t, v, s), driver.ErrLost, "arguments 1 and 2, counted from 0, point there")
}

// TestFreeWhilePending frees memory that pending work will touch.
func TestFreeWhilePending(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 64)
	check(t, d.StallStream(s))
	check(t, v.Fill(s, m.Ptr, 0, 1, 64))
	e := record(t, v, s)
	check(t, v.Free(m))
	alloc(t, v, driver.DeviceMem, 64) // must not get the address of m
	check(t, d.ResumeStream(s))
	refused(t, wait(t, v, e), driver.ErrLost, "was freed", "fill on stream")
}

// TestFreeWhileExecuting frees memory while an operation first touches it. The device may be lost,
// but the program must not crash.
func TestFreeWhileExecuting(t *testing.T) {
	for range 300 {
		d, vs := open(t, simdriver.Config{})
		v := vs[0]
		s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 1<<16)
		check(t, v.Fill(s, m.Ptr, 0, 1, 1<<16))
		check(t, v.Free(m))
		check(t, d.LoseDevice(0, nil))
	}
}

func TestOutOfMemory(t *testing.T) {
	_, vs := open(t, simdriver.Config{Devices: 2, Memory: 1 << 20, HostMemory: 1 << 10})
	v := vs[0]
	m := alloc(t, v, driver.DeviceMem, 1<<20)
	for _, n := range []uint64{1, 1 << 62, 1<<64 - 1} {
		_, err := v.Alloc(driver.DeviceMem, n)
		refused(t, err, driver.ErrOutOfMemory, "1048576 of device 0's 1048576")
	}
	_, err := v.Load(simdriver.Image("x=4"))
	refused(t, err, driver.ErrOutOfMemory, "variable x")
	alloc(t, vs[1], driver.DeviceMem, 1<<20) // each device has its own memory
	check(t, v.Free(m))
	alloc(t, v, driver.DeviceMem, 1<<20)

	h := alloc(t, v, driver.HostMem, 1000)
	_, err = v.Alloc(driver.ManagedMem, 25)
	refused(t, err, driver.ErrOutOfMemory)
	check(t, v.Free(h))
	alloc(t, v, driver.ManagedMem, 25)
	_, err = v.Alloc(driver.HostMem, 1<<64-1)
	refused(t, err, driver.ErrOutOfMemory)
	_, err = v.Alloc(driver.DeviceMem, 0)
	refused(t, err, simdriver.ErrInvalidValue)
	_, err = v.Alloc(7, 1)
	refused(t, err, simdriver.ErrInvalidValue)
}

func TestFree(t *testing.T) {
	_, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]
	for _, kind := range []driver.MemKind{driver.DeviceMem, driver.HostMem, driver.ManagedMem} {
		m := alloc(t, v, kind, 64)
		inside, other := m, m
		inside.Ptr += 8
		other.Kind = (kind + 1) % 3
		for say, err := range map[string]error{
			"allocation begins at": v.Free(inside),
			"belongs to device 0":  w.Free(m),
			"invalid value":        v.Free(other),
			"no device's range":    v.Free(driver.Mem{Ptr: 5}),
			"nothing was":          v.Free(driver.Mem{Kind: driver.HostMem, Ptr: 5}),
		} {
			refused(t, err, simdriver.ErrInvalidValue, say)
		}
		check(t, v.Free(m))
		refused(t, v.Free(m), simdriver.ErrInvalidValue, "freed already")
	}
	// Addresses of freed memory are not used again.
	seen := make(map[driver.Ptr]bool)
	for range 3000 {
		m := alloc(t, v, driver.DeviceMem, 64)
		if seen[m.Ptr] {
			t.Fatal("an address was used again")
		}
		seen[m.Ptr] = true
		check(t, v.Free(m))
	}
}

func TestRegister(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	b := make([]byte, 100)
	p := unsafe.Pointer(&b[0])
	at := must(v.Register(p, 100))(t)
	if n := d.Counters().Devices[0].Registered; n != 100 {
		t.Errorf("%d bytes registered", n)
	}
	s := stream(t, v)
	check(t, v.Fill(s, at+50, 'x', 1, 50))
	check(t, drain(t, v, s))
	if !bytes.Equal(b[49:52], []byte{0, 'x', 'x'}) {
		t.Errorf("memory %q", b)
	}
	for say, err := range map[string]error{
		"pinned already":    second(v.Register(unsafe.Pointer(&b[99]), 1)),
		"invalid value":     second(v.Register(nil, 1)),
		"Unregister":        v.Free(driver.Mem{Kind: driver.HostMem, Ptr: at}),
		"nothing was alloc": v.Unregister(unsafe.Pointer(new(int))),
	} {
		refused(t, err, simdriver.ErrInvalidValue, say)
	}
	check(t, v.Unregister(p))
	refused(t, v.Unregister(p), simdriver.ErrInvalidValue)
	check(t, v.Upload(s, alloc(t, v, driver.DeviceMem, 100).Ptr, p, 100)) // the program can still use the memory
	check(t, drain(t, v, s))

	read := must(v.(driver.ReadOnlyRegistrar).RegisterReadOnly(p, 100))(t)
	check(t, v.Copy(s, alloc(t, v, driver.DeviceMem, 100).Ptr, read, 100))
	check(t, drain(t, v, s))
	check(t, v.Fill(s, read+50, 'y', 1, 50))
	var missed *simdriver.AccessError
	if err := drain(t, v, s); !errors.As(err, &missed) || !missed.ReadOnly || !strings.Contains(err.Error(), "read-only") || b[50] != 'x' {
		t.Errorf("a fill of read-only memory: %v", err)
	}

	none := driver.Caps{}
	_, vs = open(t, simdriver.Config{Caps: &none})
	_, err := vs[0].Register(p, 1)
	refused(t, err, driver.ErrUnsupported)
	_, err = vs[0].Alloc(driver.ManagedMem, 1)
	refused(t, err, driver.ErrUnsupported)
	_, err = vs[0].(driver.ReadOnlyRegistrar).RegisterReadOnly(p, 1)
	refused(t, err, driver.ErrUnsupported)
	refused(t, vs[0].(driver.Prefetcher).Prefetch(stream(t, vs[0]), 0, 1, driver.DeviceMem), driver.ErrUnsupported)
}

func TestPrefetch(t *testing.T) {
	_, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, m, other := stream(t, v), alloc(t, v, driver.ManagedMem, 64), alloc(t, v, driver.DeviceMem, 64)
	prefetch := v.(driver.Prefetcher).Prefetch
	check(t, v.Fill(s, m.Ptr, 7, 1, 64))
	check(t, prefetch(s, m.Ptr, 64, driver.HostMem))
	check(t, prefetch(s, m.Ptr+60, 4, driver.DeviceMem))
	check(t, prefetch(s, 0, 0, driver.DeviceMem))
	check(t, drain(t, v, s))
	if b := unsafe.Slice((*byte)(m.Host), 64); b[0] != 7 || b[63] != 7 {
		t.Errorf("%v", b)
	}
	for say, err := range map[string]error{
		"not managed":    prefetch(s, other.Ptr, 64, driver.DeviceMem),
		"memory of kind": prefetch(s, m.Ptr, 64, driver.ManagedMem),
	} {
		refused(t, err, simdriver.ErrInvalidValue, say)
	}
	check(t, prefetch(s, m.Ptr, 65, driver.DeviceMem))
	if err := drain(t, v, s); !errors.Is(err, driver.ErrLost) {
		t.Errorf("more than there is: %v", err)
	}
}
