package engine

// Events and pinned memory are made before they are needed. When a pool runs low, a refiller makes
// more: a goroutine on a bound thread, which ends when it has made them. A call that finds the pool
// empty waits until the driver has made an event or memory for it. The pending-queue thread must
// not wait. If a submission there lacks an event, another goroutine waits for one and then makes
// the submission ready again (awaitEvent).

// Refill has a goroutine call fill, which fills a pool, on a bound thread. It calls filled when
// fill has returned, or at once if the device is closed. An error of fill is not returned, because
// a call that finds the pool empty tries again itself.
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
