//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// countPTX declares the fake driver's kernels.
const countPTX = emptyPTX + ".visible .entry count(.param .u64 counter, .param .u32 by) { ret; }\n"

// TestNothingFails checks that no call of the CUDA driver fails in a correct program. The driver
// package must not find features by calls that fail, nor try a function before its fallback:
// compute-sanitizer reports each failed call as an error of the program.
func TestNothingFails(t *testing.T) {
	for _, release := range []dl.Version{11020, 11040, 11080, 12000, 12020, 12040, 12080, 13000} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := newFake(t, release)
			healthy := func(what string) {
				t.Helper()
				if calls := f.failed(); calls != nil {
					t.Errorf("%s: %s", what, strings.Join(calls, ", "))
				}
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			drv := f.driver()
			healthy("start")
			var devs [2]*device
			for i := range devs {
				d, err := drv.Open(i)
				ok(t, err)
				defer d.Close()
				devs[i] = d.(*device)
			}
			healthy("open")
			d := devs[0]
			ok(t, d.Bind())
			for what, call := range all(d) {
				if what == "function" {
					continue // depends on the loaded libraries; tested below
				}
				// A call may be unsupported. The package must then refuse the call without a
				// failing call of the CUDA driver.
				if err := call(); !errors.Is(err, driver.ErrUnsupported) {
					ok(t, err)
				}
				healthy(what)
			}
			m, err := d.Load([]byte(countPTX))
			ok(t, err)
			for kernel, params := range map[string]int{"empty": 0, "count": 2} {
				fn, info, err := d.Function(m, kernel)
				ok(t, err)
				if d.caps.KernelParams != (info.Params != nil) || info.Params != nil && len(info.Params) != params {
					t.Errorf("kernel %s has parameters %v", kernel, info.Params)
				}
				var counter uint64
				p, by := &counter, uint32(3)
				ok(t, d.Launch(stream0, &driver.Launch{Function: fn, Args: []unsafe.Pointer{unsafe.Pointer(&p), unsafe.Pointer(&by)}[:params]}))
				if counter != uint64(3*params/2) {
					t.Errorf("kernel %s has counted %d", kernel, counter)
				}
				healthy(kernel)
			}
			for range 2 { // collectives enable access again before each group
				ok(t, d.EnablePeer(devs[1]))
				ok(t, d.AccessPool(pool0, devs[1], true))
				healthy("access")
			}
			f.Set("apart", 1)
			if err := d.AccessPool(pool0, devs[1], true); err == nil {
				t.Error("a device without a link gets access")
			}
			healthy("no access")
			if d.caps.HostPools {
				f.Set("device memory only", 1)
				p, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem})
				ok(t, err)
				host, err := d.AllocAsync(stream0, p, 64)
				ok(t, err)
				buf := make([]byte, 64)
				buf[63] = 7
				ok(t, d.Upload(stream0, host.Ptr, unsafe.Pointer(&buf[0]), 64))
				buf[63] = 0
				ok(t, d.Download(stream0, unsafe.Pointer(&buf[0]), host.Ptr, 64))
				if buf[63] != 7 {
					t.Errorf("uploaded and downloaded: %v", buf)
				}
				healthy("memory of a host pool")
			}
		})
	}
}

// TestNothingFailsInRuntime checks that no call of the CUDA driver fails in a correct program of
// package gpu.
func TestNothingFailsInRuntime(t *testing.T) {
	f := newFake(t, 13000)
	dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
	ok(t, err)
	code, err := dev.Load([]byte(countPTX))
	ok(t, err)
	k, err := code.Kernel("count")
	ok(t, err)
	b, err := dev.Alloc(gpu.ManagedMem, 64)
	ok(t, err)
	clear(b.Bytes())
	s, err := gpu.NewSemaphore(0)
	ok(t, err)
	count := gpu.Launch(k, gpu.Grid{}, b.All(), uint32(1))
	ok(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}}}, count))
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	ok(t, err)
	_, err = rec.Add(count)
	ok(t, err)
	ok(t, rec.End())
	ok(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}}, Signal: []gpu.Point{{Semaphore: s, Value: 2}}}, gpu.Execute(rec)))
	ok(t, s.Wait(t.Context(), 2))
	if n := *(*uint64)(unsafe.Pointer(&b.Bytes()[0])); n != 2 {
		t.Errorf("the kernel has counted %d", n)
	}
	rec.Close()
	ok(t, b.Close())
	ok(t, code.Close())
	ok(t, dev.Close())
	if calls := f.failed(); calls != nil {
		t.Errorf("these calls failed: %s", strings.Join(calls, ", "))
	}
}
