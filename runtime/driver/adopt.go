package driver

// An Adopter works on streams that the program has made with the API's own calls ([Caps.Adopt]).
// The packages of the drivers say which native type a Stream is.
type Adopter interface {
	// AdoptStream checks a stream of the program, and returns its priority. All methods except
	// BeginCapture and DestroyStream then accept the stream. The device keeps no record of it. The
	// stream must belong to this device and the device's context. AdoptStream refuses default
	// streams, because their meaning depends on the context or the thread. AdoptStream needs a
	// bound thread.
	AdoptStream(Stream) (priority int, err error)
	// Capturing reports whether a stream is being captured. Such a stream records its work in a
	// graph instead of doing it. Any thread may call Capturing.
	Capturing(Stream) (bool, error)
}
