package kernels

import (
	"bytes"
	"testing"
)

func TestSaxpy(t *testing.T) {
	if n := bytes.IndexByte(Saxpy, 0); n != len(Saxpy)-1 {
		t.Errorf("the first NUL is at %d of %d bytes, want it at the end alone", n, len(Saxpy))
	}
	for i, c := range Saxpy[:len(Saxpy)-1] {
		if c >= 0x80 {
			t.Fatalf("byte %d is %#x: PTX is ASCII", i, c)
		}
	}
	for _, want := range []string{".visible .entry saxpy(", ".address_size 64", ".target sm_52"} {
		if !bytes.Contains(Saxpy, []byte(want)) {
			t.Errorf("the kernel lacks %q", want)
		}
	}
}
