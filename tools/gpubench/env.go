package main

import (
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

	caps *driver.Caps // of the simulated device, if it cannot do everything
}

// env is what benches run in.
type env struct {
	opt    options
	drv    driver.Driver
	index  int
	info   driver.Info
	caps   driver.Caps
	thread *thread // of the raw side
	raw    api
	ctx    context.Context // of the present bench

	lib    *cuda.Library // nil with -sim
	opened time.Duration // what it took to open lib
}

func newEnv(opt options) (*env, error) {
	e := &env{opt: opt}
	if opt.sim {
		e.drv = simdriver.New(simdriver.Config{Kernels: simKernels, Caps: opt.caps})
	} else {
		start := time.Now()
		lib, err := cuda.Open(cuda.Options{})
		if err != nil {
			return nil, fmt.Errorf("%w\nwithout a GPU there is -sim", err)
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
	e.info = infos[e.index]
	e.thread = newThread()
	err = e.thread.do(func() (err error) {
		if e.lib != nil {
			e.raw, err = newRawCUDA(e.lib, e.index)
		} else {
			e.raw, err = newRawSim(e.drv, e.index)
		}
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

// ask asks what a device can do.
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
	err := e.thread.do(e.raw.close)
	e.thread.end()
	return err
}

// A thread is an OS thread with one goroutine. Package gpu is timed on goroutines that are locked to none, as a program's
// are, and the raw side on such a thread, as its calls want it.
type thread struct {
	todo chan func() error
	done chan error
}

func newThread() *thread {
	t := &thread{todo: make(chan func() error), done: make(chan error)}
	go func() {
		runtime.LockOSThread() // until it ends
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

// await asks until the event is done, or the bench has taken too long.
func (e *env) await(event int) error {
	for n := 1; ; n++ {
		if done, err := e.raw.query(event); done || err != nil {
			return err
		}
		if n%1000 == 0 && e.ctx.Err() != nil {
			return errors.New("raw side: the work does not end")
		}
	}
}
