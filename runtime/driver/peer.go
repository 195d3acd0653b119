package driver

// Peers is what a [Device] implements besides where [Caps.Peers] is set.
type Peers interface {
	// EnablePeer gives this device access to the memory of another one of the driver: kernels may use it, and copies between
	// the two go the direct way. Pools' memory is not meant: that is for [Pools].AccessPool. Enabling again does nothing. Where
	// the hardware has no way the error is [ErrUnsupported], and copies go through the host. Creating.
	EnablePeer(other Device) error

	// CopyPeer copies between memory of two devices of the driver, neither of which needs access to the other's, pools' memory
	// included: dst is to's, and src from's. What the host can use counts as any device's. It is the only method that may be given
	// memory of a pool to which this device has no access; others may end the process. Submitting.
	CopyPeer(s Stream, dst Ptr, to Device, src Ptr, from Device, n uint64) error
}
