package driver

// An Adopter is what a [Device] implements besides where [Caps.Adopt] is set: it works on streams that the program has made by calls of
// the API's own. The packages of the drivers say what their handles are natively.
type Adopter interface {
	// AdoptStream checks a stream of the program's, and returns its priority. All methods take it then but BeginCapture and DestroyStream,
	// and the device keeps nothing of it. It must be a stream of this device, in the context that the device has; streams that are others
	// with each context or thread, such as CUDA's default streams, are refused. Creating.
	AdoptStream(Stream) (priority int, err error)
	// Capturing reports whether a stream notes what it is given, for a graph, instead of doing it. Submitting.
	Capturing(Stream) (bool, error)
}
