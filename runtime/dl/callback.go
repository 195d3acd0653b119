package dl

import "fmt"

// Callback returns the address of a C function that runs fn. fn must be a func whose parameters are
// integers and pointers of at most 8 bytes, with no result or one such result. On Linux parameters
// may also be float32 and float64, except in builds with the tag puregpu_static and without cgo.
//
// An address is never freed, and a process has about 2000 of them: make one for each C signature
// when the program starts, and distinguish calls by their user-data argument. An unsuitable fn is
// an error. On Linux, running out of callbacks is an error too; on Windows, the Go runtime then
// ends the process.
//
// fn may run on a thread of the library. It must not panic: a panic ends the process. If fn may run
// on the thread of a call in progress, the program must make that call with [Library.Slow], or must
// have called [Library.HeapFrames] before that call.
//
// Callback may be called concurrently. In builds that cannot load libraries the error is
// [ErrUnsupported].
func Callback(fn any) (addr uintptr, err error) {
	defer func() {
		if r := recover(); r != nil {
			addr, err = 0, fmt.Errorf("cannot make a C callback of %T: %v", fn, r)
		}
	}()
	return newCallback(fn)
}
