// Package busyfile retries file operations that Windows refuses while another process uses the
// file: opening a file that is being renamed or removed, and replacing or removing an open file.
// Other systems allow these operations.
package busyfile

import "time"

const (
	patience = 2 * time.Second // a limit, since a missing permission gives the same error and does not pass
	longest  = 50 * time.Millisecond
)

// Retry calls the function do, and calls the function again while the error says that another
// process uses the file, for at most two seconds. Retry returns the last error.
func Retry(do func() error) error {
	err := do()
	if !busy(err) {
		return err
	}
	pause := time.Millisecond
	for end := time.Now().Add(patience); busy(err) && time.Now().Before(end); pause = min(2*pause, longest) {
		time.Sleep(pause)
		err = do()
	}
	return err
}
