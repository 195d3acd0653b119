package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

type options struct {
	cloop  string
	device string
	sim    bool
	long   bool
	hip    string
	python string

	caps     *driver.Caps // features of the simulated devices; nil for all
	devices  int          // number of simulated devices; 0 is two
	copySize uint64       // bytes of the copy between devices; 0 chooses a size
}

// An env has the objects that all benches share: the flags, the device, and the raw side's objects.
type env struct {
	opt    options
	drv    driver.Driver
	index  int
	count  int // number of devices
	info   driver.Info
	caps   driver.Caps
	thread *thread // the raw side's thread
	raw    api
	ctx    context.Context // ends with the current bench

	lib    *cuda.Library // nil with -sim
	opened time.Duration // time to open lib
	hip    driver.Driver // nil until the group hip opens it
	teams  teams

	remarks []string // remarks that are not printed yet
}

func newEnv(opt options) (*env, error) {
	e := &env{opt: opt}
	if opt.sim {
		e.drv = simdriver.New(simdriver.Config{Devices: cmp.Or(opt.devices, 2), Kernels: simKernels, Caps: opt.caps})
	} else {
		start := time.Now()
		lib, err := cuda.Open(cuda.Options{})
		if err != nil {
			return nil, fmt.Errorf("%w\nuse -sim without a GPU", err)
		}
		e.lib, e.opened = lib, time.Since(start)
		if e.drv, err = cudadriver.New(lib); err != nil {
			return nil, err
		}
	}
	var err error
	if e.index, err = drivers.Find(e.drv, opt.device); err != nil {
		return nil, err
	}
	infos, err := e.drv.Devices()
	if err != nil {
		return nil, err
	}
	e.info, e.count = infos[e.index], len(infos)
	e.thread = newThread()
	err = e.thread.do(func() (err error) {
		e.raw, err = e.newRaw(e.index)
		return err
	})
	if err != nil {
		e.thread.end()
		return nil, fmt.Errorf("raw side: %w", err)
	}
	if e.caps, err = ask(e.drv, e.index); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// newRaw makes the raw side's objects on a device. It makes the device current on the calling
// thread.
func (e *env) newRaw(index int) (api, error) {
	if e.lib == nil {
		a, err := newRawSim(e.drv, index)
		if err != nil {
			return nil, err
		}
		return a, nil
	}
	a, err := newRawCUDA(e.lib, index)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// ask returns the features of a device.
func ask(drv driver.Driver, index int) (caps driver.Caps, err error) {
	t := newThread()
	defer t.end()
	err = t.do(func() error {
		d, err := drv.Open(index)
		if err != nil {
			return err
		}
		caps = d.Caps()
		return errors.Join(d.Bind(), d.Close())
	})
	return caps, err
}

func (e *env) close() error {
	err := errors.Join(e.teams.close(), e.thread.do(e.raw.close))
	e.thread.end()
	return err
}

// remark keeps a remark to be printed before the next results.
func (e *env) remark(format string, args ...any) {
	e.remarks = append(e.remarks, fmt.Sprintf(format, args...))
}

// beside runs puregpu's side on the raw side's thread. Meanwhile no device is current on the
// thread, as on the goroutines of a program. Use beside where the time of the host's calls counts:
// one processor of a virtual machine may be twice as fast as another.
func (e *env) beside(fn func() error) error {
	return e.thread.do(func() error {
		if err := e.raw.unbind(); err != nil {
			return err
		}
		return errors.Join(fn(), e.raw.bind())
	})
}

// anywhere runs the raw side on a new thread, so that the operating system chooses the thread's
// processor, as for puregpu's side. Use anywhere for work that the host waits for. For such work
// puregpu's side does not run in env.beside, because a goroutine that is locked to a thread wakes
// later.
func (e *env) anywhere(fn func() error) error {
	t := newThread()
	defer t.end()
	return t.do(func() error {
		if err := e.raw.bind(); err != nil {
			return err
		}
		return errors.Join(fn(), e.raw.unbind())
	})
}

// A thread is an OS thread with one goroutine, which runs functions. The raw side uses one, because
// the raw side's calls need a thread on which the device is current.
type thread struct {
	todo chan func() error
	done chan error
}

func newThread() *thread {
	t := &thread{todo: make(chan func() error), done: make(chan error)}
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		for fn := range t.todo {
			t.done <- fn()
		}
	}()
	return t
}

func (t *thread) do(fn func() error) error {
	t.todo <- fn
	return <-t.done
}

func (t *thread) end() { close(t.todo) }

// await polls until the event is complete, a call fails, or the bench has taken too long.
func (e *env) await(event int) error { return e.awaitOn(e.raw, event) }

// awaitOn is await for an event of another device.
func (e *env) awaitOn(a api, event int) error {
	for n := 1; ; n++ {
		if done, err := a.query(event); done || err != nil {
			return err
		}
		if n%1000 == 0 && e.ctx.Err() != nil {
			return errors.New("raw side: the work has not ended in time")
		}
	}
}
