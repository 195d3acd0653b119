//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestNoGPU tests machines without usable CUDA. Each must give its own error, which says what is
// wrong, and none may crash.
func TestNoGPU(t *testing.T) {
	required := 0
	for _, s := range symbols {
		if s.Set == 0 {
			required++
		}
	}
	lacking := []string{"cuLaunchHostFunc", "cuStreamCreateWithPriority"}
	said := map[string]string{} // the case that gave each message
	for _, c := range []struct {
		name    string
		file    func(t *testing.T) string
		open    error   // the error of Open, or nil
		init    error   // the error of Init if Open succeeds, or nil
		not     []error // kinds that neither error may be
		message string  // text of the error; FILE stands for the library
	}{
		{
			name:    "library absent",
			file:    func(t *testing.T) string { return filepath.Join(t.TempDir(), "libcuda.so.1") },
			open:    dl.ErrNotFound,
			not:     []error{dl.ErrNotLoadable, dl.ErrTooOld, dl.ErrStub, dl.ErrUnsupported},
			message: "cuda: CUDA driver not found: FILE (environment variable PUREGPU_CUDA_LIBRARY): no such file; " + spec.Hint,
		},
		{
			name:    "library for 32 bits",
			file:    func(t *testing.T) string { return testlib.ForeignELF(t, "libcuda.so.1", elf.ELFCLASS32) },
			open:    dl.ErrNotLoadable,
			not:     []error{dl.ErrNotFound, dl.ErrTooOld, dl.ErrStub},
			message: "a 32-bit library, but this process is 64-bit",
		},
		{
			name:    "library for another machine",
			file:    func(t *testing.T) string { return testlib.ForeignELF(t, "libcuda.so.1", elf.ELFCLASS64) },
			open:    dl.ErrNotLoadable,
			not:     []error{dl.ErrNotFound, dl.ErrTooOld, dl.ErrStub},
			message: "a library for riscv64, but this process is for ",
		},
		{
			name: "stub library",
			file: func(t *testing.T) string {
				return fake(t, 13000, []string{"VERSION_RESULT=34", "INIT_RESULT=34"})
			},
			open:    dl.ErrStub,
			not:     []error{dl.ErrNotFound, dl.ErrTooOld},
			message: "stub library, only for linking",
		},
		{
			name:    "stub library that tells a version",
			file:    func(t *testing.T) string { return fake(t, 13000, []string{"INIT_RESULT=34"}) },
			init:    ErrorStubLibrary,
			not:     []error{ErrorNoDevice},
			message: "cuda: CUDA_ERROR_STUB_LIBRARY (34): ",
		},
		{
			name:    "no device",
			file:    func(t *testing.T) string { return fake(t, 13000, []string{"INIT_RESULT=100"}) },
			init:    ErrorNoDevice,
			not:     []error{ErrorStubLibrary},
			message: "cuda: CUDA_ERROR_NO_DEVICE (100): ",
		},
		{
			name:    "driver and kernel module of different releases",
			file:    func(t *testing.T) string { return fake(t, 13000, []string{"INIT_RESULT=803"}) },
			init:    ErrorSystemDriverMismatch,
			not:     []error{ErrorNoDevice, ErrorStubLibrary, ErrorCompatNotSupportedOnDevice},
			message: "cuda: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): ",
		},
		{
			name:    "forward compatibility on a device that has none",
			file:    func(t *testing.T) string { return fake(t, 13000, []string{"INIT_RESULT=804"}) },
			init:    ErrorCompatNotSupportedOnDevice,
			not:     []error{ErrorNoDevice, ErrorSystemDriverMismatch},
			message: "cuda: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804): ",
		},
		{
			name:    "unknown failure",
			file:    func(t *testing.T) string { return fake(t, 13000, []string{"INIT_RESULT=999"}) },
			init:    ErrorUnknown,
			not:     []error{ErrorNoDevice},
			message: "cuda: CUDA_ERROR_UNKNOWN (999)",
		},
		{
			name: "driver too old",
			file: func(t *testing.T) string { return fake(t, 10000, []string{"PROC=0"}, lacking...) },
			open: dl.ErrTooOld,
			not:  []error{dl.ErrNotFound, dl.ErrNotLoadable, dl.ErrStub, dl.ErrSymbol},
			message: fmt.Sprintf("cuda: CUDA driver 10.0 (FILE) is too old: it lacks 3 of the %d required functions: ", required) +
				"cuDevicePrimaryCtxRelease_v2 (since 11.0), cuStreamCreateWithPriority (since 5.5), cuLaunchHostFunc (since 10.0); " +
				"the oldest version supported is 11.2; " + spec.Hint,
		},
		{
			name:    "another library",
			file:    func(t *testing.T) string { return testlib.Fake{File: "libother.so", Symbols: []string{"one"}}.Build(t) },
			open:    dl.ErrTooOld,
			not:     []error{dl.ErrNotFound, dl.ErrNotLoadable},
			message: fmt.Sprintf("cuda: CUDA driver (FILE) has none of the %d required functions: it is another library, or far too old; ", required),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := c.file(t)
			t.Setenv(spec.Env, file)
			l, err := Open(Options{})
			want := c.open
			if want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if !l.Has("core") || l.Version() != 13000 || l.Path() != file {
					t.Errorf("opened %s, version %d; has core: %v", l.Path(), l.Version(), l.Has("core"))
				}
				want, err = c.init, l.Init(0)
			} else if l != nil {
				t.Error("a library beside the error")
			}
			if !errors.Is(err, want) {
				t.Fatalf("error %v, want one that is %v", err, want)
			}
			for _, not := range c.not {
				if errors.Is(err, not) {
					t.Errorf("%v is %v too", err, not)
				}
			}
			got := strings.ReplaceAll(err.Error(), file, "FILE")
			if !strings.Contains(got, c.message) {
				t.Errorf("message %q\nwant       %q", got, c.message)
			}
			if other, ok := said[got]; ok {
				t.Errorf("the message is the same as for %s: %s", other, got)
			}
			said[got] = c.name
		})
	}
}

func TestZeroLibraryIsNotOpen(t *testing.T) {
	var l Library
	if err := l.Init(0); !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("Init: %v", err)
	}
	if _, err := l.DeviceGetName(0); !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("DeviceGetName: %v", err)
	}
	if l.Has("core") {
		t.Error("has the core")
	}
}

// TestMissingOptionalSymbol calls a function that the driver is too old to have.
func TestMissingOptionalSymbol(t *testing.T) {
	l := openFake(t, 12000, nil)
	_, err := l.LogsCurrent(0)
	se, ok := errors.AsType[*dl.SymbolError](err)
	if !ok {
		t.Fatalf("error %v (%T), want a *dl.SymbolError", err, err)
	}
	if se.Symbol != "cuLogsCurrent" || se.Set != "logs" || se.Since != 12090 || se.Found != 12000 {
		t.Errorf("%+v", se)
	}
	if !errors.Is(err, dl.ErrSymbol) || errors.Is(err, dl.ErrTooOld) {
		t.Errorf("%v is not dl.ErrSymbol alone", err)
	}
	const head = "cuda: cuLogsCurrent is missing (set logs, since 12.9; found CUDA driver 12.0): "
	if !strings.HasPrefix(err.Error(), head) {
		t.Errorf("message %q\nwant       %q", err, head)
	}
	for set, want := range map[string]bool{
		"core": true, "memory-pools": true, "graphs": true, "libraries": true, "logs": false, "green-contexts": false, "no such set": false,
	} {
		if got := l.Has(set); got != want {
			t.Errorf("Has(%q) = %v, want %v", set, got, want)
		}
	}
	for _, want := range []string{"\tlogs: missing, 0 of ", "\tcuLogsCurrent (set logs, since 12.9): ", "version: 12.0, oldest supported 11.2\n"} {
		if got := l.Explain(); !strings.Contains(got, want) {
			t.Errorf("Explain lacks %q:\n%s", want, got)
		}
	}
	if l.HasSymbol("cuLogsCurrent") || !l.HasSymbol("cuInit") {
		t.Error("HasSymbol is wrong")
	}
}

// TestMissingSets opens drivers of several releases. A release must have every set that it or an
// older release introduced, and nothing of a later set.
func TestMissingSets(t *testing.T) {
	for _, release := range []dl.Version{11020, 11040, 12000, 12050, 13000} {
		l := openFake(t, release, []string{"PROC=0"})
		for _, s := range l.Sets() {
			// The fake lacks cuGetProcAddress.
			if strings.HasPrefix(s.Name, "proc-address") {
				continue
			}
			if want := s.Since <= release; l.Has(s.Name) != want {
				t.Errorf("CUDA %s: Has(%q) = %v, %d of %d, since %s", FormatVersion(release), s.Name, !want, s.Have, s.Total, FormatVersion(s.Since))
			}
		}
		for _, m := range l.Missing() {
			if m.Since <= release && !strings.HasPrefix(m.Set, "proc-address") {
				t.Errorf("CUDA %s: %s, since %s, is missing: %s", FormatVersion(release), m.Name, FormatVersion(m.Since), m.Why)
			}
		}
	}
}
