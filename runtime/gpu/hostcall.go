package gpu

import (
	"runtime/debug"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// HostCall returns an Op that calls fn on a goroutine when the waits are reached, and signals when
// fn has returned nil. An error of fn fails the signals. So does a panic, with a [PanicError]. If a
// wait fails, fn is not called. [Device.Close] waits up to ten seconds for calls that are running.
//
// In a recording, fn is called when all commands that were recorded before the host call are done.
// Commands that were recorded later begin when fn has returned. An error or a panic fails the
// execution, and later commands do not run. Executions in flight at the same time may call fn at
// the same time.
func HostCall(fn func() error) Op {
	if fn == nil {
		return BadOp(errs.Argument("host call", "no function"))
	}
	return Op{kind: hostCallOp, obj: fn}
}

func (q *Queue) hostCall(o *Order, fn func() error) error {
	s := q.get(work.HostCall)
	s.fn, s.Mode = fn, engine.UntilReached
	return q.submit(s, o)
}

// Notify returns an Op that signals when the waits are reached, like [Barrier], and then calls fn
// on a goroutine. No work waits for fn, but [Device.Close] does. A panic of fn is logged, as a
// [PanicError], and has no other effect. If a wait fails, fn is not called. A recording refuses the
// Op.
func Notify(fn func()) Op {
	if fn == nil {
		return BadOp(errs.Argument("notify", "no function"))
	}
	return Op{kind: notifyOp, obj: fn}
}

func (q *Queue) notify(o *Order, fn func()) error {
	s := q.get(work.Notify)
	s.fn, s.Mode = func() error { return guard(func() error { fn(); return nil }) }, engine.UntilReached
	return q.submit(s, o)
}

// guard calls a function of the program, and turns a panic into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, debug.Stack()}
		}
	}()
	return fn()
}
