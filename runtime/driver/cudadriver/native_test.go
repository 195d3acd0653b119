//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestNativeOf(t *testing.T) {
	d := newFake(t, 13000).device()
	if n, ok := NativeOf(d); !ok || n != (Native{d.lib, 40, context0}) {
		t.Errorf("%+v, %v", n, ok)
	}
	for _, other := range []driver.Device{nil, struct{ driver.Device }{d}} {
		if n, ok := NativeOf(other); ok || n != (Native{}) {
			t.Errorf("of another driver: %+v, %v", n, ok)
		}
	}
	if s := Stream(stream0); s != cuda.Stream(stream0) {
		t.Errorf("stream %#x", s)
	}
}

// TestEnter checks that the device is current between Enter and Leave, on threads with and without
// other contexts, and in nested calls. Leave restores the thread's context, even if other code has
// made another context current meanwhile.
func TestEnter(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	other, err := f.driver().Open(1)
	ok(t, err)
	defer other.Close()
	d1 := other.(*device)
	done := make(chan struct{})
	go func() { // on a locked thread, which ends with the goroutine
		defer close(done)
		runtime.LockOSThread()
		check := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		same := func(what string, want uint64) {
			if got := f.stack(); got != want {
				t.Errorf("%s: the thread's contexts are %#x, want %#x", what, got, want)
			}
		}
		both := func(under uint64) {
			was, err := d.Enter()
			check(err)
			same("entered", under<<12|context0)
			inner, err := d1.Enter()
			check(err)
			same("nested", under<<24|context0<<12|context0+1)
			check(d.lib.CtxSetCurrent(0x777)) // other code may change the context
			check(d1.Leave(inner))
			same("left", under<<12|context0)
			check(d.Leave(was))
			same("left again", under)
		}
		f.Calls()
		check(enter(d))
		f.Want("cuCtxPushCurrent_v2(0xc0)", "cuCtxPopCurrent_v2()")
		both(0)
		check(d.lib.CtxPushCurrent(0x111))
		both(0x111)
	}()
	<-done
}

// TestCapture captures a graph and sets a child node to another graph, on several releases.
func TestCapture(t *testing.T) {
	for _, release := range []dl.Version{11040, 11080, 12000, 13000} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := newFake(t, release)
			d := f.device()
			if c := d.Caps(); !c.Native || !c.Capture {
				t.Fatalf("%+v", c)
			}
			fn, _ := function(t, d, "count")
			m, err := d.Alloc(driver.HostMem, 16)
			ok(t, err)
			defer d.Free(m)
			out, counter, by := unsafe.Slice((*byte)(m.Host), 16), new(uint64), new(uint32)
			capture := func(at driver.Ptr, pattern, n uint32, twice bool) driver.Graph {
				t.Helper()
				ok(t, d.BeginCapture(stream0))
				ok(t, d.Fill(stream0, at, pattern, 1, 4))
				*by = n
				l := &driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)}}
				ok(t, d.Launch(stream0, l))
				if twice {
					ok(t, d.Launch(stream0, l))
				}
				g, err := d.EndCapture(stream0)
				ok(t, err)
				return g
			}
			clear(out)
			f.Calls()
			child := capture(m.Ptr, 5, 3, false)
			f.Want("cuStreamBeginCapture_v2(0x5000, 2)", "cuMemsetD8Async(0x5, 4, 0x5000)", "cuLaunchKernel(0xf001, 1 1 1, 1 1 1, 0, 0x5000)", "cuStreamEndCapture(0x5000)")
			if out[0] != 0 || *counter != 0 {
				t.Errorf("%x, and the kernel counts %d, while they are captured", out, *counter)
			}
			g, err := d.NewGraph()
			ok(t, err)
			n, err := d.AddNode(g, nil, &driver.NodeOp{Kind: driver.ChildNode, Child: child})
			ok(t, err)
			ok(t, d.DestroyGraph(child))
			x, err := d.Instantiate(g)
			ok(t, err)
			ok(t, d.LaunchGraph(stream0, x))
			if want := append(bytes.Repeat([]byte{5}, 4), make([]byte, 12)...); !bytes.Equal(out, want) || *counter != 3 {
				t.Errorf("%x, and the kernel counts %d", out, *counter)
			}
			child = capture(m.Ptr+8, 6, 40, false)
			f.Calls()
			ok(t, d.SetNode(x, n, &driver.NodeOp{Kind: driver.ChildNode, Child: child}))
			f.Want("cuCtxPushCurrent_v2(0xc0)", fmt.Sprintf("cuGraphExecChildGraphNodeSetParams(%#x, %#x; %#x)", uintptr(x), uintptr(n), uintptr(child)), "cuCtxPopCurrent_v2()")
			ok(t, d.DestroyGraph(child))
			ok(t, d.LaunchGraph(stream0, x))
			if out[8] != 6 || *counter != 43 {
				t.Errorf("set again: %x, and the kernel counts %d", out, *counter)
			}
			child = capture(m.Ptr, 7, 1, true)
			err = d.SetNode(x, n, &driver.NodeOp{Kind: driver.ChildNode, Child: child})
			if !errors.Is(err, cuda.ErrorGraphExecUpdateFailure) || errors.Is(err, driver.ErrLost) {
				t.Errorf("a child with one more kernel: %v", err)
			}
			ok(t, d.DestroyGraph(child))
			ok(t, d.DestroyExec(x))
			ok(t, d.DestroyGraph(g))
		})
	}
}

// TestSpoiltCapture captures an operation that cannot be captured. The operation fails, and so does
// the end of the capture.
func TestSpoiltCapture(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	end := func() error {
		g, err := d.EndCapture(stream0)
		if (g == 0) != (err != nil) {
			t.Errorf("graph %#x, %v", g, err)
		}
		return err
	}
	ok(t, d.BeginCapture(stream0))
	if err := d.lib.StreamSynchronize(stream0); !errors.Is(err, cuda.ErrorStreamCaptureUnsupported) {
		t.Errorf("a wait is captured: %v", err)
	}
	if err := end(); !errors.Is(err, cuda.ErrorStreamCaptureInvalidated) || errors.Is(err, driver.ErrLost) {
		t.Errorf("%v", err)
	}
	ok(t, d.BeginCapture(stream0))
	ok(t, end())
	if calls := f.failed(); slices.ContainsFunc(calls, func(c string) bool {
		return !strings.Contains(c, "Capture") && !strings.Contains(c, "cuStreamSynchronize")
	}) {
		t.Errorf("failed calls: %q", calls)
	}
}

// TestCaptureNotAsked trims a pool. The trim queries all streams except a capturing one, because a
// query would invalidate the capture.
func TestCaptureNotAsked(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	ok(t, d.Bind())
	s, err := d.NewStream()
	ok(t, err)
	p, err := d.DefaultPool()
	ok(t, err)
	asked := func() bool {
		f.Calls()
		ok(t, d.TrimPool(p, 0))
		return slices.ContainsFunc(f.Calls(), func(c string) bool { return strings.HasPrefix(c, "cuStreamSynchronize") })
	}
	if !asked() {
		t.Error("trimming a pool queries no stream")
	}
	ok(t, d.BeginCapture(s))
	if asked() {
		t.Error("a stream is queried while it is being captured")
	}
	g, err := d.EndCapture(s)
	ok(t, err)
	if !asked() {
		t.Error("a stream is not queried after its capture")
	}
	ok(t, d.DestroyGraph(g))
}
