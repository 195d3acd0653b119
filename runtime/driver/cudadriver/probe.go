package cudadriver

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// emptyPTX is a kernel that does nothing.
const emptyPTX = `.version 6.4
.target sm_52
.address_size 64
.visible .entry empty() { ret; }
`

// probe reports whether a thread without a current context can submit. CUDA's documentation says so for some functions
// and is silent on others, so each is tried. An error means that the device is of no use.
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
	var t trial
	defer func() {
		if end := t.destroy(d); end != nil {
			anywhere, err = false, errors.Join(err, end)
		}
	}()
	if err := t.create(d); err != nil {
		return false, err
	}
	// This thread has the context below; another one has not. What that one may have of other people's is set aside.
	elsewhere := func(f func(*device) error) error {
		result := make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			result <- withoutContext(d.lib, func() error { return f(d) })
		}()
		return <-result
	}
	err = elsewhere(t.submit)
	if wait := d.lib.StreamSynchronize(cuda.Stream(t.stream)); wait != nil {
		return false, d.fail("open", wait, "wait for the first work")
	}
	if err == nil {
		err = elsewhere(t.ask)
	}
	if errors.Is(err, driver.ErrLost) {
		return false, err
	}
	// Invalid context is the error to expect, but any other shows as well that threads had better be bound.
	return err == nil, nil
}

// A trial is what it takes to submit one of everything.
type trial struct {
	stream driver.Stream
	event  driver.Event
	dev    driver.Mem
	host   driver.Mem
	module driver.Module
	kernel driver.Function // or 0
	pool   driver.Pool     // or 0
	pooled driver.Mem      // of the pool, while it is allocated
	graph  driver.Graph
	exec   driver.Exec // or 0
	timer  driver.Event
}

// create makes the trial's objects on a bound thread. After an error those made so far are to be destroyed.
func (t *trial) create(d *device) (err error) {
	const size = 64
	if t.stream, err = d.NewStream(); err != nil {
		return err
	}
	if t.event, err = d.NewEvent(); err != nil {
		return err
	}
	if t.dev, err = d.Alloc(driver.DeviceMem, size); err != nil {
		return err
	}
	if t.host, err = d.Alloc(driver.HostMem, size); err != nil {
		return err
	}
	// A driver may come without the PTX compiler, or have it switched off: then kernels go untried.
	if t.module, err = d.Load([]byte(emptyPTX)); err == nil {
		t.kernel, _, err = d.Function(t.module, "empty")
	}
	if errors.Is(err, driver.ErrLost) {
		return err
	}
	if d.caps.Pools {
		// The pool grows here, so that elsewhere it cannot fail for want of memory. What it has got goes back when the
		// stream is waited for.
		if t.pool, err = d.DefaultPool(); err == nil {
			err = errors.Join(t.alloc(d), t.free(d))
		}
		if errors.Is(err, driver.ErrLost) {
			return err
		} else if err != nil {
			t.pool = 0
		}
	}
	if d.caps.Graphs {
		if t.graph, err = d.NewGraph(); err == nil {
			if _, err = d.AddNode(t.graph, nil, &driver.NodeOp{Kind: driver.FillNode, Dst: t.dev.Ptr, Width: 4, Count: size / 4}); err == nil {
				t.exec, err = d.Instantiate(t.graph)
			}
		}
		if errors.Is(err, driver.ErrLost) {
			return err
		}
	}
	t.timer, err = d.NewTimer()
	return err
}

// alloc allocates from the pool, if there is one.
func (t *trial) alloc(d *device) (err error) {
	if t.pool != 0 {
		t.pooled, err = d.AllocAsync(t.stream, t.pool, t.dev.Size)
	}
	return err
}

// free frees what alloc allocated.
func (t *trial) free(d *device) error {
	if t.pooled.Ptr == 0 {
		return nil
	}
	if err := d.FreeAsync(t.stream, t.pooled); err != nil {
		return err
	}
	t.pooled = driver.Mem{}
	return nil
}

// submit tries every submitting method but Elapsed.
func (t *trial) submit(d *device) error {
	half := t.dev.Size / 2
	upper := t.dev.Ptr + driver.Ptr(half)
	for _, try := range []func() error{
		func() error { return d.Fill(t.stream, t.dev.Ptr, 1, 1, half) },
		func() error { return d.Fill(t.stream, t.dev.Ptr, 1, 2, half/2) },
		func() error { return d.Fill(t.stream, t.dev.Ptr, 1, 4, half/4) },
		func() error { return d.FillStrided(t.stream, t.dev.Ptr, 1, 8, half/8) },
		func() error { return d.Copy(t.stream, upper, t.dev.Ptr, half) },
		func() error { return d.Download(t.stream, t.host.Host, t.dev.Ptr, half) },
		func() error { return d.Upload(t.stream, t.dev.Ptr, unsafe.Add(t.host.Host, half), half) },
		func() error { return d.Record(t.event, t.stream) },
		func() error { return d.StreamWait(t.stream, t.event) },
		func() error { _, err := d.Query(t.event); return err },
		func() error {
			if t.kernel == 0 {
				return nil
			}
			one := [3]uint32{1, 1, 1}
			return d.Launch(t.stream, &driver.Launch{Function: t.kernel, Grid: one, Block: one})
		},
		func() error { return t.alloc(d) },
		func() error { return t.free(d) },
		func() error {
			if t.exec == 0 {
				return nil
			}
			return d.LaunchGraph(t.stream, t.exec)
		},
		func() error { return d.Record(t.timer, t.stream) },
	} {
		if err := try(); err != nil {
			return err
		}
	}
	return nil
}

// ask tries what there is to ask once the work is done.
func (t *trial) ask(d *device) error {
	_, err := d.Elapsed(t.timer, t.timer)
	return err
}

// destroy destroys what there is.
func (t *trial) destroy(d *device) error {
	var errs []error
	if t.timer != 0 {
		errs = append(errs, d.DestroyEvent(t.timer))
	}
	if t.exec != 0 {
		errs = append(errs, d.DestroyExec(t.exec))
	}
	if t.graph != 0 {
		errs = append(errs, d.DestroyGraph(t.graph))
	}
	errs = append(errs, t.free(d))
	if t.module != 0 {
		errs = append(errs, d.Unload(t.module))
	}
	if t.host.Host != nil {
		errs = append(errs, d.Free(t.host))
	}
	if t.dev.Ptr != 0 {
		errs = append(errs, d.Free(t.dev))
	}
	if t.event != 0 {
		errs = append(errs, d.DestroyEvent(t.event))
	}
	if t.stream != 0 {
		errs = append(errs, d.DestroyStream(t.stream))
	}
	return errors.Join(errs...)
}

// withoutContext runs f while the calling thread, which is locked, has no current context. It takes the thread's stack of
// contexts off one by one, and puts them back: setting none would only uncover the one below.
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
