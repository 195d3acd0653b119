package engine

// Events and pinned memory are made before they are needed. When a pool runs low, the refiller, a
// goroutine on a thread bound to the device, makes more and ends. A call that finds a pool empty
// blocks until the driver has made a new event or new memory. The pending-queue thread must not
// block: for a submission that lacks an event, another goroutine waits (awaitEvent).

// Refill starts a goroutine on a thread bound to the device. The goroutine first calls fill, which
// fills a pool, and then calls filled. If the device is closed, Refill only calls filled. An error
// of fill goes only to Check: a call that finds the pool empty makes its own attempt and returns
// its own error.
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
