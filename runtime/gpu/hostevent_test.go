package gpu_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestParkedWaitAllocatesNothing has two goroutines wait for each other, each parked when it is signalled.
func TestParkedWaitAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		more int // points that are waited for besides
	}{"a context that does not end": {context.Background(), 0}, "one that may end": {ctx, 0}, "several points": {ctx, 1}, "many points": {ctx, 8}} {
		t.Run(name, func(t *testing.T) {
			s := semaphores(t, 2)
			wait := func(s *gpu.Semaphore) func(v uint64) error {
				points := make([]gpu.Point, 1+c.more)
				return func(v uint64) error {
					if c.more == 0 {
						return s.Wait(c.ctx, v)
					}
					for i := range points {
						points[i] = s.At(v - min(v, uint64(i)))
					}
					return gpu.WaitAll(c.ctx, points...)
				}
			}
			ended := make(chan error, 1)
			go func() {
				wait := wait(s[0])
				for v := uint64(1); ; v++ {
					if err := wait(v); err != nil {
						ended <- err
						return
					}
					if s[1].Signal(v) != nil {
						ended <- nil
						return
					}
				}
			}()
			v, here := uint64(0), wait(s[1])
			step := func() {
				v++
				if err := s[0].Signal(v); err != nil {
					t.Fatal(err)
				}
				if err := here(v); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				step()
			}
			if n := testing.AllocsPerRun(1000, step); n != 0 {
				t.Errorf("%v objects for a wait on either side", n)
			}
			s[0].Close()
			<-ended
		})
	}
}

// TestParkedWaitsEndTogether has waits whose contexts end while they are signalled: what one was woken by is soon another's.
func TestParkedWaitsEndTogether(t *testing.T) {
	const rounds, waiters = 300, 6
	s := semaphores(t, 2)
	for v := uint64(1); v <= rounds; v++ {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, waiters)
		for i := range waiters {
			go func() {
				if i%2 == 0 {
					got <- s[0].Wait(ctx, v)
					return
				}
				_, err := gpu.WaitAny(ctx, s[0].At(v+1), s[1].At(v))
				got <- err
			}()
		}
		go cancel()
		must(t, s[0].Signal(v))
		must(t, s[1].Signal(v))
		for range waiters {
			if err := <-got; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		cancel()
		must(t, s[0].Wait(t.Context(), v))
	}
	ended := make(chan error, waiters)
	for range waiters {
		go func() { ended <- s[0].Wait(t.Context(), rounds+1) }()
	}
	s[0].Fail(io.EOF)
	for range waiters {
		if err := <-ended; err != io.EOF {
			t.Errorf("a wait ended with %v", err)
		}
	}
}
