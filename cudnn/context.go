package cudnn

import "sync/atomic"

// A Context owns a [Handle], which Close destroys.
type Context struct {
	lib    *Library
	handle Handle
	closed atomic.Bool
}

// NewContext makes a Context with a handle of [Library.Create].
func (l *Library) NewContext() (*Context, error) {
	h, err := l.Create()
	if err != nil {
		return nil, err
	}
	return &Context{lib: l, handle: h}, nil
}

// Handle returns the handle, for methods of [Library]. The handle must not be used after Close.
func (c *Context) Handle() Handle { return c.handle }

// Close destroys the handle with [Library.Destroy], which waits until the device is idle. The
// handle's CUDA context must be current. Later calls do nothing.
func (c *Context) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.lib.Destroy(c.handle)
}
