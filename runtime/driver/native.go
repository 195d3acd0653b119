package driver

// Natives lets programs call the GPU's own API, such as CUDA, with a stream of the runtime
// ([Caps.Native]). The drivers' packages say which native type a handle is.
type Natives interface {
	// Enter makes the device current on the calling thread. The goroutine must be locked to the
	// thread. Leave restores the previous device, and needs the value that Enter returned. Any
	// thread may call Enter, and the same thread must call Leave. Between the two calls the thread
	// counts as bound. Pairs of Enter and Leave may be nested.
	Enter() (was uintptr, err error)
	Leave(was uintptr) error
}

// Capturer captures streams ([Caps.Capture], which implies Caps.Graphs and Caps.Native).
type Capturer interface {
	// BeginCapture makes a stream record its work until EndCapture instead of doing it. The stream
	// must be idle, and no other goroutine may use it. Calls of other threads are not affected.
	// BeginCapture needs a bound thread.
	BeginCapture(Stream) error
	// EndCapture returns the recorded work as a graph, which the caller destroys. If a call could
	// not be recorded, EndCapture returns an error and no graph. In both cases the stream then
	// works as before BeginCapture. EndCapture needs a bound thread.
	EndCapture(Stream) (Graph, error)
}
