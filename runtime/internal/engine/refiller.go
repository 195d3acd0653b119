package engine

// Events and pinned memory are made ahead. When a pool runs low a refiller makes more: a goroutine on a
// bound thread that goes when it is through. A call that finds a pool empty all the same has what it
// needs made, and waits until the driver has made it. The pending-queue thread does not wait: for a
// submission without an event, another goroutine waits and then makes it ready again (awaitEvent).

// Refill has a goroutine fill a pool. It calls filled when it is through, or if the device is closed. An
// error is left to those who find the pool empty.
func (d *Device) Refill(fill func() error, filled func()) {
	if !d.enter() {
		filled()
		return
	}
	go func() {
		defer d.making.Done()
		err := d.Bound(fill)
		filled()
		if err != nil {
			d.Check(err)
		}
	}()
}
