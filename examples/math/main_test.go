package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/nvtxtest"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestRun checks that every result is right on the simulated GPU, and that all memory is freed.
func TestRun(t *testing.T) {
	d := simdriver.New(simdriver.Config{Strict: true})
	var out bytes.Buffer
	if err := run(t.Context(), d, &out, examples); err != nil {
		t.Fatal(err)
	}
	want := `on sim (Simulated GPU 0)
matrices: the line through 1000 points is y = 2.000·x + 3.000
transforms: the tone has 440 Hz
numbers: π by 262144 random points is about 3.140
sparse: the ranks of five pages are [0.409 0.146 0.208 0.146 0.092]
systems: the rod has [10.0 20.0 30.0 40.0 50.0 60.0 70.0 80.0 90.0] degrees
networks: the blurred point has the rows [0.0625 0.1250 0.0625] [0.1250 0.2500 0.1250] [0.0625 0.1250 0.0625]
networks: attention finds the values 8.0 7.0 6.0 5.0 4.0 3.0 2.0 1.0
math: ok
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("leaked: %v", left)
	}
}

// TestMissing checks that run reports a missing library and returns a wrong result as an error.
func TestMissing(t *testing.T) {
	fails := func(name string, err error) example {
		return example{name, func(context.Context, *gpu.Device) (string, error) { return "", err }}
	}
	missing := []example{fails("a", fmt.Errorf("cuBLAS: %w", dl.ErrNotFound)), fails("b", fmt.Errorf("HIP: %w", gpu.ErrUnsupported))}
	var out bytes.Buffer
	err := run(t.Context(), simdriver.New(simdriver.Config{}), &out, missing)
	if err != nil || !strings.Contains(out.String(), "\na: not run: cuBLAS: ") || !strings.Contains(out.String(), "\nb: not run: HIP: ") || !strings.HasSuffix(out.String(), "\nmath: ok\n") {
		t.Errorf("%v, printed %q", err, &out)
	}
	wrong := errors.New("wrong")
	out.Reset()
	err = run(t.Context(), simdriver.New(simdriver.Config{}), &out, []example{fails("c", wrong), examples[0]})
	if !errors.Is(err, wrong) || !strings.HasPrefix(err.Error(), "c: ") || !strings.Contains(out.String(), "\nmatrices: ") || strings.Contains(out.String(), "ok") {
		t.Errorf("%v, printed %q", err, &out)
	}
}

// TestNoMemory checks that each example returns the error of an allocation that fails.
func TestNoMemory(t *testing.T) {
	for _, e := range examples {
		d := simdriver.New(simdriver.Config{Memory: 8})
		if err := run(t.Context(), d, io.Discard, []example{e}); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s: %v", e.name, err)
		}
		if left := d.Leaks(); len(left) > 0 {
			t.Errorf("%s: leaked: %v", e.name, left)
		}
	}
}

// TestProfiled checks that a profiler gets a range for each example, and a mark for each failure.
func TestProfiled(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	wrong := example{"wrong", func(context.Context, *gpu.Device) (string, error) { return "", errors.New("no good") }}
	var out bytes.Buffer
	if err := run(t.Context(), simdriver.New(simdriver.Config{}), &out, []example{examples[0], wrong}); err == nil || !strings.Contains(out.String(), " (in the profile)\n") {
		t.Errorf("%v, printed %q", err, &out)
	}
	wrote := strings.Split(regexp.MustCompile(` on [0-9]+ `).ReplaceAllString(strings.Join(tool.Wrote(), "\n"), " "), "\n") // remove the numbers of threads
	for _, want := range []string{"push 0 math good 1:matrices", "push 0 math good 1:wrong", "mark math good 1:no good", "pop 0 math"} {
		if !slices.Contains(wrote, want) {
			t.Errorf("the profiler was not told %q, but %q", want, wrote)
		}
	}
}
