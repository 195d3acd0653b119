package cuda

import (
	"runtime"
	"testing"
	"unsafe"
)

func TestNewTensorMapIsAligned(t *testing.T) {
	maps := make([]*TensorMap, 100)
	for i := range maps {
		maps[i] = NewTensorMap()
		if a := uintptr(unsafe.Pointer(maps[i])); a%128 != 0 {
			t.Fatalf("tensor map %d at %#x", i, a)
		}
		for j := range maps[i].Opaque {
			if maps[i].Opaque[j] != 0 {
				t.Fatalf("tensor map %d is not zero", i)
			}
			maps[i].Opaque[j] = uint64(i)
		}
	}
	// The maps neither overlap nor move, and a pointer into the middle of the allocation keeps the
	// whole allocation alive.
	runtime.GC()
	for i, m := range maps {
		if m.Opaque[0] != uint64(i) || m.Opaque[15] != uint64(i) {
			t.Errorf("tensor map %d has the words of another", i)
		}
	}
}
