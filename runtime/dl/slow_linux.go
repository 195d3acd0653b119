//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"runtime"
	"unsafe"
)

// trampolines has addresses of code, which the assembly files fill in. The code at element n calls
// a C function with the n words after a Frame. The code at the last element takes a general frame.
var trampolines [maxFastWords + 2]uintptr

const anyTrampoline = maxFastWords + 1

// A general frame is {fn, ret, stack words, address of stack words, ints, floats} followed by the
// stack words. dlcallAny reads it.
const (
	frameFn     = 0
	frameRet    = 1
	frameNStack = 2
	frameStack  = 3
	frameInts   = 4
	frameFloats = 12
	frameHead   = 20
)

// callSlow calls fn with args arranged for sig. The frame is on the heap, so it stays in place when
// C calls back into Go and the stack moves. The caller ensures the same for the memory that args
// point to.
func callSlow(fn uintptr, sig string, args []uintptr) (uintptr, error) {
	a, ints := sysv64, 6
	if runtime.GOARCH == "arm64" {
		a, ints = aapcs64, 8
	}
	if onlyWords(sig) { // almost all functions
		ints = min(ints, len(args))
		f := newFrame(fn, len(args)-ints)
		copy(f[frameInts:], args[:ints])
		copy(f[frameHead:], args[ints:])
		callAny(unsafe.Pointer(&f[0]))
		return f[frameRet], nil
	}
	var buf [32]move
	moves, err := arrange(a, sig, buf[:0])
	if err != nil {
		return 0, err
	}
	f := newFrame(fn, stackWords(moves))
	for _, m := range moves {
		at := frameHead
		switch m.to {
		case inInt:
			at = frameInts
		case inFloat:
			at = frameFloats
		}
		f[at+int(m.index)] = m.value(args)
	}
	callAny(unsafe.Pointer(&f[0]))
	if _, result := cutResult(sig); result != 0 {
		return f[frameFloats], nil
	}
	return f[frameRet], nil
}

// newFrame returns a general frame for a call of fn with n stack words.
func newFrame(fn uintptr, n int) []uintptr {
	f := make([]uintptr, frameHead+n)
	f[frameFn] = fn
	if n > 0 {
		f[frameNStack] = uintptr(n)
		f[frameStack] = uintptr(unsafe.Pointer(&f[frameHead]))
	}
	return f
}
