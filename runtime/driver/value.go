package driver

// Values makes streams write 64-bit numbers to memory, and wait for numbers ([Caps.Values]). The
// host, other streams and other processes may write and read the numbers too. The memory is the
// device's, the host's, or another process's, but not managed and not in a pool. The address is
// aligned to 8 bytes.
type Values interface {
	// WriteValue writes a value in stream order. A reader that sees the value also sees all earlier
	// writes of the stream. Any thread may call it.
	WriteValue(s Stream, p Ptr, value uint64) error
	// WaitValue makes later work of the stream wait until the number at p is at least value. The
	// API tests the sign of the 64-bit difference, so the two numbers must be less than 2⁶³ apart.
	// Any thread may call it.
	WaitValue(s Stream, p Ptr, value uint64) error
}
