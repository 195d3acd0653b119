package driver

// Peers gives devices of the driver access to each other's memory ([Caps.Peers]).
type Peers interface {
	// EnablePeer gives this device access to the memory of another device of the driver: kernels
	// may use it, and copies take the direct path. It does not include pools; see
	// [Pools].AccessPool. Enabling again does nothing. If the hardware has no link, the error is
	// [ErrUnsupported], and copies go through the host. Creating.
	EnablePeer(other Device) error

	// CopyPeer copies from memory of device from to memory of device to. Neither device needs
	// access to the other's memory, also of pools. Host memory counts as any device's. Other
	// methods must not get memory of a pool to which this device has no access; they may crash the
	// process. Submitting.
	CopyPeer(s Stream, dst Ptr, to Device, src Ptr, from Device, n uint64) error
}
