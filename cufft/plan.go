package cufft

import "sync/atomic"

// A Plan owns a [Handle], which Close destroys.
type Plan struct {
	lib    *Library
	handle Handle
	closed atomic.Bool
}

// NewPlan makes a handle with [Library.Create]. Functions such as [Library.MakePlan1d] turn the
// handle into a plan.
func (l *Library) NewPlan() (*Plan, error) {
	h, err := l.Create()
	if err != nil {
		return nil, err
	}
	return &Plan{lib: l, handle: h}, nil
}

// Handle returns the handle, for methods of [Library]. The handle must not be used after Close.
func (p *Plan) Handle() Handle { return p.handle }

// Close destroys the handle with [Library.Destroy] and frees the plan's memory. The plan's context
// must be current. Later calls do nothing.
func (p *Plan) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	return p.lib.Destroy(p.handle)
}
