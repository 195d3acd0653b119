package gputest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var buffers = []test{
	{name: "B91 a closed buffer cannot be used", run: func(e *env) {
		b := e.buffer(64)
		e.must(b.Close())
		e.must(b.Close())
		if err := e.q(0).Fill(gpu.Order{}, b.All(), []byte{1}); !errors.Is(err, gpu.ErrClosed) {
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
		e.must(e.q(0).Fill(between(host, 1, s, 1), b.All(), []byte{1}))
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
	{name: "B97 a buffer of no size", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.DeviceMem, 0)
		e.must(err)
		s := e.sem()
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
		e.must(e.q(0).Copy(between(s, 1, s, 2), b.All(), b.All()))
		e.must(e.q(0).Update(between(s, 2, s, 3), b.All(), nil))
		e.must(e.q(0).Download(between(s, 3, s, 4), nil, b.All()))
		e.wait(s, 4)
		if err := e.q(0).Fill(gpu.Order{}, b.Range(0, 1), []byte{1}); !errors.Is(err, gpu.ErrRange) {
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
		e.must(e.q(0).Copy(signal(s, 1), dev.All(), b.All()))
		e.must(e.q(1).Fill(between(s, 1, s, 2), b.All(), []byte{0xaa}))
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
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{0x55}))
		e.wait(s, 1)
		if x := b.Bytes(); len(x) != 256 || x[7] != 0x55 {
			e.Errorf("the host sees %d bytes", len(x))
		}
	}},
	{name: "imported memory is somebody else's", run: func(e *env) {
		own := e.buffer(64)
		b, err := e.devs[0].Import(own.Ptr()+16, 32, nil)
		e.must(err)
		s := e.sem()
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{9}))
		e.wait(s, 1)
		e.must(b.Close())
		got := e.read(own)
		if got[15] != 0 || got[16] != 9 || got[47] != 9 || got[48] != 0 {
			e.Errorf("%x", got)
		}
	}},
	{name: "B97 memory of the program's own moves without being copied on the way, and is let go of once", run: func(e *env) {
		d, mem := e.devs[0], random(5000, 1)
		freed := make(chan struct{}, 2)
		var bufs []*gpu.Buffer
		for _, f := range []func(){nil, func() { freed <- struct{}{} }} {
			own := slices.Clone(mem)
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
			e.must(e.q(0).Copy(signal(s, 1), dev.All(), b.All()))
			e.same("what the device got", e.read(dev, gpu.Point{Semaphore: s, Value: 1}), mem)
			e.must(e.q(1).Fill(between(s, 1, s, 2), b.Range(1, 4998), []byte{0x5a}))
			e.wait(s, 2)
			if own[0] != mem[0] || own[1] != 0x5a || own[4998] != 0x5a || own[4999] != mem[4999] {
				e.Error("the host does not see what the device wrote")
			}
		}
		if st := d.Stats(); st.Buffers != 4 || st.Device.Live != 10_000 || st.Host.Live != 0 { // what is imported does not count
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
			e.Error("told twice")
		}
		again, err := d.ImportHost(mem, nil) // which nobody has registered any more
		e.must(err)
		e.must(again.Close())
	}},
	{name: "B97 memory of the program's own stays while it is used", run: func(e *env) {
		d, mem := e.devs[0], make([]byte, 256)
		freed := make(chan struct{}, 2)
		b, err := d.ImportHost(mem, func() { freed <- struct{}{} })
		if errors.Is(err, driver.ErrUnsupported) {
			e.Skip("host memory cannot be imported")
		}
		e.must(err)
		host, s := e.sem(), e.sem()
		e.must(e.q(0).Fill(between(host, 1, s, 1), b.All(), []byte{1}))
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
		e.must(e.q(0).Fill(between(s, 1, s, 2), left.All(), []byte{2}))
		e.must(d.Close()) // which lets go of it, when it is used no more
		<-freed
		e.same("the memory", mem, bytes.Repeat([]byte{2}, 256))
		e.must(left.Close())
		if len(freed) > 0 {
			e.Error("told twice")
		}
	}},
	{name: "B97 imports of nothing", run: func(e *env) {
		freed := make(chan struct{}, 1)
		for _, mem := range [][]byte{nil, {}} {
			b, err := e.devs[0].ImportHost(mem, func() { freed <- struct{}{} })
			e.must(err)
			s := e.sem()
			e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
			e.wait(s, 1)
			if b.Size() != 0 || b.Bytes() != nil {
				e.Errorf("%d bytes", b.Size())
			}
			e.must(b.Close())
			e.settled(e.devs[0])
			<-freed
		}
	}},
	{name: "B95 who lent memory is told once that it is used no more", run: func(e *env) {
		d, own, host, s := e.devs[0], e.buffer(64), e.sem(), e.sem()
		freed := make(chan struct{}, 2)
		b, err := d.Import(own.Ptr(), 64, func() { freed <- struct{}{} })
		e.must(err)
		e.must(e.q(0).Fill(between(host, 1, s, 1), b.All(), []byte{3}))
		e.must(b.Close())
		e.must(host.Signal(1))
		e.wait(s, 1)
		<-freed
		e.holds(own, 3)
		left, err := d.Import(own.Ptr(), 64, func() { freed <- struct{}{} })
		e.must(err)
		if left.Kind() != gpu.DeviceMem || left.Bytes() != nil || left.Ptr() != own.Ptr() || left.Device() != d {
			e.Error("it is another")
		}
		e.must(d.Close())
		<-freed
		e.must(left.Close())
		if len(freed) > 0 {
			e.Error("told twice")
		}
	}},
	{name: "B97 a buffer of no size is used no more when it is closed", run: func(e *env) {
		for _, kind := range []driver.MemKind{gpu.DeviceMem, gpu.HostMem} {
			b, err := e.devs[0].Alloc(kind, 0)
			e.must(err)
			s := e.sem()
			e.must(e.q(0).Upload(signal(s, 1), b.All(), nil))
			e.must(e.q(1).Read(between(s, 1, s, 2), b.All(), &memory{}, 5))
			e.must(e.q(2).Write(between(s, 2, s, 3), &memory{}, 5, b.All()))
			e.wait(s, 3)
			if b.Kind() != kind || b.Bytes() != nil {
				e.Errorf("kind %d", b.Kind())
			}
			e.must(b.Close())
			if n := e.devs[0].Stats().Buffers; n != 0 {
				e.Errorf("%d buffers", n)
			}
		}
	}},
}
