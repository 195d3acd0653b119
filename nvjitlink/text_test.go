package nvjitlink

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestTextsEndWithZero(t *testing.T) {
	in := []string{"", "-I/usr/include", "ü"}
	out, err := Texts(in...)
	if err != nil || len(out) != len(in) {
		t.Fatalf("%d texts of %d: %v", len(out), len(in), err)
	}
	for i, s := range in {
		if got := string(unsafe.Slice(out[i], len(s)+1)); got != s+"\x00" {
			t.Errorf("text %d is %q, want %q and a zero byte", i, got, s)
		}
	}
	if out, err := Texts(); len(out) != 0 || err != nil {
		t.Errorf("no texts give %d, %v", len(out), err)
	}
}

func TestTextsRefuseZero(t *testing.T) {
	out, err := Texts("-G", "-I/a\x00b")
	if out != nil || !errors.Is(err, dl.ErrNUL) || !strings.Contains(err.Error(), `text 1, "-I/a\x00b"`) {
		t.Errorf("%v, %v", out, err)
	}
}
