package driver

// Handles of memory and events for other processes of the machine, in the API's own form. CUDA's
// are cudaIpcMemHandle_t and cudaIpcEventHandle_t, which PyTorch and CuPy use.
type (
	MemHandle   [64]byte
	EventHandle [64]byte
)

// IPCMem has memory that processes share ([Caps.IPCMem]).
type IPCMem interface {
	// ExportMem returns a handle of a whole allocation of Alloc, of kind [DeviceMem]. The handle is
	// valid while the memory exists. The memory must not be freed before others have closed it.
	// Creating.
	ExportMem(Mem) (MemHandle, error)
	// OpenMem makes memory of another process accessible, also if it is another device's and the
	// hardware has a link. The returned Size is the allocation's, or 0 if the API does not report
	// it. Opening it again returns the same address, which must be closed once more. For memory of
	// this process the error is [ErrSameProcess]. Creating.
	OpenMem(MemHandle) (Mem, error)
	// CloseMem undoes OpenMem, and may wait for the device. Creating.
	CloseMem(Mem) error
}

// IPCEvents has events that processes share ([Caps.IPCEvents]). Each process may record such an
// event, and make its streams wait for the last record of any process.
type IPCEvents interface {
	// NewIPCEvent makes an event that can be exported. DestroyEvent destroys it, after the other
	// processes have destroyed theirs. Creating.
	NewIPCEvent() (Event, error)
	// ExportEvent returns a handle of an event of NewIPCEvent. Creating.
	ExportEvent(Event) (EventHandle, error)
	// OpenEvent returns an event of another process, which DestroyEvent releases. For an event of
	// this process the error is [ErrSameProcess]. Creating.
	OpenEvent(EventHandle) (Event, error)
}
