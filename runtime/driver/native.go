package driver

// Natives is what a [Device] implements besides where [Caps.Native] is set: programs may call the API themselves, with a stream of the
// runtime's. The packages of the drivers say what their handles are natively.
type Natives interface {
	// Enter makes the device current on the calling thread, to which the goroutine is locked, and returns what Leave needs to make
	// current again what was before. Both may be called on any thread, and what lies between is as on a bound one. They nest.
	Enter() (was uintptr, err error)
	Leave(was uintptr) error
}

// Capturer is what a [Device] implements besides where [Caps.Capture] is set, which Caps.Graphs and Caps.Native are then as well.
type Capturer interface {
	// BeginCapture has a stream, which has no work and which nobody else uses, note what it is given until EndCapture instead of
	// doing it. What other threads make meanwhile is not affected. Creating.
	BeginCapture(Stream) error
	// EndCapture returns what the stream was given, as a graph that the caller destroys. If something cannot be noted there is an
	// error and no graph; the stream is as before either way. Creating.
	EndCapture(Stream) (Graph, error)
}
