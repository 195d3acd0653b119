package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A rig has the objects of puregpu's side.
type rig struct {
	dev  *gpu.Device
	q    *gpu.Queue // the device's first queue
	sem  *gpu.Semaphore
	v    uint64 // the highest value of sem that submitted work will signal
	all  gpu.Range
	wait [1]gpu.Point // wait and sig are the lists of a gpu.Order, so that making one does not allocate
	sig  [1]gpu.Point
}

func newRig(e *env, queues int) (*rig, error) {
	return openRig(e.drv, e.index, gpu.Options{Queues: queues})
}

// openRig opens a device of a driver and makes a rig of it.
func openRig(drv driver.Driver, index int, opt gpu.Options) (*rig, error) {
	dev, err := gpu.Open(drv, index, opt)
	if err != nil {
		return nil, err
	}
	r, err := rigOn(dev)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return r, nil
}

// rigOn makes a rig of an open device.
func rigOn(dev *gpu.Device) (*rig, error) {
	buf, err := dev.Alloc(gpu.DeviceMem, fillSize)
	if err != nil {
		return nil, err
	}
	sem, err := gpu.NewSemaphore(0)
	if err != nil {
		return nil, err
	}
	return &rig{dev: dev, q: dev.Queue(0), sem: sem, all: buf.All()}, nil
}

func (r *rig) close() error { return r.dev.Close() }

var pattern = []byte{fillPattern & 0xff, fillPattern >> 8 & 0xff, fillPattern >> 16 & 0xff, fillPattern >> 24}

// order returns a gpu.Order with a wait and a signal. A nil semaphore stands for none. The next
// call overwrites the lists of the Order.
func (r *rig) order(wait *gpu.Semaphore, from uint64, signal *gpu.Semaphore, to uint64) (o gpu.Order) {
	if wait != nil {
		r.wait[0] = gpu.Point{Semaphore: wait, Value: from}
		o.Wait = r.wait[:]
	}
	if signal != nil {
		r.sig[0] = gpu.Point{Semaphore: signal, Value: to}
		o.Signal = r.sig[:]
	}
	return o
}

// fill submits a fill.
func (r *rig) fill(q *gpu.Queue, wait *gpu.Semaphore, from uint64, signal *gpu.Semaphore, to uint64) error {
	return q.Submit(r.order(wait, from, signal, to), gpu.Fill(r.all, pattern))
}

// roundTrip submits a fill and waits for it.
func (r *rig) roundTrip(e *env) error {
	r.v++
	if err := r.fill(r.q, nil, 0, r.sem, r.v); err != nil {
		return err
	}
	return r.sem.Wait(e.ctx, r.v)
}

// ahead submits n operations, each of which waits for the one before, on the raw side's thread. It
// stores the same figures as the function ahead.
func (r *rig) ahead(e *env, f []float64, n int, submit func(gpu.Order) error) error {
	return e.beside(func() error {
		return ahead(f, n, func() error {
			for range n {
				if err := submit(r.order(r.sem, r.v, r.sem, r.v+1)); err != nil {
					return err
				}
				r.v++
			}
			return nil
		}, func() error { return r.sem.Wait(e.ctx, r.v) })
	})
}

// semaphores makes n semaphores.
func semaphores(n int) ([]*gpu.Semaphore, error) {
	list := make([]*gpu.Semaphore, n)
	for i := range list {
		var err error
		if list[i], err = gpu.NewSemaphore(0); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// waitEach waits until all semaphores have reached a value. It begins with the last one: after that
// most of the others have reached the value too.
func waitEach(e *env, list []*gpu.Semaphore, value uint64) error {
	for i := len(list) - 1; i >= 0; i-- {
		if err := list[i].Wait(e.ctx, value); err != nil {
			return err
		}
	}
	return nil
}
