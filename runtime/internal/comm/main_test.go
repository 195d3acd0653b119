package comm_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/comm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// in returns the internal communicator of a communicator of package collective.
func in(c *collective.Communicator) *comm.Communicator { return (*comm.Communicator)(c) }

// checkLeaks reports goroutines that the test leaks.
func checkLeaks(t testing.TB) {
	t.Helper()
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
}

// within returns a context that ends after a minute.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newSemaphore(t testing.TB, initial uint64) *gpu.Semaphore {
	t.Helper()
	s, err := gpu.NewSemaphore(initial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// points returns a list of one point.
func points(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

// each calls fn for all numbers below n concurrently, waits, and joins the errors.
func each(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
