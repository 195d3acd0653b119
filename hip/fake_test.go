//go:build linux && (amd64 || arm64) && !nogpu

package hip

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// errSink keeps the compiler from removing the tested computation.
var errSink error

// fake builds a fake library of a release from testdata/fakes/hip.c. The library exports the
// release's functions without the functions named in without.
func fake(t testing.TB, file string, release dl.Version, defines []string, without ...string) string {
	t.Helper()
	f := testlib.Fake{File: file, Source: "hip.c", Defines: append([]string{fmt.Sprintf("VERSION=%d", release)}, defines...)}
	for _, s := range symbols {
		if s.Since <= release && !slices.Contains(without, s.Name) {
			f.Symbols = append(f.Symbols, s.Name)
		}
	}
	return f.Build(t)
}

func openFake(t testing.TB, release dl.Version, defines ...string) *Library {
	t.Helper()
	l, err := Open(Options{Path: fake(t, "libamdhip64.so", release, defines)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOpenFails(t *testing.T) {
	for _, c := range []struct {
		name, file string
		want       error
		message    string
	}{
		{"absent", filepath.Join(t.TempDir(), "libamdhip64.so.6"), dl.ErrNotFound, "hip: HIP runtime not found: FILE (Options.Path): no such file; install ROCm's HIP runtime, 5.2 or newer (package hip-runtime-amd, on Debian libamdhip64), or correct Options.Path"},
		{"too old", fake(t, "libamdhip64.so.5", 50200000, nil, "hipMalloc", "hipFree"), dl.ErrTooOld,
			"hip: HIP runtime 5.2 (FILE) is too old: it lacks 2 of the "},
		{"another library", testlib.Fake{File: "libother.so", Symbols: []string{"one"}}.Build(t), dl.ErrTooOld, "it is another library, or far too old"},
	} {
		l, err := Open(Options{Path: c.file})
		if l != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want an error that is %v", c.name, err, c.want)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), c.file, "FILE"); !strings.Contains(got, c.message) {
			t.Errorf("%s: message %q\nwant %q", c.name, got, c.message)
		}
	}
}

// TestVersion checks that the version comes from the library, or else from the name of the
// library's file, after following links.
func TestVersion(t *testing.T) {
	for _, c := range []struct {
		name    string
		file    string
		defines []string
		want    dl.Version
		text    string
	}{
		{"told", "libamdhip64.so", nil, 60443484, "6.4.43484"},
		{"told against the file's name", "libamdhip64.so.5.2.21153", nil, 60443484, "6.4.43484"},
		{"no device to ask", "libamdhip64.so.5.2.21153", []string{"VERSION_RESULT=100"}, 50221153, "5.2.21153"},
		{"a version of zero", "libamdhip64.so.5.7.31921", []string{"VERSION=0"}, 50731921, "5.7.31921"},
		{"nobody to tell", "libamdhip64.so.6", []string{"VERSION_RESULT=100"}, 0,
			"unknown (hipRuntimeGetVersion: hip: hipErrorNoDevice (100): "},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := testlib.Fake{File: c.file, Source: "hip.c", Defines: c.defines}
			for _, s := range symbols {
				f.Symbols = append(f.Symbols, s.Name)
			}
			link := filepath.Join(t.TempDir(), "libamdhip64.so")
			if err := os.Symlink(f.Build(t), link); err != nil {
				t.Fatal(err)
			}
			l, err := Open(Options{Path: link})
			if err != nil {
				t.Fatal(err)
			}
			if l.Version() != c.want || !strings.Contains(l.Explain(), "\nversion: "+c.text) {
				t.Errorf("version %d, want %d:\n%s", l.Version(), c.want, l.Explain())
			}
		})
	}
}

func TestVersionInName(t *testing.T) {
	for path, want := range map[string]dl.Version{
		"/opt/rocm/lib/libamdhip64.so.6.4.60403":     60460403,
		"/usr/lib/libamdhip64.so.5.2.21153":          50221153,
		"/usr/lib/libamdhip64.so.6":                  0,
		"/usr/lib/libamdhip64.so":                    0,
		"/usr/lib/libamdhip64.so.5.2.999999":         0,
		"/opt/rocm-5.7.1/lib/libamdhip64.so.5.7":     0,
		"/usr/lib/libamdhip64.so.99999999999999.1.1": 0,
	} {
		if got := versionInName(path); got != want {
			t.Errorf("versionInName(%q) = %d, want %d", path, got, want)
		}
	}
	for v, want := range map[dl.Version]string{60443484: "6.4.43484", 50200000: "5.2", 70051831: "7.0.51831"} {
		if got := FormatVersion(v); got != want {
			t.Errorf("FormatVersion(%d) = %s, want %s", v, got, want)
		}
	}
}

func TestNoDevice(t *testing.T) {
	l := openFake(t, 60443484, "INIT_RESULT=100")
	if err := l.Init(0); !errors.Is(err, ErrorNoDevice) || !strings.HasPrefix(err.Error(), "hip: hipErrorNoDevice (100): ") {
		t.Errorf("Init: %v", err)
	}
	if n, err := l.GetDeviceCount(); n != 0 || !errors.Is(err, ErrorNoDevice) {
		t.Errorf("GetDeviceCount = %d, %v", n, err)
	}
}

// TestMissingSets opens several releases of the library. A release must have every set that it or
// an older release introduced, except refused functions, and nothing of a later set.
func TestMissingSets(t *testing.T) {
	for _, release := range []dl.Version{50200000, 50731921, 60000000, 60443484} {
		l := openFake(t, release)
		without := map[string]bool{}
		for _, m := range l.Missing() {
			without[m.Set] = without[m.Set] || slices.Contains(refused(release), m.Name)
		}
		for _, s := range l.Sets() {
			if want := s.Since <= release && !without[s.Name]; l.Has(s.Name) != want {
				t.Errorf("HIP %s: Has(%q) = %v, %d of %d", FormatVersion(release), s.Name, !want, s.Have, s.Total)
			}
		}
	}

	l := openFake(t, 50731921)
	_, err := l.GetDeviceProperties(0)
	se, ok := err.(*dl.SymbolError)
	if !ok || se.Symbol != "hipGetDevicePropertiesR0600" || se.Since != 60000000 || se.Found != 50731921 {
		t.Fatalf("GetDeviceProperties: %v (%T)", err, err)
	}
	if want := "hip: hipGetDevicePropertiesR0600 is missing (set device-properties, since 6.0; found HIP runtime 5.7.31921): undefined symbol; use GetDevicePropertiesR0000"; err.Error() != want {
		t.Errorf("message %q\nwant       %q", err, want)
	}
	if _, err := l.GetDevicePropertiesR0000(0); err != nil {
		t.Errorf("GetDevicePropertiesR0000: %v", err)
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	l := openFake(t, 60443484)
	counter := new(uint64)
	params := []unsafe.Pointer{unsafe.Pointer(counter)}
	for _, code := range []Result{Success, ErrorNotReady} {
		var want error
		if code != Success {
			want = code
		}
		for name, f := range map[string]func() error{
			"EventQuery":  func() error { return l.EventQuery(Event(code)) },
			"StreamQuery": func() error { return l.StreamQuery(Stream(code)) },
			"DeviceGetAttribute": func() error {
				v, err := l.DeviceGetAttribute(DeviceAttributeWarpSize, int32(code))
				if v != int32(DeviceAttributeWarpSize)*10 {
					t.Errorf("DeviceGetAttribute = %d", v)
				}
				return err
			},
			"ModuleLaunchKernel": func() error { return l.ModuleLaunchKernel(1, 2, 3, 4, 5, 6, 7, 8, Stream(code), params, nil) },
		} {
			if n := testing.AllocsPerRun(100, func() { errSink = f() }); n != 0 {
				t.Errorf("%s with code %d allocates %v times", name, int32(code), n)
			}
			if errSink != want {
				t.Errorf("%s: %v, want %v", name, errSink, want)
			}
		}
	}
}
