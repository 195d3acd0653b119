package gpu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestWrongOps checks that Do, Submit and Add return the error of a wrong Op. Submit must then
// signal nothing, and Add must record nothing.
func TestWrongOps(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		q := dev.Queue(0)
		x, k := kernelOf(t, dev, "saxpy")
		b := allocate(t, dev, 64)
		for name, c := range map[string]struct {
			op   gpu.Op
			kind error
			says string
		}{
			"the zero Op":                   {gpu.Op{}, gpu.ErrArgument, "zero Op"},
			"the zero Op with a label":      {gpu.Op{}.Label("it"), gpu.ErrArgument, `"it": `},
			"a BadOp":                       {gpu.BadOp(io.ErrNoProgress), io.ErrNoProgress, ""},
			"a BadOp with a label":          {gpu.BadOp(io.ErrNoProgress).Label("it"), io.ErrNoProgress, `"it": `},
			"a BadOp of no error":           {gpu.BadOp(nil), gpu.ErrArgument, "zero Op"},
			"a fill without a pattern":      {gpu.Fill(b.All(), nil), gpu.ErrArgument, "a pattern of 0 bytes"},
			"a fill with 3 bytes":           {gpu.Fill(b.All(), []byte{1, 2, 3}), gpu.ErrArgument, "a pattern of 3 bytes"},
			"a fill of nothing":             {gpu.Fill(gpu.Range{}, []byte{1}), gpu.ErrArgument, "no buffer"},
			"a copy beyond the end":         {gpu.Copy(b.Range(0, 16), b.Range(56, 16)), gpu.ErrRange, ""},
			"a host call of nothing":        {gpu.HostCall(nil), gpu.ErrArgument, "no function"},
			"a notification of nothing":     {gpu.Notify(nil), gpu.ErrArgument, "no function"},
			"a native call of nothing":      {gpu.Native("it", nil), gpu.ErrArgument, `"it" has no function`},
			"a read from nothing":           {gpu.ReadFrom(b.All(), nil, 0), gpu.ErrArgument, "nothing to read from"},
			"a read before the file":        {gpu.ReadFrom(b.All(), bytes.NewReader(nil), -1), gpu.ErrArgument, "negative offset"},
			"a write to nothing":            {gpu.WriteTo(nil, 0, b.All()), gpu.ErrArgument, "nothing to write to"},
			"an allocation to nowhere":      {gpu.Alloc(nil, nil, 64), gpu.ErrArgument, "nowhere"},
			"a launch of nothing":           {gpu.Launch(nil, gpu.Grid{}), gpu.ErrArgument, "kernel"},
			"a launch of a zero kernel":     {gpu.Launch(new(gpu.Kernel), gpu.Grid{}), gpu.ErrArgument, "kernel"},
			"a launch with nil":             {gpu.Launch(k, gpu.Grid{}, uint64(1), float32(1), nil, b), gpu.ErrArgument, "argument 2 is nil"},
			"a launch with an int":          {gpu.Launch(k, gpu.Grid{}, 1, float32(1), b, b), gpu.ErrArgument, "argument 0 (int): a kernel's int may have another size: use int32 or int64, or float32(1) or float64(1) for a float"},
			"a launch with a string":        {gpu.Launch(k, gpu.Grid{}, "1", float32(1), b, b), gpu.ErrArgument, "argument 0 (string)"},
			"a launch with no bytes":        {gpu.Launch(k, gpu.Grid{}, []byte{}, float32(1), b, b), gpu.ErrArgument, "argument 0"},
			"a launch with a nil buffer":    {gpu.Launch(k, gpu.Grid{}, uint64(1), float32(1), (*gpu.Buffer)(nil), b), gpu.ErrArgument, "argument 2 of saxpy"},
			"a launch with an empty range":  {gpu.Launch(k, gpu.Grid{}, uint64(1), float32(1), b, gpu.Range{}), gpu.ErrArgument, "argument 3 of saxpy"},
			"a launch with a range outside": {gpu.Launch(k, gpu.Grid{}, uint64(1), float32(1), b, b.Range(60, 8)), gpu.ErrRange, "argument 3 of saxpy"},
			"an execution of nothing":       {gpu.Execute(nil), gpu.ErrArgument, ""},
			"an execution of a zero value":  {gpu.Execute(new(gpu.CommandBuffer)), gpu.ErrArgument, ""},
		} {
			if op := c.op.String(); op == "" {
				t.Errorf("%s has no name", name)
			}
			s, done, r := q.NewStream(), semaphores(t, 1)[0], commandBuffer(t, dev, gpu.AutoMode)
			must(t, s.Do(gpu.Barrier()))
			_, recorded := r.Add(c.op)
			// If a recording does not take the kind of Op, it may return ErrArgument instead of the
			// Op's own error.
			if !errors.Is(recorded, c.kind) && !errors.Is(recorded, gpu.ErrArgument) {
				t.Errorf("%s, in a recording: %v", name, recorded)
			}
			for way, err := range map[string]error{"stream": s.Do(c.op), "queue": q.Submit(gpu.Order{Signal: pts(done, 1)}, c.op)} {
				if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.says) {
					t.Errorf("%s, %s: %v; want %v that says %q", name, way, err, c.kind, c.says)
				}
			}
			if err := s.Wait(minute(t)); !errors.Is(err, c.kind) {
				t.Errorf("%s: the stream ends with %v", name, err)
			}
			if v, err := done.Query(); v != 0 || err != nil {
				t.Errorf("%s: the signal is at %d, %v", name, v, err)
			}
			if n, err := r.Add(gpu.Barrier()); n != 0 || err != nil {
				t.Errorf("%s: the next command is %d, %v", name, n, err)
			}
			must(t, r.Close())
		}
		for name, use := range map[string]func(gpu.Op) error{
			"a nil queue":      func(op gpu.Op) error { return (*gpu.Queue)(nil).Submit(gpu.Order{}, op) },
			"a zero queue":     func(op gpu.Op) error { return new(gpu.Queue).Submit(gpu.Order{}, op) },
			"a nil stream":     func(op gpu.Op) error { return (*gpu.Stream)(nil).Do(op) },
			"a zero stream":    func(op gpu.Op) error { return new(gpu.Stream).Do(op) },
			"a nil recording":  func(op gpu.Op) error { _, err := (*gpu.CommandBuffer)(nil).Add(op); return err },
			"a zero recording": func(op gpu.Op) error { _, err := new(gpu.CommandBuffer).Add(op); return err },
			"an ended one": func(op gpu.Op) error {
				r := commandBuffer(t, dev, gpu.AutoMode)
				must(t, r.End())
				_, err := r.Add(op)
				return err
			},
			"stream of nothing": func(gpu.Op) error { return new(gpu.Stream).Do() },
		} {
			if err := use(gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, x.Close())
	})
}

// TestOpAgain uses Ops several times, on several streams and on two devices.
func TestOpAgain(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		g, err := gpu.OpenGroup(d, gpu.Options{})
		must(t, err)
		defer g.Close()
		dev, other := g.Devices()[0], g.Devices()[1]
		x, k := kernelOf(t, dev, "saxpy")
		a, b := dev.Queue(0).NewStream(), dev.Queue(1).NewStream()
		xs, ys := sliceOf[float32](t, a, 1, 2), sliceOf[float32](t, a, 0, 0)

		add := gpu.Launch(k, gpu.GridFor(2, 2), uint64(2), float32(10), xs, ys)
		c := commandBuffer(t, dev, gpu.AutoMode)
		recorded(t)(c.Add(add, recorded(t)(c.Add(add))))
		must(t, c.End())
		twice := gpu.Execute(c)
		must(t, a.Do(add, add.Label("another"), twice))
		must(t, b.After(a.Point()))
		must(t, b.Do(twice, add))
		if got := elementsOf(t, b, ys); !slices.Equal(got, []float32{70, 140}) {
			t.Errorf("seven launches: %v", got)
		}

		// Fill copies its pattern at once. UploadCopy copies its data when the Op is used.
		pattern, data := []byte{1}, []byte{2, 2, 2, 2}
		m := allocate(t, dev, 8)
		fill, upload := gpu.Fill(m.Range(0, 4), pattern), gpu.UploadCopy(m.Range(4, 4), data)
		pattern[0] = 9
		must(t, a.Do(fill, upload))
		copy(data, []byte{3, 3, 3, 3})
		got, later := make([]byte, 8), make([]byte, 8)
		must(t, a.Do(gpu.Download(got, m.All()), fill, upload, gpu.Download(later, m.All())))
		must(t, a.Wait(minute(t)))
		if !bytes.Equal(got, []byte{1, 1, 1, 1, 2, 2, 2, 2}) || !bytes.Equal(later, []byte{1, 1, 1, 1, 3, 3, 3, 3}) {
			t.Errorf("%v, then %v", got, later)
		}

		// Each use of an Alloc Op allocates.
		var p *gpu.Buffer
		alloc := gpu.Alloc(&p, nil, 64)
		must(t, a.Do(alloc))
		first := p
		must(t, a.Do(alloc))
		if p == first || p == nil || first == nil {
			t.Error("the second allocation is the first")
		}
		must(t, a.Do(gpu.Fill(first.All(), []byte{1}), gpu.Fill(p.All(), []byte{2}), gpu.Free(first), gpu.Free(p)))
		if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Alloc(&p, nil, math.MaxUint64)); err == nil {
			t.Error("all the memory there could be is allocated")
		}
		if err := a.Do(gpu.Free(p)); err == nil {
			t.Error("with an error the variable has changed") // p must still be the freed buffer
		}

		// An Op works on any device that has the features that it needs.
		n := 0
		calls := gpu.HostCall(func() error { n++; return nil })
		far, near := other.Queue(0).NewStream(), dev.Queue(0).NewStream()
		dst := allocate(t, other, 8)
		move := gpu.Copy(dst.All(), m.All())
		must(t, near.Do(calls, move, gpu.Fill(m.Range(0, 4), []byte{7})))
		must(t, far.After(near.Point()))
		must(t, far.Do(calls, move))
		must(t, far.Wait(minute(t)))
		if got := bytesOf(t, other.Queue(0), dst); n != 2 || got[0] != 7 || got[7] != 3 {
			t.Errorf("%d calls, %v", n, got)
		}
		must(t, c.Close())
		must(t, x.Close())
	})
}

// TestDoTogether calls Do with several operations from several goroutines. No operation of another
// call may run between the operations of one call.
func TestDoTogether(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const workers, rounds, ops = 8, 10, 5
		s := openDevice(t, d, 0, gpu.Options{}).Queue(0).NewStream()
		var order []int // the order in which the stream's operations ran
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				var all []gpu.Op
				for i := range ops {
					all = append(all, gpu.HostCall(func() error { order = append(order, w*ops+i); return nil }))
				}
				for range rounds {
					if err := s.Do(all...); err != nil {
						t.Error(err)
					}
					runtime.Gosched()
				}
			})
		}
		wg.Wait()
		must(t, s.Wait(minute(t)))
		if len(order) != workers*rounds*ops {
			t.Fatalf("%d operations", len(order))
		}
		for i, x := range order {
			if first := order[i-i%ops]; x != first+i%ops || first%ops != 0 {
				t.Fatalf("operation %d is number %d of worker %d: %v", i, x%ops, x/ops, order)
			}
		}
	})
}

// TestDoWaits calls Do while a first call of Do is adding its operations. The operation of the
// second call must come behind all operations of the first call.
func TestDoWaits(t *testing.T) {
	s := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{}).Queue(0).NewStream()
	var order []string
	inside, ended := make(chan bool, 3), make(chan error)
	slow := func(name string) gpu.Op {
		return gpu.Native(name, func(gpu.NativeCall) error { // Do calls the function
			order = append(order, name)
			inside <- true
			time.Sleep(5 * time.Millisecond) // gives the second call time to begin
			return nil
		})
	}
	go func() {
		<-inside
		ended <- s.Do(gpu.Native("other", func(gpu.NativeCall) error { order = append(order, "other"); return nil }))
	}()
	must(t, s.Do(slow("first"), slow("second"), slow("third")))
	must(t, <-ended)
	must(t, s.Wait(minute(t)))
	if want := []string{"first", "second", "third", "other"}; !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
}

// TestDoStops calls Do with a wrong operation between others. The operations behind the wrong one
// must not be added, and the stream must fail.
func TestDoStops(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		b, host := allocate(t, dev, 8), semaphores(t, 1)[0]
		never := gpu.HostCall(func() error { t.Error("called"); return nil })
		for name, wrong := range map[string]gpu.Op{
			"refused when it is used": gpu.Fill(b.Range(4, 8), []byte{1}), "refused when it was made": gpu.Fill(b.All(), nil), "the zero Op": {},
		} {
			s := dev.Queue(0).NewStream()
			must(t, s.Do(gpu.Fill(b.Range(0, 4), []byte{3}), gpu.Fill(b.Range(4, 4), []byte{4})))
			must(t, s.Wait(minute(t)))
			must(t, s.After(host.At(1)))
			must(t, s.Do(gpu.Barrier())) // parked, and so is the work after it
			err := s.Do(never, wrong, never)
			if !errors.Is(err, gpu.ErrArgument) && !errors.Is(err, gpu.ErrRange) {
				t.Errorf("%s: %v", name, err)
			}
			if again := s.Wait(minute(t)); again != err {
				t.Errorf("%s: the stream ends with %v, want %v", name, again, err)
			}
			for _, ops := range [][]gpu.Op{{gpu.Barrier()}, {never, never}, {}} {
				if again := s.Do(ops...); again != err {
					t.Errorf("%s: %d more operations: %v, want %v", name, len(ops), again, err)
				}
			}
		}
		// Without operations Do adds nothing, and keeps the points given to After for the next
		// operation.
		s, parked := dev.Queue(1).NewStream(), dev.Stats().Parked
		must(t, s.After(host.At(1)))
		must(t, s.Do())
		done := false
		must(t, s.Do(gpu.HostCall(func() error { done = true; return nil })))
		if n := dev.Stats().Parked - parked; n != 1 || done {
			t.Errorf("%d operations wait for the host, want 1", n)
		}
		must(t, host.Signal(1))
		must(t, s.Wait(minute(t)))
		if got := bytesOf(t, dev.Queue(1), b); !bytes.Equal(got, []byte{3, 3, 3, 3, 4, 4, 4, 4}) {
			t.Errorf("the memory has %v", got)
		}
	})
}

// TestLabels checks that errors of calls, and SubmitErrors, have the label of the failed operation.
func TestLabels(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		b, q := allocate(t, dev, 8), dev.Queue(0)
		outside := gpu.Fill(b.Range(4, 8), []byte{1})
		plain := q.Submit(gpu.Order{}, outside)
		label := q.Submit(gpu.Order{}, outside.Label("layer 3"))
		if want := `"layer 3": ` + plain.Error(); label.Error() != want || !errors.Is(label, gpu.ErrRange) {
			t.Errorf("%v; want %s", label, want)
		}
		if err := q.NewStream().Do(gpu.Barrier().Label("first"), outside.Label("layer 3"), gpu.Barrier().Label("last")); err.Error() != label.Error() {
			t.Errorf("a stream: %v; want %v", err, label)
		}
		if err := q.NewStream().Do(gpu.Barrier().Label("first"), outside); err.Error() != plain.Error() {
			t.Errorf("a label of another operation: %v; want %v", err, plain)
		}
		if err := q.NewStream().Do(outside.Label("layer 3").Label("")); err.Error() != plain.Error() {
			t.Errorf("a label that was removed: %v", err)
		}
		if _, err := commandBuffer(t, dev, gpu.AutoMode).Add(outside.Label("layer 3")); !errors.Is(err, gpu.ErrRange) || !strings.Contains(fmt.Sprint(err), `"layer 3"`) {
			t.Errorf("a recording: %v", err)
		}
		failing := func() error { return io.ErrNoProgress }
		for want, op := range map[string]gpu.Op{
			"layer 3": gpu.HostCall(failing).Label("layer 3"),
			"":        gpu.HostCall(failing),
			"read":    gpu.ReadFrom(b.All(), bytes.NewReader(nil), 0).Label("read"),
			"gemm":    gpu.Native("gemm", func(gpu.NativeCall) error { return io.ErrNoProgress }, b.All()),
			"renamed": gpu.Native("gemm", func(gpu.NativeCall) error { return io.ErrNoProgress }, b.All()).Label("renamed"),
		} {
			if strings.HasSuffix(op.String(), `("gemm")`) != (want == "gemm") || (want != "") != strings.HasSuffix(op.String(), fmt.Sprintf("(%q)", want)) {
				t.Errorf("%q: the Op is called %v", want, op)
			}
			s := q.NewStream()
			err := s.Do(gpu.Barrier().Label("before"), op, gpu.Barrier().Label("behind"))
			if errors.Is(err, driver.ErrUnsupported) && !caps.Native {
				continue
			}
			must(t, err)
			err = s.Wait(minute(t))
			var failed *gpu.SubmitError
			if !errors.As(err, &failed) || failed.Label != want || want != "" && !strings.Contains(err.Error(), fmt.Sprintf(" (%q) on queue 0", want)) {
				t.Errorf("%q: %v", want, err)
			}
		}
		// If a call returns the SubmitError of an earlier operation, the label of its own Op is not
		// added.
		s, never := q.NewStream(), semaphores(t, 1)[0]
		must(t, s.Do(gpu.HostCall(failing).Label("layer 3")))
		if err := s.Wait(minute(t)); err == nil || s.Do(gpu.Barrier().Label("later")) != err {
			t.Errorf("%v", err)
		}
		must(t, never.Signal(1))
	})
}

// TestTimedOps calls Do with several operations, two of which have a Timing. Each Timing must
// measure its own operation.
func TestTimedOps(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, dev, sleep := sleeper(t, caps, gpu.Options{})
				var timings [2]*gpu.Timing
				for i := range timings {
					var err error
					timings[i], err = dev.NewTiming()
					must(t, err)
				}
				nap := func(n time.Duration) gpu.Op { return sleep.Launch(gpu.GridFor(1, 1), sleepArgs{uint64(n)}) }
				s := dev.Queue(0).NewStream()
				must(t, s.Do(nap(100), nap(777).Timed(timings[0]), nap(50), nap(5555).Label("it").Timed(timings[1]), nap(3)))
				must(t, s.Wait(context.Background()))
				for i, want := range []time.Duration{777, 5555} {
					if took, err := timings[i].Duration(); took != want || err != nil {
						t.Errorf("%v, %v; want %v", took, err, want)
					}
				}
				again := nap(40).Timed(timings[0])
				for range 2 {
					must(t, s.Do(again))
					must(t, s.Wait(context.Background()))
					if took, err := timings[0].Duration(); took != 40 || err != nil {
						t.Errorf("again: %v, %v", took, err)
					}
				}
				c := commandBuffer(t, dev, gpu.AutoMode)
				if _, err := c.Add(again); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "Timing") {
					t.Errorf("recorded: %v", err)
				}
				recorded(t)(c.Add(again.Timed(nil)))
				must(t, c.Close())
				for _, timing := range timings {
					must(t, timing.Close())
				}
			})
		})
	}
}

// manyArgs has kernel arguments of many sizes, more than fit in an Op.
type manyArgs struct {
	Out   gpu.Slice[uint64]
	A     [3]uint32  // 12 bytes
	B     [2]uint64  // 16
	C     [3]uint64  // 24
	D     [16]uint64 // 128
	E     uint8
	F     [12]byte
	G     [20]byte
	H     [24]byte
	I     [128]byte
	J     uint16
	K     gpu.Range
	L     *gpu.Buffer
	M     driver.Ptr
	N     bool32
	O     [17]uint8
	P, Q  uint64
	R     float64
	S     int8
	Last  uint32
	extra uint64
}

// A bool32 is a struct of 4 bytes. A kernel can have it as an argument.
type bool32 struct{ set uint32 }

// manyKernel writes the bytes of its arguments, except out, to the memory at out, one after the
// other.
var manyKernel = simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, a [3]uint32, b [2]uint64, c [3]uint64, d [16]uint64, e uint8, f [12]byte, h20 [20]byte,
	h [24]byte, i [128]byte, j uint16, k, l, m driver.Ptr, n bool32, o [17]uint8, p, q uint64, r float64, s int8, last uint32, extra uint64) error {
	var all []byte
	for _, x := range []any{a, b, c, d, e, f, h20, h, i, j, uint64(k), uint64(l), uint64(m), n.set, o, p, q, r, s, last, extra} {
		var err error
		if all, err = binary.Append(all, binary.NativeEndian, x); err != nil {
			return err
		}
	}
	to, err := simdriver.View[byte](g, out, 512)
	if err == nil {
		copy(to, all)
	}
	return err
})

// TestManyArguments passes more than 16 arguments of many sizes to a kernel, in a stream, in a
// queue and in recordings.
func TestManyArguments(t *testing.T) {
	for _, set := range capabilitySets() {
		t.Run(set.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := simdriver.New(simdriver.Config{Caps: &set.Caps, Strict: true, Kernels: map[string]simdriver.Kernel{"many": manyKernel}})
				dev := openDevice(t, d, 0, gpu.Options{})
				x, k := kernelOf(t, dev, "many")
				typed, err := gpu.Typed[manyArgs](k)
				must(t, err)
				out, err := gpu.AllocSlice[uint64](dev, gpu.DeviceMem, 64)
				must(t, err)
				b := allocate(t, dev, 64)
				args := manyArgs{Out: out, A: [3]uint32{1, 2, 3}, B: [2]uint64{4, 5}, C: [3]uint64{6, 7, 8}, E: 9, J: 10, K: b.Range(16, 8), L: b, M: b.Ptr() + 5,
					N: bool32{1}, P: 11, Q: 12, R: 1.5, S: -3, Last: 13, extra: 14}
				for i := range args.D {
					args.D[i] = uint64(i) << 33
				}
				for i := range args.I {
					args.F[i%12], args.G[i%20], args.H[i%24], args.I[i], args.O[i%17] = byte(i), byte(i+1), byte(i+2), byte(i+3), byte(i+4)
				}
				var want []byte
				for _, x := range []any{args.A, args.B, args.C, args.D, args.E, args.F, args.G, args.H, args.I, args.J, uint64(b.Ptr() + 16), uint64(b.Ptr()),
					uint64(b.Ptr() + 5), args.N.set, args.O, args.P, args.Q, args.R, args.S, args.Last, args.extra} {
					want, err = binary.Append(want, binary.NativeEndian, x)
					must(t, err)
				}
				raw := args // cleared below, because Launch copies the bytes
				ops := map[string]gpu.Op{
					"a struct": typed.Launch(gpu.Grid{}, args),
					"values": gpu.Launch(k, gpu.Grid{}, out, args.A, args.B, args.C, args.D, args.E, args.F, args.G, args.H, args.I, args.J, args.K, args.L, args.M, args.N,
						args.O, args.P, args.Q, args.R, args.S, args.Last, args.extra),
					"bytes": gpu.Launch(k, gpu.Grid{}, out.Range(), raw.A, raw.B, raw.C, raw.D, []byte{9}, raw.F[:], raw.G[:], raw.H[:], raw.I[:], raw.J, b.Range(16, 48), b.All(),
						raw.M, []byte{1, 0, 0, 0}, raw.O[:], raw.P, raw.Q, raw.R, raw.S, raw.Last, raw.extra),
				}
				raw = manyArgs{}
				s, host := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
				turn := uint64(0)
				for name, op := range ops {
					ways := map[string]func() error{
						"a stream": func() error { return s.Do(op) },
						"a queue, parked": func() error {
							turn++
							must(t, s.After(host.At(turn)))
							return errors.Join(inStream(s, dev.Queue(0), op), host.Signal(turn))
						},
					}
					for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
						ways[fmt.Sprintf("a recording of mode %d, nested", mode)] = func() error {
							inner, outer := commandBuffer(t, dev, mode), commandBuffer(t, dev, mode)
							recorded(t)(inner.Add(op))
							must(t, inner.End())
							recorded(t)(outer.Add(gpu.Execute(inner)))
							must(t, outer.End())
							return errors.Join(s.Do(gpu.Execute(outer)), outer.Close(), inner.Close())
						}
					}
					for way, launch := range ways {
						must(t, s.Do(out.Fill(0)))
						must(t, launch())
						if got := gpu.BytesOf(elementsOf(t, s, out)); !bytes.Equal(got[:len(want)], want) {
							t.Errorf("%s, %s: the kernel sees\n%v, want\n%v", name, way, got[:len(want)], want)
						}
					}
				}
				// The error for a wrong range names the argument.
				args.K = b.Range(60, 8)
				if err := s.Do(typed.Launch(gpu.Grid{}, args)); !errors.Is(err, gpu.ErrRange) || !strings.Contains(err.Error(), "argument K of many") {
					t.Errorf("%v", err)
				}
				must(t, out.Close())
				must(t, x.Close())
			})
		})
	}
}

// TestManyBindings executes a recording with more bindings than fit in an Op.
func TestManyBindings(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const n = 40
		dev := openDevice(t, d, 0, gpu.Options{})
		c, b := commandBuffer(t, dev, gpu.AutoMode), allocate(t, dev, n)
		var bound []gpu.Range
		for i := range n {
			x, err := c.Binding()
			must(t, err)
			recorded(t)(c.Add(gpu.Fill(x.Range(0, 1), []byte{byte(i + 1)})))
			bound = append(bound, b.Range(uint64(n-1-i), 1))
		}
		must(t, c.End())
		op := gpu.Execute(c, bound...)
		clear(bound) // the Op has its own copy
		s := dev.Queue(0).NewStream()
		must(t, s.Do(gpu.Fill(b.All(), []byte{0}), op, op))
		must(t, s.Wait(minute(t)))
		for i, x := range bytesOf(t, dev.Queue(0), b) {
			if int(x) != n-i {
				t.Fatalf("byte %d is %d", i, x)
			}
		}
		must(t, c.Close())
	})
}

// A sixteenDriver is an idle driver with a kernel of 16 parameters.
type sixteenDriver struct{ idleDriver }

func (sixteenDriver) Open(int) (driver.Device, error) { return new(sixteenDevice), nil }

type sixteenDevice struct{ kernelDevice }

func (d *sixteenDevice) Function(driver.Module, string) (driver.Function, driver.FuncInfo, error) {
	return 1, driver.FuncInfo{Params: slices.Repeat([]int{8}, 16)}, nil
}

func (d *sixteenDevice) Copy(driver.Stream, driver.Ptr, driver.Ptr, uint64) error { return nil }

type sixteenArgs struct {
	A, B, C, D gpu.Slice[float32]
	E, F, G    gpu.Range
	H          *gpu.Buffer
	I, J, K, L uint64
	M, N, O, P float64
}

// TestOpAllocs tests B142: making and using an Op allocates no Go memory if the arguments fit in
// the Op.
func TestOpAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	dev, err := gpu.Open(sixteenDriver{}, 0, gpu.Options{Spin: -1, Poll: time.Minute})
	must(t, err)
	t.Cleanup(func() { dev.Close() })
	x, err := dev.Load(nil)
	must(t, err)
	k, err := x.Kernel("sixteen")
	must(t, err)
	typed, err := gpu.Typed[sixteenArgs](k)
	must(t, err)
	xs, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 64)
	must(t, err)
	b, q, s := xs.Range().Buffer, dev.Queue(0), dev.Queue(1).NewStream()
	r := commandBuffer(t, dev, gpu.StreamMode)
	for range 3 {
		bound, err := r.Binding()
		must(t, err)
		recorded(t)(r.Add(gpu.Fill(bound.Range(0, 4), []byte{1})))
	}
	param, err := gpu.NewParam(r, uint32(1))
	must(t, err)
	must(t, r.End())
	args := sixteenArgs{xs, xs, xs, xs.Slice(1, 3), b.All(), b.Range(0, 4), b.Range(4, 4), b, 1, 2, 3, 4, 5, 6, 7, 8}
	launch := typed.Launch(gpu.GridFor(100, 64), args)
	pattern, data, label := []byte{1, 2, 3, 4}, make([]byte, 64), strings.Repeat("layer 3", 2)
	done, v := semaphores(t, 1)[0], uint64(0)
	var wait, signal [1]gpu.Point
	next := func() gpu.Order {
		wait[0], signal[0] = done.At(v), done.At(v+1)
		v++
		return gpu.Order{Wait: wait[:], Signal: signal[:]}
	}
	call := func() error { return nil }
	for name, f := range map[string]func() error{
		"fill":              func() error { return s.Do(gpu.Fill(b.All(), pattern)) },
		"fill, short":       func() error { return s.Fill(b.All(), pattern) },
		"fill with a label": func() error { return s.Do(gpu.Fill(b.All(), pattern).Label(label)) },
		"copy":              func() error { return s.Do(gpu.Copy(b.Range(0, 32), b.Range(32, 32))) },
		"several": func() error {
			return s.Do(gpu.Fill(b.All(), pattern), gpu.Copy(b.Range(0, 32), b.Range(32, 32)), gpu.Barrier())
		},
		"16 arguments":            func() error { return s.Do(typed.Launch(gpu.GridFor(100, 64), args)) },
		"16 arguments, once made": func() error { return s.Do(launch) },
		"execution":               func() error { return s.Do(gpu.Execute(r, b.Range(0, 4), b.Range(4, 4), b.Range(8, 4))) },
		"execution with a value": func() error {
			return s.Do(gpu.Execute(r, b.Range(0, 4), b.Range(4, 4), b.Range(8, 4)).With(param.Value(uint32(v))))
		},
		"queue: barrier":           func() error { return q.Submit(next(), gpu.Barrier()) },
		"queue: fill":              func() error { return q.Submit(next(), gpu.Fill(b.All(), pattern)) },
		"queue: fill with a label": func() error { return q.Submit(next(), gpu.Fill(b.All(), pattern).Label(label)) },
		"queue: copy":              func() error { return q.Submit(next(), gpu.Copy(b.Range(0, 32), b.Range(32, 32))) },
		"queue: 16 arguments":      func() error { return q.Submit(next(), typed.Launch(gpu.GridFor(100, 64), args)) },
		"only made": func() error {
			made = [...]gpu.Op{gpu.Upload(b.All(), data), gpu.Download(data, b.All()), gpu.HostCall(call), gpu.Free(b), interop.WriteValue(b.Range(0, 8), 1), xs.Fill(1),
				gpu.Barrier().Label(label).Timed(nil)}
			return nil
		},
		"queue: execution": func() error { return q.Submit(next(), gpu.Execute(r, b.Range(0, 4), b.Range(4, 4), b.Range(8, 4))) },
	} {
		run := func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
			for _, p := range [...]gpu.Point{s.Point(), done.At(v)} { // poll, because a wait may make a Go channel
				for {
					if now, err := p.Semaphore.Query(); now >= p.Value || err != nil {
						break
					}
					runtime.Gosched()
				}
			}
		}
		for range 200 {
			run()
		}
		if n := testing.AllocsPerRun(200, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	must(t, s.Wait(minute(t)))
	must(t, done.Wait(minute(t), v))
	must(t, r.Close())
}

var made [7]gpu.Op // Ops are stored here so that the compiler does not remove them

// recordable returns Ops that a recording of the device takes. Ops that need memory use b, which
// has 64 bytes.
func recordable(t *testing.T, dev *gpu.Device, caps driver.Caps, b *gpu.Buffer) map[string]gpu.Op {
	_, k := kernelOf(t, dev, "nothing")
	typed, err := gpu.Typed[struct{ N uint64 }](k)
	must(t, err)
	child := commandBuffer(t, dev, gpu.AutoMode)
	recorded(t)(child.Add(gpu.Fill(b.Range(0, 8), []byte{1})))
	must(t, child.End())
	ops := map[string]gpu.Op{
		"barrier":      gpu.Barrier(),
		"fill":         gpu.Fill(b.Range(0, 8), []byte{1}),
		"copy":         gpu.Copy(b.Range(8, 8), b.Range(16, 8)),
		"upload":       gpu.Upload(b.Range(24, 3), []byte{1, 2, 3}),
		"upload copy":  gpu.UploadCopy(b.Range(24, 3), []byte{1, 2, 3}),
		"launch":       gpu.Launch(k, gpu.Grid{}, uint64(1)),
		"typed launch": typed.Launch(gpu.Grid{}, struct{ N uint64 }{1}),
		"execute":      gpu.Execute(child),
		"host call":    gpu.HostCall(func() error { return nil }),
	}
	if caps.Native {
		ops["native"] = gpu.Native("it", func(n gpu.NativeCall) error { return n.Device.Fill(n.Stream, n.Ptrs[0], 1, 1, 8) }, b.Range(32, 8))
	}
	if caps.Values {
		ops["value write"], ops["value wait"] = interop.WriteValue(b.Range(40, 8), 7), interop.WaitValue(b.Range(48, 8), 0)
	}
	return ops
}

// TestRecordable checks that a recording takes the Ops that recordable returns, refuses other Ops,
// and refuses all Ops with a Timing.
func TestRecordable(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		b := allocate(t, dev, 64)
		timing, err := dev.NewTiming()
		if errors.Is(err, driver.ErrUnsupported) {
			timing, err = new(gpu.Timing), nil
		}
		must(t, err)
		e, err := interop.NewEvent(dev)
		if !errors.Is(err, driver.ErrUnsupported) {
			must(t, err)
		}
		for _, mode := range []gpu.Mode{gpu.AutoMode, gpu.StreamMode, gpu.GraphMode} {
			if mode == gpu.GraphMode && !caps.Graphs {
				continue
			}
			c, last := commandBuffer(t, dev, mode), gpu.Command(-1)
			var p *gpu.Buffer
			others := map[string]gpu.Op{
				"prefetch": gpu.Prefetch(b.All(), gpu.DeviceMem), "download": gpu.Download(make([]byte, 64), b.All()),
				"read": gpu.ReadFrom(b.All(), bytes.NewReader(make([]byte, 64)), 0), "write": gpu.WriteTo(noWriter{}, 0, b.All()),
				"alloc": gpu.Alloc(&p, nil, 64), "free": gpu.Free(b), "notify": gpu.Notify(func() {}),
				"event record": interop.RecordEvent(e), "event wait": interop.WaitEvent(e), "zero Op": {}, "wrong Op": gpu.BadOp(gpu.ErrArgument),
			}
			all := recordable(t, dev, caps, b)
			for name, op := range all {
				others["a Timing of "+name] = op.Timed(timing)
			}
			for name, op := range others {
				if at, err := c.Add(op); at != -1 || !errors.Is(err, gpu.ErrArgument) || !strings.Contains(fmt.Sprint(err), "command 0") {
					t.Errorf("%s: command %d, %v", name, at, err)
				}
			}
			if p != nil {
				t.Error("it has allocated")
			}
			var after []gpu.Command // the previous command: several commands write the same memory, so their order is fixed
			for name, op := range all {
				at, err := c.Add(op, after...)
				if err != nil || at <= last {
					t.Errorf("%s: command %d behind %d, %v", name, at, last, err)
				}
				at, err = c.Add(op.Label("labelled"), at)
				if err != nil {
					t.Errorf("%s, behind itself: %v", name, err)
				}
				last, after = at, []gpu.Command{at}
			}
			must(t, c.End())
			s := dev.Queue(0).NewStream()
			must(t, s.Do(gpu.Fill(b.All(), []byte{0}), gpu.Execute(c)))
			must(t, s.Wait(minute(t)))
			got := bytesOf(t, dev.Queue(0), b)
			if got[0] != 1 || got[26] != 3 || caps.Native && got[32] != 1 || caps.Values && got[40] != 7 {
				t.Errorf("%v", got)
			}
			must(t, c.Close())
		}
		timing.Close()
		if e != nil {
			must(t, e.Close())
		}
	})
}

// TestAfterNothing passes commands that do not exist to Add, as the commands to come after. Add
// must refuse them for every Op, even for an Op that comes after all earlier commands anyway.
func TestAfterNothing(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		b := allocate(t, dev, 64)
		c := commandBuffer(t, dev, gpu.AutoMode)
		first := recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
		for name, op := range recordable(t, dev, caps, b) {
			for _, after := range [][]gpu.Command{{-1}, {first + 1}, {first, math.MaxInt}, {first, math.MinInt}} {
				if at, err := c.Add(op, after...); at != -1 || !errors.Is(err, gpu.ErrArgument) {
					t.Errorf("%s after %d: command %d, %v", name, after, at, err)
				}
			}
		}
		if _, err := c.Timestamp(first + 1); !errors.Is(err, gpu.ErrArgument) && !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("a timestamp: %v", err)
		}
		if at := recorded(t)(c.Add(gpu.Barrier(), first)); at != first+1 {
			t.Errorf("the next command is %d", at)
		}
		must(t, c.End())
		s := dev.Queue(0).NewStream()
		must(t, s.Do(gpu.Execute(c)))
		must(t, s.Wait(minute(t)))
		must(t, c.Close())
	})
}

// TestNestedSend records, for each of two ranks, a nested recording that ends with a send, and
// behind it a receive. The send and the receive must form one group. Otherwise each send would wait
// for the receive of the other rank.
func TestNestedSend(t *testing.T) {
	for _, depth := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("depth %d", depth), func(t *testing.T) {
			g, comms := openCommunicators(t, newSim(t, simdriver.Config{Devices: 2}), 2, collective.Options{Timeout: 20 * time.Second})
			var streams []*gpu.Stream
			var bufs []*gpu.Buffer
			for i, ch := range comms {
				dev := g.Devices()[i]
				b := allocate(t, dev, 1<<20)
				half := b.Size() / 2
				c := commandBuffer(t, dev, gpu.AutoMode)
				recorded(t)(c.Add(gpu.Fill(b.Range(0, half), []byte{byte(i + 1)})))
				recorded(t)(c.Add(ch.Group(collective.Send(b.Range(0, half), collective.Uint8, 1-i))))
				for range depth {
					must(t, c.End())
					outer := commandBuffer(t, dev, gpu.AutoMode)
					recorded(t)(outer.Add(gpu.Execute(c)))
					must(t, c.Close())
					c = outer
				}
				recorded(t)(c.Add(ch.Group(collective.Receive(b.Range(half, half), collective.Uint8, 1-i))))
				must(t, c.End())
				s := dev.Queue(0).NewStream()
				must(t, s.Do(gpu.Execute(c), gpu.Barrier()))
				must(t, c.Close())
				streams, bufs = append(streams, s), append(bufs, b)
			}
			for i, s := range streams {
				must(t, s.Wait(minute(t)))
				got := bytesOf(t, g.Devices()[i].Queue(0), bufs[i])
				if got[0] != byte(i+1) || got[len(got)-1] != byte(2-i) {
					t.Errorf("rank %d has %d and received %d", i, got[0], got[len(got)-1])
				}
			}
		})
	}
}
