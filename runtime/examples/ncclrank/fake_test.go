//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/examples/internal/example"
	"github.com/puregpu/puregpu/runtime/examples/internal/fakegpu"
)

func TestFake(t *testing.T) {
	fakegpu.Driver(t)
	fakegpu.NCCL(t, nil)
	var out bytes.Buffer
	if err := run(&out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	want := "ncclrank: NCCL 2.28.3 on Fake GPU\n"
	for _, way := range []string{"ncclCommInitRank", "ncclCommInitAll", "ncclCommInitRankConfig"} {
		for _, op := range []string{"ncclSum", "ncclAvg"} {
			want += "ncclrank: " + way + ", " + op + ": 1048576 elements: ok\n"
		}
	}
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
}

// TestOld runs on a release that has neither averages nor settings.
func TestOld(t *testing.T) {
	fakegpu.Driver(t)
	fakegpu.NCCL(t, []string{"config"}, "VERSION=2804")
	var out bytes.Buffer
	if err := run(&out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"NCCL 2.8.4 on Fake GPU\n",
		"ncclCommInitAll, ncclSum: 1048576 elements: ok\n",
		"ncclCommInitAll, ncclAvg: not run: needs NCCL 2.10.3\n",
		"ncclCommInitRankConfig: not run: nccl: ncclCommInitRankConfig is missing (set config, since 2.14.3; found NCCL 2.8.4)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s, without %q", &out, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault  string
		driver bool // the driver's fault, not NCCL's
		is     error
		text   string
	}{
		{"FEW_ALLOCATIONS=1", true, cuda.ErrorOutOfMemory, "allocate 4194304 bytes"},
		{"FAIL_REDUCE", false, nccl.ErrorSystem, "ncclCommInitRank: reduce by ncclSum: nccl: ncclSystemError (2)"},
		{"WRONG_REDUCE=1", false, nil, "reduce by ncclSum: element 1048575 of 1048576 is NaN, want 1048575"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			var driver, lib []string
			if test.driver {
				driver = append(driver, test.fault)
			} else {
				lib = append(lib, test.fault)
			}
			fakegpu.Driver(t, driver...)
			fakegpu.NCCL(t, nil, lib...)
			var out bytes.Buffer
			err := run(&out)
			var missing *example.MissingError
			switch {
			case err == nil:
				t.Errorf("no error, printed\n%s", &out)
			case !strings.Contains(err.Error(), test.text) || test.is != nil && !errors.Is(err, test.is):
				t.Errorf("got %v, want %q and %v", err, test.text, test.is)
			case errors.As(err, &missing):
				t.Errorf("%v is taken for something missing", err)
			case errors.Is(err, cuda.ErrorUnknown):
				t.Errorf("something was not freed: %v", err)
			}
		})
	}
}

// TestNoNCCL has a driver and no NCCL.
func TestNoNCCL(t *testing.T) {
	fakegpu.Driver(t)
	t.Setenv("PUREGPU_NCCL_LIBRARY", filepath.Join(t.TempDir(), "absent.so"))
	var missing *example.MissingError
	if err := run(new(bytes.Buffer)); !errors.As(err, &missing) || !strings.Contains(err.Error(), "NCCL not found") {
		t.Errorf("got %v, want a MissingError of NCCL", err)
	}
}
