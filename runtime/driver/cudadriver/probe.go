package cudadriver

import (
	"errors"
	"runtime"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/trial"
)

// emptyPTX has a kernel that does nothing.
const emptyPTX = `.version 6.4
.target sm_52
.address_size 64
.visible .entry empty() { ret; }
`

// probe reports whether a thread without a current context can make submitting calls. CUDA's
// documentation says so only for some functions, so probe tries most of them. An error means that
// the device is unusable.
func (d *device) probe() (anywhere bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.lib.CtxPushCurrent(d.ctx); err != nil {
		return false, d.fail("open", err, "make the context current")
	}
	defer func() {
		if _, pop := d.lib.CtxPopCurrent(); pop != nil {
			anywhere, err = false, errors.Join(err, d.fail("open", pop, "restore the thread's context"))
		}
	}()
	// The context is current on this thread. So the function elsewhere uses another thread, and
	// removes the contexts of that thread meanwhile.
	elsewhere := func(f func() error) error {
		return trial.OnAnother(func() error { return withoutContext(d.lib, f) })
	}
	return trial.Run(d, []byte(emptyPTX), elsewhere, func(s driver.Stream) error {
		if err := d.lib.StreamSynchronize(cuda.Stream(s)); err != nil {
			return d.fail("open", err, "wait for the first work")
		}
		return nil
	})
}

// withoutContext runs f while the calling thread, which must be locked, has no current context. It
// pops all contexts of the thread, because setting no context would only replace the top one. It
// pushes them again afterwards.
func withoutContext(lib *cuda.Library, f func() error) (err error) {
	var stack []cuda.Context
	defer func() {
		for i := len(stack) - 1; i >= 0; i-- {
			err = errors.Join(err, lib.CtxPushCurrent(stack[i]))
		}
	}()
	for {
		ctx, err := lib.CtxGetCurrent()
		if err != nil {
			return err
		}
		if ctx == 0 {
			return f()
		}
		if _, err := lib.CtxPopCurrent(); err != nil {
			return err
		}
		stack = append(stack, ctx)
	}
}
