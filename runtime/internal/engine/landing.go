package engine

import (
	"slices"
	"sync/atomic"
	"time"
)

// Limits of the pauses between polls of downloads that nobody waits for. The pauses begin with
// firstPause and double up to longestPause. After a poll that found finished work, they begin again
// with firstPause. A download that the program waits for is polled sooner: see package wake.
const (
	firstPause   = time.Millisecond
	longestPause = 8 * time.Millisecond
)

// A downloadPoller polls downloads that nobody waits for, so that their data reaches the program's
// Go slices soon after the device has finished. Its timer runs only while such a download may be
// in flight.
type downloadPoller struct {
	timer *time.Timer
	armed atomic.Bool   // the timer runs, or the timer's function is being called
	pause time.Duration // the pause that pollDownloads chose last, or 0; only pollDownloads uses it
}

func (l *downloadPoller) init(d *Device) {
	l.timer = time.AfterFunc(time.Hour, d.pollDownloads)
	l.timer.Stop()
}

// arm starts the timer if it is not running.
func (l *downloadPoller) arm() {
	if !l.armed.Load() && l.armed.CompareAndSwap(false, true) {
		l.timer.Reset(firstPause)
	}
}

// pollDownloadLater makes the timer poll the download with the number seq, for which nobody waits.
// The caller holds tl.mu.
func (tl *Timeline) pollDownloadLater(seq uint64) {
	tl.lastDownload.Store(seq)
	tl.Device.downloads.arm()
}

// hasDownload reports whether the last download that was given to pollDownloadLater is in flight.
// It returns false if the device is lost.
func (tl *Timeline) hasDownload() bool { return tl.lastDownload.Load() > tl.passed.Load() && tl.Busy() }

// pollDownloads is the function of the downloadPoller's timer. It polls the timelines that have
// downloads for which nobody waits. It restarts the timer if such downloads are left, unless the
// device has reached phase isLeft.
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
		l.arm() // a download may have been added just before armed became false
	}
}
