package ondriver

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// withoutGPU has drivers.Best find no GPU.
func withoutGPU(t *testing.T) {
	t.Setenv("PUREGPU_DRIVER", "")
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/absent.so")
	t.Setenv("PUREGPU_HIP_LIBRARY", t.TempDir()+"/absent.so")
}

func TestProgram(t *testing.T) {
	withoutGPU(t)
	name := func(_ context.Context, d driver.Driver, w io.Writer) error { fmt.Fprintln(w, d.Name()); return nil }
	broken := func(ctx context.Context, _ driver.Driver, _ io.Writer) error {
		if _, ok := ctx.Deadline(); !ok {
			return errors.New("no end")
		}
		return errors.New("wrong result")
	}
	for _, test := range []struct {
		args           string
		run            func(context.Context, driver.Driver, io.Writer) error
		code           int
		stdout, stderr string // what it begins with
	}{
		{"", name, 0, "x: on the driver sim\nsim\n", "time="},
		{"-driver sim", name, 0, "sim\n", ""},
		{"-driver sim", broken, 1, "", "x: wrong result\n"},
		{"-driver cuda", name, 1, "", "x: cuda: "},
		{"-driver nonsense", name, 1, "", "x: drivers: "},
		{"-nonsense", name, 2, "", "flag provided but not defined"},
		{"more", name, 2, "", `x: takes no arguments, got ["more"]`},
		{"-h", name, 0, "", "Usage of x"},
	} {
		var stdout, stderr bytes.Buffer
		code := Main("x", strings.Fields(test.args), &stdout, &stderr, drivers.WithSim(simdriver.Config{}), test.run)
		if code != test.code || !strings.HasPrefix(stdout.String(), test.stdout) || !strings.HasPrefix(stderr.String(), test.stderr) ||
			test.stdout == "" && stdout.Len() > 0 || test.stderr == "" && stderr.Len() > 0 {
			t.Errorf("%q: exit status %d, printed %q and %q; want %d, %q and %q", test.args, code, &stdout, &stderr, test.code, test.stdout, test.stderr)
		}
	}
}

// TestEnvironment has the environment choose the driver: that it cannot be used is a failure, also of a program that may lack something.
func TestEnvironment(t *testing.T) {
	withoutGPU(t)
	p := Program{
		Name: "x", Sim: func() drivers.Option { return drivers.WithSim(simdriver.Config{}) }, Missing: func(error) bool { return true },
		Run: func(context.Context, driver.Driver, io.Writer) error { return nil },
	}
	for name, want := range map[string]struct {
		code           int
		stdout, stderr string // what it begins with
	}{
		"sim":  {0, "x: on the driver sim\n", ""},
		"cuda": {1, "", `x: drivers: the environment variable PUREGPU_DRIVER is "cuda": cuda: `},
	} {
		t.Setenv("PUREGPU_DRIVER", name)
		var stdout, stderr bytes.Buffer
		code := p.Main(nil, &stdout, &stderr)
		if code != want.code || stdout.String() != want.stdout || !strings.HasPrefix(stderr.String(), want.stderr) || want.stderr == "" && stderr.Len() > 0 {
			t.Errorf("%s: exit status %d, printed %q and %q; want %+v", name, code, &stdout, &stderr, want)
		}
	}
}

// TestFlags wants a program to read its flags before it is asked what to simulate, and what it misses to be a failure only if
// the driver was asked for.
func TestFlags(t *testing.T) {
	withoutGPU(t)
	absent := errors.New("no library\nat all")
	var n int
	p := Program{
		Name:    "x",
		Flags:   func(f *flag.FlagSet) { f.IntVar(&n, "n", 1, "") },
		Sim:     func() drivers.Option { return drivers.WithSim(simdriver.Config{Devices: n}) },
		Missing: func(err error) bool { return errors.Is(err, absent) },
		Run: func(_ context.Context, d driver.Driver, w io.Writer) error {
			infos, err := d.Devices()
			switch {
			case err != nil || n < 3:
				fmt.Fprintln(w, len(infos))
				return err
			case n == 3:
				return absent
			}
			return errors.New("wrong result")
		},
	}
	for _, test := range []struct {
		args           string
		code           int
		stdout, stderr string // what they end with, after the driver's warning
	}{
		{"-driver sim", 0, "1\n", ""},
		{"-driver sim -n 2", 0, "2\n", ""},
		{"-driver sim -n 3", 1, "", "x: no library\nat all\n"},
		{"-n 3", 0, "x: not run: no library\n\tat all\n", ""},
		{"-n 4", 1, "", "x: wrong result\n"},
	} {
		var stdout, stderr bytes.Buffer
		if code := p.Main(strings.Fields(test.args), &stdout, &stderr); code != test.code || !strings.HasSuffix(stdout.String(), test.stdout) || !strings.HasSuffix(stderr.String(), test.stderr) || test.stderr == "" && strings.Contains(stderr.String(), "x: ") {
			t.Errorf("%q: exit status %d, printed %q and %q; want %d, %q and %q", test.args, code, &stdout, &stderr, test.code, test.stdout, test.stderr)
		}
	}
}
