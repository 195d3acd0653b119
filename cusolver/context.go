package cusolver

import "sync/atomic"

// A DnContext owns a handle for dense matrices, which Close destroys.
type DnContext struct {
	lib    *Library
	handle DnHandle
	closed atomic.Bool
}

// NewDnContext makes a DnContext with a handle of [Library.DnCreate].
func (l *Library) NewDnContext() (*DnContext, error) {
	h, err := l.DnCreate()
	if err != nil {
		return nil, err
	}
	return &DnContext{lib: l, handle: h}, nil
}

// Handle returns the handle, for methods of [Library]. The handle must not be used after Close.
func (c *DnContext) Handle() DnHandle { return c.handle }

// Close destroys the handle with [Library.DnDestroy]. The handle's CUDA context must be current.
// Later calls do nothing.
func (c *DnContext) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.lib.DnDestroy(c.handle)
}
