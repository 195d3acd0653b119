//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// open opens the fixture's spec with changes.
func open(t testing.TB, opt Options, change func(*Spec)) (*lib, error) {
	t.Helper()
	spec := testSpec()
	if change != nil {
		change(spec)
	}
	l := new(lib)
	err := l.Open(spec, l.fns[:], opt)
	if err != nil {
		if _, serr := l.Slow(fOut2, 0, 0); !errors.Is(serr, ErrNotOpen) {
			t.Errorf("Slow after a failed Open: %v", serr)
		}
		if l.Path() != "" || l.Version() != 0 || l.Has("core") || l.HasSymbol("out2") || l.Missing() != nil || l.Sets() != nil || l.Addr(0) != 0 {
			t.Error("a library that is not open answers queries")
		}
	}
	return l, err
}

// distinct checks that errors.Is finds want in err, and none of the package's other errors.
func distinct(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range []error{ErrNotOpen, ErrUnsupported, ErrNotFound, ErrNotLoadable, ErrTooOld, ErrSymbol} {
		if got := errors.Is(err, kind); got != (kind == want) {
			t.Errorf("errors.Is(err, %q) = %v for %v", kind, got, err)
		}
	}
}

// wantText compares texts. The word FILE in want stands for the value of file, unless file is
// empty.
func wantText(t *testing.T, got, file, want string) {
	t.Helper()
	if file != "" {
		got = strings.ReplaceAll(got, file, "FILE")
	}
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestOpenAbsent(t *testing.T) {
	const no = "cannot open shared object file: No such file or directory"
	l, err := open(t, Options{}, func(s *Spec) { s.Dirs = []string{"/nowhere/lib", "/nowhere/lib64", "$PUREGPU_UNSET/lib"} })
	distinct(t, err, ErrNotFound)
	want := "fix: fixture not found; install the fixture\n" +
		"\tlibpuregpu-absent.so.2, libpuregpu-absent.so (system loader): " + no + "\n" +
		"\t/nowhere/lib, /nowhere/lib64: no libpuregpu-absent.so.2 or libpuregpu-absent.so there"
	wantText(t, err.Error(), "", want)
	var oe *OpenError
	if !errors.As(err, &oe) || len(oe.Attempts) != 4 || oe.Name != "fixture" || oe.Package != "fix" {
		t.Errorf("OpenError: %+v", oe)
	}
	wantText(t, l.Explain(), "", "library: fixture, not open\nerror: "+strings.ReplaceAll(want, "\n", "\n\t")+"\n")

	_, err = open(t, Options{Path: "/nowhere/x.so"}, nil)
	distinct(t, err, ErrNotFound)
	wantText(t, err.Error(), "", "fix: fixture not found: /nowhere/x.so (Options.Path): no such file; install the fixture, or correct Options.Path")

	// A path through a file does not exist either.
	_, err = open(t, Options{Path: "/dev/null/x.so"}, nil)
	distinct(t, err, ErrNotFound)

	// If the environment variable names a file, Open tries no other file.
	t.Setenv("PUREGPU_TEST_LIBRARY", "/nowhere/y.so")
	_, err = open(t, Options{}, func(s *Spec) { s.Dirs = []string{filepath.Dir(fixture(t))}; s.Names = []string{"fixture.so"} })
	distinct(t, err, ErrNotFound)
	wantText(t, err.Error(), "", "fix: fixture not found: /nowhere/y.so (environment variable PUREGPU_TEST_LIBRARY): no such file; install the fixture")
}

func TestOpenUnloadable(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	here, there := elfMachine(runtime.GOARCH), uint16(183)
	if runtime.GOARCH == "arm64" {
		there = 62
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{
			"class", elfFile(1, 1, 3, 3, 0, 4096),
			"a 32-bit library, but this process is 64-bit (loader: wrong ELF class: ELFCLASS32)",
		},
		{
			"machine", elfFile(2, 1, 3, there, 0, 4096),
			fmt.Sprintf("a library for %s, but this process is for %s (loader: cannot open shared object file: No such file or directory)",
				elfMachineName(there), elfMachineName(here)),
		},
		{"half", whole[:len(whole)/2], fmt.Sprintf("truncated: %d bytes of at least ", len(whole)/2)},
		{"stump", whole[:20], "truncated: only 20 bytes (loader: file too short)"},
		{"empty", nil, "an empty file"},
		{"text", []byte(strings.Repeat("text ", 100)), "not an ELF library (loader: invalid ELF header)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, c.name+".so")
			if err := os.WriteFile(file, c.file, 0o777); err != nil {
				t.Fatal(err)
			}
			_, err := open(t, Options{Path: file}, nil)
			distinct(t, err, ErrNotLoadable)
			got := strings.ReplaceAll(err.Error(), file, "FILE")
			want := "fix: fixture found, but it cannot be loaded: FILE (Options.Path): " + c.want
			if c.name == "half" {
				if !strings.HasPrefix(got, want) {
					t.Errorf("got %s\nwant %s...", got, want)
				}
				return
			}
			wantText(t, got, "", want+"; install the fixture, or correct Options.Path")
		})
	}
	_, err = open(t, Options{Path: dir}, nil)
	distinct(t, err, ErrNotLoadable)
	if !strings.Contains(err.Error(), "a directory, not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	_, err = open(t, Options{Path: "a\x00b"}, nil)
	if err == nil {
		t.Error("a path with a NUL was opened")
	}
	_, err = open(t, Options{Path: "./a\x00b"}, nil)
	if err == nil {
		t.Error("a path with a NUL was opened")
	}
}

func TestOpenBrokenDependency(t *testing.T) {
	if os.Getenv("PUREGPU_TEST_FIXTURES") != "" {
		t.Skip("needs a C compiler")
	}
	dep := build(t, "libpuregpu-dep.so", "int dep(void) { return 1; }", "-Wl,-soname,libpuregpu-dep.so")
	top := build(t, "top.so", "int dep(void); int top(void) { return dep(); }", dep)
	if err := os.Rename(dep, dep+".away"); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, Options{Path: top}, nil)
	distinct(t, err, ErrNotLoadable)
	wantText(t, err.Error(), top, "fix: fixture found, but it cannot be loaded: FILE (Options.Path): needs libpuregpu-dep.so, which was not found "+
		"(loader: libpuregpu-dep.so: cannot open shared object file: No such file or directory); install the fixture, or correct Options.Path")

	under := build(t, "under.so", "int nobody_has_this(void); int top(void) { return nobody_has_this(); }")
	_, err = open(t, Options{Path: under}, nil)
	distinct(t, err, ErrNotLoadable)
	wantText(t, err.Error(), under, "fix: fixture found, but it cannot be loaded: FILE (Options.Path): "+
		"needs function nobody_has_this, which none of the libraries it depends on has "+
		"(loader: undefined symbol: nobody_has_this); install the fixture, or correct Options.Path")
}

func TestOpenStub(t *testing.T) {
	first := true
	l, err := open(t, Options{}, func(s *Spec) {
		s.Names, s.Dirs = []string{"fixture.so"}, []string{filepath.Dir(copyOf(t, fixture(t))), filepath.Dir(fixture(t))}
		version := s.Version
		s.Version = func(l *Library) (Version, error) {
			if first {
				first = false
				return 0, fmt.Errorf("error 34: %w", ErrStub)
			}
			return version(l)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Explain(); !strings.Contains(got, "error 34: stub library, only for linking") {
		t.Errorf("Explain does not tell of the stub:\n%s", got)
	}

	_, err = open(t, Options{Path: fixture(t)}, func(s *Spec) {
		s.Version = func(*Library) (Version, error) { return 0, ErrStub }
	})
	distinct(t, err, ErrNotLoadable)
	isErr(t, err, ErrStub)
	wantText(t, err.Error(), fixture(t), "fix: fixture found, but it cannot be loaded: FILE (Options.Path): stub library, only for linking; install the fixture, or correct Options.Path")
}

// copyOf copies a library into a new folder, so that the loader treats it as another file.
func copyOf(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(path, data, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenTooOld(t *testing.T) {
	l, err := open(t, Options{Path: fixture(t)}, func(s *Spec) {
		for _, i := range []int{fAbsent, fAbsentToo} {
			s.Symbols[i].Set = setCore
			s.Symbols[i].Since = 12060
		}
	})
	distinct(t, err, ErrTooOld)
	want := "fix: fixture 12.5 (FILE) is too old: it lacks 2 of the 29 required functions: absent_v3 (since 12.6), gone (since 12.6); " +
		"the oldest version supported is 11.0; install the fixture, or correct Options.Path"
	wantText(t, err.Error(), fixture(t), want)
	var te *TooOldError
	if !errors.As(err, &te) || te.Found != 12050 || te.Floor != 11000 || len(te.Missing) != 2 || te.Path != fixture(t) {
		t.Errorf("TooOldError: %+v", te)
	}
	wantText(t, l.Explain(), fixture(t), "library: fixture, not open\nerror: "+want+"\nmissing functions:\n"+
		"\tabsent_v3 (set core, since 12.6): get_proc: error 500; undefined symbol\n"+
		"\tgone (set core, since 12.6): undefined symbol\n")

	// The file is another library, which has none of the functions.
	_, err = open(t, Options{Path: fixture(t)}, func(s *Spec) {
		for i := range s.Symbols {
			s.Symbols[i].Name += "_nope"
			s.Symbols[i].API = ""
		}
	})
	distinct(t, err, ErrTooOld)
	wantText(t, err.Error(), fixture(t), "fix: fixture (FILE) has none of the 27 required functions: it is another library, or far too old; "+
		"the oldest version supported is 11.0; install the fixture, or correct Options.Path")
}

// TestOpenUnfit checks that Open refuses a version whose required functions must not be called, and
// that the error says so. Neither the oldest version supported nor the hint helps then.
func TestOpenUnfit(t *testing.T) {
	unfit := func(s *Spec) {
		s.Symbols[fOut2].Set = setCore
		s.Symbols[fOut2].Misfits = []Misfit{{To: 13000, Why: "color has other numbers before 13.0"}}
	}
	_, err := open(t, Options{Path: fixture(t)}, unfit)
	distinct(t, err, ErrTooOld)
	const refused = "1 of the 27 required functions must not be called: out2 (color has other numbers before 13.0)"
	wantText(t, err.Error(), fixture(t), "fix: fixture 12.5 (FILE) cannot be used: "+refused)

	_, err = open(t, Options{Path: fixture(t)}, func(s *Spec) { unfit(s); s.Floor = 13000 })
	wantText(t, err.Error(), fixture(t), "fix: fixture 12.5 (FILE) is too old: "+refused+"; the oldest version supported is 13.0; install the fixture, or correct Options.Path")

	_, err = open(t, Options{Path: fixture(t)}, func(s *Spec) { unfit(s); s.Symbols[fAbsent].Set = setCore })
	wantText(t, err.Error(), fixture(t), "fix: fixture 12.5 (FILE) is too old: it lacks 1 of the 28 required functions: absent_v3 (since 12.9); and "+
		strings.Replace(refused, "27", "28", 1)+"; the oldest version supported is 11.0; install the fixture, or correct Options.Path")
}

// TestOpenBelowFloor checks that Open refuses a version below the floor, even with every required
// function, and takes a library that reports no version.
func TestOpenBelowFloor(t *testing.T) {
	l, err := open(t, Options{Path: fixture(t)}, func(s *Spec) { s.Floor = 12051 })
	distinct(t, err, ErrTooOld)
	want := "fix: fixture 12.5 (FILE) is too old; the oldest version supported is 12.5; install the fixture, or correct Options.Path"
	wantText(t, err.Error(), fixture(t), want)
	wantText(t, l.Explain(), fixture(t), "library: fixture, not open\nerror: "+want+"\n")
	for _, version := range []func(*Library) (Version, error){
		nil,
		func(*Library) (Version, error) { return 0, errors.New("it does not say") },
		func(*Library) (Version, error) { return 12051, nil },
	} {
		if _, err := open(t, Options{Path: fixture(t)}, func(s *Spec) { s.Floor, s.Version = 12051, version }); err != nil {
			t.Error(err)
		}
	}
}

func TestMissingSymbol(t *testing.T) {
	l := openFixture(t)
	_, err := l.Slow(fAbsent, 1, 2)
	distinct(t, err, ErrSymbol)
	wantText(t, err.Error(), "", "fix: absent_v3 is missing (set newer, since 12.9; found fixture 12.5): get_proc: error 500; undefined symbol")
	var se *SymbolError
	if !errors.As(err, &se) || se.Package != "fix" || se.Symbol != "absent_v3" || se.Set != "newer" || se.Since != 12090 || se.Found != 12050 {
		t.Errorf("SymbolError: %+v", se)
	}
	// The resolver finds this function, although its name is not exported.
	if r, err := l.Slow(fResolved, 1); r != 1001 || err != nil {
		t.Errorf("resolved = %d, %v", r, err)
	}
}

func TestQueries(t *testing.T) {
	l := openFixture(t)
	if l.Path() != fixture(t) || l.Version() != 12050 {
		t.Errorf("path %s, version %d", l.Path(), l.Version())
	}
	for set, want := range map[string]bool{"core": true, "extra": true, "newer": false, "gone": false, "unheard of": false} {
		if l.Has(set) != want {
			t.Errorf("Has(%s) = %v", set, !want)
		}
	}
	for sym, want := range map[string]bool{"out2": true, "resolved_v2": true, "absent_v3": false, "spin ": false} {
		if l.HasSymbol(sym) != want {
			t.Errorf("HasSymbol(%s) = %v", sym, !want)
		}
	}
	if l.Addr(-1) != 0 || l.Addr(numFns) != 0 || l.Addr(fAbsent) != 0 || l.Addr(fOut2) == 0 {
		t.Error("Addr")
	}
	wantMissing := []MissingSymbol{
		{"absent_v3", "newer", 12090, "get_proc: error 500; undefined symbol"},
		{"gone", "gone", 13000, "undefined symbol"},
	}
	if got := l.Missing(); !slices.Equal(got, wantMissing) {
		t.Errorf("Missing: %+v", got)
	}
	wantSets := []SetStatus{{"core", 11000, 27, 27}, {"extra", 11020, 13, 13}, {"newer", 12000, 1, 2}, {"gone", 13000, 0, 1}}
	if got := l.Sets(); !slices.Equal(got, wantSets) {
		t.Errorf("Sets: %+v", got)
	}
	calls := "fast"
	if !Fast {
		calls = "slow (this build has no fast path)"
	}
	wantText(t, l.Explain(), fixture(t), `library: fixture
path: FILE
chosen: Options.Path, as FILE
version: 12.5, oldest supported 11.0
calls: `+calls+`
sets:
	core: present, 27 of 27, since 11.0
	extra: present, 13 of 13, since 11.2
	newer: partial, 1 of 2, since 12.0
	gone: missing, 0 of 1, since 13.0
missing functions:
	absent_v3 (set newer, since 12.9): get_proc: error 500; undefined symbol
	gone (set gone, since 13.0): undefined symbol
`)
	if got := new(Library).Explain(); got != "library: not opened yet\n" {
		t.Errorf("Explain of a zero Library: %q", got)
	}
	if err := l.Open(testSpec(), l.fns[:], Options{}); err == nil || err.Error() != "fix: fixture is already open" {
		t.Errorf("second Open: %v", err)
	}
}

func TestExplainSearch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a-1")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "libpuregpu-absent.so")
	if err := os.Symlink(fixture(t), link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "libpuregpu-absent.so.2"), elfFile(1, 1, 3, 3, 0, 4096), 0o777); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l, err := open(t, Options{Logger: logger}, func(s *Spec) {
		s.Dirs = []string{filepath.Join(filepath.Dir(dir), "a-*")}
		s.Version = func(*Library) (Version, error) { return 5, errors.New("will not say") }
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(l.Explain(), filepath.Dir(dir), "DIR")
	// If another test has loaded the fixture by its own path, Explain gives this path and not the
	// link's.
	got = strings.Replace(got, "path: "+fixture(t)+"\n", "path: LOADED\n", 1)
	got = strings.Replace(got, "path: DIR/a-1/libpuregpu-absent.so -> "+fixture(t)+"\n", "path: LOADED\n", 1)
	got, _, _ = strings.Cut(got, "calls:")
	wantText(t, got, "", `library: fixture
path: LOADED
chosen: directory DIR/a-*, as DIR/a-1/libpuregpu-absent.so
tried before:
	libpuregpu-absent.so.2 (system loader): cannot open shared object file: No such file or directory
	libpuregpu-absent.so (system loader): cannot open shared object file: No such file or directory
	DIR/a-1/libpuregpu-absent.so.2 (directory DIR/a-*): a 32-bit library, but this process is 64-bit (loader: wrong ELF class: ELFCLASS32)
version: unknown (will not say), oldest supported 11.0
`)
	if n := strings.Count(log.String(), "open library"); n != 4 {
		t.Errorf("%d log records, want 4:\n%s", n, log.String())
	}
}

// TestOpenLoaded checks that a library already loaded in the process is found by its soname,
// wherever its file is.
func TestOpenLoaded(t *testing.T) {
	if os.Getenv("PUREGPU_TEST_FIXTURES") != "" {
		t.Skip("needs a C compiler")
	}
	// Each run needs a new name, because libraries of an earlier run are still loaded.
	name := fmt.Sprintf("libpuregpu-loaded-%d.so", time.Now().UnixNano())
	file := build(t, name, "int one(void) { return 1; }", "-Wl,-soname,"+name+".1")
	spec := &Spec{
		Name: "loaded", Package: "ld", Names: []string{name + ".2", name + ".1"},
		Sets: []Set{{Name: "core"}}, Symbols: []Symbol{{Name: "one"}},
	}
	var a, b Library
	isErr(t, b.Open(spec, nil, Options{}), ErrNotFound)
	if err := a.Open(spec, nil, Options{Path: file}); err != nil {
		t.Fatal(err)
	}
	if err := b.Open(spec, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	if a.Addr(0) != b.Addr(0) || b.Path() != file {
		t.Errorf("opened twice: %#x and %#x, path %s", a.Addr(0), b.Addr(0), b.Path())
	}
	if got := b.Explain(); !strings.Contains(got, "chosen: already in the process, as "+name+".1\n") {
		t.Errorf("Explain:\n%s", got)
	}
}

func TestOpenBadSpec(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"fast": {func(s *Spec) { s.Symbols = s.Symbols[:3] }, "fix: bad spec: room for 43 fast functions, but 3 symbols"},
		"sets": {func(s *Spec) { s.Sets = nil }, "fix: bad spec: symbols but no sets"},
		"set":  {func(s *Spec) { s.Symbols[2].Set = 9 }, "fix: bad spec: words2 is in set 9 of 4"},
		"sig":  {func(s *Spec) { s.Symbols[2].Sig = "wq" }, `fix: bad spec: words2: signature "q": unknown code 'q'`},
		"name": {func(s *Spec) { s.Symbols[2].Name = "" }, "fix: bad spec: symbol 2 has no name"},
	} {
		if _, err := open(t, Options{Path: fixture(t)}, c.change); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
	if err := new(Library).Open(nil, nil, Options{}); err == nil {
		t.Error("opened nil")
	}
}

// TestErrorsAreOwn checks that concurrent failing opens each get their own loader message.
func TestErrorsAreOwn(t *testing.T) {
	spec := &Spec{Name: "absent", Package: "x"}
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range rounds {
				name := fmt.Sprintf("libpuregpu-%d-%d.so", g, i)
				var l Library
				err := l.Open(spec, nil, Options{Path: name})
				want := fmt.Sprintf("x: absent not found: %s (Options.Path): cannot open shared object file: No such file or directory", name)
				if err == nil || err.Error() != want {
					t.Errorf("error %v, want %s", err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestConcurrentOpens(t *testing.T) {
	fixture(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			l := openFixture(t)
			if out, err := l.Out2(3); out != 3 || err != nil {
				t.Errorf("Out2 = %d, %v", out, err)
			}
		})
	}
	wg.Wait()

	// Exactly one of several concurrent opens of a Library succeeds.
	var l lib
	var mu sync.Mutex
	opened := 0
	for range 8 {
		wg.Go(func() {
			if err := l.Open(testSpec(), l.fns[:], Options{Path: fixture(t)}); err == nil {
				mu.Lock()
				opened++
				mu.Unlock()
			}
			l.Explain()
			l.HeapFrames()
			l.Missing()
		})
	}
	wg.Wait()
	if opened != 1 {
		t.Errorf("%d opens succeeded", opened)
	}
}

// bigSpec returns a spec of 700 functions, a few of them missing.
func bigSpec() *Spec {
	s := testSpec()
	some := s.Symbols
	s.Symbols = nil
	for len(s.Symbols) < 700 {
		s.Symbols = append(s.Symbols, some...)
	}
	s.Symbols = s.Symbols[:700]
	return s
}

func TestOpenTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	openFixture(t) // loads the file now, so that the time does not include dlopen
	spec := bigSpec()
	best := time.Hour
	for range 10 {
		var l Library
		fast := make([]uintptr, len(spec.Symbols))
		start := time.Now()
		if err := l.Open(spec, fast, Options{Path: fixture(t)}); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	t.Logf("opening with 700 functions: %v", best)
	if best > 3*time.Millisecond {
		t.Errorf("opening with 700 functions takes %v, more than 3 ms", best)
	}
}

func BenchmarkOpen700(b *testing.B) {
	openFixture(b)
	spec := bigSpec()
	fast := make([]uintptr, len(spec.Symbols))
	b.ReportAllocs()
	for b.Loop() {
		var l Library
		if err := l.Open(spec, fast, Options{Path: fixture(b)}); err != nil {
			b.Fatal(err)
		}
	}
}
