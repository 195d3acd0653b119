package compile

import (
	"bytes"
	"maps"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

// FuzzUnpack checks that unpack either refuses arbitrary bytes, or returns code that stays the same
// when it is packed and unpacked again.
func FuzzUnpack(f *testing.F) {
	for _, code := range []driver.Code{
		{},
		{Image: []byte("image"), Log: "log\n"},
		{Image: make([]byte, 300), Names: map[string]string{"f<int>": "_Z1fIiEvv", "": ""}},
	} {
		b := pack(code)
		got, ok := unpack(b)
		if !ok || !bytes.Equal(got.Image, code.Image) || got.Log != code.Log || !maps.Equal(got.Names, code.Names) {
			f.Errorf("%+v becomes %+v, %v", code, got, ok)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		code, ok := unpack(b)
		if !ok {
			return
		}
		if again, ok := unpack(pack(code)); !ok || !bytes.Equal(again.Image, code.Image) || again.Log != code.Log || !maps.Equal(again.Names, code.Names) {
			t.Errorf("%+v becomes %+v, %v", code, again, ok)
		}
	})
}
