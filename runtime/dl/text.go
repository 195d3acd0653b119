package dl

import "bytes"

// OptionalCString is [CString], but for the empty string it returns nil, which C takes for no string at all.
func OptionalCString(s string) (*byte, error) {
	if s == "" {
		return nil, nil
	}
	return CString(s)
}

// Text returns the text that C wrote into a buffer, up to the first NUL.
func Text(buf []byte) string {
	if i := bytes.IndexByte(buf, 0); i >= 0 {
		buf = buf[:i]
	}
	return string(buf)
}
