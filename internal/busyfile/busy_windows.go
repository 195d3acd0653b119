package busyfile

import (
	"errors"
	"syscall"
)

const (
	sharingViolation = syscall.Errno(32)  // ERROR_SHARING_VIOLATION
	deletePending    = syscall.Errno(303) // ERROR_DELETE_PENDING
)

// busy reports whether an error may be temporary. Windows also denies access to a file that is
// removed but still open, and denies replacing an open file.
func busy(err error) bool {
	return errors.Is(err, syscall.ERROR_ACCESS_DENIED) || errors.Is(err, sharingViolation) || errors.Is(err, deletePending)
}
