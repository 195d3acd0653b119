//go:build linux && (amd64 || arm64) && !nogpu && puregpu_syscalln && (!puregpu_static || cgo)

package dl

import (
	"unsafe"

	_ "github.com/puregpu/puregpu/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go" // imported before purego: if linking fails, the linker prints this import's name

	"github.com/ebitengine/purego"
)

// callAny makes the call that a general frame describes. The frame must be on the heap. The
// trampoline is a C function with one pointer as its parameter, so SyscallN can call it for any
// frame.
func callAny(frame unsafe.Pointer) {
	purego.SyscallN(trampolines[anyTrampoline], uintptr(frame))
}
