package driver

// Peers is what a [Device] implements besides where [Caps.Peers] is set.
type Peers interface {
	// EnablePeer gives this device access to the memory of another one of the driver: kernels may use it, and copies between
	// the two go the direct way. Enabling again does nothing. Where the hardware has no way the error is [ErrUnsupported], and
	// copies go through the host. Creating.
	EnablePeer(other Device) error
}
