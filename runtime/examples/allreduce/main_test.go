package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

// few has settings with few samples, which keeps the tests fast.
var few = settings{rank: -1, samples: 100}

// result returns the program's output for some devices, with count ranks in total and n samples
// each.
func result(devices []int, count, n int) string {
	var b strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&b, "allreduce: rank %d of %d on Simulated GPU %[1]d: %[3]d steps with %d samples: ok\n", d, count, steps, n)
	}
	return b.String()
}

func withKernels(c simdriver.Config) simdriver.Config {
	c.Kernels = kernels
	return c
}

// TestSim checks the program on simulated GPUs with different features, and that nothing leaks.
func TestSim(t *testing.T) {
	bound := simdriver.HIPCaps()
	for name, config := range map[string]simdriver.Config{
		"one":        {Devices: 1},
		"five":       {Devices: 5},
		"like HIP":   {Devices: 2, Caps: &bound},
		"lazy":       {Devices: 3, LazyComms: true},
		"lingering":  {Devices: 3, LingerComms: true},
		"far apart":  {Devices: 2, Apart: true},
		"late ranks": {Devices: 2, Latency: map[simdriver.Op]time.Duration{simdriver.OpUpload: 5 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			config.Strict = true
			d := simdriver.New(withKernels(config))
			var out bytes.Buffer
			want := result(upTo(0, config.Devices), config.Devices, few.samples)
			if _, err := run(t.Context(), d, few, nil, &out); err != nil || out.String() != want {
				t.Errorf("%v, printed\n%swant\n%s", err, &out, want)
			}
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("leaked: %v", left)
			}
		})
	}
}

// TestProcesses checks that several processes train together. Goroutines stand for the processes,
// because simulated GPUs work only in one process.
func TestProcesses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, folder := l.Addr().String(), t.TempDir()
	l.Close()
	for name, s := range map[string]settings{
		"files":                 {rank: -1, samples: 100, folder: folder},
		"tcp":                   {rank: -1, samples: 100, address: address},
		"with two devices each": {rank: -1, samples: 101, address: address, devices: 2},
	} {
		t.Run(name, func(t *testing.T) {
			const processes = 3
			each := max(s.devices, 1)
			d := simdriver.New(withKernels(simdriver.Config{Devices: processes * each}))
			var wg sync.WaitGroup
			for p := range processes {
				wg.Go(func() {
					team, err := s.team(environment(fmt.Sprintf("RANK=%d WORLD_SIZE=%d LOCAL_RANK=%[1]d", p, processes)))
					if err != nil {
						t.Error(err)
						return
					}
					var out bytes.Buffer
					want := fmt.Sprintf("allreduce: process %d of %d, says torchrun\n", p, processes) + result(upTo(p*each, each), processes*each, s.samples)
					if _, err := run(t.Context(), d, s, team, &out); err != nil || out.String() != want {
						t.Errorf("%v, printed\n%swant\n%s", err, &out, want)
					}
				})
			}
			wg.Wait()
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("leaked: %v", left)
			}
		})
	}
}

// environment makes an environment of "A=1 B=2".
func environment(text string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range strings.Fields(text) {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestTeam(t *testing.T) {
	for _, test := range []struct {
		s     settings
		env   string
		place rendezvous.Place
		meet  string
		err   string
	}{
		{settings{rank: -1}, "", rendezvous.Place{}, "", ""},
		{settings{rank: -1}, "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1", rendezvous.Place{Rank: 1, Count: 2, LocalRank: 1, Launcher: "torchrun"}, "rendezvous.TCP", ""},
		{settings{rank: -1, folder: "x"}, "PMI_RANK=1 PMI_SIZE=2", rendezvous.Place{Rank: 1, Count: 2, LocalRank: -1, Launcher: "MPICH"}, "rendezvous.File", ""},
		{settings{rank: 0, count: 2, address: "x:1"}, "RANK=1 WORLD_SIZE=3", rendezvous.Place{Count: 2, LocalRank: -1}, "rendezvous.TCP", ""},
		{settings{rank: -1}, "RANK=1", rendezvous.Place{}, "", "RANK is set and WORLD_SIZE is not"},
		{settings{rank: -1, address: "x:1"}, "", rendezvous.Place{}, "", "say which rank this is"},
		{settings{rank: -1, folder: "x"}, "", rendezvous.Place{}, "", "say which rank this is"},
		{settings{rank: 1}, "", rendezvous.Place{}, "", "-rank 1 -count 0: both are needed"},
		{settings{rank: -1, count: 2}, "", rendezvous.Place{}, "", "-rank -1 -count 2: both are needed"},
		{settings{rank: 2, count: 2}, "", rendezvous.Place{}, "", "ranks begin at 0"},
		{settings{rank: -1, devices: -1}, "", rendezvous.Place{}, "", "-devices -1 -samples 1: nothing to do"},
		{settings{rank: -1, samples: -1}, "", rendezvous.Place{}, "", "-devices 0 -samples -1: nothing to do"},
	} {
		if test.s.samples == 0 {
			test.s.samples = 1
		}
		got, err := test.s.team(environment(test.env))
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%+v in %q: %v, want %q", test.s, test.env, err, test.err)
			}
		case err != nil || (got == nil) != (test.meet == ""):
			t.Errorf("%+v in %q: %+v, %v", test.s, test.env, got, err)
		case got != nil && (got.place != test.place || fmt.Sprintf("%T", got.meet) != test.meet):
			t.Errorf("%+v in %q: %+v, want %+v, %s", test.s, test.env, got, test.place, test.meet)
		}
	}
}

func TestDevices(t *testing.T) {
	at := func(rank, local int) *team {
		return &team{place: rendezvous.Place{Rank: rank, Count: 99, LocalRank: local}}
	}
	for _, test := range []struct {
		t         *team
		all, each int
		want      []int
	}{
		{nil, 4, 0, []int{0, 1, 2, 3}}, {nil, 4, 2, []int{0, 1}},
		{at(9, 1), 8, 0, []int{1}}, {at(9, 1), 8, 2, []int{2, 3}}, {at(9, 3), 8, 2, []int{6, 7}}, {at(9, 1), 1, 1, []int{0}},
		{at(9, -1), 8, 0, []int{1}}, {at(9, -1), 1, 0, []int{0}}, {at(0, -1), 8, 8, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{at(9, 1), 0, 0, []int{0}}, // the machine has no device: opening device 0 returns the error
	} {
		if got := test.t.devices(test.all, test.each); !slices.Equal(got, test.want) {
			t.Errorf("%+v of %d, %d each: %v, want %v", test.t, test.all, test.each, got, test.want)
		}
	}
}

// TestFaults checks that failures are reported and do not hang the program.
func TestFaults(t *testing.T) {
	none := simdriver.CUDACaps()
	none.Comms = false
	broken := errors.New("cable broken")
	for name, test := range map[string]struct {
		config simdriver.Config
		team   *team
		is     error
	}{
		"no communicators": {simdriver.Config{Devices: 2, Caps: &none}, nil, driver.ErrUnsupported},
		"no devices":       {simdriver.Config{Devices: -1}, nil, gpu.ErrArgument},
		"broken":           {simdriver.Config{Devices: 2, Faults: []simdriver.Fault{{Op: simdriver.OpCollect, Err: broken}}}, nil, broken},
		"little memory":    {simdriver.Config{Devices: 2, Memory: 1 << 20}, nil, driver.ErrOutOfMemory},
		"a missing rank": {simdriver.Config{}, &team{rendezvous.Place{Rank: 0, Count: 2}, rendezvous.File{Path: t.TempDir(), At: rendezvous.Place{Rank: 0, Count: 2}}},
			context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			if test.is == context.DeadlineExceeded {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			d := simdriver.New(withKernels(test.config))
			if _, err := run(ctx, d, settings{samples: 1 << 13}, test.team, io.Discard); !errors.Is(err, test.is) {
				t.Errorf("got %v, want %v", err, test.is)
			}
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("leaked: %v", left)
			}
		})
	}
}

// TestWeights checks that training finds the weights that the targets were made from.
func TestWeights(t *testing.T) {
	for j, w := range hostWeights(3, 1000) {
		if math.Abs(w-float64(j%4)) > 0.01 {
			t.Errorf("weight %d is %v, want %v", j, w, j%4)
		}
	}
}
