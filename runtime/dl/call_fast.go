//go:build linux && !nogpu && ((amd64 && puregpu_static && !cgo) || ((amd64 || arm64) && (!puregpu_static || cgo) && !puregpu_syscalln))

package dl

import (
	"sync/atomic"
	"unsafe"

	goruntime "github.com/puregpu/puregpu/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go"
)

// Fast reports whether this build has the fast path. Without the fast path [Load] always returns 0.
const Fast = true

// Load returns the address that Open stored at p, which points to an element of Open's fast slice.
// If Load returns 0, the call must use [Library.Slow].
func Load(p *uintptr) uintptr { return atomic.LoadUintptr(p) }

// Call calls the C function of a frame, blocks until the function returns, and returns the low half
// of the result word. The frame begins with a [Frame] whose Fn is not 0, and n words of arguments
// follow it; n should be a constant, from 0 to 16.
//
// Neither the frame nor the memory that it points to escapes, so both may be on the stack. This is
// safe only if the function does not call back into Go before it returns. Concurrent calls with
// different frames are safe.
func Call(n int, frame unsafe.Pointer) uint32 {
	return uint32(goruntime.Call(*(*unsafe.Pointer)(unsafe.Pointer(&trampolines[n])), frame))
}

// callAny makes the call that a general frame describes. The frame must be on the heap.
func callAny(frame unsafe.Pointer) {
	goruntime.CallEscape(*(*unsafe.Pointer)(unsafe.Pointer(&trampolines[anyTrampoline])), frame)
}
