package gpu

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkLeaks reports goroutines that the test leaves behind.
func checkLeaks(t testing.TB) {
	t.Helper()
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
}

// newSemaphore makes a semaphore, or ends the test.
func newSemaphore(t testing.TB, initial uint64) *Semaphore {
	t.Helper()
	s, err := NewSemaphore(initial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// within ends the test if it waits for more than a minute.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
