//go:build linux && (amd64 || arm64) && !nogpu

package nccl

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// errSink keeps the compiler from removing the tested computation.
var errSink error

// fake builds a fake library of a release of NCCL from testdata/fakes/nccl.c. The library exports
// the functions of that release and, if rccl is true, RCCL's own functions.
func fake(t testing.TB, release dl.Version, rccl bool, defines ...string) string {
	t.Helper()
	f := testlib.Fake{File: "libnccl.so.2", Source: "nccl.c", Defines: append([]string{fmt.Sprintf("VERSION=%d", release)}, defines...)}
	if rccl {
		f.File = "librccl.so.1"
	}
	for _, s := range symbols {
		if s.Since <= release && (rccl || !isRCCL(sets[s.Set].Name)) {
			f.Symbols = append(f.Symbols, s.Name)
		}
	}
	return f.Build(t)
}

func isRCCL(set string) bool { return strings.HasPrefix(set, "rccl") }

func openFake(t testing.TB, release dl.Version) *Library {
	t.Helper()
	l, err := Open(Options{Path: fake(t, release, false)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOpenFails(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "libnccl.so.2")
	for _, c := range []struct {
		name, file string
		open       func(Options) (*Library, error)
		want       error
		message    string
	}{
		{"NCCL absent", absent, Open, dl.ErrNotFound, "nccl: NCCL not found: FILE (Options.Path): no such file; install NVIDIA's NCCL 2.3.5 or newer (package libnccl2), or correct Options.Path"},
		{"RCCL absent", absent, OpenRCCL, dl.ErrNotFound, "nccl: RCCL not found: FILE (Options.Path): no such file; install AMD's RCCL (package rccl), or correct Options.Path"},
		{"NCCL too old", fake(t, 2300, false), Open, dl.ErrTooOld, "nccl: NCCL 2.3.0 (FILE) is too old: it lacks "},
		{"another library", testlib.Fake{File: "libother.so", Symbols: []string{"one"}}.Build(t), Open, dl.ErrTooOld, "it is another library, or far too old"},
	} {
		l, err := c.open(Options{Path: c.file})
		if l != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want an error that is %v", c.name, err, c.want)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), c.file, "FILE"); !strings.Contains(got, c.message) {
			t.Errorf("%s: message %q\nwant %q", c.name, got, c.message)
		}
	}
}

// TestVersion checks versions in both numbering schemes: 2804 is 2.8.4, and 20903 is 2.9.3.
func TestVersion(t *testing.T) {
	for _, c := range []struct {
		code dl.Version
		want string
	}{{2305, "2.3.5"}, {2804, "2.8.4"}, {20903, "2.9.3"}, {21003, "2.10.3"}, {22803, "2.28.3"}, {23007, "2.30.7"}} {
		l := openFake(t, c.code)
		v, err := l.GetVersion()
		if dl.Version(v) != c.code || err != nil || l.Version() != c.code {
			t.Errorf("version %d, %v, and Version %d; want %d", v, err, l.Version(), c.code)
		}
		if got := FormatVersion(l.Version()); got != c.want {
			t.Errorf("FormatVersion(%d) = %s, want %s", c.code, got, c.want)
		}
		if want := "version: " + c.want + ", oldest supported 2.3.5\n"; !strings.Contains(l.Explain(), want) {
			t.Errorf("Explain lacks %q:\n%s", want, l.Explain())
		}
	}
}

func TestVersionThatCannotBeTold(t *testing.T) {
	l, err := Open(Options{Path: fake(t, 22803, false, "VERSION_RESULT=3")})
	if err != nil {
		t.Fatal(err)
	}
	if l.Version() != 0 || !strings.Contains(l.Explain(), "version: unknown (ncclGetVersion: nccl: ncclInternalError (3): ") {
		t.Errorf("version %d:\n%s", l.Version(), l.Explain())
	}
	if c := l.NewConfig(); c.Version != tableVersion {
		t.Errorf("config for version %d, want %d", c.Version, tableVersion)
	}
}

// TestRCCL checks that only RCCL has the functions in RCCL's sets, and that the error for a missing
// function names the library.
func TestRCCL(t *testing.T) {
	l, err := OpenRCCL(Options{Path: fake(t, 22105, true)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(l.Explain(), "library: RCCL\n") {
		t.Errorf("Explain:\n%s", l.Explain())
	}
	n := openFake(t, 22803)
	for _, s := range sets {
		if isRCCL(s.Name) {
			if l.Has(s.Name) != (s.Since <= l.Version()) || n.Has(s.Name) {
				t.Errorf("set %s: RCCL has it: %v, NCCL has it: %v", s.Name, l.Has(s.Name), n.Has(s.Name))
			}
		}
	}
	err = n.AllToAllRCCL(1, 2, 3, Float32, 0, 0)
	if _, ok := err.(*dl.SymbolError); !ok || !strings.HasPrefix(err.Error(), "nccl: ncclAllToAll is missing (set rccl, since 2.7.6; found NCCL 2.28.3): ") {
		t.Errorf("AllToAllRCCL on NCCL: %v", err)
	}
	err = l.AlltoAll(1, 2, 3, Float32, 0, 0)
	if _, ok := err.(*dl.SymbolError); !ok || !strings.HasPrefix(err.Error(), "nccl: ncclAlltoAll is missing (set all-to-all, since 2.28.3; found RCCL 2.21.5): ") {
		t.Errorf("AlltoAll on RCCL: %v", err)
	}
}

// TestMissingSets opens several releases of the library. A release must have every set that it or
// an older release introduced, and nothing of a later set.
func TestMissingSets(t *testing.T) {
	for _, release := range []dl.Version{2305, 2703, 21003, 21403, 21801, 22304, 22703, 22803} {
		l := openFake(t, release)
		for _, s := range l.Sets() {
			if want := s.Since <= release && !isRCCL(s.Name); l.Has(s.Name) != want {
				t.Errorf("NCCL %s: Has(%q) = %v, %d of %d", FormatVersion(release), s.Name, !want, s.Have, s.Total)
			}
		}
	}

	l := openFake(t, 21003)
	err := l.CommSplit(1, 0, 0, new(Comm), nil)
	se, ok := err.(*dl.SymbolError)
	if !ok || se.Symbol != "ncclCommSplit" || se.Set != "split" || se.Since != 21801 || se.Found != 21003 {
		t.Fatalf("CommSplit: %v (%T)", err, err)
	}
	if want := "nccl: ncclCommSplit is missing (set split, since 2.18.1; found NCCL 2.10.3): undefined symbol"; err.Error() != want {
		t.Errorf("message %q\nwant       %q", err, want)
	}
	if want := "\tsplit: missing, 0 of 1, since 2.18.1\n"; !strings.Contains(l.Explain(), want) {
		t.Errorf("Explain lacks %q:\n%s", want, l.Explain())
	}
}

// TestConfigArrives checks that the library receives the config, nil or not, and the ID, 128 bytes
// that are passed by value.
func TestConfigArrives(t *testing.T) {
	l := openFake(t, 21801)
	id, err := l.GetUniqueID()
	if err != nil || id.Internal[1] != 4 {
		t.Fatalf("GetUniqueID = %v, %v", id, err)
	}
	var comm Comm
	if err := l.CommInitRank(&comm, 5, id, 3); comm != 5<<8|3 || err != nil {
		t.Errorf("CommInitRank = %#x, %v", comm, err)
	}
	if err := l.CommInitRank(&comm, 5, UniqueID{}, 3); err != ErrorInvalidArgument {
		t.Errorf("CommInitRank with another identity: %v", err)
	}
	const none, made = Comm(1), Comm(48<<32 | 21801)
	config := l.NewConfig()
	for _, c := range []struct {
		config *Config
		want   Comm
	}{{nil, none}, {&config, made}} {
		if err := l.CommInitRankConfig(&comm, 5, id, 3, c.config); comm != c.want || err != nil {
			t.Errorf("CommInitRankConfig = %#x, %v, want %#x", comm, err, c.want)
		}
		if err := l.CommSplit(1, 0, 0, &comm, c.config); comm != c.want || err != nil {
			t.Errorf("CommSplit = %#x, %v, want %#x", comm, err, c.want)
		}
	}
	if err := l.CommInitRankConfig(&comm, 5, id, 3, new(Config)); err != ErrorInvalidArgument {
		t.Errorf("CommInitRankConfig with a zero config: %v", err)
	}
}

// TestWrittenLate checks an output that a thread of the library writes after the call has returned.
// Meanwhile the caller's stack moves and the garbage collector runs.
func TestWrittenLate(t *testing.T) {
	l := openFake(t, 22803)
	const late = 12345
	var comm Comm
	if err := l.CommSplit(late, 0, 0, &comm, nil); err != ErrorInProgress || comm != 0 {
		t.Fatalf("CommSplit = %#x, %v", comm, err)
	}
	testlib.Deep(10_000)
	runtime.GC()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		state, err := l.CommGetAsyncError(late)
		if err != nil {
			t.Fatal(err)
		}
		if state == Success {
			break
		}
		if state != ErrorInProgress || time.Now().After(end) {
			t.Fatalf("the split is %v", state)
		}
	}
	if comm != late+1 {
		t.Errorf("the new communicator is %#x, want %#x", comm, late+1)
	}
}

func TestTexts(t *testing.T) {
	l := openFake(t, 22803)
	for _, c := range []struct {
		f    func() (string, error)
		want string
	}{
		{func() (string, error) { return l.GetErrorString(ErrorInvalidArgument) }, "invalid argument"},
		{func() (string, error) { return l.GetLastError(0) }, "of the process"},
		{func() (string, error) { return l.GetLastError(1) }, "of the communicator"},
	} {
		if got, err := c.f(); got != c.want || err != nil {
			t.Errorf("text %q, %v, want %q", got, err, c.want)
		}
	}
	if _, err := openFake(t, 2305).GetLastError(0); !errors.Is(err, dl.ErrSymbol) {
		t.Errorf("GetLastError before 2.13.4: %v", err)
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	l := openFake(t, 22803)
	for _, code := range []Result{Success, ErrorInProgress} {
		var want error
		if code != Success {
			want = code
		}
		for name, f := range map[string]func() error{
			"CommCount": func() error {
				n, err := l.CommCount(Comm(code))
				if n != 8 {
					t.Errorf("CommCount = %d", n)
				}
				return err
			},
			"AllReduce": func() error { return l.AllReduce(1, 2, 3, Float32, Max, Comm(code), 4) },
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
