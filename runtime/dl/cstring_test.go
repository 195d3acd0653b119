package dl

import (
	"errors"
	"strings"
	"testing"
	"unsafe"
)

func TestCString(t *testing.T) {
	for _, s := range []string{"", "a", "grün", strings.Repeat("x", 5000)} {
		p, err := CString(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := GoString(unsafe.Pointer(p)); got != s {
			t.Errorf("%.10q came back as %.10q", s, got)
		}
	}
	if p, err := CString("a\x00b"); p != nil || !errors.Is(err, ErrNUL) {
		t.Errorf("with a NUL: %v, %v", p, err)
	}
}

func TestGoString(t *testing.T) {
	if s := GoString(nil); s != "" {
		t.Errorf("nil: %q", s)
	}
	long := []byte(strings.Repeat("y", maxString+10) + "\x00")
	if s := GoString(unsafe.Pointer(&long[0])); len(s) != maxString {
		t.Errorf("long string: %d bytes", len(s))
	}
}
