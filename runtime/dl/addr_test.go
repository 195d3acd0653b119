//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"testing"
	"unsafe"
)

func TestCallAddr(t *testing.T) {
	l := openFixture(t)
	for n, i := range []int{fWords0, fWords0 + 1, fWords0 + 3, fWords0 + 16} {
		words := make([]uint64, []int{0, 1, 3, 16}[n])
		args := make([]uintptr, len(words))
		for j := range words {
			words[j] = 0x0102030405060708 * uint64(j+3)
			args[j] = uintptr(words[j])
		}
		if r, err := CallAddr(l.Addr(i), args...); err != nil || uint64(r) != hashAll(words...) {
			t.Errorf("%d words: %#x, %v, want %#x", len(words), r, err, hashAll(words...))
		}
	}
	cb, err := Callback(func(v uint64) uint64 { grow(100); return v })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan uint64)
	go func() { // a new goroutine has a small stack, which moves when the callback grows it
		var out uint64
		CallAddr(l.Addr(fCallBack), cb, 7, uintptr(unsafe.Pointer(&out)))
		done <- out
	}()
	if out := <-done; out != 8 {
		t.Errorf("out %d after a call that calls back", out)
	}
	_, err = CallAddr(0, 1)
	isErr(t, err, ErrSymbol)
	if _, err := CallAddr(l.Addr(fWords0), make([]uintptr, 17)...); err == nil {
		t.Error("17 arguments are taken")
	}
}
