package engine

import (
	"slices"
	"sync/atomic"
	"time"
)

// Pauses between two polls of downloads that nobody waits for. Most programs wait for a download at
// once, and so poll it themselves within the first pause. Later pauses grow.
const (
	firstPause   = time.Millisecond
	longestPause = 8 * time.Millisecond
)

// A landings polls downloads into slices that nobody waits for, so that the data reaches the slice
// soon after the device is done. Its timer runs only while such a download is in flight.
type downloadPoller struct {
	timer *time.Timer
	armed atomic.Bool   // the timer or its function is running
	pause time.Duration // before the next round; only the timer's function uses it
}

func (l *downloadPoller) init(d *Device) {
	l.timer = time.AfterFunc(time.Hour, d.pollDownloads)
	l.timer.Stop()
}

// arm starts the timer unless it is running.
func (l *downloadPoller) arm() {
	if !l.armed.Load() && l.armed.CompareAndSwap(false, true) {
		l.timer.Reset(firstPause)
	}
}

// pollDownloadLater has the device poll a download that nobody waits for. The caller holds mu.
func (tl *Timeline) pollDownloadLater(seq uint64) {
	tl.lastDownload.Store(seq)
	tl.Device.downloads.arm()
}

// hasDownload reports whether a download given to pollDownloadLater is in flight and the device is
// not lost.
func (tl *Timeline) hasDownload() bool { return tl.lastDownload.Load() > tl.passed.Load() && tl.Busy() }

// pollDownloads polls the downloads in flight that nobody waits for. It runs on the timer's
// goroutine.
func (d *Device) pollDownloads() {
	l := &d.downloads
	again, further := false, false
	for _, tl := range d.All() {
		if passed := tl.passed.Load(); tl.hasDownload() {
			tl.Poll(tl.lastDownload.Load(), 1)
			again, further = again || tl.hasDownload(), further || tl.passed.Load() > passed
		}
	}
	open := d.phase.Load() < isLeft
	if again && open {
		if l.pause = min(2*l.pause, longestPause); further || l.pause == 0 {
			l.pause = firstPause
		}
		l.timer.Reset(l.pause)
		return
	}
	l.pause = 0
	l.armed.Store(false)
	if open && slices.ContainsFunc(d.All(), (*Timeline).hasDownload) {
		l.arm() // for a download whose arm found armed still set
	}
}
