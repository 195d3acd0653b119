package dl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"
)

// Options change how Open searches. The zero value is the default search.
type Options struct {
	// Path names the library's file. Nothing else is tried, not even the environment variable. The
	// system loader searches for a name without a slash.
	Path string

	// Dirs are folders to search before all other places, unless Path or the library's environment
	// variable names a file. Each folder contains the library itself, or is Python's site-packages,
	// where NVIDIA's wheels have folders such as nvidia/nccl/lib. Dirs may be patterns as in
	// [Spec].Dirs, without variables. The environment variable PUREGPU_LIBRARY_PATH adds folders,
	// in the form of PATH.
	Dirs []string

	// Logger gets a debug record for each candidate; nil for none.
	Logger *slog.Logger
}

// A Library is a C library. The zero Library is not open, and every call through it fails with
// [ErrNotOpen]. An open Library stays open. All methods may be called concurrently. A Library must
// not be copied after Open.
type Library struct {
	mu   sync.Mutex               // serializes Open and HeapFrames
	open atomic.Pointer[library]  // nil until Open succeeds
	fail atomic.Pointer[openFail] // result of the last failed Open; nil after success
	heap atomic.Bool              // HeapFrames or AllHeapFrames was called
}

// openFail is the result of a failed Open, for Explain.
type openFail struct {
	spec     *Spec
	attempts []Attempt
	err      error
}

// A library is an open library. After Open has published it, only the elements of its field fast
// change.
type library struct {
	spec     *Spec
	fast     []uintptr
	addrs    []uintptr         // by symbol; 0 if missing
	why      map[int]string    // by index of a missing symbol: the reason
	unfit    map[string]string // by name of a symbol that counts as missing because of a misfit: what differs
	have     []int             // by set: symbols found
	total    []int             // by set: symbols
	path     string            // loaded file
	asked    string            // name passed to the loader
	source   string            // why the file was tried
	attempts []Attempt         // results of all candidates
	taken    int               // index of this library in attempts
	version  Version
	verErr   error

	// ld and handle are set while Version and Resolve run: look-ups then use the system loader.
	ld     *loader
	handle uintptr
}

// Open finds and loads the library that spec describes, and resolves its functions. It sets fast[i]
// to the address of function i if [Call] can call it. fast must be empty, or have as many elements
// as spec.Symbols, all 0. fast belongs to the Library from then on: read it with [Load].
//
// Open takes the first file that is ready; see [Spec].Ready. If files with the required functions
// were loaded but none is ready, Open takes one of them and succeeds. The program then gets Ready's
// error when it makes the calls that Ready made. [Library.Attempts] returns the results of all
// files tried.
//
// If nothing can be loaded, the error is an [*OpenError]. If the library lacks required functions,
// or reports a version below spec.Floor, the error is a [*TooOldError]. In a build that cannot load
// libraries the error is [ErrUnsupported]. After an error Open may be called again. Two Library
// values may open the same library: both use the same loaded copy, independently.
//
// Open blocks while the library's own start-up code runs, which may take long.
func (l *Library) Open(spec *Spec, fast []uintptr, opt Options) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if spec == nil {
		return errors.New("cannot open a library without a spec")
	}
	if l.open.Load() != nil {
		return fmt.Errorf("%s: %s is already open", spec.Package, spec.Name)
	}
	f := &openFail{spec: spec}
	lib, err := openLibrary(spec, len(fast), &opt, &f.attempts)
	if err != nil {
		f.err = err
		l.fail.Store(f)
		return err
	}
	lib.fast = fast
	l.note()
	l.fail.Store(nil)
	l.open.Store(lib)
	if Fast && !l.heap.Load() {
		for i := range fast {
			if sig := spec.Symbols[i].Sig; len(sig) <= maxFastWords && onlyWords(sig) {
				atomic.StoreUintptr(&fast[i], lib.addrs[i])
			}
		}
	}
	return nil
}

// pathHint returns a Spec's hint for a file that Options.Path names: it leaves out an environment
// variable at the end, which Open does not read then.
func pathHint(hint string) string {
	if hint == "" {
		return ""
	}
	hint, _, _ = strings.Cut(hint, ", or name ")
	return hint + ", or correct Options.Path"
}

// openLibrary tries the candidates until one is ready. It appends the result of each to attempts,
// except for files that the process has not loaded and for second names of a file.
func openLibrary(spec *Spec, fast int, opt *Options, attempts *[]Attempt) (*library, error) {
	if err := spec.check(fast); err != nil {
		return nil, err
	}
	// The loader keeps its last error per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ld, err := newLoader()
	if err != nil {
		return nil, fmt.Errorf("%s: cannot open %s: %w", spec.Package, spec.Name, err)
	}
	var best *library // loaded and complete, but not ready
	var bestErr error
	var old *TooOldError
	seen := map[uintptr]bool{}
	for _, c := range spec.candidates(opt) {
		handle, err := c.load(ld)
		if err != nil && c.loaded {
			continue // the process has not loaded this file
		}
		if err == nil && seen[handle] {
			continue // the same file under another name
		}
		a := Attempt{Path: c.path, Source: c.source}
		var lib *library
		if err == nil {
			seen[handle] = true
			a.File = ld.file(handle)
			lib, err = bind(spec, ld, handle, c)
		}
		if lib != nil {
			a.Version = lib.version
		}
		if err == nil && (lib.have[0] < lib.total[0] || lib.version != 0 && lib.version < spec.Floor) {
			tooOld := lib.tooOld()
			if old == nil {
				old = tooOld
			}
			lib, err = nil, tooOld
		}
		if err == nil && !c.named {
			if err = lib.ready(); errors.Is(err, ErrStub) {
				lib, err = nil, &loadError{kind: ErrStub, plain: err.Error()}
			}
		}
		a.Err = err
		if lib != nil {
			lib.taken = len(*attempts)
		}
		*attempts = append(*attempts, a)
		if opt.Logger != nil {
			opt.Logger.LogAttrs(context.Background(), slog.LevelDebug, "open library", slog.String("library", spec.Name),
				slog.String("path", a.Path), slog.String("source", a.Source), slog.String("file", a.File), slog.Int("version", int(a.Version)),
				slog.Any("error", a.Err))
		}
		switch {
		case err == nil, lib != nil && errors.Is(err, ErrHidden):
			lib.attempts = *attempts
			return lib, nil
		case lib != nil && (best == nil || errors.Is(bestErr, ErrNoDevice) && !errors.Is(err, ErrNoDevice)):
			best, bestErr = lib, err
		}
	}
	switch {
	case best != nil:
		best.attempts = *attempts
		return best, nil
	case old != nil:
		if opt.Path != "" {
			old.Hint = pathHint(spec.Hint)
		}
		for _, a := range *attempts {
			if a.refused() && a.Err != error(old) {
				old.Others = append(old.Others, a)
			}
		}
		return nil, old
	}
	hint := spec.Hint
	switch {
	case slices.ContainsFunc(*attempts, byMusl):
		hint = muslHint
	case opt.Path != "":
		hint = pathHint(hint)
	}
	return nil, &OpenError{Package: spec.Package, Name: spec.Name, Attempts: *attempts, Hint: hint}
}

// ready checks whether the library can be used.
func (lib *library) ready() error {
	if lib.spec.Ready == nil {
		return lib.verErr
	}
	var l Library // a separate Library, so that no other goroutine sees the Library being opened
	l.open.Store(lib)
	return lib.spec.Ready(&l)
}

// bind gets the version and the functions of a loaded library. It fails only if the library is a
// stub.
func bind(spec *Spec, ld *loader, handle uintptr, c candidate) (*library, error) {
	lib := &library{
		spec:   spec,
		addrs:  make([]uintptr, len(spec.Symbols)),
		have:   make([]int, max(1, len(spec.Sets))),
		total:  make([]int, max(1, len(spec.Sets))),
		path:   ld.file(handle),
		asked:  c.path,
		source: c.source,
		ld:     ld,
		handle: handle,
	}
	if lib.path == "" {
		lib.path = c.path
	}
	// Version and Resolve get a separate Library, so that no other goroutine sees the caller's
	// Library half open.
	var l Library
	l.open.Store(lib)
	if spec.Version != nil {
		lib.version, lib.verErr = spec.Version(&l)
		if lib.verErr != nil {
			lib.version = 0
			if errors.Is(lib.verErr, ErrStub) {
				return nil, &loadError{kind: ErrStub, plain: lib.verErr.Error()}
			}
		}
	}
	var resolve Resolver
	if spec.Resolve != nil {
		resolve = spec.Resolve(&l)
	}
	for i := range spec.Symbols {
		sym := &spec.Symbols[i]
		lib.total[sym.Set]++
		addr, why := uintptr(0), ""
		if resolve != nil && sym.API != "" {
			addr, why = resolve(sym)
		}
		if addr == 0 {
			var words string
			if addr, words = ld.sym(handle, sym.Name); addr == 0 {
				if why != "" {
					words = why + "; " + words
				}
				why = words
			}
		}
		if m := sym.misfit(lib.version); addr != 0 && m != nil {
			addr, why = 0, notCalled+m.Why
			if lib.unfit == nil {
				lib.unfit = make(map[string]string)
			}
			lib.unfit[sym.Name] = m.Why
		}
		if addr == 0 {
			if lib.why == nil {
				lib.why = make(map[int]string)
			}
			lib.why[i] = why
		}
		lib.addrs[i] = addr
		if addr != 0 {
			lib.have[sym.Set]++
		}
	}
	lib.ld, lib.handle = nil, 0
	return lib, nil
}

// addr returns the address of symbol i, or 0 if the library lacks it. i must be in range.
func (lib *library) addr(i int) uintptr {
	if lib.ld != nil {
		a, _ := lib.ld.sym(lib.handle, lib.spec.Symbols[i].Name)
		return a
	}
	return lib.addrs[i]
}

// missing returns the missing symbols for which the function keep returns true.
func (lib *library) missing(keep func(*Symbol) bool) []MissingSymbol {
	var ms []MissingSymbol
	for i, a := range lib.addrs {
		if sym := &lib.spec.Symbols[i]; a == 0 && keep(sym) {
			ms = append(ms, MissingSymbol{Name: sym.Name, Set: lib.spec.set(i).Name, Since: sym.Since, Why: lib.why[i]})
		}
	}
	return ms
}

func (lib *library) tooOld() *TooOldError {
	return &TooOldError{
		Package:  lib.spec.Package,
		Name:     lib.spec.Name,
		Path:     lib.path,
		Found:    lib.version,
		Floor:    lib.spec.Floor,
		Missing:  lib.missing(func(s *Symbol) bool { return s.Set == 0 }),
		Required: lib.total[0],
		Hint:     lib.spec.Hint,
		spec:     lib.spec,
		unfit:    lib.unfit,
	}
}

// Slow calls function i with args, one word for each parameter, and returns the full result word.
// If the result has 32 bits, only the low half is valid. Pass an integer or pointer as it is, a
// float as its bits ([math.Float32bits], [math.Float64bits]), and a struct as the address of a
// copy, which the function may overwrite.
//
// A pointer must be converted to uintptr in the call itself, as for [syscall.Syscall]: the memory
// that it points to is then on the heap and stays alive until the call returns. So the function may
// call back into Go, even if that moves the stack.
//
// Slow blocks until the function returns. If the function is missing, the error is a
// [*SymbolError]. If the library is not open, the error is [ErrNotOpen].
//
//go:uintptrescapes
func (l *Library) Slow(i int, args ...uintptr) (uintptr, error) {
	lib := l.open.Load()
	if lib == nil {
		return 0, notOpen()
	}
	spec := lib.spec
	if i < 0 || i >= len(spec.Symbols) {
		return 0, fmt.Errorf("%s: no function %d: the spec has %d", spec.Package, i, len(spec.Symbols))
	}
	fn := lib.addr(i)
	sym := &spec.Symbols[i]
	if fn == 0 {
		why := lib.why[i]
		if sym.Use != "" {
			why += "; use " + sym.Use
		}
		return 0, &SymbolError{
			Package: spec.Package,
			Symbol:  sym.Name,
			Set:     spec.set(i).Name,
			Since:   sym.Since,
			Until:   sym.Until,
			Found:   lib.version,
			Why:     why,
			spec:    spec,
		}
	}
	if err := checkArgs(sym.Sig, args); err != nil {
		return 0, fmt.Errorf("%s: %s: %w", spec.Package, sym.Name, err)
	}
	r, err := callSlow(fn, sym.Sig, args)
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", spec.Package, sym.Name, err)
	}
	return r, nil
}

// checkArgs returns an error unless args fit sig.
func checkArgs(sig string, args []uintptr) error {
	if len(sig) == len(args) && onlyWords(sig) {
		return nil
	}
	n := 0
	rest, _ := cutResult(sig)
	for ; rest != ""; n++ {
		p, r, err := nextParam(rest)
		if err != nil {
			return err
		}
		if (p.kind == 's' || p.kind == 'h') && n < len(args) && args[n] == 0 {
			return fmt.Errorf("argument %d, a struct by value, is a nil pointer", n)
		}
		rest = r
	}
	if n != len(args) {
		return fmt.Errorf("%d arguments, want %d", len(args), n)
	}
	return nil
}

// HeapFrames makes every later call a slow one, by zeroing the fast slice that Open was given. Call
// it before you register a Go callback that the library may run on the thread of a later call: Go
// code can grow the stack, and so move a frame on the stack. Calls in progress are not affected.
// HeapFrames cannot be undone. It may be called before Open.
func (l *Library) HeapFrames() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heap.Store(true)
	if lib := l.open.Load(); lib != nil {
		for i := range lib.fast {
			atomic.StoreUintptr(&lib.fast[i], 0)
		}
	}
}

// opened has the open libraries of the process.
var opened struct {
	sync.Mutex
	libs []weak.Pointer[Library]
	heap bool // AllHeapFrames was called
}

// note adds the library to the list opened.libs. If AllHeapFrames was called, note makes the
// library's calls slow.
func (l *Library) note() {
	opened.Lock()
	defer opened.Unlock()
	opened.libs = append(opened.libs, weak.Make(l))
	if opened.heap {
		l.heap.Store(true)
	}
}

// AllHeapFrames is [Library.HeapFrames] for all libraries of the process, including libraries
// opened later. Call it before you register a Go callback that one library may run in calls of
// other libraries: CUPTI runs its callbacks in calls of the CUDA driver, which cuBLAS makes too.
func AllHeapFrames() {
	opened.Lock()
	opened.heap = true
	libs := slices.Clone(opened.libs)
	opened.Unlock()
	for _, p := range libs {
		if l := p.Value(); l != nil {
			l.HeapFrames()
		}
	}
}

// Path returns the loaded file, or "" if the library is not open.
func (l *Library) Path() string {
	if lib := l.open.Load(); lib != nil {
		return lib.path
	}
	return ""
}

// Attempts returns the result of each file that Open tried, in the order of the tries. The result
// of the open library is the one without an error or, if no library was ready, the one whose File
// is [Library.Path]. Attempts returns nil if the library is not open; then the error of Open has
// the results.
func (l *Library) Attempts() []Attempt {
	if lib := l.open.Load(); lib != nil {
		return slices.Clone(lib.attempts)
	}
	return nil
}

// Version returns the version that the library reported, or 0 if it is unknown or the library is
// not open.
func (l *Library) Version() Version {
	if lib := l.open.Load(); lib != nil {
		return lib.version
	}
	return 0
}

// Has reports whether the library is open and has every function of a set.
func (l *Library) Has(set string) bool {
	lib := l.open.Load()
	if lib == nil {
		return false
	}
	i := slices.IndexFunc(lib.spec.Sets, func(s Set) bool { return s.Name == set })
	return i >= 0 && lib.have[i] == lib.total[i]
}

// HasSymbol reports whether the library is open and has the function with the exported name cname.
// HasSymbol searches the whole table: call it once and keep the answer.
func (l *Library) HasSymbol(cname string) bool {
	lib := l.open.Load()
	if lib == nil {
		return false
	}
	i := slices.IndexFunc(lib.spec.Symbols, func(s Symbol) bool { return s.Name == cname })
	return i >= 0 && lib.addr(i) != 0
}

// Addr returns the address of function i, or 0 if the function is missing, i is out of range, or
// the library is not open.
func (l *Library) Addr(i int) uintptr {
	lib := l.open.Load()
	if lib == nil || i < 0 || i >= len(lib.addrs) {
		return 0
	}
	return lib.addr(i)
}

// A MissingSymbol is a function that the open library lacks.
type MissingSymbol struct {
	Name  string  // exported name
	Set   string  // name of its set
	Since Version // version that introduced the function
	Why   string  // reason from the look-up
}

// Missing returns the functions that the open library lacks, in the order of the spec. It returns
// nil if the library is not open.
func (l *Library) Missing() []MissingSymbol {
	lib := l.open.Load()
	if lib == nil {
		return nil
	}
	return lib.missing(func(*Symbol) bool { return true })
}

// A SetStatus says how much of a set the open library has.
type SetStatus struct {
	Name  string
	Since Version
	Have  int // functions found
	Total int // functions in the set
}

// String returns "present", "missing" or "partial", without the set's name.
func (s SetStatus) String() string {
	switch s.Have {
	case s.Total:
		return "present"
	case 0:
		return "missing"
	}
	return "partial"
}

// Sets returns the status of every set, in the order of the spec. It returns nil if
// the library is not open.
func (l *Library) Sets() []SetStatus {
	lib := l.open.Load()
	if lib == nil {
		return nil
	}
	sets := make([]SetStatus, len(lib.spec.Sets))
	for i, s := range lib.spec.Sets {
		sets[i] = SetStatus{Name: s.Name, Since: s.Since, Have: lib.have[i], Total: lib.total[i]}
	}
	return sets
}
