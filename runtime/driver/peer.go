package driver

// Peers gives devices of the driver access to each other's memory ([Caps.Peers]).
type Peers interface {
	// EnablePeer gives this device access to the memory of another device of the driver. Kernels
	// may then use the memory, and copies take the direct path. Pools are not included; see
	// [Pools].AccessPool. Enabling again does nothing. If the hardware has no link, the error is
	// [ErrUnsupported], and copies go through the host. EnablePeer needs a bound thread.
	EnablePeer(other Device) error

	// CopyPeer copies n bytes from src to dst. The parameters to and from are the devices that have
	// the memory at dst and at src. Neither device needs access to the other's memory, even if the
	// memory is in a pool. Host memory counts as memory of any device. If this device has no access
	// to a pool, pass memory of the pool only to CopyPeer: other methods may crash the process. Any
	// thread may call CopyPeer.
	CopyPeer(s Stream, dst Ptr, to Device, src Ptr, from Device, n uint64) error
}
