package ondriver

import (
	"bytes"
	"context"
	"errors"
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
