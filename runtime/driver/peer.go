package driver

// Peers gives devices of the driver access to each other's memory ([Caps.Peers]).
type Peers interface {
	// EnablePeer gives this device access to the memory of another one of the driver: kernels may
	// use it, and copies go the direct way. It does not include pools; see [Pools].AccessPool.
	// Enabling again does nothing. If the hardware has no link, the error is [ErrUnsupported], and
	// copies go through the host. Creating.
	EnablePeer(other Device) error

	// CopyPeer copies between memory of two devices of the driver, neither of which needs access to
	// the other's, also of pools: dst is to's, and src from's. Host memory counts as any device's.
	// Other methods must not get memory of a pool to which this device has no access; they may end
	// the process. Submitting.
	CopyPeer(s Stream, dst Ptr, to Device, src Ptr, from Device, n uint64) error
}
