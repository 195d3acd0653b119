package simdriver_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func natives(v driver.Device) driver.Natives   { return v.(driver.Natives) }
func capturer(v driver.Device) driver.Capturer { return v.(driver.Capturer) }

// TestEnter nests Enter and Leave, on a driver that checks which device is current.
func TestEnter(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("threads cannot be told apart here")
	}
	d, vs := open(t, simdriver.Config{Devices: 3, Strict: true})
	current := func(what string, want int) {
		t.Helper()
		if i, ok := d.Current(); ok != (want >= 0) || ok && i != want {
			t.Errorf("%s: device %d, %v is current; want %d", what, i, ok, want)
		}
	}
	for _, before := range []int{-1, 0, 1} { // no device is current before, device 0, or device 1
		onThread(func() {
			if before >= 0 {
				check(t, vs[before].Bind())
			}
			was := must(natives(vs[0]).Enter())(t)
			current("entered", 0)
			s, m := stream(t, vs[0]), alloc(t, vs[0], driver.DeviceMem, 8)
			check(t, vs[0].Fill(s, m.Ptr, 1, 1, 8))
			inner := must(natives(vs[1]).Enter())(t)
			current("nested", 1)
			_, err := vs[0].NewStream()
			refused(t, err, simdriver.ErrInvalidContext, "but device 1 is current")
			check(t, vs[2].Bind()) // a native function may leave another device current
			check(t, natives(vs[1]).Leave(inner))
			current("left", 0)
			check(t, drain(t, vs[0], s))
			check(t, vs[0].DestroyStream(s))
			check(t, vs[0].Free(m))
			check(t, vs[2].Bind())
			check(t, natives(vs[0]).Leave(was))
			current("left again", before)
			if before >= 0 {
				check(t, vs[before].Unbind())
			}
		})
	}
	d.Inject(simdriver.Fault{Op: simdriver.OpEnter, Device: 1, N: 2, Err: errTest})
	onThread(func() {
		was := must(natives(vs[1]).Enter())(t)
		_, err := natives(vs[1]).Enter()
		refused(t, err, errTest, "enter")
		check(t, natives(vs[1]).Leave(was))
		current("after a fault", -1)
	})
	if c := d.Counters(); c.Devices[0].Calls[simdriver.OpEnter] != 3 || c.Devices[1].Calls[simdriver.OpEnter] != 5 {
		t.Errorf("calls %v and %v", c.Devices[0].Calls, c.Devices[1].Calls)
	}
	for _, v := range vs { // close the devices on threads that are bound to them
		onThread(func() {
			check(t, v.Bind())
			v.Close() // events are left
		})
	}
	_, vs = open(t, simdriver.Config{Caps: new(driver.Caps)})
	_, err := natives(vs[0]).Enter()
	refused(t, err, driver.ErrUnsupported, "enter")
}

// adder returns the kernels "add" and "take". Each of them changes eight bytes.
func adder() map[string]simdriver.Kernel {
	by := func(sign int) any {
		return func(g *simdriver.Grid, p driver.Ptr, n uint8) error {
			b, err := simdriver.View[byte](g, p, 8)
			for i := range b {
				b[i] += byte(sign * int(n))
			}
			return err
		}
	}
	return kernels(map[string]any{"add": by(1), "take": by(-1)})
}

// captured returns a graph of the operations that f submits to a stream.
func captured(t testing.TB, v driver.Device, s driver.Stream, f func()) driver.Graph {
	t.Helper()
	check(t, capturer(v).BeginCapture(s))
	f()
	return must(capturer(v).EndCapture(s))(t)
}

// TestCapture captures every kind of operation that can be captured. A launch of the graph executes
// the operations in order. Kernels get the arguments that were passed during the capture, and host
// memory is read when the graph executes.
func TestCapture(t *testing.T) {
	for _, manual := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Deterministic: manual, Kernels: adder()})
		v := vs[0]
		s, other, m := stream(t, v), stream(t, v), alloc(t, v, driver.DeviceMem, 32)
		f, n, in, out := function(t, v, "add"), uint8(3), []byte("abcdefgh"), make([]byte, 32)
		finish := func() {
			t.Helper()
			e, o := record(t, v, s), record(t, v, other)
			d.Run()
			check(t, wait(t, v, e))
			check(t, wait(t, v, o))
		}
		check(t, v.Fill(s, m.Ptr, '.', 1, 32))
		finish()
		g := captured(t, v, s, func() {
			check(t, v.Upload(s, m.Ptr, unsafe.Pointer(&in[0]), 8))
			check(t, launch(v, s, f, unsafe.Pointer(&m.Ptr), unsafe.Pointer(&n)))
			n = 100 // Launch has read the argument during the capture
			check(t, v.Copy(s, m.Ptr+8, m.Ptr, 8))
			check(t, v.Fill(s, m.Ptr, '-', 1, 4))
			check(t, v.FillStrided(s, m.Ptr+16, 0x41414141, 8, 2))
			check(t, v.Download(s, unsafe.Pointer(&out[0]), m.Ptr, 32))
			check(t, v.Fill(other, m.Ptr+31, '!', 1, 1)) // other streams are not captured
			finish2 := record(t, v, other)
			d.Run()
			check(t, wait(t, v, finish2))
		})
		if c := d.Counters().Devices[0]; c.Graphs != 1 {
			t.Errorf("counters %+v", c)
		}
		if got := string(unsafe.String(&out[0], 1)); got != "\x00" {
			t.Errorf("the download is done while it is captured: %q", got)
		}
		check(t, v.Download(s, unsafe.Pointer(&out[0]), m.Ptr, 32))
		finish()
		if string(out) != "...............................!" {
			t.Errorf("%q while all is captured", out)
		}
		copy(in, "ABCDEFGH") // the graph reads host memory when it runs
		x := instantiate(t, v, g)
		check(t, graphs(v).DestroyGraph(g))
		check(t, graphs(v).LaunchGraph(s, x))
		finish()
		if string(out) != "----HIJKDEFGHIJKAAAA....AAAA...!" {
			t.Errorf("%q", out)
		}
		// An empty capture makes an empty graph, and the stream works as before.
		empty := instantiate(t, v, captured(t, v, s, func() {}))
		check(t, graphs(v).LaunchGraph(s, empty))
		check(t, v.Fill(s, m.Ptr, '+', 1, 1))
		check(t, v.Download(s, unsafe.Pointer(&out[0]), m.Ptr, 1))
		finish()
		if out[0] != '+' {
			t.Errorf("%q", out[0])
		}
	}
}

// TestCaptureRefused submits operations that cannot be captured to a stream that is being captured.
// They fail, and so does EndCapture. Everything else works as before.
func TestCaptureRefused(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2, Kernels: adder()})
	v, w := vs[0], vs[1]
	s, other, m := stream(t, v), stream(t, v), alloc(t, v, driver.DeviceMem, 8)
	managed, p := alloc(t, v, driver.ManagedMem, 64), pool(t, v, 0)
	pooled, e, g := allocAsync(t, v, s, p, 64), event(t, v), graph(t, v)
	node(t, v, g, fillOp(m.Ptr, 1, 8))
	x := instantiate(t, v, g)
	id := must(comms(v).NewUniqueID())(t)
	comm := must(comms(v).NewComm(driver.CommDesc{ID: id, Count: 1}))(t)
	defer comms(v).DestroyComm(comm)
	check(t, drain(t, v, s))
	check(t, d.StallStream(other))
	pends := record(t, v, other)
	for name, f := range map[string]func() error{
		"record":          func() error { return v.Record(e, s) },
		"record of timer": func() error { return v.Record(timer(t, v), s) },
		"wait":            func() error { return v.StreamWait(s, pends) },
		"wait for itself": func() error { return v.StreamWait(s, e) },
		"prefetch":        func() error { return v.(driver.Prefetcher).Prefetch(s, managed.Ptr, 64, driver.HostMem) },
		"alloc async":     func() error { return second(pools(v).AllocAsync(s, p, 64)) },
		"free async":      func() error { return pools(v).FreeAsync(s, pooled) },
		"launch graph":    func() error { return graphs(v).LaunchGraph(s, x) },
		"collect":         func() error { return comms(v).Collect(s, comm, []driver.CommOp{sum(m)}) },
	} {
		check(t, capturer(v).BeginCapture(s))
		check(t, v.Fill(s, m.Ptr, 1, 1, 8))
		refused(t, f(), simdriver.ErrInvalidValue, "capturing")
		check(t, v.Fill(s, m.Ptr, 1, 1, 8)) // EndCapture returns the error of the first call
		if g, err := capturer(v).EndCapture(s); g != 0 {
			t.Errorf("%s: a graph is made", name)
		} else {
			refused(t, err, simdriver.ErrInvalidValue, "end capture", "capturing")
		}
	}
	check(t, d.ResumeStream(other))
	check(t, v.StreamWait(s, pends))
	check(t, v.Record(e, s))
	check(t, wait(t, v, e))
	check(t, pools(v).FreeAsync(s, pooled))
	check(t, drain(t, v, s))
	check(t, destroyed(graphs(v).DestroyExec, x))
	if n := attr(t, v, p, driver.PoolUsed); n != 0 {
		t.Errorf("%d bytes of the pool are in use", n)
	}

	end := func(v driver.Device, s driver.Stream) error { return second(capturer(v).EndCapture(s)) }
	refused(t, end(v, s), simdriver.ErrInvalidValue, "is not capturing")
	check(t, capturer(v).BeginCapture(s))
	refused(t, capturer(v).BeginCapture(s), simdriver.ErrInvalidValue, "already capturing")
	check(t, capturer(v).BeginCapture(other)) // several streams can be captured at once
	check(t, end(v, other))
	check(t, end(v, s))
	check(t, d.StallStream(s))
	check(t, v.Fill(s, m.Ptr, 1, 1, 8))
	refused(t, capturer(v).BeginCapture(s), simdriver.ErrBusy, "1 operations are pending")
	check(t, d.ResumeStream(s))
	check(t, drain(t, v, s))
	for _, err := range []error{capturer(v).BeginCapture(99), end(v, 99), capturer(w).BeginCapture(s), end(w, s)} {
		refused(t, err, simdriver.ErrInvalidHandle)
	}
	for _, fault := range []simdriver.Fault{{Op: simdriver.OpBeginCapture, N: 1, Err: errTest}, {Op: simdriver.OpEndCapture, N: 1, Err: errTest},
		{Op: simdriver.OpFill, N: 1, Err: errTest}, {Op: simdriver.OpFill, N: 1, Err: errTest, AtExecution: true}} {
		d.Inject(fault)
		err := capturer(v).BeginCapture(s)
		if err == nil {
			err = v.Fill(s, m.Ptr, 1, 1, 8)
			if fault.AtExecution {
				check(t, err)
			}
			if e := end(v, s); err == nil {
				err = e
			}
		}
		refused(t, err, errTest)
		// The fault is used up, and the device works.
		check(t, graphs(v).DestroyGraph(captured(t, v, s, func() {})))
	}
	check(t, capturer(v).BeginCapture(s))
	check(t, v.DestroyStream(s)) // this ends the capture too

	caps := simdriver.CUDACaps()
	caps.Capture = false
	_, vs = open(t, simdriver.Config{Caps: &caps})
	s = stream(t, vs[0])
	refused(t, capturer(vs[0]).BeginCapture(s), driver.ErrUnsupported, "begin capture")
	refused(t, end(vs[0], s), simdriver.ErrInvalidValue, "is not capturing")
}

// TestSetChild sets child nodes to graphs of the same shape while launches are in flight, and to
// graphs of other shapes.
func TestSetChild(t *testing.T) {
	for _, manual := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Devices: 2, Deterministic: manual, Kernels: adder()})
		v, w := vs[0], vs[1]
		s, cs, m := stream(t, v), stream(t, v), alloc(t, v, driver.DeviceMem, 64)
		mod := must(v.Load(simdriver.Image("add", "take")))(t)
		add, _, err := v.Function(mod, "add")
		check(t, err)
		take, _, err := v.Function(mod, "take")
		check(t, err)
		// work returns a graph of a fill, kernels and a copy, in this order.
		work := func(at driver.Ptr, with byte, by uint8, fs ...driver.Function) driver.Graph {
			return captured(t, v, cs, func() {
				check(t, v.Fill(cs, at, uint32(with), 1, 8))
				for _, f := range fs {
					check(t, launch(v, cs, f, unsafe.Pointer(&at), unsafe.Pointer(&by)))
				}
				check(t, v.Copy(cs, at+8, at, 4))
			})
		}
		g := graph(t, v)
		first := node(t, v, g, fillOp(m.Ptr, '.', 64))
		child := node(t, v, g, driver.NodeOp{Kind: driver.ChildNode, Child: work(m.Ptr, 'a', 1, add)}, first)
		node(t, v, g, fillOp(m.Ptr+32, '!', 4), child)
		x := instantiate(t, v, g)
		set := func(n driver.Node, c driver.Graph) error {
			return graphs(v).SetNode(x, n, &driver.NodeOp{Kind: driver.ChildNode, Child: c})
		}
		// The launches are pending. Each runs the child that was set when LaunchGraph was called.
		check(t, d.StallStream(s))
		outs, want := make([][]byte, 10), make([][]byte, 10)
		for i := range outs {
			outs[i] = make([]byte, 36)
			if i > 0 {
				c := work(m.Ptr+driver.Ptr(2*i%16), 'a'+byte(i), uint8(i), add)
				check(t, set(child, c))
				check(t, graphs(v).DestroyGraph(c)) // the exec has a copy
			}
			check(t, graphs(v).LaunchGraph(s, x))
			check(t, v.Download(s, unsafe.Pointer(&outs[i][0]), m.Ptr, 36))
			by := max(i, 1)
			want[i] = bytes.Repeat([]byte{'.'}, 36)
			copy(want[i][2*i%16:], bytes.Repeat([]byte{'a' + byte(i) + byte(by)}, 12))
			copy(want[i][32:], "!!!!")
		}
		check(t, d.ResumeStream(s))
		e := record(t, v, s)
		d.Run()
		check(t, wait(t, v, e))
		if !slices.EqualFunc(outs, want, bytes.Equal) {
			t.Errorf("%q\nwant\n%q", outs, want)
		}

		fills := captured(t, v, cs, func() {
			for range 3 {
				check(t, v.Fill(cs, m.Ptr, 1, 1, 8))
			}
		})
		nested := graph(t, v)
		node(t, v, nested, driver.NodeOp{Kind: driver.ChildNode, Child: fills}, node(t, v, nested, kernelOp(add, unsafe.Pointer(&m.Ptr), ptr(1)), node(t, v, nested, fillOp(m.Ptr, 1, 8))))
		abreast := graph(t, v) // the nodes of work without edges
		for _, op := range []driver.NodeOp{fillOp(m.Ptr, 1, 8), kernelOp(add, unsafe.Pointer(&m.Ptr), ptr(1)), copyOp(m.Ptr+8, m.Ptr, 4)} {
			node(t, v, abreast, op)
		}
		gone := graph(t, v)
		check(t, graphs(v).DestroyGraph(gone))
		for name, c := range map[string]struct {
			child driver.Graph
			want  error
			says  string
		}{
			"fewer nodes":        {work(m.Ptr, 'x', 1), simdriver.ErrInvalidValue, "a child of 2 nodes instead of 3"},
			"more nodes":         {work(m.Ptr, 'x', 1, add, add), simdriver.ErrInvalidValue, "a child of 4 nodes"},
			"none":               {graph(t, v), simdriver.ErrInvalidValue, "a child of 0 nodes"},
			"another kernel":     {work(m.Ptr, 'x', 1, take), simdriver.ErrInvalidValue, "node 1 of the child"},
			"other kinds":        {fills, simdriver.ErrInvalidValue, "node 1 of the child"},
			"other edges":        {abreast, simdriver.ErrInvalidValue, "node 1 of the child"},
			"a child of its own": {nested, simdriver.ErrInvalidValue, "node 2 of the child"},
			"a destroyed one":    {gone, simdriver.ErrInvalidHandle, "was destroyed"},
			"another device's":   {graph(t, w), simdriver.ErrInvalidHandle, "belongs to device 1"},
		} {
			if err := set(child, c.child); err == nil {
				t.Errorf("%s: no error", name)
			} else {
				refused(t, err, c.want, c.says)
			}
		}
		refused(t, set(first, fills), simdriver.ErrInvalidValue, fmt.Sprintf("kind is %d and cannot change", driver.FillNode))
		check(t, graphs(v).LaunchGraph(s, x)) // runs the child that was set last
		e = record(t, v, s)
		d.Run()
		check(t, wait(t, v, e))

		// A child graph that has child nodes itself cannot be set. On a device without Caps.Capture
		// no child can be set.
		deep := graph(t, v)
		dn := node(t, v, deep, driver.NodeOp{Kind: driver.ChildNode, Child: nested})
		x = instantiate(t, v, deep)
		refused(t, set(dn, nested), simdriver.ErrInvalidValue, "node 2 of the child")
	}
	caps := simdriver.CUDACaps()
	caps.Capture = false
	_, vs := open(t, simdriver.Config{Caps: &caps})
	g, c := graph(t, vs[0]), graph(t, vs[0])
	n := node(t, vs[0], g, driver.NodeOp{Kind: driver.ChildNode, Child: c})
	refused(t, graphs(vs[0]).SetNode(instantiate(t, vs[0], g), n, &driver.NodeOp{Kind: driver.ChildNode, Child: c}), simdriver.ErrInvalidValue, "cannot be changed")
}
