package cudadriver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/health"
	"github.com/puregpu/puregpu/runtime/health/nvmlhealth"
)

// A lastOpened is a driver that remembers the last device that it opened.
type lastOpened struct {
	driver.Driver
	dev driver.Device
}

func (d *lastOpened) Open(index int) (dev driver.Device, err error) {
	d.dev, err = d.Driver.Open(index)
	return d.dev, err
}

// TestGPURuntimeLost runs a kernel with an illegal write through the runtime, in a subprocess,
// because a lost context stays lost in its process.
func TestGPURuntimeLost(t *testing.T) {
	const env = "PUREGPU_TEST_LOSE_RUNTIME"
	if os.Getenv(env) == "" {
		openGPU(t)
		exe, err := os.Executable()
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // limits a hang
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, "-test.run=^TestGPURuntimeLost$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1", "PUREGPU_TEST_REQUIRE_GPU=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	drv, err := Open(cuda.Options{})
	ok(t, err)
	opened := &lastOpened{Driver: drv}
	dev, err := gpu.Open(opened, 0, gpu.Options{Queues: 3})
	ok(t, err)
	<-opened.dev.(*device).watch.ready // NVML starts in the background: wait until it records XID errors
	code, err := dev.Load([]byte(gpuPTX))
	ok(t, err)
	poke, err := code.Kernel("poke")
	ok(t, err)
	b, err := dev.Alloc(gpu.DeviceMem, 1<<20)
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var sems []*gpu.Semaphore
	sem := func() *gpu.Semaphore {
		s, err := gpu.NewSemaphore(0)
		ok(t, err)
		sems = append(sems, s)
		return s
	}
	at := func(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

	// Before the loss the device works.
	before, write := sem(), func(o gpu.Order, at driver.Ptr) error {
		return dev.Queue(0).Submit(o, gpu.Launch(poke, gpu.Grid{}, at))
	}
	ok(t, write(gpu.Order{Signal: at(before, 1)}, b.Ptr()))
	ok(t, before.Wait(ctx, 1))
	sems = nil

	// Submit a launch that faults, and a chain of other work behind it. Neither the launch nor the
	// chain begins before the host signals the semaphore gate.
	gate, never := sem(), sem()
	sems = nil
	faulty := sem()
	ok(t, write(gpu.Order{Wait: at(gate, 1), Signal: at(faulty, 1)}, 0))
	last := faulty
	for i, submit := range []func(o gpu.Order) error{
		func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Fill(b.All(), []byte{1})) },
		func(o gpu.Order) error {
			return dev.Queue(1).Submit(o, gpu.Fill(b.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8}))
		},
		func(o gpu.Order) error { return dev.Queue(2).Submit(o, gpu.Barrier()) },
		func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Copy(b.Range(0, 64), b.Range(64, 64))) },
		func(o gpu.Order) error {
			return dev.Queue(1).Submit(o, gpu.UploadCopy(b.Range(0, 64), make([]byte, 64)))
		},
		func(o gpu.Order) error { return dev.Queue(2).Submit(o, gpu.Download(make([]byte, 64), b.Range(0, 64))) },
		func(o gpu.Order) error {
			return dev.Queue(0).Submit(o, gpu.HostCall(func() error { t.Error("a host call after the fault runs"); return nil }))
		},
		func(o gpu.Order) error {
			return dev.Queue(1).Submit(o, gpu.Notify(func() { t.Error("a notification after the fault runs") }))
		},
	} {
		next := sem()
		if err := submit(gpu.Order{Wait: at(last, 1), Signal: at(next, 1)}); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		last = next
	}
	parked := sem() // signaled by work that waits for a signal that never comes
	ok(t, dev.Queue(1).Submit(gpu.Order{Wait: at(never, 1), Signal: at(parked, 1)}, gpu.Fill(b.All(), []byte{1})))
	linked := sem()
	faulty.Link(1, linked, 1)
	waiters := make(chan error, 2*len(sems))
	for _, s := range sems {
		go func() { waiters <- s.Wait(ctx, 1) }()
	}
	told := make(chan error, 1)
	last.OnReached(1, func(err error) { told <- err })

	ok(t, gate.Signal(1))
	for range sems {
		if err := <-waiters; !errors.Is(err, driver.ErrLost) || !errors.Is(err, cuda.ErrorIllegalAddress) {
			t.Errorf("a waiter got %v", err)
		}
	}
	select {
	case err := <-told:
		if !errors.Is(err, driver.ErrLost) {
			t.Errorf("the function got %v", err)
		}
	case <-ctx.Done():
		t.Error("the function is not called")
	}
	for _, s := range sems {
		if v, err := s.Query(); v != 0 || !errors.Is(err, driver.ErrLost) {
			t.Errorf("at %d, %v", v, err)
		}
	}

	// Later work fails on every queue, and so do its signals.
	for i := range dev.Queues() {
		s := sem()
		if err := dev.Queue(i).Submit(gpu.Order{Signal: at(s, 1)}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a submission on queue %d: %v", i, err)
		}
		if err := s.Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("its signal: %v", err)
		}
		if err := dev.Queue(i).Flush(); !errors.Is(err, driver.ErrLost) {
			t.Errorf("flush: %v", err)
		}
	}
	_, err = dev.Alloc(gpu.DeviceMem, 64)
	if !errors.Is(err, driver.ErrLost) {
		t.Errorf("alloc: %v", err)
	}

	// If NVML reports XID errors, err names one of them.
	t.Logf("the device is lost: %v", err)
	if source, openErr := nvmlhealth.Open(nvml.Options{}); openErr != nil {
		t.Logf("no XID error: %v", openErr)
	} else if session, watchErr := source.Watch(dev.Info()); watchErr != nil {
		t.Logf("no XID error: %v", watchErr)
	} else {
		if _, _, waitErr := session.Wait(0); errors.Is(waitErr, errors.ErrUnsupported) {
			t.Logf("no XID error: %v", waitErr)
		} else if xid, _ := errors.AsType[health.XID](err); xid != 31 {
			t.Errorf("XID %d; an illegal address is XID 31", xid)
		}
		ok(t, session.Close())
	}
	if st := dev.Stats(); st.InFlight+st.Parked != 0 {
		t.Errorf("left: %+v", st)
	}

	// Semaphores still work, and the device closes.
	ok(t, never.Signal(1))
	closed := make(chan error, 1)
	go func() { closed <- dev.Close() }()
	select {
	case err := <-closed:
		t.Logf("Close = %v", err)
	case <-ctx.Done():
		t.Fatal("Close does not return")
	}
	ok(t, b.Close())
	ok(t, code.Close())
}
