package dl

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/puregpu/puregpu/internal/printable"
)

// Kinds of errors, for errors.Is. Each is wrapped in an error with details.
var (
	// ErrNotOpen: a function was called before Open succeeded.
	ErrNotOpen = errors.New("library is not open")

	// ErrNotFound: no candidate file exists. ErrNotFound normally comes in an [*OpenError].
	ErrNotFound = errors.New("library not found")

	// ErrNotLoadable: a file exists, but it cannot be loaded. ErrNotLoadable normally comes in an
	// [*OpenError].
	ErrNotLoadable = errors.New("library not loadable")

	// ErrStub: the file is a placeholder for linking, not the library. A Spec's Version or Ready
	// function returns it; Open then counts the file as not loadable.
	ErrStub = errors.New("stub library, only for linking")

	// ErrNoDevice: the library works, but finds no device. A Spec's Ready function returns it; Open
	// then tries other files, and takes this file if no other is better.
	ErrNoDevice = errors.New("no device")

	// ErrHidden: the library works, but the environment hides all devices from the program. A
	// Spec's Ready function returns it; Open then takes this file, because no other library could
	// find a device.
	ErrHidden = errors.New("all devices are hidden")

	// ErrTooOld: the library lacks functions of its required set, or has some that do not fit the
	// bindings, or its version is below the oldest supported. It comes in a [*TooOldError].
	ErrTooOld = errors.New("library too old")

	// ErrSymbol: the called function is missing, or does not fit the binding. It comes in a
	// [*SymbolError].
	ErrSymbol = errors.New("function missing")

	// ErrNUL: a string for C contains a NUL byte.
	ErrNUL = errors.New("string contains a NUL byte")

	// ErrUnsupported: this build cannot load libraries, because of its platform or the build tag
	// nogpu. It is also an [errors.ErrUnsupported].
	ErrUnsupported error = unsupported{}
)

type unsupported struct{}

func (unsupported) Error() string {
	return "this build cannot load C libraries (needs linux/amd64, linux/arm64 or windows/amd64, without the build tag nogpu, and with puregpu_static linux/amd64)"
}

func (unsupported) Unwrap() error { return errors.ErrUnsupported }

// An Attempt is one candidate that Open considered.
type Attempt struct {
	Path    string  // file, or bare name for the system loader to find
	Source  string  // why Open considered the candidate
	File    string  // file that was loaded; "" if none was, or if the loader does not report it
	Version Version // version that the library reported; 0 if it was not loaded or reported none
	Err     error   // why the file failed, or why the library is not ready; nil if neither
}

func (a Attempt) String() string { return describeAttempts([]string{a.name()}, a.label(), a.result()) }

// name returns the path of the loaded file, or else the path or name that Open tried.
func (a Attempt) name() string { return cmp.Or(a.File, a.Path) }

// label returns the reason why the candidate was considered, or "" if the candidate's path shows
// the reason.
func (a Attempt) label() string {
	if dir, ok := strings.CutPrefix(a.Source, "directory "); ok && (a.Path == dir || filepath.Dir(a.Path) == dir) {
		return ""
	}
	return a.Source
}

// result returns the candidate's result as text.
func (a Attempt) result() string {
	if a.Err == nil {
		return "loaded"
	}
	return a.Err.Error()
}

// refused reports whether the candidate exists and has an error.
func (a Attempt) refused() bool { return a.Err != nil && !errors.Is(a.Err, ErrNotFound) }

// describeAttempts describes candidates with the same label and result.
func describeAttempts(paths []string, label, result string) string {
	s := strings.Join(paths, ", ")
	if label != "" {
		s += " (" + label + ")"
	}
	return printable.Text(s + ": " + result)
}

// An OpenError says that no candidate could be loaded. It is [ErrNotFound] if no candidate exists,
// and [ErrNotLoadable] otherwise.
type OpenError struct {
	Package  string
	Name     string    // Spec.Name
	Attempts []Attempt // every candidate, in order
	Hint     string    // what to do
}

// Error's first line says what failed, which file was refused if only one was, and what to do.
// Lines with the other candidates follow. Candidates in a row with the same source and result share
// a line.
func (e *OpenError) Error() string {
	var b strings.Builder
	what := "found, but it cannot be loaded"
	if e.kind() == ErrNotFound {
		what = "not found"
	}
	fmt.Fprintf(&b, "%s: %s %s", e.Package, e.Name, what)
	rest := e.Attempts
	if i := e.main(); i >= 0 {
		fmt.Fprintf(&b, ": %v", e.Attempts[i])
		rest = slices.Concat(e.Attempts[:i], e.Attempts[i+1:])
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	for len(rest) > 0 {
		label, result := rest[0].label(), rest[0].result()
		var paths []string
		for len(rest) > 0 && rest[0].label() == label && rest[0].result() == result {
			paths, rest = append(paths, rest[0].name()), rest[1:]
		}
		b.WriteString("\n\t" + describeAttempts(paths, label, result))
	}
	return b.String()
}

// main returns the index of the only attempt, or of the only refused attempt, or else -1.
func (e *OpenError) main() int {
	if len(e.Attempts) == 1 {
		return 0
	}
	i := slices.IndexFunc(e.Attempts, Attempt.refused)
	if i >= 0 && slices.ContainsFunc(e.Attempts[i+1:], Attempt.refused) {
		return -1
	}
	return i
}

func (e *OpenError) kind() error {
	if slices.ContainsFunc(e.Attempts, Attempt.refused) {
		return ErrNotLoadable
	}
	return ErrNotFound
}

// Is reports whether target is the error that e.kind returns.
func (e *OpenError) Is(target error) bool { return target == e.kind() }

// Unwrap returns the errors of the candidates that exist. Thus errors.Is finds ErrStub, for
// example.
func (e *OpenError) Unwrap() []error {
	var errs []error
	for _, a := range e.Attempts {
		if a.refused() {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// A loadError is the failure of one candidate.
type loadError struct {
	kind   error  // ErrNotFound, ErrNotLoadable or ErrStub
	plain  string // the cause in plain words, "" if only the loader knows it
	loader string // the system loader's message, "" if there is none
	musl   bool   // the system loader is musl's
}

func (e *loadError) Error() string {
	text := e.plain
	switch {
	case e.plain == "":
		text = e.loader
	case e.loader != "":
		text += " (loader: " + e.loader + ")"
	}
	return printable.Text(text)
}

func (e *loadError) Unwrap() error { return e.kind }

// A TooOldError says that a loaded library lacks functions of the required set, or has some that do
// not fit the bindings (see [Misfit]), or reports a version below the oldest supported. It is an
// [ErrTooOld].
type TooOldError struct {
	Package  string
	Name     string          // Spec.Name
	Path     string          // file that was loaded
	Found    Version         // 0 if the library reported none
	Floor    Version         // oldest supported version
	Missing  []MissingSymbol // functions of the required set that are missing or do not fit; empty if only the version is too old
	Required int             // size of the required set
	Hint     string
	Others   []Attempt // other files that were found; none was better

	spec  *Spec
	unfit map[string]string // by name of a missing function that the library has and must not be called: what differs
}

func (e *TooOldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Package, e.Name)
	if e.Found != 0 {
		fmt.Fprintf(&b, " %s", e.spec.format(e.Found))
	}
	fmt.Fprintf(&b, " (%s)", printable.Text(e.Path))
	var absent, unfit []string
	for _, m := range e.Missing {
		switch {
		case e.unfit[m.Name] != "":
			unfit = append(unfit, m.Name+" ("+e.unfit[m.Name]+")")
		case m.Since != 0:
			absent = append(absent, m.Name+" (since "+e.spec.format(m.Since)+")")
		default:
			absent = append(absent, m.Name)
		}
	}
	old := len(unfit) == 0 || e.Found < e.Floor
	switch {
	case len(absent) == e.Required && e.Required > 0:
		fmt.Fprintf(&b, " has none of the %d required functions: it is another library, or far too old", e.Required)
	case len(absent) > 0:
		fmt.Fprintf(&b, " is too old: it lacks %d of the %d required functions: %s", len(absent), e.Required, some(absent))
	case old:
		b.WriteString(" is too old")
	default:
		b.WriteString(" cannot be used")
	}
	if len(unfit) > 0 {
		if len(absent) > 0 {
			b.WriteString("; and")
		} else {
			b.WriteString(":")
		}
		fmt.Fprintf(&b, " %d of the %d required functions must not be called: %s", len(unfit), e.Required, some(unfit))
	}
	if old || len(absent) > 0 { // else the version is supported, and the hint would ask for it
		if e.Floor != 0 {
			fmt.Fprintf(&b, "; the oldest version supported is %s", e.spec.format(e.Floor))
		}
		if e.Hint != "" {
			b.WriteString("; " + e.Hint)
		}
	}
	for _, a := range e.Others {
		result := a.result()
		if old, ok := errors.AsType[*TooOldError](a.Err); ok {
			result = old.short()
		}
		b.WriteString("\n\t" + describeAttempts([]string{a.name()}, a.label(), result))
	}
	return b.String()
}

// some lists at most four names.
func some(names []string) string {
	if n := len(names) - 4; n > 0 {
		return strings.Join(names[:4], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// short returns the error in a few words, without the names of the library and the file.
func (e *TooOldError) short() string {
	what := "too old"
	switch {
	case e.Found == 0:
		return "too old, or another library"
	case e.Found >= e.Floor && len(e.Missing) > 0 && !slices.ContainsFunc(e.Missing, e.absent):
		what = "cannot be used"
	}
	return what + ": version " + e.spec.format(e.Found)
}

// absent reports whether the library does not have the missing function m at all.
func (e *TooOldError) absent(m MissingSymbol) bool { return e.unfit[m.Name] == "" }

// Is reports whether target is [ErrTooOld].
func (e *TooOldError) Is(target error) bool { return target == ErrTooOld }

// A notOpenError is the [ErrNotOpen] of a call. It holds an address in the method that called Slow,
// because a Library that is not open has no Spec to name the package and the function.
type notOpenError struct{ pc uintptr }

// notOpen returns the error of its caller's caller.
func notOpen() error {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	return notOpenError{pcs[0]}
}

func (e notOpenError) Error() string {
	frame, _ := runtime.CallersFrames([]uintptr{e.pc}).Next()
	return notOpenText(frame.Function)
}

// notOpenText returns the text of a notOpenError in a function, which package runtime names by the
// import path. If the path cannot end with the package's name, the text does not name the package.
func notOpenText(function string) string {
	name := function[strings.LastIndexByte(function, '/')+1:]
	pkg, method, ok := strings.Cut(name, ".(*Library).")
	switch {
	case !ok || strings.Contains(method, "."): // not a method of bindings
		return ErrNotOpen.Error()
	case !isPackage(pkg):
		return fmt.Sprintf("%s: %v: call Open", method, ErrNotOpen)
	}
	return fmt.Sprintf("%s: %s: %v: call %s.Open", pkg, method, ErrNotOpen, pkg)
}

// isPackage reports whether the last element of an import path can be the package's name: it is an
// identifier, and no major version such as v2.
func isPackage(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s == "v" || strings.TrimRight(s, "0123456789") != "v"
}

func (e notOpenError) Unwrap() error { return ErrNotOpen }

// A SymbolError says that the library lacks the called function, or that its version of the
// function does not fit the binding: see [Misfit]. It is an [ErrSymbol].
type SymbolError struct {
	Package string
	Symbol  string  // exported name
	Set     string  // name of its set
	Since   Version // version that introduced the function
	Until   Version // last version known to have the function; 0 if the newest version has it
	Found   Version // version of the library, 0 if unknown
	Why     string  // reason from the look-up

	spec *Spec
}

func (e *SymbolError) Error() string {
	var b strings.Builder
	why, refused := strings.CutPrefix(e.Why, notCalled)
	what := "is missing"
	if refused {
		what = "cannot be called"
	}
	fmt.Fprintf(&b, "%s: %s %s", e.Package, e.Symbol, what)
	if e.spec != nil {
		fmt.Fprintf(&b, " (set %s", e.Set)
		if e.Since != 0 {
			fmt.Fprintf(&b, ", since %s", e.spec.format(e.Since))
		}
		if e.Until != 0 {
			fmt.Fprintf(&b, ", until %s", e.spec.format(e.Until))
		}
		fmt.Fprintf(&b, "; found %s %s)", e.spec.Name, e.spec.format(e.Found))
	}
	if why != "" {
		b.WriteString(": " + why)
	}
	return b.String()
}

// Is reports whether target is [ErrSymbol].
func (e *SymbolError) Is(target error) bool { return target == ErrSymbol }
