package dl

import (
	"fmt"
	"strings"
	"unsafe"
)

// CString returns a copy of s in Go memory, ended by NUL. If s contains a NUL, the error is
// [ErrNUL].
func CString(s string) (*byte, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, ErrNUL
	}
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0], nil
}

// CStrings applies [CString] to each text. The result can be passed as a C array of char *. If a
// text contains a NUL, the error names the text and is [ErrNUL].
func CStrings(texts ...string) ([]*byte, error) {
	out := make([]*byte, len(texts))
	for i, s := range texts {
		var err error
		if out[i], err = CString(s); err != nil {
			return nil, fmt.Errorf("text %d, %.40q: %w", i, s, err)
		}
	}
	return out, nil
}

// maxString bounds the bytes that GoString reads if there is no NUL.
const maxString = 1 << 20

// GoString returns a copy of the C string at p, cut off after 1 MiB. It returns "" if p is nil. The
// string must end in NUL or be longer than 1 MiB.
func GoString(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	n := 0
	for n < maxString && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
