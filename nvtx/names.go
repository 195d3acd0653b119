package nvtx

// NameThread names the calling thread. The calling goroutine should be locked to it: see
// [runtime.LockOSThread].
func NameThread(name string) {
	if Enabled() {
		named(moduleCore, coreNameOSThread, uintptr(threadID()), name)
	}
}

// NameDevice names a device, such as a cuda.Device.
func NameDevice[D ~int32](device D, name string) {
	if Enabled() {
		named(moduleCUDA, cudaNameDevice, uintptr(uint32(device)), name)
	}
}

// NameContext names a context, such as a cuda.Context.
func NameContext[C ~uintptr](context C, name string) {
	if Enabled() {
		named(moduleCUDA, cudaNameContext, uintptr(context), name)
	}
}

// NameStream names a stream, such as a cuda.Stream.
func NameStream[S ~uintptr](stream S, name string) {
	if Enabled() {
		named(moduleCUDA, cudaNameStream, uintptr(stream), name)
	}
}

// NameEvent names an event, such as a cuda.Event.
func NameEvent[E ~uintptr](event E, name string) {
	if Enabled() {
		named(moduleCUDA, cudaNameEvent, uintptr(event), name)
	}
}

func named(module, function int, what uintptr, name string) {
	c := calls.Get().(*call)
	defer c.put()
	c.do(module, function, what, c.cString(name))
}
