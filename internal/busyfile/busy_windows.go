package busyfile

import (
	"errors"
	"syscall"
)

const (
	sharingViolation = syscall.Errno(32)  // ERROR_SHARING_VIOLATION
	deletePending    = syscall.Errno(303) // ERROR_DELETE_PENDING
)

// busy reports whether an error may pass. Access is denied also to a file that is removed and still open, and to replace one that is.
func busy(err error) bool {
	return errors.Is(err, syscall.ERROR_ACCESS_DENIED) || errors.Is(err, sharingViolation) || errors.Is(err, deletePending)
}
