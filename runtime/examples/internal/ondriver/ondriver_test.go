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

func TestProgram(t *testing.T) {
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/absent.so")
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
		{"", name, 0, "x: on the simulated GPU, because ", ""},
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

// TestFlags wants a program to read its flags before it is asked what to simulate, and what it misses to be a failure only if
// the driver was asked for.
func TestFlags(t *testing.T) {
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/absent.so")
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
		stdout, stderr string // what they end with
	}{
		{"-driver sim", 0, "1\n", ""},
		{"-driver sim -n 2", 0, "2\n", ""},
		{"-driver sim -n 3", 1, "", "x: no library\nat all\n"},
		{"-n 3", 0, "x: not run: no library\n\tat all\n", ""},
		{"-n 4", 1, "", "x: wrong result\n"},
	} {
		var stdout, stderr bytes.Buffer
		if code := p.Main(strings.Fields(test.args), &stdout, &stderr); code != test.code || !strings.HasSuffix(stdout.String(), test.stdout) || stderr.String() != test.stderr {
			t.Errorf("%q: exit status %d, printed %q and %q; want %d, %q and %q", test.args, code, &stdout, &stderr, test.code, test.stdout, test.stderr)
		}
	}
}
