//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import (
	"testing"
	"unsafe"
)

// TestCallbackGo checks from which words a callback reads arguments of all sizes, and which result
// word it stores.
func TestCallbackGo(t *testing.T) {
	stack := [2]uintptr{0xffff_ffff_ffff_fff9, 8}
	c := &call{ints: [6]uintptr{0xffff_ff01, 0xffff_0002, 3, 0xffff_ffff_ffff_fffc, 5, 0}, stack: &stack[0]}
	var got []int
	addr := NewCallback(func(a uint8, b uint16, p *byte, d int32, e uintptr, ok bool, g int8, h int) int32 {
		got = []int{int(a), int(b), int(uintptr(unsafe.Pointer(p))), int(d), int(e), int(g), h}
		return -2
	})
	c.ints[2] = 0
	c.offset = addr - entries.callbacks + callSize
	callbackGo(c)
	want := []int{1, 2, 0, -4, 5, -7, 8}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("argument %d is %d, want %d", i, got[i], want[i])
		}
	}
	if int32(c.result) != -2 {
		t.Errorf("result %#x, want -2", c.result)
	}
	if next := NewCallback(func() {}); next != addr+callSize {
		t.Errorf("the next callback is at %#x, want %#x", next, addr+callSize)
	}
}

func TestNewCallbackRefuses(t *testing.T) {
	for _, fn := range []any{5, (func())(nil), func(float64) {}, func(...int) {}, func() string { return "" }, func() (int, int) { return 0, 0 }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T is taken", fn)
				}
			}()
			NewCallback(fn)
		}()
	}
}
