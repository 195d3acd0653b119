package collective

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/comm"
)

var (
	// ErrAborted is the error of a communicator that [Communicator.Abort] or [Communicator.Shrink]
	// aborted.
	ErrAborted = comm.ErrAborted

	// ErrSuspended is the error of a call that a suspended communicator refuses.
	ErrSuspended = comm.ErrSuspended
)

// An Error is the error with which a communicator failed.
type Error struct {
	Device string // the device's name
	Name   string // Options.Name
	Rank   int
	Count  int
	Err    error // the reason
}

func (e *Error) Error() string {
	name := ""
	if e.Name != "" {
		name = " " + e.Name
	}
	return fmt.Sprintf("gpu: communicator%s, rank %d of %d, on %s: %v", name, e.Rank, e.Count, e.Device, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// newError makes the Error of a communicator that fails with err.
func newError(d *comm.Device, name string, rank, count int, err error) error {
	return &Error{d.Engine.Info.Name, name, rank, count, err}
}
