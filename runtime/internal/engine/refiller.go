package engine

// Events and pinned memory are made ahead. When a pool runs low, a refiller makes more: a goroutine
// on a bound thread, which ends when it is done. A call that finds the pool empty waits until the
// driver has made what it needs. The pending-queue thread does not wait: for a submission without
// an event, another goroutine waits and then makes it ready again (awaitEvent).

// Refill has a goroutine call fill, which fills a pool, on a bound thread. It calls filled when
// fill has returned, or at once if the device is closed. An error of fill is not returned: a call
// that finds the pool empty tries itself.
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
