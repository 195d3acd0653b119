// Package health watches the health of GPUs: XID errors, memory errors found by ECC, and throttled
// clocks.
//
// A [Watcher] watches devices and sends [Event] values to channels. A [Source] reports the events
// to it. Package nvmlhealth has the source for NVIDIA's GPUs, based on NVML. [Fake] is a source for
// tests and for simulated GPUs.
//
//	source, err := nvmlhealth.Open(nvml.Options{})
//	w, err := health.Watch(source, []driver.Info{dev.Info()}, health.Options{})
//	defer w.Close()
//	events := make(chan health.Event, 16)
//	w.Notify(events)
//
// A program needs no watcher to learn why a device is lost. Package cudadriver watches the devices
// that it opens, and the error of a lost device names the last [XID].
//
// This package imports no bindings, so importing it loads no library.
package health

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Source reports the health of devices. Its method may be called concurrently.
type Source interface {
	// Watch begins to record the reports of the device. It does not record earlier events. The
	// error says why the device cannot be watched.
	Watch(device driver.Info) (Session, error)
}

// A Session watches one device. Its methods are called by one goroutine at a time.
type Session interface {
	// Wait returns the next XID error, or false if none is reported before the timeout. An error
	// that matches [errors.ErrUnsupported] says that the source cannot report XID errors of this
	// device. Other errors may be temporary.
	Wait(timeout time.Duration) (xid XID, ok bool, err error)
	// Read returns the current state of the device. A value that the device does not report is not
	// an error.
	Read() (Reading, error)
	// Close stops watching the device and ends the Session.
	Close() error
}

// A Reading is the state of a device at one time.
type Reading struct {
	ECC         bool   // whether the device counts memory errors
	Corrected   uint64 // memory errors corrected by ECC since the driver was loaded
	Uncorrected uint64 // memory errors since then that ECC found but could not correct

	Clocks   bool     // whether the device reports the reasons of throttled clocks
	Throttle Throttle // the current reasons
}

// A Throttle is a set of reasons why a GPU runs below its full clocks.
type Throttle uint

// The reasons.
const (
	PowerCap        Throttle = 1 << iota // the power limit
	SoftwareThermal                      // the driver lowers the clocks because of the temperature
	HardwareThermal                      // the hardware halves the clocks or more because of the temperature
	PowerBrake                           // the system asks for less power, often because a power supply fails
	HardwareSlow                         // the hardware halves the clocks or more: temperature, power brake or power supply
	SyncBoost                            // the GPU follows the clocks of the other GPUs in its group
)

// Reasons returns the single reasons of the set.
func (t Throttle) Reasons() (all []Throttle) {
	for bit := PowerCap; bit <= SyncBoost; bit <<= 1 {
		if t&bit != 0 {
			all = append(all, bit)
		}
	}
	return all
}

// String returns the reasons' names with commas between them, such as "power cap, sync boost", or
// "none".
func (t Throttle) String() string {
	var names []string
	for _, one := range t.Reasons() {
		switch one {
		case PowerCap:
			names = append(names, "power cap")
		case SoftwareThermal:
			names = append(names, "software thermal")
		case HardwareThermal:
			names = append(names, "hardware thermal")
		case PowerBrake:
			names = append(names, "power brake")
		case HardwareSlow:
			names = append(names, "hardware slowdown")
		case SyncBoost:
			names = append(names, "sync boost")
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// A Kind says what an event is about.
type Kind int

// The kinds of events.
const (
	KindXID      Kind = iota // the kernel driver reported an XID error
	KindECC                  // ECC found memory errors
	KindThrottle             // the reasons of throttled clocks have changed
	KindSource               // the source has begun to fail, or works again
)

// String returns "XID", "ECC", "throttle" or "source".
func (k Kind) String() string {
	names := [...]string{KindXID: "XID", KindECC: "ECC", KindThrottle: "throttle", KindSource: "source"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// An Event is one report about one device.
type Event struct {
	Device driver.Info
	Time   time.Time // when the watcher learned of the event
	Kind   Kind

	XID         XID      // for KindXID
	Corrected   uint64   // for KindECC: errors since the previous reading
	Uncorrected uint64   // for KindECC, like Corrected
	Throttle    Throttle // for KindThrottle: the current reasons, 0 if clocks are no longer throttled
	Err         error    // for KindSource: why the source fails, or nil if it works again
}

// String returns a line for a log, such as "device 0 (NVIDIA H200): XID 79: GPU has fallen off the
// bus".
func (e Event) String() string {
	s := describe(e.Device) + ": "
	switch e.Kind {
	case KindXID:
		return s + e.XID.Error()
	case KindECC:
		return s + fmt.Sprintf("ECC found memory errors: %d corrected, %d uncorrected", e.Corrected, e.Uncorrected)
	case KindThrottle:
		if e.Throttle == 0 {
			return s + "the clocks are no longer held down"
		}
		return s + "the clocks are held down: " + e.Throttle.String()
	case KindSource:
		if e.Err == nil {
			return s + "health is told again"
		}
		return s + "health is not told: " + e.Err.Error()
	}
	return s + e.Kind.String()
}

// describe names a device in errors.
func describe(info driver.Info) string { return fmt.Sprintf("device %d (%s)", info.Index, info.Name) }

// unsupported reports whether an error says that the device or the source lacks the feature.
func unsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
