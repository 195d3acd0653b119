package cufile

import "sync/atomic"

// A Driver is the started library. Close stops it once.
type Driver struct {
	lib    *Library
	closed atomic.Bool
}

// NewDriver starts the library with [Library.DriverOpen].
func (l *Library) NewDriver() (*Driver, error) {
	if err := l.DriverOpen(); err != nil {
		return nil, err
	}
	return &Driver{lib: l}, nil
}

// Close stops the library with [Library.DriverClose]. Files and buffers must have been closed.
// Later calls do nothing.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	return d.lib.DriverClose()
}
