package driver

// Natives lets programs call the API themselves, with a stream of the runtime ([Caps.Native]). The
// drivers' packages say which native type a handle is.
type Natives interface {
	// Enter makes the device current on the calling thread, to which the goroutine is locked, and
	// returns a value from which Leave restores the previous one. Both may be called on any thread,
	// which counts as bound in between. They nest.
	Enter() (was uintptr, err error)
	Leave(was uintptr) error
}

// Capturer captures streams ([Caps.Capture], which implies Caps.Graphs and Caps.Native).
type Capturer interface {
	// BeginCapture makes an idle, unshared stream record its work until EndCapture instead of doing
	// it. Calls of other threads are not affected. Creating.
	BeginCapture(Stream) error
	// EndCapture returns the recorded work as a graph, which the caller destroys. If a call cannot
	// be recorded there is an error and no graph; in both cases the stream is as before. Creating.
	EndCapture(Stream) (Graph, error)
}
