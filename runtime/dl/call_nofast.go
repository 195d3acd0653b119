//go:build !linux || nogpu || !((amd64 && puregpu_static && !cgo) || ((amd64 || arm64) && (!puregpu_static || cgo) && !puregpu_syscalln))

package dl

import "unsafe"

// Fast reports whether this build has the fast path. Without it [Load] always returns 0.
const Fast = false

// Load returns the address that Open stored at p, which points to an element of Open's fast slice.
// If Load returns 0, the call must use [Library.Slow]. This build always returns 0, so the compiler
// removes the fast path.
func Load(p *uintptr) uintptr { return 0 }

// Call does nothing: this build never calls it, because [Load] returns 0.
func Call(n int, frame unsafe.Pointer) uint32 { return ^uint32(0) }
