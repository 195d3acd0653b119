//go:build linux && (amd64 || arm64) && !nogpu

package hip

import (
	"debug/elf"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// These tests hold the table against a real library, which needs no AMD GPU. They run if PUREGPU_TEST_REAL_HIP is set,
// against the library that Open finds; PUREGPU_HIP_LIBRARY names another release.

func needReal(t *testing.T) {
	t.Helper()
	if os.Getenv("PUREGPU_TEST_REAL_HIP") == "" {
		t.Skip("set PUREGPU_TEST_REAL_HIP=1 to test against an installed libamdhip64")
	}
}

func openReal(t *testing.T) *Library {
	t.Helper()
	needReal(t)
	l, err := Open(Options{})
	if errors.Is(err, dl.ErrNotLoadable) {
		t.Skipf("this system cannot load the library: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// exceptions are functions that a header declares and a library does not export, from some release on. Nothing breaks by it:
// they are reported as missing, like any other.
var exceptions = map[string]struct {
	from   dl.Version
	reason string
}{
	"hipRegisterApiCallback":      {50700000, "replaced by the tracing library's own registration"},
	"hipRemoveApiCallback":        {50700000, "replaced by the tracing library's own registration"},
	"hipRegisterActivityCallback": {50700000, "replaced by the tracing library's own registration"},
	"hipRemoveActivityCallback":   {50700000, "replaced by the tracing library's own registration"},

	"hipExternalMemoryGetMappedMipmappedArray": {60400000, undefined},

	"hipGraphAddExternalSemaphoresSignalNode":           {60100000, undefined},
	"hipGraphAddExternalSemaphoresWaitNode":             {60100000, undefined},
	"hipGraphExternalSemaphoresSignalNodeGetParams":     {60100000, undefined},
	"hipGraphExternalSemaphoresSignalNodeSetParams":     {60100000, undefined},
	"hipGraphExternalSemaphoresWaitNodeGetParams":       {60100000, undefined},
	"hipGraphExternalSemaphoresWaitNodeSetParams":       {60100000, undefined},
	"hipGraphExecExternalSemaphoresSignalNodeSetParams": {60100000, undefined},
	"hipGraphExecExternalSemaphoresWaitNodeSetParams":   {60100000, undefined},
}

const undefined = "declared, but the library for Linux does not export it"

// exception returns why a release need not export a function, or "".
func exception(name string, release dl.Version) string {
	if e, ok := exceptions[name]; ok && release >= e.from {
		return e.reason
	}
	return ""
}

// TestRealSymbols looks up the table's functions in the library's file, whether or not this system can load it.
func TestRealSymbols(t *testing.T) {
	needReal(t)
	path := os.Getenv(spec.Env)
	if path == "" {
		path = openReal(t).Path()
	}
	version := versionInName(path)
	if version == 0 {
		t.Skipf("the name of %s tells no version", path)
	}
	release := version / 100_000 * 100_000
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, s := range syms {
		if s.Section != elf.SHN_UNDEF {
			exported[s.Name] = true
		}
	}
	have, early := 0, 0
	for _, s := range symbols {
		reason := exception(s.Name, release)
		switch {
		case exported[s.Name] && s.Since <= release:
			have++
			if reason != "" {
				t.Errorf("exported after all: %s: %s", s.Name, reason)
			}
		case exported[s.Name]:
			early++
			t.Logf("exported early: %s, since %s", s.Name, FormatVersion(s.Since))
		case s.Since <= release && reason != "":
			t.Logf("not exported: %s, since %s: %s", s.Name, FormatVersion(s.Since), reason)
		case s.Since <= release:
			t.Errorf("not exported: %s, since %s", s.Name, FormatVersion(s.Since))
		}
	}
	t.Logf("HIP %s in %s: %d of %d functions, and %d that the table has as newer", FormatVersion(version), path, have, len(symbols), early)
}

// TestRealOpen opens the library where there is no AMD GPU.
func TestRealOpen(t *testing.T) {
	l := openReal(t)
	release := l.Version() / 100_000 * 100_000
	if release < floor || !l.Has("core") {
		t.Errorf("version %d, has core: %v", l.Version(), l.Has("core"))
	}
	explain := l.Explain()
	for _, want := range []string{"library: HIP runtime\n", "\npath: " + l.Path(), "\nversion: " + FormatVersion(release) + ".", "oldest supported 5.2\n"} {
		if !strings.Contains(explain, want) {
			t.Errorf("Explain lacks %q:\n%s", want, explain)
		}
	}
	for _, s := range l.Sets() {
		if s.Since <= release {
			continue
		}
		if l.Has(s.Name) {
			t.Logf("set %s, since %s, is there already", s.Name, FormatVersion(s.Since))
		} else if want := "\t" + s.Name + ": " + s.String() + ", "; !strings.Contains(explain, want) || !strings.Contains(explain, ", since "+FormatVersion(s.Since)) {
			t.Errorf("Explain lacks %q:\n%s", want, explain)
		}
	}
	for _, m := range l.Missing() {
		if m.Since <= release && exception(m.Name, release) == "" {
			t.Errorf("%s, since %s, is missing: %s", m.Name, FormatVersion(m.Since), m.Why)
		}
	}
}

// TestRealNoDevice wants a clear answer where there is no GPU, and no crash.
func TestRealNoDevice(t *testing.T) {
	l := openReal(t)
	err := l.Init(0)
	if err == nil {
		t.Skip("there is a GPU")
	}
	// Release 5.2 calls the absent device an invalid one.
	if !errors.Is(err, ErrorNoDevice) && !errors.Is(err, ErrorInvalidDevice) {
		t.Errorf("Init: %v, want %v", err, ErrorNoDevice)
	}
	if n, err := l.GetDeviceCount(); n != 0 || !errors.Is(err, ErrorNoDevice) {
		t.Errorf("GetDeviceCount = %d, %v", n, err)
	}
	if text, err := l.GetErrorName(ErrorNoDevice); text != "hipErrorNoDevice" || err != nil {
		t.Errorf("GetErrorName = %q, %v", text, err)
	}
	if _, err := l.Malloc(16); err == nil {
		t.Error("memory without a device")
	}
}

// TestRealErrorNames checks every code that the table knows against the library's own name for it.
func TestRealErrorNames(t *testing.T) {
	l := openReal(t)
	for r := range Result(2000) {
		if strings.HasPrefix(r.Name(), "Result(") {
			continue
		}
		name, err := l.GetErrorName(r)
		if err != nil {
			t.Fatal(err)
		}
		if name == "hipErrorUnknown" && r != ErrorUnknown {
			t.Logf("the library does not know %s", r.Name())
		} else if name != r.Name() {
			t.Errorf("%d is %s to the library and %s to the table", int32(r), name, r.Name())
		}
	}
}
