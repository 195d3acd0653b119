package libcall

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// Parts are a library's open plans, generators and similar objects. The zero Parts is empty.
type Parts struct {
	mu     sync.Mutex // protects the following fields
	open   map[io.Closer]struct{}
	closed bool
}

// Add adds a part. If the library is closed, it closes the part, and the error is gpu.ErrClosed.
func (p *Parts) Add(name string, c io.Closer) error {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		if p.open == nil {
			p.open = make(map[io.Closer]struct{})
		}
		p.open[c] = struct{}{}
	}
	p.mu.Unlock()
	if closed {
		return errors.Join(fmt.Errorf("%s: the library: %w", name, gpu.ErrClosed), c.Close())
	}
	return nil
}

// Remove removes a part, which is closed.
func (p *Parts) Remove(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// Close closes all parts.
func (p *Parts) Close() error {
	p.mu.Lock()
	open := p.open
	p.open, p.closed = nil, true
	p.mu.Unlock()
	var errs []error
	for c := range open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
