//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/examples/internal/example"
	"github.com/puregpu/puregpu/runtime/examples/internal/fakegpu"
)

func TestFake(t *testing.T) {
	fakegpu.Driver(t)
	var out bytes.Buffer
	if err := run(&out); err != nil || out.String() != "saxpy: 1048576 elements on Fake GPU: ok\n" {
		t.Errorf("%v, printed %q", err, &out)
	}
}

// TestFaults wants each fault to be reported, and everything to be freed nonetheless: the fake's cuCtxSetCurrent fails
// with 999 where it is not.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault   string
		is      error
		text    string
		missing bool
	}{
		{"NO_DEVICE", cuda.ErrorNoDevice, "finds no GPU to use", true},
		{"FEW_ALLOCATIONS=0", cuda.ErrorOutOfMemory, "allocate 4194304 bytes for x", false},
		{"FEW_ALLOCATIONS=1", cuda.ErrorOutOfMemory, "allocate 4194304 bytes for y", false},
		{"WRONG_KERNEL=1", nil, "element 1048575 of 1048576 is 12861 on Fake GPU, want 12860", false},
	} {
		t.Run(test.fault, func(t *testing.T) {
			fakegpu.Driver(t, test.fault)
			var out bytes.Buffer
			err := run(&out)
			var missing *example.MissingError
			switch {
			case err == nil:
				t.Errorf("no error, printed %q", &out)
			case !strings.Contains(err.Error(), test.text) || test.is != nil && !errors.Is(err, test.is):
				t.Errorf("got %v, want %q and %v", err, test.text, test.is)
			case errors.As(err, &missing) != test.missing:
				t.Errorf("%v is taken for something missing: %v", err, !test.missing)
			case errors.Is(err, cuda.ErrorUnknown):
				t.Errorf("something was not freed: %v", err)
			}
		})
	}
}
