package cudadriver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// A shop holds a device of the runtime, and the same device bound to the test's thread for direct
// CUDA calls.
type shop struct {
	*testing.T
	*device
	dev   *gpu.Device
	index cuda.Function // a kernel that writes i + first to word i
}

func openShop(t *testing.T) *shop {
	t.Helper()
	d := openGPU(t)
	drv, err := New(d.lib)
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Queues: 3})
	ok(t, err)
	t.Cleanup(func() { ok(t, dev.Close()) })
	f, _ := load(t, d, kernels.Basic, "index")
	return &shop{t, d, dev, cuda.Function(f)}
}

// stream makes a stream with a direct CUDA call.
func (x *shop) stream(flags cuda.StreamFlags) cuda.Stream {
	x.Helper()
	s, err := x.lib.StreamCreate(flags)
	ok(x, err)
	x.Cleanup(func() { ok(x, x.lib.StreamDestroy(s)) })
	return s
}

func (x *shop) sem() *gpu.Semaphore {
	x.Helper()
	s, err := gpu.NewSemaphore(0)
	ok(x, err)
	return s
}

// launch runs a kernel in a stream. The kernel writes first, first+1 and so on to the words at out.
func (x *shop) launch(s cuda.Stream, out driver.Ptr, words, first uint32) {
	x.Helper()
	params := []unsafe.Pointer{arg(uint64(words)), arg(first), arg(uint32(1)), arg(out)}
	ok(x, x.lib.LaunchKernel(x.index, (words+63)/64, 1, 1, 64, 1, 1, 0, s, params, nil))
}

func order(w *gpu.Semaphore, wv uint64, s *gpu.Semaphore, sv uint64) gpu.Order {
	return gpu.Order{Wait: []gpu.Point{{Semaphore: w, Value: wv}}, Signal: []gpu.Point{{Semaphore: s, Value: sv}}}
}

// TestGPUAdopted puts kernels into a stream with direct CUDA calls, between a queue's operations on
// the same stream.
func TestGPUAdopted(t *testing.T) {
	x := openShop(t)
	const words, rounds = 4096, 1000
	for name, flags := range map[string]cuda.StreamFlags{"non-blocking": cuda.StreamNonBlocking, "in order with the legacy stream": cuda.StreamDefault} {
		h := x.stream(flags)
		q, err := interop.AdoptStream(x.dev, driver.Stream(h))
		ok(t, err)
		b, err := x.dev.Alloc(gpu.DeviceMem, 4*words)
		ok(t, err)
		host, err := x.dev.Alloc(gpu.HostMem, 8*rounds)
		ok(t, err)
		s := x.sem()
		began := time.Now()
		for i := range uint64(rounds) { // the host submits all rounds without waiting for the device
			ok(t, q.Submit(order(s, 2*i, s, 2*i+1), gpu.Fill(b.All(), []byte{0xff})))
			ok(t, s.WaitIssued(t.Context(), 2*i+1))
			x.launch(h, b.Ptr(), words/2, uint32(1000*i))
			// Download the last word that the kernel writes.
			ok(t, q.Submit(gpu.Order{}, gpu.Copy(host.Range(8*i, 4), b.Range(2*words-4, 4))))
			// Download the word behind that one, which only the fill writes.
			ok(t, q.Submit(order(s, 2*i+1, s, 2*i+2), gpu.Copy(host.Range(8*i+4, 4), b.Range(2*words, 4))))
		}
		ok(t, s.Wait(t.Context(), 2*rounds))
		t.Logf("%s: %v a round", name, time.Since(began)/rounds)
		got := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(host.Bytes()))), 2*rounds)
		for i := range uint32(rounds) {
			if got[2*i] != 1000*i+words/2-1 || got[2*i+1] != 1<<32-1 {
				t.Fatalf("%s: round %d gave %d and %#x", name, i, got[2*i], got[2*i+1])
			}
		}
		// Closing the queue does not affect the stream and its work.
		ok(t, q.Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 2*rounds + 1}}}, gpu.Fill(b.All(), []byte{0})))
		ok(t, q.Close())
		ok(t, s.Wait(t.Context(), 2*rounds+1))
		x.launch(h, b.Ptr(), words, 7)
		ok(t, x.lib.StreamSynchronize(h))
		ok(t, errors.Join(b.Close(), host.Close()))
	}
}

// TestGPUAdoptRefused tests streams that cannot be adopted, and an adopted stream while it is being
// captured.
func TestGPUAdoptRefused(t *testing.T) {
	x := openShop(t)
	for _, s := range []driver.Stream{0, 1, 2} {
		if _, err := interop.AdoptStream(x.dev, s); err == nil {
			t.Errorf("default stream %d is adopted", s)
		} else {
			t.Log(err)
		}
	}
	ctx, err := x.lib.CtxCreateV2(0, x.id)
	ok(t, err)
	other, err := x.lib.StreamCreate(cuda.StreamNonBlocking)
	ok(t, err)
	if _, err := interop.AdoptStream(x.dev, driver.Stream(other)); !errors.Is(err, cuda.ErrorInvalidContext) {
		t.Errorf("a stream of another context: %v", err)
	}
	ok(t, errors.Join(x.lib.StreamDestroy(other), x.lib.CtxDestroy(ctx)))
	ok(t, x.Bind())

	h := x.stream(cuda.StreamNonBlocking)
	q, err := interop.AdoptStream(x.dev, driver.Stream(h))
	ok(t, err)
	b, err := x.dev.Alloc(gpu.DeviceMem, 256)
	ok(t, err)
	s := x.sem()
	ok(t, x.lib.StreamBeginCapture(h, cuda.StreamCaptureModeRelaxed))
	ok(t, q.Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}}}, gpu.Fill(b.All(), []byte{1})))
	if err := s.Wait(t.Context(), 1); !errors.Is(err, driver.ErrBusy) || !strings.Contains(err.Error(), "captures") {
		t.Errorf("while the stream is captured: %v", err)
	}
	x.launch(h, b.Ptr(), 64, 5)
	g, err := x.lib.StreamEndCapture(h) // the capture is still valid
	ok(t, err)
	ok(t, x.lib.GraphDestroy(g))
	s = x.sem()
	ok(t, q.Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}}}, gpu.Fill(b.All(), []byte{1})))
	ok(t, s.Wait(t.Context(), 1))
	ok(t, errors.Join(q.Close(), b.Close()))
}

// TestGPUEventsOfOthers makes CUDA streams wait for events that the runtime records, and the
// runtime wait for events that CUDA streams record.
func TestGPUEventsOfOthers(t *testing.T) {
	x := openShop(t)
	const words, rounds = 1 << 16, 1000
	h := x.stream(cuda.StreamNonBlocking)
	native, err := x.lib.EventCreate(cuda.EventDisableTiming)
	ok(t, err)
	freed := make(chan struct{})
	theirs, err := interop.AdoptEvent(x.dev, driver.Event(native), func() { close(freed) })
	ok(t, err)
	ours, err := interop.NewEvent(x.dev)
	ok(t, err)
	b, err := x.dev.Alloc(gpu.DeviceMem, 4*words)
	ok(t, err)
	host, err := x.dev.Alloc(gpu.HostMem, 4*rounds)
	ok(t, err)
	s := x.sem()
	began := time.Now()
	for i := range uint64(rounds) {
		q := x.dev.Queue(int(i))
		ok(t, q.Submit(order(s, 4*i, s, 4*i+1), gpu.Fill(b.All(), []byte{0})))
		ok(t, q.Submit(order(s, 4*i+1, s, 4*i+2), interop.RecordEvent(ours)))
		ok(t, s.WaitIssued(t.Context(), 4*i+2))
		ok(t, x.lib.StreamWaitEvent(h, Event(ours.Native()), 0))
		x.launch(h, b.Ptr(), words, uint32(i))
		ok(t, x.lib.EventRecord(native, h))
		ok(t, x.dev.Queue(int(i)+1).Submit(order(s, 4*i+2, s, 4*i+3), interop.WaitEvent(theirs)))
		ok(t, x.dev.Queue(int(i)+2).Submit(order(s, 4*i+3, s, 4*i+4), gpu.Copy(host.Range(4*i, 4), b.Range(4*words-4, 4))))
		ok(t, s.WaitIssued(t.Context(), 4*i+4)) // wait before the event is recorded again
	}
	ok(t, s.Wait(t.Context(), 4*rounds))
	t.Logf("%v a round", time.Since(began)/rounds)
	for i, got := range unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(host.Bytes()))), rounds) {
		if got != uint32(i)+words-1 {
			t.Fatalf("round %d gave %d", i, got)
		}
	}
	ok(t, errors.Join(theirs.Close(), ours.Close()))
	<-freed
	ok(t, x.lib.EventDestroy(native))
	ok(t, errors.Join(b.Close(), host.Close()))
}

// numberOf returns the number at the start of a buffer, as the host sees it.
func numberOf(b *gpu.Buffer) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
}

// TestGPUValues passes a number back and forth 10,000 times: between the host and a queue, between
// two queues, and between a queue and a CUDA stream.
func TestGPUValues(t *testing.T) {
	x := openShop(t)
	if !x.caps.Values {
		t.Skip("the device has no values in memory")
	}
	const turns, ahead = 10_000, 64
	data, err := x.dev.Alloc(gpu.DeviceMem, 8)
	ok(t, err)
	word := func(kind gpu.MemKind) *gpu.Buffer {
		b, err := x.dev.Alloc(kind, 8)
		ok(t, err)
		s := x.dev.Queue(0).NewStream()
		ok(t, s.Fill(b.All(), []byte{0}))
		ok(t, s.Wait(t.Context()))
		return b
	}
	t.Run("host and queue", func(t *testing.T) {
		b, seen, s := word(gpu.HostMem), word(gpu.HostMem), x.dev.Queue(0).NewStream()
		submit := func(i uint64) {
			ok(t, s.Do(interop.WaitValue(b.All(), 2*i+1)))
			ok(t, s.Fill(data.All(), []byte{byte(i), byte(i >> 8), 0, 0, 0, 0, 0, 0}))
			ok(t, s.Copy(seen.All(), data.All()))
			ok(t, s.Do(interop.WriteValue(b.All(), 2*i+2)))
		}
		for i := range uint64(ahead) {
			submit(i)
		}
		at, got := numberOf(b), numberOf(seen)
		began := time.Now()
		for i := range uint64(turns) {
			at.Store(2*i + 1)
			for end := time.Now().Add(time.Minute); at.Load() < 2*i+2; {
				if time.Now().After(end) {
					t.Fatalf("turn %d: the number is %d", i, at.Load())
				}
			}
			if got.Load() != i&0xffff {
				t.Fatalf("turn %d gave %d", i, got.Load())
			}
			if i+ahead < turns {
				submit(i + ahead)
			}
		}
		ok(t, s.Wait(t.Context()))
		t.Logf("%v a turn, with a fill and a copy", time.Since(began)/turns)
		ok(t, errors.Join(b.Close(), seen.Close()))
	})
	for name, kind := range map[string]gpu.MemKind{"two queues, by the host's memory": gpu.HostMem, "two queues, by the device's memory": gpu.DeviceMem} {
		t.Run(name, func(t *testing.T) {
			b, r, s := word(kind), x.dev.Queue(0).NewStream(), x.dev.Queue(1).NewStream()
			began := time.Now()
			for i := range uint64(turns) {
				ok(t, r.Do(interop.WriteValue(b.All(), 2*i+1)))
				ok(t, s.Do(interop.WaitValue(b.All(), 2*i+1)))
				ok(t, s.Do(interop.WriteValue(b.All(), 2*i+2)))
				ok(t, r.Do(interop.WaitValue(b.All(), 2*i+2)))
				if i%1000 == 999 {
					ok(t, r.Wait(t.Context()))
				}
			}
			ok(t, errors.Join(r.Wait(t.Context()), s.Wait(t.Context())))
			t.Logf("%v a turn", time.Since(began)/turns)
			ok(t, b.Close())
		})
	}
	h := x.stream(cuda.StreamNonBlocking) // made here, because the device is current only on the test's own thread, and subtests run on other threads
	t.Run("queue and stream of CUDA's", func(t *testing.T) {
		b, r := word(gpu.DeviceMem), x.dev.Queue(0).NewStream()
		began := time.Now()
		for i := range uint64(turns) {
			ok(t, r.Do(interop.WriteValue(b.All(), 2*i+1)))
			ok(t, x.lib.StreamWaitValue64(h, cuda.DevicePtr(b.Ptr()), 2*i+1, cuda.StreamWaitValueGeq))
			ok(t, x.lib.StreamWriteValue64(h, cuda.DevicePtr(b.Ptr()), 2*i+2, cuda.StreamWriteValueDefault))
			ok(t, r.Do(interop.WaitValue(b.All(), 2*i+2)))
			if i%1000 == 999 {
				ok(t, r.Wait(t.Context()))
			}
		}
		ok(t, x.lib.StreamSynchronize(h))
		t.Logf("%v a turn", time.Since(began)/turns)
		ok(t, b.Close())
	})
	ok(t, data.Close())
}

// TestGPUValueNever closes a device in a subprocess. One of its streams waits for a value that is
// never written.
func TestGPUValueNever(t *testing.T) {
	const env = "PUREGPU_TEST_VALUE_NEVER"
	if os.Getenv(env) == "" {
		openGPU(t)
		exe, err := os.Executable()
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // ends the subprocess if it hangs
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, "-test.run=^TestGPUValueNever$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1", "PUREGPU_TEST_REQUIRE_GPU=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	d := openGPU(t)
	if !d.caps.Values {
		t.Skip("the device has no values in memory")
	}
	m := alloc(t, d, driver.HostMem, 8) // memory of d and not of dev, so that it outlives dev
	at := (*atomic.Uint64)(m.Host)
	at.Store(0)
	drv, err := New(d.lib)
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Queues: 2})
	ok(t, err)
	word, err := interop.ImportPointer(dev, m.Ptr, 8, nil)
	ok(t, err)
	own, err := dev.Alloc(gpu.DeviceMem, 64)
	ok(t, err)
	s, u := dev.Queue(0).NewStream(), dev.Queue(1).NewStream()
	ok(t, s.Do(interop.WaitValue(word.All(), 1)))
	ok(t, s.Fill(own.All(), []byte{1}))
	ok(t, u.Fill(own.All(), []byte{2})) // other queues keep working
	ok(t, u.Wait(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	err = dev.Shutdown(ctx)
	t.Logf("Shutdown returned after %v: %v", time.Since(began).Round(time.Millisecond), err)
	var late *gpu.CloseError
	if !errors.As(err, &late) && !errors.Is(err, driver.ErrBusy) || time.Since(began) > 20*time.Second {
		t.Errorf("Shutdown = %v after %v", err, time.Since(began))
	}
	if err := s.Wait(t.Context()); !errors.Is(err, gpu.ErrClosed) && !errors.Is(err, driver.ErrLost) {
		t.Errorf("the waiter gets %v", err)
	}
	at.Store(1) // lets the waiting stream end
	runtime.Gosched()
}
