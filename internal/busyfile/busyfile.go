// Package busyfile repeats what Windows refuses while another process is at the same file: to open a file that is being renamed or removed,
// and to replace or remove one that is open. Other systems refuse none of that.
package busyfile

import "time"

const (
	patience = 2 * time.Second // what lasts longer may be a lack of permission, which is the same error
	longest  = 50 * time.Millisecond
)

// Retry calls a function that does one thing with a file, and calls it again while its error is that of a file that others have, for two
// seconds at most. It returns the last error.
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
