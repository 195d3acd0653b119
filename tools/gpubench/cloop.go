package main

import (
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A loop is the library made from testdata/cloop.c, for the raw side.
type loop struct {
	dl.Library
	fns [4]uintptr
}

const (
	loopLaunch = iota
	loopTwo
	loopNothing
	loopWake
)

func openLoop(path string) (*loop, error) {
	c := new(loop)
	err := c.Open(&dl.Spec{
		Name: "gpubench's C loops", Package: "gpubench", Sets: []dl.Set{{Name: "core"}}, Hint: "build cloop.c",
		Symbols: []dl.Symbol{{Name: "cloop_launch", Sig: "wwwwww"}, {Name: "cloop_two", Sig: "wwwww"}, {Name: "cloop_nothing", Sig: "ww"}, {Name: "cloop_wake", Sig: "www"}},
	}, c.fns[:], dl.Options{Path: path})
	return c, err
}

// nothing calls a C function that returns at once, in the way of a generated method.
func (c *loop) nothing(a, b uintptr) error {
	addr := dl.Load(&c.fns[loopNothing])
	if addr == 0 {
		return outcome(c.Slow(loopNothing, a, b))
	}
	var frame struct {
		dl.Frame
		a0, a1 uintptr
	}
	frame.Fn, frame.Ret, frame.a0, frame.a1 = addr, 0, a, b
	if r := dl.Call(2, unsafe.Pointer(&frame)); r != 0 {
		return cuda.Result(int32(r))
	}
	return nil
}

func (c *loop) launch(fn uintptr, f cuda.Function, s cuda.Stream, params *unsafe.Pointer, n uint64) (time.Duration, error) {
	ns := new(uint64)
	r, err := c.Slow(loopLaunch, fn, uintptr(f), uintptr(s), uintptr(unsafe.Pointer(params)), uintptr(n), uintptr(unsafe.Pointer(ns)))
	return time.Duration(*ns), outcome(r, err)
}

func (c *loop) two(fn, a, b uintptr, n uint64) (time.Duration, error) {
	ns := new(uint64)
	r, err := c.Slow(loopTwo, fn, a, b, uintptr(n), uintptr(unsafe.Pointer(ns)))
	return time.Duration(*ns), outcome(r, err)
}

// wake wakes a parked thread once for each element of woken. It stores in the list woken how long
// the thread took to run, and in the list calls how long the call took that woke the thread.
func (c *loop) wake(woken, calls []time.Duration) error {
	return outcome(c.Slow(loopWake, uintptr(len(woken)), uintptr(unsafe.Pointer(&woken[0])), uintptr(unsafe.Pointer(&calls[0]))))
}

func outcome(r uintptr, err error) error {
	if err == nil && int32(r) != 0 {
		err = cuda.Result(int32(r))
	}
	return err
}
