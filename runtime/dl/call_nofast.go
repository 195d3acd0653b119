//go:build !linux || nogpu || !((amd64 && puregpu_static && !cgo) || ((amd64 || arm64) && (!puregpu_static || cgo) && !puregpu_syscalln))

package dl

import "unsafe"

// Fast reports whether this build has the fast path: whether [Load] can return
// anything but 0.
const Fast = false

// Load returns the address that Open stored at p, an element of its fast slice, or 0
// when the call must go through [Library.Slow]. In this build that is always so, and
// the compiler drops what follows a test for it.
func Load(p *uintptr) uintptr { return 0 }

// Call is never reached in this build, since [Load] returns 0. It does nothing.
func Call(n int, frame unsafe.Pointer) uint32 { return ^uint32(0) }
