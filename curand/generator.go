package curand

import "sync/atomic"

// A Generator owns a [Handle], which Close destroys.
type Generator struct {
	lib    *Library
	handle Handle
	closed atomic.Bool
}

// NewGenerator makes a generator with [Library.CreateGenerator].
func (l *Library) NewGenerator(kind RNGType) (*Generator, error) {
	h, err := l.CreateGenerator(kind)
	if err != nil {
		return nil, err
	}
	return &Generator{lib: l, handle: h}, nil
}

// Handle returns the handle, for methods of [Library]. The handle must not be used after Close.
func (g *Generator) Handle() Handle { return g.handle }

// Close destroys the handle with [Library.DestroyGenerator]. The generator's context must be
// current. Later calls do nothing.
func (g *Generator) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	return g.lib.DestroyGenerator(g.handle)
}
