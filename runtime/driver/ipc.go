package driver

// Names by which another process on the same machine opens memory and events. They are bytes, in the API's own form: CUDA's are
// those of cudaIpcMemHandle_t and cudaIpcEventHandle_t, too, which PyTorch and CuPy use.
type (
	MemHandle   [64]byte
	EventHandle [64]byte
)

// IPCMem is what a [Device] implements besides where [Caps.IPCMem] is set: memory that processes share.
type IPCMem interface {
	// ExportMem names what Alloc made of kind [DeviceMem], as a whole. The name is good for as long as the memory is there, which must
	// not be freed before others have closed it. Creating.
	ExportMem(Mem) (MemHandle, error)
	// OpenMem makes memory that another process has exported accessible, also where it is another device's and the hardware has a way.
	// The Size of what it returns is the allocation's, or 0 if the API does not tell. To open it again returns the same address, which
	// must be closed once more. What this process has exported it cannot open: [ErrSameProcess]. Creating.
	OpenMem(MemHandle) (Mem, error)
	// CloseMem undoes OpenMem, and may wait for the device. Creating.
	CloseMem(Mem) error
}

// IPCEvents is what a [Device] implements besides where [Caps.IPCEvents] is set: events that processes share. Each may record such an
// event, and have its streams wait for the last record of any.
type IPCEvents interface {
	// NewIPCEvent makes an event that can be exported. DestroyEvent destroys it, which must not come before others have destroyed theirs.
	// Creating.
	NewIPCEvent() (Event, error)
	// ExportEvent names an event that NewIPCEvent made. Creating.
	ExportEvent(Event) (EventHandle, error)
	// OpenEvent returns an event of another process, which DestroyEvent gives back. What this process has exported it cannot open:
	// [ErrSameProcess]. Creating.
	OpenEvent(EventHandle) (Event, error)
}
