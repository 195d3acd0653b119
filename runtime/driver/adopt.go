package driver

// An Adopter works on streams that the program has made by the API's own calls ([Caps.Adopt]). The
// drivers' packages say which native type a handle is.
type Adopter interface {
	// AdoptStream checks a stream of the program, and returns its priority. All methods except
	// BeginCapture and DestroyStream then accept the stream, and the device keeps no state of it.
	// It must be a stream of this device, in the device's context. Default streams, which differ by
	// context or thread, are refused. Creating.
	AdoptStream(Stream) (priority int, err error)
	// Capturing reports whether a stream is captured: it then records work for a graph, instead of
	// doing it. Submitting.
	Capturing(Stream) (bool, error)
}
