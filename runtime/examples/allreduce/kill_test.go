package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// blockingTwins has the Go functions for the kernels. In one step of one device the function
// Gradient blocks until the channel goOn is closed.
type blockingTwins struct {
	twins
	device  int
	left    atomic.Int32 // gradients before the one that blocks
	stopped chan struct{}
	goOn    <-chan struct{}
}

func (s *blockingTwins) Gradient(g *simdriver.Grid, n, k uint64, x, r, grad driver.Ptr) error {
	if g.Device == s.device && s.left.Add(-1) == 0 {
		close(s.stopped)
		<-s.goOn
	}
	return s.twins.Gradient(g, n, k, x, r, grad)
}

// TestKill checks that a training survives the death of a rank: a new process takes its place, and
// at the end all ranks have the same weights, bit for bit, as without a failure. The rank dies when
// the other ranks' devices already have their next steps. Goroutines stand for processes, as in
// TestProcesses.
func TestKill(t *testing.T) {
	const processes = 3
	undisturbed, err := run(t.Context(), simdriver.New(withKernels(simdriver.Config{Devices: processes})), few, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := gpu.BytesOf(undisturbed[0].weights)
	for killed := range processes {
		t.Run(fmt.Sprintf("rank %d", killed), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			// Ending the rank also ends the blocked kernel: closing a busy device leaks native
			// objects.
			life, end := context.WithCancelCause(ctx)
			k := &blockingTwins{device: killed, stopped: make(chan struct{}), goOn: life.Done()}
			k.left.Store(saveEvery + 3)
			d := simdriver.New(simdriver.Config{Devices: processes, Kernels: SimTrain(k)})
			s := few
			s.folder = t.TempDir()
			var out [processes]bytes.Buffer
			start := func(ctx context.Context, p int, out io.Writer) ([]state, error) {
				team, err := s.team(environment(fmt.Sprintf("RANK=%d WORLD_SIZE=%d LOCAL_RANK=%[1]d", p, processes)))
				if err != nil {
					return nil, err
				}
				return run(ctx, d, s, team, out)
			}
			var states [processes][]state
			var wg sync.WaitGroup
			survive := func(p int) {
				wg.Go(func() {
					var err error
					if states[p], err = start(ctx, p, &out[p]); err != nil {
						t.Errorf("process %d: %v", p, err)
					}
				})
			}
			dead := make(chan error, 1)
			for p := range processes {
				if p != killed {
					survive(p)
				}
			}
			go func() {
				_, err := start(life, killed, io.Discard)
				dead <- err
			}()
			select {
			case <-k.stopped:
			case <-ctx.Done():
				t.Fatal("the training does not come so far")
			}
			for p := range processes { // wait until the other processes' steps are in the streams, behind the all-reduce that will fail
				for p != killed && d.Counters().Devices[p].Calls[simdriver.OpLaunch] < 3*2*saveEvery && ctx.Err() == nil {
					runtime.Gosched()
				}
			}
			kill := errors.New("killed")
			if err := d.KillComm(d.Comms(killed)[0], time.Millisecond); err != nil {
				t.Error(err)
			}
			end(kill)
			if err := <-dead; err == nil {
				t.Error("the killed process has trained to the end")
			}
			survive(killed) // the replacement of the killed process
			wg.Wait()
			for p, of := range states {
				if len(of) != 1 || of[0].steps != steps {
					t.Errorf("process %d ends with %v", p, of)
				} else if !bytes.Equal(gpu.BytesOf(of[0].weights), want) {
					t.Errorf("process %d has the weights\n%v, want\n%v", p, of[0].weights, undisturbed[0].weights)
				}
				if again := fmt.Sprintf("once more, from step %d", saveEvery); p != killed && !strings.Contains(out[p].String(), again) {
					t.Errorf("process %d printed\n%swant %q", p, &out[p], again)
				}
			}
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("leaked: %v", left)
			}
		})
	}
}

// TestAgree checks that agree gives all ranks, also a new one, the state of the rank that has done
// the most steps.
func TestAgree(t *testing.T) {
	w := func(v float32) []float32 {
		all := make([]float32, features)
		for i := range all {
			all[i] = v
		}
		return all
	}
	for _, states := range [][]state{
		{{}, {}, {}},
		{{10, w(1)}, {20, w(2)}, {}},
		{{}, {10, w(2)}, {10, w(2)}},
	} {
		d := simdriver.New(withKernels(simdriver.Config{Devices: len(states)}))
		g, err := gpu.OpenGroup(d, gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		communicators, err := collective.NewAll(t.Context(), g.Devices(), collective.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := state{0, w(0)}
		if states[1].steps > 0 {
			want = states[1]
		}
		var ranks []*rank
		for _, c := range communicators {
			r, err := newRank(c, 1)
			if err != nil {
				t.Fatal(err)
			}
			ranks = append(ranks, r)
		}
		if err := agree(t.Context(), ranks, states); err != nil {
			t.Error(err)
		}
		for i, got := range states {
			if got.steps != want.steps || !bytes.Equal(gpu.BytesOf(got.weights), gpu.BytesOf(want.weights)) {
				t.Errorf("rank %d: %v, want %v", i, got, want)
			}
		}
		for _, r := range ranks {
			r.close()
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}
