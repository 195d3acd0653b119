package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

const result = "pipeline: [12 24 36 48]\n"

func TestSim(t *testing.T) {
	d, err := drivers.Open(drivers.Sim, simulation)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := pipeline(t.Context(), d, &out); err != nil || out.String() != result {
		t.Errorf("%v, printed %q, want %q", err, &out, result)
	}
	if left := d.(*simdriver.Driver).Leaks(); len(left) > 0 {
		t.Errorf("not given back: %v", left)
	}
}

// TestEnds wants the wait to end with its context, though the work does not.
func TestEnds(t *testing.T) {
	d, err := drivers.Open(drivers.Sim, drivers.WithSim(simdriver.Config{
		Kernels: map[string]simdriver.Kernel{"saxpy": simdriver.MustKernel(saxpy)},
		Latency: map[simdriver.Op]time.Duration{simdriver.OpLaunch: 100 * time.Millisecond},
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := pipeline(ctx, d, &out); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("%v, printed %q, want %v", err, &out, context.Canceled)
	}
}

// TestRun runs on the best there is, which every machine has.
func TestRun(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(nil, &stdout, &stderr); code != 0 || !strings.HasSuffix(stdout.String(), result) {
		t.Errorf("exit status %d, printed %q and %q, want %q", code, &stdout, &stderr, result)
	}
}

func TestArguments(t *testing.T) {
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/absent.so")
	for _, test := range []struct {
		arg, stdout, stderr string
		code                int
	}{
		{"-driver=sim", result, "", 0},
		{"-driver=cuda", "", "pipeline: cuda: ", 1},
		{"-driver=hip", "", "pipeline: hip: ", 1},
		{"-nonsense", "", "flag provided but not defined", 2},
		{"-h", "", "Usage of pipeline", 0},
	} {
		var stdout, stderr bytes.Buffer
		if code := run([]string{test.arg}, &stdout, &stderr); code != test.code || stdout.String() != test.stdout || !strings.HasPrefix(stderr.String(), test.stderr) {
			t.Errorf("%s: exit status %d, printed %q and %q; want %d, %q and %q", test.arg, code, &stdout, &stderr, test.code, test.stdout, test.stderr)
		}
	}
}

// TestREADME compares the program in README.md with the one that is tested here.
func TestREADME(t *testing.T) {
	program := "func pipeline(" + between(t, "main.go", "\nfunc pipeline(", "\n}\n") + "\n}\n"
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+program+"```\n") {
		t.Errorf("README.md should show this program and does not:\n%s", program)
	}
}

// between returns what stands in a file between the first begin and the next end.
func between(t *testing.T, file, begin, end string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, s, found := strings.Cut(string(text), begin)
	if found {
		s, _, found = strings.Cut(s, end)
	}
	if !found {
		t.Fatalf("%s has nothing between %q and %q", file, begin, end)
	}
	return s
}
