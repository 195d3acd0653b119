//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// openReal opens this machine's driver library. Opening it needs neither a GPU nor the kernel
// driver.
func openReal(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Options{})
	if os.Getenv(spec.Env) == "" && errors.Is(err, dl.ErrNotFound) {
		t.Skipf("no libcuda: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("CUDA %s, %s", FormatVersion(l.Version()), l.Path())
	return l
}

// TestRealSymbols checks the table's since-versions against the library.
func TestRealSymbols(t *testing.T) {
	l := openReal(t)
	if v, err := l.DriverGetVersion(); err != nil || dl.Version(v) != l.Version() {
		t.Errorf("version %d, %v; Open found %d", v, err, l.Version())
	}
	lacks := l.Missing()
	for _, s := range symbols {
		missing := slices.ContainsFunc(lacks, func(m dl.MissingSymbol) bool { return m.Name == s.Name })
		if want := s.Since > l.Version(); missing != want {
			t.Errorf("%s, since %s: missing from %s is %v", s.Name, FormatVersion(s.Since), FormatVersion(l.Version()), missing)
		}
	}
}

// TestRealErrors compares the names of errors with the library's names.
func TestRealErrors(t *testing.T) {
	l := openReal(t)
	known := 0
	for r := range Result(1000) {
		if strings.HasPrefix(r.Name(), "Result(") {
			continue
		}
		name, err := l.GetErrorName(r)
		if errors.Is(err, ErrorInvalidValue) { // the library is too old to know the code
			continue
		}
		if known++; err != nil || name != r.Name() {
			t.Errorf("the library calls %d %q, %v; want %q", r, name, err, r.Name())
		}
		if text, err := l.GetErrorString(r); err != nil || text == "" {
			t.Errorf("the library describes %s as %q, %v", r.Name(), text, err)
		}
	}
	if known < 60 {
		t.Errorf("the library knows %d errors of the table", known)
	}
}

// TestRealWithoutDevice calls GetProcAddress, which works before Init. Without a GPU it also checks
// the errors of two functions before Init, and of Init.
func TestRealWithoutDevice(t *testing.T) {
	l := openReal(t)
	if l.HasSymbol("cuGetProcAddress_v2") {
		for _, name := range []string{"cuInit", "cuMemAllocAsync"} {
			if addr, status, err := l.GetProcAddress(name, 12000, GetProcAddressDefault); addr == nil || status != GetProcAddressSuccess || err != nil {
				t.Errorf("the address of %s: %v, %v, %v", name, addr, status, err)
			}
		}
		if addr, status, err := l.GetProcAddress("cuNothing", 12000, GetProcAddressDefault); addr != nil || status != GetProcAddressSymbolNotFound {
			t.Errorf("the address of nothing: %v, %v, %v", addr, status, err)
		}
	}
	_, counted := l.DeviceGetCount()
	_, allocated := l.MemAlloc(16)
	err := l.Init(0)
	if err == nil {
		t.Skip("there is a GPU, and another test may have called Init before")
	}
	if !errors.Is(counted, ErrorNotInitialized) {
		t.Errorf("the count of devices before Init: %v", counted)
	}
	if !errors.Is(allocated, ErrorNotInitialized) {
		t.Errorf("memory before Init: %v", allocated)
	}
	if !errors.Is(err, ErrorNoDevice) && !errors.Is(err, ErrorSystemDriverMismatch) && !errors.Is(err, ErrorUnknown) && !errors.Is(err, ErrorOperatingSystem) {
		t.Errorf("Init: %v, want %v", err, ErrorNoDevice)
	}
	t.Logf("Init: %v", err)
}
