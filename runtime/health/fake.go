package health

import (
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Fake is a [Source] for tests and for simulated GPUs. The test sets the Fake's reports. Devices
// are identified by [driver.Info].Index. As with NVML, a session gets only XID errors reported
// while it watches. The zero Fake reports healthy devices. Its methods may be called concurrently.
type Fake struct {
	mu       sync.Mutex // protects the following fields
	sessions map[*fakeSession]struct{}
	devices  map[int]*fakeDevice
}

// A fakeDevice is the state that a test has set for a device.
type fakeDevice struct {
	reading Reading
	refused error // the error of Watch, or nil
	noXIDs  error // the lasting error of Wait, or nil
	failure error // the error of Wait and Read, or nil
}

type fakeSession struct {
	f      *Fake
	device int
	queue  chan XID
}

// device returns the state of a device. The caller holds f.mu.
func (f *Fake) device(index int) *fakeDevice {
	if f.devices == nil {
		f.devices, f.sessions = map[int]*fakeDevice{}, map[*fakeSession]struct{}{}
	}
	d := f.devices[index]
	if d == nil {
		d = &fakeDevice{}
		f.devices[index] = d
	}
	return d
}

// Report makes a device report an XID error.
func (f *Fake) Report(device int, xid XID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.device(device)
	for s := range f.sessions {
		if s.device == device {
			select {
			case s.queue <- xid:
			default: // like NVML, a session keeps a limited number of errors
			}
		}
	}
}

// Set sets the result of Read for a device.
func (f *Fake) Set(device int, r Reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.device(device).reading = r
}

// Fail makes the sessions of a device fail with err, until Fail is called with nil.
func (f *Fake) Fail(device int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.device(device).failure = err
}

// Refuse makes Watch fail for a device, until Refuse is called with nil.
func (f *Fake) Refuse(device int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.device(device).refused = err
}

// WithoutXIDs makes Wait fail with err, which must match [errors.ErrUnsupported].
func (f *Fake) WithoutXIDs(device int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.device(device).noXIDs = err
}

// Sessions returns the number of open sessions.
func (f *Fake) Sessions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sessions)
}

// Watch implements [Source].
func (f *Fake) Watch(info driver.Info) (Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.device(info.Index).refused; err != nil {
		return nil, err
	}
	s := &fakeSession{f: f, device: info.Index, queue: make(chan XID, 64)}
	f.sessions[s] = struct{}{}
	return s, nil
}

func (s *fakeSession) Wait(timeout time.Duration) (XID, bool, error) {
	s.f.mu.Lock()
	d := *s.f.device(s.device)
	s.f.mu.Unlock()
	if d.noXIDs != nil {
		return 0, false, d.noXIDs
	}
	if d.failure != nil {
		return 0, false, d.failure
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case xid := <-s.queue:
		return xid, true, nil
	case <-timer.C:
		return 0, false, nil
	}
}

func (s *fakeSession) Read() (Reading, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	d := s.f.device(s.device)
	return d.reading, d.failure
}

func (s *fakeSession) Close() error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	delete(s.f.sessions, s)
	return nil
}
