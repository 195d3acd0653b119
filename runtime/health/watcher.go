package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Options change how a [Watcher] works. The zero value has the defaults.
type Options struct {
	// Interval is the time between two readings of ECC counts and clocks; 0 means one second. If it
	// is negative there are no readings, only XID errors.
	Interval time.Duration
}

const (
	// slice is the longest time that a source may wait in one call, so that Close need not wait
	// longer.
	slice = 500 * time.Millisecond
	// patience is the longest time that Close waits for a source's stuck calls.
	patience = 5 * time.Second
	// recent is the largest age of an XID error that [Watcher.LastXID] returns without waiting for
	// a new one.
	recent = 10 * time.Second
)

// A Watcher watches devices until it is closed. It has one goroutine for each device. All methods
// may be called concurrently.
type Watcher struct {
	interval time.Duration
	devices  []*watched
	closing  chan struct{}
	close    func() error

	mu       sync.Mutex // protects the following fields
	channels []chan<- Event
	dropped  uint64
}

// A watched is one device of a watcher.
type watched struct {
	w       *Watcher
	info    driver.Info
	session Session
	done    chan struct{}
	ended   error    // the result of the session's Close; valid after the channel done is closed
	held    Throttle // throttle reasons of the latest reading whose Clocks is true; only the device's goroutine uses it

	mu      sync.Mutex // protects the following fields
	status  Status
	arrived chan struct{} // closed at the next XID error
}

// A Status is a watcher's state of a device.
type Status struct {
	Device driver.Info

	XIDs     map[XID]uint64 // number of reports of each XID since the watcher began
	LastXID  XID            // 0 if there was none
	LastTime time.Time      // time of LastXID
	NoXIDs   error          // why the source has no XID errors of this device, or nil

	Reading           // the latest reading
	ReadAt  time.Time // time of the latest reading; zero before the first and without readings
	Err     error     // why the source fails, or nil
}

// Watch begins to watch devices. If a device cannot be watched, Watch watches none, and the error
// names the device and says why. Close the watcher when it is no longer needed.
func Watch(source Source, devices []driver.Info, opt Options) (*Watcher, error) {
	if source == nil {
		return nil, errors.New("health: no source: open one with nvmlhealth.Open, or use a health.Fake")
	}
	w := &Watcher{interval: opt.Interval, closing: make(chan struct{})}
	if w.interval == 0 {
		w.interval = time.Second
	}
	for _, info := range devices {
		session, err := source.Watch(info)
		if err != nil {
			err = fmt.Errorf("health: watch %s: %w", describe(info), err)
			for _, d := range w.devices {
				err = errors.Join(err, d.session.Close())
			}
			return nil, err
		}
		w.devices = append(w.devices, &watched{w: w, info: info, session: session, done: make(chan struct{}),
			status: Status{Device: info, XIDs: map[XID]uint64{}}, arrived: make(chan struct{})})
	}
	w.close = sync.OnceValue(w.end)
	for _, d := range w.devices {
		go d.run()
	}
	return w, nil
}

// Close ends the watching. It waits for the source's calls in progress, at most half a second if
// the source keeps its timeouts. After five seconds it gives up, and the error names the device.
func (w *Watcher) Close() error { return w.close() }

func (w *Watcher) end() error {
	close(w.closing)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var errs []error
	for i, d := range w.devices {
		select {
		case <-d.done:
			if d.ended != nil {
				errs = append(errs, fmt.Errorf("health: close %s: %w", describe(d.info), d.ended))
			}
		case <-timer.C:
			for _, d := range w.devices[i:] {
				select {
				case <-d.done:
				default:
					errs = append(errs, fmt.Errorf("health: close %s: a call of the source did not return within %v; its goroutine leaks", describe(d.info), patience))
				}
			}
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// Notify sends events to a channel, as [os/signal.Notify] does: the watcher does not wait for the
// receiver, so give the channel a buffer. An event that finds the channel full is dropped and
// counted. No event is sent after Close.
func (w *Watcher) Notify(c chan<- Event) {
	if c == nil {
		panic("health: Notify with a nil channel")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.channels, c) {
		w.channels = append(w.channels, c)
	}
}

// Stop undoes Notify. After it returns, no more events are sent to the channel.
func (w *Watcher) Stop(c chan<- Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.channels = slices.DeleteFunc(w.channels, func(have chan<- Event) bool { return have == c })
}

// Dropped returns the number of events that found a channel full.
func (w *Watcher) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Status returns the watcher's state of each device, in the order of Watch. It calls no library.
func (w *Watcher) Status() []Status {
	all := make([]Status, len(w.devices))
	for i, d := range w.devices {
		d.mu.Lock()
		all[i] = d.status
		all[i].XIDs = maps.Clone(d.status.XIDs)
		d.mu.Unlock()
	}
	return all
}

// LastXID returns the latest XID error of a device, and the time of the error. device is the
// device's index in the call of Watch. If no XID error was reported in the past ten seconds,
// LastXID first waits up to patience for one, because a driver call may return the error of a lost
// device just before the watcher gets the XID error. LastXID does not wait if the source has no XID
// errors of the device. The XID is 0 and the time is zero if there was none, or if no device has
// that index.
func (w *Watcher) LastXID(device int, patience time.Duration) (XID, time.Time) {
	if device < 0 || device >= len(w.devices) {
		return 0, time.Time{}
	}
	d := w.devices[device]
	d.mu.Lock()
	arrived, xid, at, none := d.arrived, d.status.LastXID, d.status.LastTime, d.status.NoXIDs
	d.mu.Unlock()
	if xid != 0 && time.Since(at) < recent || none != nil || patience <= 0 {
		return xid, at
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-arrived:
	case <-timer.C:
	case <-w.closing:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status.LastXID, d.status.LastTime
}

// send sends an event to all channels.
func (w *Watcher) send(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closing:
		return
	default:
	}
	for _, c := range w.channels {
		select {
		case c <- e:
		default:
			w.dropped++
		}
	}
}

// run watches the device until the watcher is closed.
func (d *watched) run() {
	defer close(d.done)
	defer func() { d.ended = d.session.Close() }()
	var readAt time.Time
	hasXIDs := true
	var readErr error // error of the latest reading; kept until the next reading
	for first := true; ; first = false {
		if d.w.interval > 0 && (first || time.Since(readAt) >= d.w.interval) {
			readAt = time.Now()
			readErr = d.read(first)
		}
		var waitErr error
		asked := false
		if hasXIDs {
			xid, ok, err := d.session.Wait(d.untilNext(readAt))
			switch {
			case unsupported(err):
				d.mu.Lock()
				d.status.NoXIDs, hasXIDs = err, false
				d.mu.Unlock()
			case err != nil:
				waitErr = err
			default:
				asked = true
				if ok {
					d.report(xid)
				}
			}
		}
		d.fails(errors.Join(readErr, waitErr))
		wait := time.Duration(0)
		if !asked { // Wait failed or was not called, so this loop pauses
			wait = d.untilNext(readAt)
		}
		if !d.pause(wait) {
			return
		}
	}
}

// untilNext returns the time until the next reading or the end of a slice.
func (d *watched) untilNext(readAt time.Time) time.Duration {
	if d.w.interval <= 0 {
		return slice
	}
	return min(slice, max(time.Millisecond, d.w.interval-time.Since(readAt)))
}

// pause waits, and returns false if the watcher is being closed.
func (d *watched) pause(wait time.Duration) bool {
	if wait == 0 {
		select {
		case <-d.w.closing:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.w.closing:
		return false
	case <-timer.C:
		return true
	}
}

// report records an XID error and sends its event.
func (d *watched) report(xid XID) {
	now := time.Now()
	d.mu.Lock()
	d.status.XIDs[xid]++
	d.status.LastXID, d.status.LastTime = xid, now
	close(d.arrived)
	d.arrived = make(chan struct{})
	d.mu.Unlock()
	d.w.send(Event{Device: d.info, Time: now, Kind: KindXID, XID: xid})
}

// read reads the device's state, and sends events for changes since the previous reading. The first
// reading causes an event only if clocks are throttled.
func (d *watched) read(first bool) error {
	r, err := d.session.Read()
	if err != nil {
		return err
	}
	now := time.Now()
	d.mu.Lock()
	before := d.status.Reading
	first = first || d.status.ReadAt.IsZero()
	d.status.Reading, d.status.ReadAt = r, now
	d.mu.Unlock()
	e := Event{Device: d.info, Time: now, Kind: KindECC}
	if !first && r.ECC && before.ECC {
		// A count that went down was reset in between.
		if e.Corrected = r.Corrected - before.Corrected; r.Corrected < before.Corrected {
			e.Corrected = r.Corrected
		}
		if e.Uncorrected = r.Uncorrected - before.Uncorrected; r.Uncorrected < before.Uncorrected {
			e.Uncorrected = r.Uncorrected
		}
		if e.Corrected+e.Uncorrected > 0 {
			d.w.send(e)
		}
	}
	if r.Clocks && r.Throttle != d.held { // without Clocks the reasons are unknown, which is no change
		d.held = r.Throttle
		d.w.send(Event{Device: d.info, Time: now, Kind: KindThrottle, Throttle: r.Throttle})
	}
	return nil
}

// fails records the error of the source, or nil if the source works, and sends an event when the
// source begins to fail or works again.
func (d *watched) fails(err error) {
	d.mu.Lock()
	changed := (err == nil) != (d.status.Err == nil)
	d.status.Err = err
	d.mu.Unlock()
	if changed {
		d.w.send(Event{Device: d.info, Time: time.Now(), Kind: KindSource, Err: err})
	}
}
