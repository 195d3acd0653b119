//go:build linux && (amd64 || arm64) && !nogpu

package hip

import (
	"debug/elf"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"

	table "github.com/puregpu/puregpu/symbols"
)

// These tests compare the table with a real library. They need no AMD GPU. They run if
// PUREGPU_TEST_REAL_HIP is set, with the library that Open finds; PUREGPU_HIP_LIBRARY can name a
// library of another release.

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

// undefined returns the functions that a release's headers declare and its Linux library does not
// export. Open reports them as missing, like any other missing function.
func undefined(release dl.Version) map[string]bool {
	names := map[string]bool{"hipExternalMemoryGetMappedMipmappedArray": true}
	if release < 7_00_00000 {
		maps.Copy(names, semaphoreNodes)
	}
	return names
}

var semaphoreNodes = map[string]bool{
	"hipGraphAddExternalSemaphoresSignalNode":           true,
	"hipGraphAddExternalSemaphoresWaitNode":             true,
	"hipGraphExternalSemaphoresSignalNodeGetParams":     true,
	"hipGraphExternalSemaphoresSignalNodeSetParams":     true,
	"hipGraphExternalSemaphoresWaitNodeGetParams":       true,
	"hipGraphExternalSemaphoresWaitNodeSetParams":       true,
	"hipGraphExecExternalSemaphoresSignalNodeSetParams": true,
	"hipGraphExecExternalSemaphoresWaitNodeSetParams":   true,
}

// withdrawn returns the functions that a release's headers no longer declare; the library of that
// release may lack them.
func withdrawn(t *testing.T, release dl.Version) map[string]bool {
	t.Helper()
	lib, err := table.Load("hip")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range lib.Funcs {
		if u := f.Until; !u.IsZero() && dl.Version(u.Major*10_000_000+u.Minor*100_000) < release {
			names[f.Symbol] = true
		}
	}
	return names
}

// TestRealSymbols looks up the table's functions in the library's file, even if this system cannot
// load it.
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
	have, early, gone := 0, 0, withdrawn(t, release)
	for _, s := range symbols {
		switch {
		case exported[s.Name] && s.Since <= release:
			have++
			if undefined(release)[s.Name] {
				t.Errorf("exported after all: %s", s.Name)
			}
		case exported[s.Name]:
			early++
			t.Logf("exported early: %s, since %s", s.Name, FormatVersion(s.Since))
		case s.Since <= release && (undefined(release)[s.Name] || gone[s.Name]):
			t.Logf("not exported: %s, since %s; withdrawn: %v", s.Name, FormatVersion(s.Since), gone[s.Name])
		case s.Since <= release:
			t.Errorf("not exported: %s, since %s", s.Name, FormatVersion(s.Since))
		}
	}
	t.Logf("HIP %s in %s: %d of %d functions, and %d that the table has as newer", FormatVersion(version), path, have, len(symbols), early)
}

// TestRealOpen opens the library. Opening it needs no AMD GPU.
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
	for _, name := range refused(release) {
		if l.HasSymbol(name) {
			t.Errorf("%s has another layout in this release, and is not refused", name)
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
	gone := withdrawn(t, release)
	for _, m := range l.Missing() {
		if m.Since <= release && !undefined(release)[m.Name] && !gone[m.Name] && !slices.Contains(refused(release), m.Name) {
			t.Errorf("%s, since %s, is missing: %s", m.Name, FormatVersion(m.Since), m.Why)
		}
	}
}

// TestRealNoDevice checks that a machine without a GPU gives a clear error and no crash.
func TestRealNoDevice(t *testing.T) {
	l := openReal(t)
	err := l.Init(0)
	if err == nil {
		t.Skip("there is a GPU")
	}
	// Release 5.2 reports the absent device as an invalid device.
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

// TestRealErrorNames compares the name of every code in the table with the library's own name.
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
