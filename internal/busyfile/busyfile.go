// Package busyfile works on files that others have open. Windows refuses to open a file that somebody renames or removes, and to replace or
// remove one that somebody reads, for as long as that takes; other systems refuse neither.
package busyfile

import "time"

const (
	patience = 2 * time.Second // by then whoever has the file is not about to close it, or there is no permission, which looks the same
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
