package simdriver_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// BenchmarkSubmit times the submitting calls. The wait for the work of 1,000 calls is not timed.
func BenchmarkSubmit(b *testing.B) {
	nop := simdriver.MustKernel(func(g *simdriver.Grid, n uint64, a float32, x driver.Ptr) {})
	for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
		d := simdriver.New(simdriver.Config{Strict: true, Caps: &caps, Kernels: map[string]simdriver.Kernel{"nop": nop}})
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		v, err := d.Open(0)
		if err != nil {
			b.Fatal(err)
		}
		v.Bind()
		s, _ := v.NewStream()
		s2, _ := v.NewStream()
		e, _ := v.NewEvent()
		end, _ := v.NewEvent()
		m, _ := v.Alloc(driver.DeviceMem, 4096)
		mod, _ := v.Load(simdriver.Image("nop"))
		f, _, err := v.Function(mod, "nop")
		if err != nil {
			b.Fatal(err)
		}
		n, a, x := uint64(1), float32(2), m.Ptr
		l := driver.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1},
			Args: []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&a), unsafe.Pointer(&x)}}
		drain := func(s driver.Stream) {
			for {
				v.Record(end, s)
				for {
					done, err := v.Query(end)
					if err != nil {
						b.Fatal(err)
					}
					if done {
						return
					}
					runtime.Gosched()
				}
			}
		}
		for _, bb := range []struct {
			name string
			f    func() error
		}{
			{"fill", func() error { return v.Fill(s, m.Ptr, 1, 4, 16) }},
			{"copy", func() error { return v.Copy(s, m.Ptr, m.Ptr+64, 64) }},
			{"launch", func() error { return v.Launch(s, &l) }},
			{"fill+record", func() error { v.Fill(s, m.Ptr, 1, 4, 16); return v.Record(e, s) }},
			{"record", func() error { return v.Record(e, s) }},
			{"query", func() error { _, err := v.Query(e); return err }},
			{"wait", func() error { return v.StreamWait(s2, e) }},
			{"fill+record+wait+fill", func() error {
				if caps.RerecordEvents {
					v.Fill(s, m.Ptr, 1, 4, 16)
					v.Record(e, s)
					v.StreamWait(s2, e)
					return v.Fill(s2, m.Ptr+2048, 1, 4, 16)
				}
				return nil
			}},
		} {
			b.Run(fmt.Sprintf("rerecord=%v/%s", caps.RerecordEvents, bb.name), func(b *testing.B) {
				runtime.LockOSThread() // the run's goroutine is new, so bind its thread
				defer runtime.UnlockOSThread()
				v.Bind()
				b.ReportAllocs()
				for i := range b.N {
					if i%1000 == 999 {
						b.StopTimer()
						drain(s)
						drain(s2)
						b.StartTimer()
					}
					if err := bb.f(); err != nil {
						b.Fatal(err)
					}
				}
				drain(s)
				drain(s2)
			})
		}
		v.Bind()
		v.Close() // destroys the objects that are left
	}
}

// BenchmarkWake times the submission to a stream whose goroutine sleeps.
func BenchmarkWake(b *testing.B) {
	d := simdriver.New(simdriver.Config{})
	v, _ := d.Open(0)
	s, _ := v.NewStream()
	m, _ := v.Alloc(driver.DeviceMem, 4096)
	for range b.N {
		b.StopTimer()
		time.Sleep(100 * time.Microsecond)
		b.StartTimer()
		v.Fill(s, m.Ptr, 1, 4, 1024)
	}
	v.Close()
}

// BenchmarkRoundTrip times an operation from its submission until its event is seen complete.
func BenchmarkRoundTrip(b *testing.B) {
	d := simdriver.New(simdriver.Config{})
	v, _ := d.Open(0)
	s, _ := v.NewStream()
	e, _ := v.NewEvent()
	m, _ := v.Alloc(driver.DeviceMem, 4096)
	b.ReportAllocs()
	for b.Loop() {
		v.Fill(s, m.Ptr, 1, 4, 1024)
		v.Record(e, s)
		for done := false; !done; {
			done, _ = v.Query(e)
		}
	}
	v.Close()
}

// BenchmarkAsync times allocation and free in stream order, and the launch of a graph of ten nodes,
// five of which can execute concurrently. The wait for the work of 1,000 calls is not timed, except
// for graphs.
func BenchmarkAsync(b *testing.B) {
	d := simdriver.New(simdriver.Config{})
	v, _ := d.Open(0)
	s, _ := v.NewStream()
	end, _ := v.NewEvent()
	m, _ := v.Alloc(driver.DeviceMem, 4096)
	p, _ := pools(v).DefaultPool()
	drain := func() {
		v.Record(end, s)
		for done := false; !done; runtime.Gosched() {
			done, _ = v.Query(end)
		}
	}
	g, _ := graphs(v).NewGraph()
	for i := range driver.Ptr(5) {
		op := driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr + 64*i, Width: 4, Count: 16}
		n, _ := graphs(v).AddNode(g, nil, &op)
		graphs(v).AddNode(g, []driver.Node{n}, &op)
	}
	x, _ := graphs(v).Instantiate(g)
	b.Run("alloc+free", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if i%1000 == 999 {
				b.StopTimer()
				drain()
				b.StartTimer()
			}
			m, err := pools(v).AllocAsync(s, p, 4096)
			if err != nil {
				b.Fatal(err)
			}
			pools(v).FreeAsync(s, m)
		}
		drain()
	})
	b.Run("graph", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			graphs(v).LaunchGraph(s, x)
			drain()
		}
	})
	v.Close()
}
