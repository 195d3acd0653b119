package driver

// Handles of memory and events that other processes of the machine can open. They have the API's
// own form: CUDA's are cudaIpcMemHandle_t and cudaIpcEventHandle_t, which PyTorch and CuPy use.
type (
	MemHandle   [64]byte
	EventHandle [64]byte
)

// IPCMem shares memory with other processes ([Caps.IPCMem]).
type IPCMem interface {
	// ExportMem returns a handle of a whole allocation of Alloc, of kind [DeviceMem]. The handle is
	// valid while the memory exists. The memory must not be freed before other processes have
	// closed it. ExportMem needs a bound thread.
	ExportMem(Mem) (MemHandle, error)
	// OpenMem makes memory of another process accessible. The memory may be on another device if
	// the hardware has a link. The returned Size is the allocation's, or 0 if the API does not
	// report it. Opening the memory again returns the same address. Each OpenMem needs a CloseMem.
	// For memory of this process the error is [ErrSameProcess]. OpenMem needs a bound thread.
	OpenMem(MemHandle) (Mem, error)
	// CloseMem undoes OpenMem, and may wait for the device. It needs a bound thread.
	CloseMem(Mem) error
}

// IPCEvents shares events with other processes ([Caps.IPCEvents]). Each process may record a shared
// event, and make its streams wait for the last record in any process.
type IPCEvents interface {
	// NewIPCEvent makes an event that can be exported. DestroyEvent destroys it. Before that, other
	// processes must destroy the events that OpenEvent has returned to them. NewIPCEvent needs a
	// bound thread.
	NewIPCEvent() (Event, error)
	// ExportEvent returns a handle of an event of NewIPCEvent. It needs a bound thread.
	ExportEvent(Event) (EventHandle, error)
	// OpenEvent returns an event of another process. DestroyEvent releases it. For an event of this
	// process the error is [ErrSameProcess]. OpenEvent needs a bound thread.
	OpenEvent(EventHandle) (Event, error)
}
