package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

// few elements are enough, but where the size matters.
var few = settings{rank: -1, elements: 1000}

const million = 1 << 20

// result is what is printed for some devices, of as many ranks in all, with n elements each.
func result(devices []int, count, n int) string {
	var b strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&b, "allreduce: rank %d of %d on Simulated GPU %[1]d: sums of %[3]d elements: ok\n", d, count, n)
	}
	return b.String()
}

// noLauncher makes an environment that says nothing of other processes.
func noLauncher(t *testing.T) {
	for _, v := range []string{"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_STEP_ID", "JOB_COMPLETION_INDEX"} {
		t.Setenv(v, "")
	}
}

// TestSim runs on simulated GPUs that can do different things, and wants everything to be given back.
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
			d := simdriver.New(config)
			var out bytes.Buffer
			want := result(upTo(0, config.Devices), config.Devices, few.elements)
			if err := allreduce(t.Context(), d, few, nil, &out); err != nil || out.String() != want {
				t.Errorf("%v, printed\n%swant\n%s", err, &out, want)
			}
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("not given back: %v", left)
			}
		})
	}
}

// TestProcesses has goroutines for processes, each with devices of its own, for the simulated GPU is of one process.
func TestProcesses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, folder := l.Addr().String(), t.TempDir()
	l.Close()
	for name, s := range map[string]settings{
		"files":                 {rank: -1, elements: 1000, folder: folder},
		"tcp":                   {rank: -1, elements: million, address: address},
		"with two devices each": {rank: -1, elements: 1001, address: address, devices: 2},
	} {
		t.Run(name, func(t *testing.T) {
			const processes = 3
			each := max(s.devices, 1)
			d := simdriver.New(simdriver.Config{Devices: processes * each})
			var wg sync.WaitGroup
			for p := range processes {
				wg.Go(func() {
					team, err := s.team(environment(fmt.Sprintf("RANK=%d WORLD_SIZE=%d LOCAL_RANK=%[1]d", p, processes)))
					if err != nil {
						t.Error(err)
						return
					}
					var out bytes.Buffer
					want := fmt.Sprintf("allreduce: process %d of %d, says torchrun\n", p, processes) + result(upTo(p*each, each), processes*each, s.elements)
					if err := allreduce(t.Context(), d, s, team, &out); err != nil || out.String() != want {
						t.Errorf("%v, printed\n%swant\n%s", err, &out, want)
					}
				})
			}
			wg.Wait()
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("not given back: %v", left)
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
		{settings{rank: -1, devices: -1}, "", rendezvous.Place{}, "", "-devices -1 -elements 1: nothing to do"},
		{settings{rank: -1, elements: -1}, "", rendezvous.Place{}, "", "-devices 0 -elements -1: nothing to do"},
	} {
		if test.s.elements == 0 {
			test.s.elements = 1
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
		{at(9, 1), 0, 0, []int{0}}, // which is then said not to be there
	} {
		if got := test.t.devices(test.all, test.each); !slices.Equal(got, test.want) {
			t.Errorf("%+v of %d, %d each: %v, want %v", test.t, test.all, test.each, got, test.want)
		}
	}
}

// TestFaults wants what goes wrong to be told, and not to be waited for.
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
			d := simdriver.New(test.config)
			if err := allreduce(ctx, d, settings{elements: million}, test.team, io.Discard); !errors.Is(err, test.is) {
				t.Errorf("got %v, want %v", err, test.is)
			}
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("not given back: %v", left)
			}
		})
	}
}

// TestRun runs on the best there is, which every machine has; where that has no library for it, it must say so.
func TestRun(t *testing.T) {
	noLauncher(t)
	var stdout, stderr bytes.Buffer
	if code := run(nil, &stdout, &stderr); code != 0 || !strings.HasPrefix(stdout.String(), "allreduce: on ") ||
		!strings.HasSuffix(stdout.String(), ": ok\n") && !strings.Contains(stdout.String(), "allreduce: not run: ") {
		t.Errorf("exit status %d, printed %q and %q", code, &stdout, &stderr)
	}
}

func TestArguments(t *testing.T) {
	noLauncher(t)
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/absent.so")
	for _, test := range []struct {
		args, stdout, stderr string
		code                 int
	}{
		{"-driver=sim", result(upTo(0, 4), 4, million), "", 0},
		{"-driver=sim -devices 6 -elements 7", result(upTo(0, 6), 6, 7), "", 0},
		{"-driver=sim -devices 1", result(upTo(0, 1), 1, million), "", 0},
		{"-driver=sim -rank 0 -count 1 -address localhost:1", result(upTo(0, 1), 1, million), "", 0},
		{"-driver=sim -rank 0 -count 2 -address localhost:1", "", "allreduce: the simulated GPUs of 2 processes cannot reach each other: run one, with -devices 2\n", 1},
		{"-driver=sim -rank 0", "", "allreduce: -rank 0 -count 0: both are needed", 1},
		{"-driver=cuda", "", "allreduce: cuda: ", 1},
		{"-nonsense", "", "flag provided but not defined", 2},
		{"more", "", "allreduce: takes no arguments", 2},
		{"-h", "", "Usage of allreduce", 0},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(strings.Fields(test.args), &stdout, &stderr); code != test.code || stdout.String() != test.stdout || !strings.HasPrefix(stderr.String(), test.stderr) {
			t.Errorf("%s: exit status %d, printed %q and %q; want %d, %q and %q", test.args, code, &stdout, &stderr, test.code, test.stdout, test.stderr)
		}
	}
}

// TestMissing wants a driver without communicators to be no failure, unless it was asked for.
func TestMissing(t *testing.T) {
	if _, err := drivers.Open("nonsense"); missing(err) {
		t.Errorf("%v is taken for something missing", err)
	}
	caps := simdriver.CUDACaps()
	caps.Comms = false
	if err := allreduce(t.Context(), simdriver.New(simdriver.Config{Caps: &caps}), few, nil, io.Discard); !missing(err) {
		t.Errorf("%v is not taken for something missing", err)
	}
}
