package example

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/puregpu/puregpu/cuda"
)

func TestRun(t *testing.T) {
	ok := func(w io.Writer) error { fmt.Fprintln(w, "done"); return nil }
	broken := func(io.Writer) error { return errors.New("wrong result") }
	missing := func(io.Writer) error { return fmt.Errorf("wrapped: %w", Missing(errors.New("no driver\nat all"))) }
	for _, test := range []struct {
		name           string
		args           []string
		run            func(io.Writer) error
		code           int
		stdout, stderr string
	}{
		{"ok", nil, ok, 0, "done\n", ""},
		{"broken", nil, broken, 1, "", "x: wrong result\n"},
		{"missing", nil, missing, 0, "x: not run: wrapped: no driver\n\tat all\n", ""},
		{"required", []string{"-require-gpu"}, missing, 1, "", "x: wrapped: no driver\nat all\n"},
		{"argument", []string{"y"}, ok, 2, "", "x: takes no arguments, got [\"y\"]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Main("x", test.args, &stdout, &stderr, test.run)
			if code != test.code || stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("got %d, %q, %q; want %d, %q, %q", code, &stdout, &stderr, test.code, test.stdout, test.stderr)
			}
		})
	}
	if code := Main("x", []string{"-nonsense"}, io.Discard, io.Discard, ok); code != 2 {
		t.Errorf("unknown flag: exit status %d, want 2", code)
	}
	if code := Main("x", []string{"-h"}, io.Discard, io.Discard, ok); code != 0 {
		t.Errorf("-h: exit status %d, want 0", code)
	}
}

type driver struct{ err error }

func (d driver) Init(uint32) error { return d.err }

func TestInit(t *testing.T) {
	if err := Init(driver{}); err != nil {
		t.Errorf("a driver that works: %v", err)
	}
	var missing *MissingError
	if err := Init(driver{cuda.ErrorNoDevice}); !errors.As(err, &missing) || !errors.Is(err, cuda.ErrorNoDevice) {
		t.Errorf("no device: %v, want a MissingError", err)
	}
	if err := Init(driver{cuda.ErrorInvalidValue}); errors.As(err, &missing) || !errors.Is(err, cuda.ErrorInvalidValue) {
		t.Errorf("a wrong argument: %v, want no MissingError", err)
	}
}

func TestMissingNil(t *testing.T) {
	if err := Missing(nil); err != nil {
		t.Errorf("Missing(nil) = %v", err)
	}
}
