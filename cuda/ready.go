package cuda

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/internal/hostinfo"
	"github.com/puregpu/puregpu/internal/tried"
	"github.com/puregpu/puregpu/runtime/dl"
)

// ready returns nil if the driver starts and has a device. Starting the driver twice is harmless.
// If CUDA_VISIBLE_DEVICES hides all devices, no other driver file could find a device either, and
// the error is [dl.ErrHidden].
func ready(l *dl.Library) error {
	none := func(how error) error {
		if why := hostinfo.This().HidesAll(); why != "" {
			return fmt.Errorf("%w: %s (%w)", dl.ErrHidden, why, how)
		}
		return fmt.Errorf("%w (%w)", dl.ErrNoDevice, how)
	}
	n := new(int32)
	err := check(l.Slow(fnInit, 0))
	if err == nil {
		if err = check(l.Slow(fnDeviceGetCount, uintptr(unsafe.Pointer(n)))); err != nil {
			return fmt.Errorf("cuDeviceGetCount: %w", err)
		}
		if *n <= 0 {
			return none(errors.New("cuDeviceGetCount returned 0"))
		}
		return nil
	}
	switch err {
	case ErrorNoDevice:
		return none(fmt.Errorf("cuInit: %w", err))
	case ErrorStubLibrary:
		return fmt.Errorf("%w (cuInit: %w)", dl.ErrStub, err)
	}
	return fmt.Errorf("cuInit: %w", err)
}

// Diagnose explains an error of [Library.Init], or [ErrorNoDevice]. It adds the likely cause on
// this machine, what to do, and the result for each file found. If err is nil or not a [Result],
// Diagnose returns err unchanged.
func (l *Library) Diagnose(err error) error {
	code, ok := errors.AsType[Result](err)
	if !ok {
		return err
	}
	var b strings.Builder
	for _, s := range hostinfo.This().CUDA(int(code), l.Path()) {
		b.WriteString("; " + s)
	}
	b.WriteString(tried.Lines(l.Attempts(), code))
	return &diagnosis{err, b.String()}
}

// A diagnosis is an error with an explanation.
type diagnosis struct {
	error
	more string
}

func (d *diagnosis) Error() string { return d.error.Error() + d.more }
func (d *diagnosis) Unwrap() error { return d.error }
