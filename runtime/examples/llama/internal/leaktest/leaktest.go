// Package leaktest finds goroutines that outlive a test.
package leaktest

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// Check makes the test fail if more goroutines run at the end of the test than now. Check counts
// after all cleanups that the test registers later, and gives goroutines a minute to end. Tests
// that call Check must not run in parallel with others.
func Check(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if err := left(before, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// left waits until at most count goroutines run. If more still run after the duration in patience,
// the error has their stacks.
func left(count int, patience time.Duration) error {
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > count; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			return fmt.Errorf("%d goroutines run, and %d did before the test:\n%s", runtime.NumGoroutine(), count, stacks[:runtime.Stack(stacks, true)])
		}
	}
	return nil
}
