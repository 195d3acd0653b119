package gputest

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

var threads = []test{
	{name: "B115 the caller's current device does not change", devices: 2, run: func(e *env) {
		if e.h.Current == nil {
			e.Skip("there is no current device")
		}
		check := func(what string, f func()) {
			e.Helper()
			before := e.h.Current()
			f()
			if after := e.h.Current(); after != before {
				e.Errorf("%s: %v is current, and %v was", what, after, before)
			}
		}
		locked(func() {
			for device := -1; device < 2; device++ {
				if device >= 0 {
					e.h.SetCurrent(device)
				}
				for i := range 2 {
					var d *gpu.Device
					check("open", func() {
						var err error
						d, err = gpu.Open(e.h.Driver, i, gpu.Options{Events: 1})
						e.must(err)
					})
					var b *gpu.Buffer
					check("alloc", func() {
						var err error
						b, err = d.Alloc(gpu.DeviceMem, 64)
						e.must(err)
					})
					s := e.sem()
					check("submit", func() {
						for v := range uint64(20) {
							e.must(d.Queue(0).Submit(signal(s, v+1), gpu.Fill(b.All(), []byte{1})))
						}
					})
					check("wait", func() { e.wait(s, 20) })
					if e.h.Kernels {
						check("load", func() {
							x, err := d.Load(kernels.Basic)
							e.must(err)
							_, err = x.Kernel("words")
							e.must(err)
							e.must(x.Close())
						})
					}
					check("update and download", func() {
						data := make([]byte, 64)
						e.must(d.Queue(0).Submit(between(s, 20, s, 21), gpu.UploadCopy(b.All(), data)))
						e.must(d.Queue(0).Submit(between(s, 21, s, 22), gpu.Download(data, b.All())))
						e.wait(s, 22)
					})
					check("host calls", func() {
						e.must(d.Queue(0).Submit(between(s, 22, s, 23), gpu.HostCall(func() error { return nil })))
						e.must(d.Queue(0).Submit(between(s, 23, s, 24), gpu.Notify(func() {})))
						e.must(d.Queue(0).Submit(between(s, 24, s, 25), gpu.Barrier()))
						e.wait(s, 25)
					})
					check("transfers in pieces", func() {
						large, err := d.Alloc(gpu.DeviceMem, 3<<20)
						e.must(err)
						data := &memory{data: make([]byte, 3<<20)}
						e.must(d.Queue(0).Submit(between(s, 25, s, 26), gpu.Upload(large.All(), data.data)))
						e.must(d.Queue(0).Submit(between(s, 26, s, 27), gpu.WriteTo(data, 0, large.All())))
						e.must(d.Queue(0).Submit(between(s, 27, s, 28), gpu.ReadFrom(large.All(), data, 0)))
						e.must(d.Queue(0).Submit(between(s, 28, s, 29), gpu.Download(data.data, large.All())))
						e.wait(s, 29)
						e.must(large.Close())
					})
					check("import", func() {
						x, err := d.ImportHost(make([]byte, 64), nil)
						if !errors.Is(err, driver.ErrUnsupported) {
							e.must(err)
							e.must(x.Close())
						}
						x, err = interop.ImportPointer(d, b.Ptr(), 64, nil)
						e.must(err)
						e.must(x.Close())
					})
					check("the rest", func() {
						q, err := d.Pick(0)
						e.must(err)
						e.must(q.Submit(between(s, 29, s, 30), gpu.Fill(b.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
						e.must(q.Submit(between(s, 30, s, 31), gpu.Copy(b.Range(0, 32), b.Range(32, 32))))
						e.must(q.Flush())
						d.Stats()
						s.Query()
						e.wait(s, 31)
					})
					check("close", func() {
						e.must(b.Close())
						e.must(d.Close())
					})
				}
			}
		})
	}},
	{name: "B118 B119 B120 many goroutines on many queues", run: func(e *env) {
		const goroutines, each = 8, 200
		b := e.buffer(goroutines * 4)
		var wg sync.WaitGroup
		for g := range uint64(goroutines) {
			s := e.sem()
			wg.Go(func() {
				for v := range uint64(each) {
					if err := e.q(int(v)).Submit(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, gpu.Fill(b.Range(4*g, 4), binary.LittleEndian.AppendUint32(nil, uint32(v)))); err != nil {
						e.Error(err)
						return
					}
					if v%16 == g {
						if err := s.Wait(e.ctx, v+1); err != nil {
							e.Error(err)
							return
						}
					}
				}
				if err := s.Wait(e.ctx, each); err != nil {
					e.Error(err)
				}
			})
		}
		wg.Wait()
		for i, w := range e.words(b) {
			if w != each-1 {
				e.Errorf("word %d is %d", i, w)
			}
		}
	}},
	{name: "B120 a storm of signals issues each submission once", calls: true, run: func(e *env) {
		const n = 1000
		b, host, s := e.buffer(n), e.sem(), e.sems(n)
		fills := e.h.Calls(0, "fill")
		var all []gpu.Point
		for i := range uint64(n) {
			e.must(e.q(int(i)).Submit(between(host, i/10*10+1, s[i], 1), gpu.Fill(b.Range(i, 1), []byte{1})))
			all = append(all, gpu.Point{Semaphore: s[i], Value: 1})
		}
		for v := range uint64(n) {
			e.must(host.Signal(v + 1))
		}
		e.must(gpu.WaitAll(e.ctx, all...))
		if got := e.h.Calls(0, "fill") - fills; got != n {
			e.Errorf("%d fills, want %d", got, n)
		}
	}},
}

// locked runs f on a goroutine that is locked to its thread. The thread ends after f.
func locked(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}
