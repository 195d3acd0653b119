//go:build linux && (amd64 || arm64) && !nogpu && puregpu_syscalln && (!puregpu_static || cgo)

package dl

import (
	"unsafe"

	_ "github.com/puregpu/puregpu/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go" // for the linker's message, so before purego

	"github.com/ebitengine/purego"
)

// callAny runs a general frame, which lies on the heap, through its trampoline. That
// is a C function of one pointer, so SyscallN can call it whatever the frame holds.
func callAny(frame unsafe.Pointer) {
	purego.SyscallN(trampolines[anyTrampoline], uintptr(frame))
}
