package driver

// Values is what a [Device] implements besides where [Caps.Values] is set: streams that write numbers of 64 bits to memory and wait for
// them, which the host, other streams and other processes may write and read as well. The memory is the device's, the host's, or
// another process's, but not managed; the address is aligned to 8 bytes.
type Values interface {
	// WriteValue writes a value in stream order. Who sees it sees all that the stream has written before. Submitting.
	WriteValue(s Stream, p Ptr, value uint64) error
	// WaitValue has later work of the stream wait until what is at p is at least a value, where the difference of the two is less
	// than 2⁶³: it is compared as a number with a sign. Submitting.
	WaitValue(s Stream, p Ptr, value uint64) error
}
