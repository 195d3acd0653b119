package dl

import "bytes"

// OptionalCString is [CString], except that it returns nil for the empty string. It is for
// parameters for which C takes NULL to mean that there is no string.
func OptionalCString(s string) (*byte, error) {
	if s == "" {
		return nil, nil
	}
	return CString(s)
}

// Text returns the text that C wrote to a buffer, up to the first NUL.
func Text(buf []byte) string {
	if i := bytes.IndexByte(buf, 0); i >= 0 {
		buf = buf[:i]
	}
	return string(buf)
}
