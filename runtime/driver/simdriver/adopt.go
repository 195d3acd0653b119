package simdriver

import "github.com/puregpu/puregpu/runtime/driver"

var _ driver.Adopter = (*device)(nil)

// AdoptStream returns the priority of a stream that was made with NewStream or NewPriorityStream of
// the same device.
func (v *device) AdoptStream(h driver.Stream) (priority int, err error) {
	if err := v.enter(codeAdoptStream, true); err != nil {
		return 0, err
	}
	if !v.d.caps.Adopt {
		return 0, v.cannot(codeAdoptStream)
	}
	s, err := v.stream(codeAdoptStream, h)
	if err != nil {
		return 0, err
	}
	return s.priority, nil
}

// Capturing reports whether a stream is being captured.
func (v *device) Capturing(h driver.Stream) (bool, error) {
	if _, err := v.submit(codeCapturing); err != nil {
		return false, err
	}
	if !v.d.caps.Adopt {
		return false, v.cannot(codeCapturing)
	}
	s, err := v.stream(codeCapturing, h)
	return err == nil && s.captured.Load() != nil, err
}
