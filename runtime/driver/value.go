package driver

// Values has streams that write numbers of 64 bits to memory and wait for them ([Caps.Values]). The
// host, other streams and other processes may write and read them too. The memory is the device's,
// the host's, or another process's, but not managed; the address is aligned to 8 bytes.
type Values interface {
	// WriteValue writes a value in stream order. A reader of the value sees all earlier writes of
	// the stream. Submitting.
	WriteValue(s Stream, p Ptr, value uint64) error
	// WaitValue makes later work of the stream wait until the number at p is at least a value. The
	// difference of the two must be less than 2⁶³: it is compared as a signed number. Submitting.
	WaitValue(s Stream, p Ptr, value uint64) error
}
