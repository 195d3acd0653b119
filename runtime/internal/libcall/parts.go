package libcall

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// MostPlans is the number of plans for shapes that a library keeps.
const MostPlans = 4096

// MakeRoom removes one of a library's plans and destroys it, if there are MostPlans. It bounds the
// memory of a program that always has new shapes.
func MakeRoom[K comparable, P any](plans map[K]P, destroy func(P) error) error {
	if len(plans) < MostPlans {
		return nil
	}
	for k, p := range plans {
		delete(plans, k)
		return destroy(p)
	}
	return nil
}

// Parts are a library's open plans, generators and similar objects. The zero Parts is empty.
type Parts struct {
	mu     sync.Mutex // protects the following fields
	open   map[io.Closer]struct{}
	closed bool
}

// Add adds a part. If the library is closed, or the device accepts no more work, Add closes the
// part and returns an error.
func (p *Parts) Add(d Device, c io.Closer) error {
	err := gpu.Inside(d.dev).Ready(d.name)
	p.mu.Lock()
	if p.closed {
		err = fmt.Errorf("%s: the library: %w", d.name, gpu.ErrClosed)
	}
	if err == nil {
		if p.open == nil {
			p.open = make(map[io.Closer]struct{})
		}
		p.open[c] = struct{}{}
	}
	p.mu.Unlock()
	if err != nil {
		err = errors.Join(err, c.Close())
	}
	return err
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
