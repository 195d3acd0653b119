package dl

import (
	"strings"
	"unsafe"
)

// CString returns a copy of s that ends in NUL, in Go memory: it lives as long as the
// pointer is held. If s contains a NUL itself, the error is [ErrNUL].
func CString(s string) (*byte, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, ErrNUL
	}
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0], nil
}

// maxString bounds what GoString reads where a NUL never comes.
const maxString = 1 << 20

// GoString returns a copy of the C string at p, cut off after 1 MiB. It returns "" if
// p is nil. The string must end in NUL or be longer than that.
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
