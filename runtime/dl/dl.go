// Package dl opens a C library at run time, finds its functions, and calls them without cgo.
//
// A [Spec] describes a library before it is opened: its file names, and its functions with their
// sets and versions. [Library.Open] finds the file, looks up every function, and fails only if a
// function of the required set is missing. A call of another missing function returns a
// [*SymbolError].
//
// A machine may have several files with a library's name, of which one works: a container or WSL
// has a driver of its own, and a distribution's package has another. So Open tries files until one
// is ready ([Spec].Ready), and records the answer of each ([Library.Attempts]). All this happens in
// the process itself. A loaded library stays loaded until the process ends, even if it is not
// taken: GPU libraries start threads and register exit handlers, and unloading them is not safe.
// The guide's page "Drivers and devices" lists the places where Open looks, in order.
//
// There are two ways to make a call. [Call] is the fast one: the caller lays out the arguments in a
// [Frame] whose pointers are ordinary Go pointers, nothing is allocated, and nothing escapes. It is
// for functions whose parameters are all integers and pointers, on platforms with trampolines
// (linux/amd64 and linux/arm64), if C does not call back into Go during the call. [Library.Slow] is
// always right: it also takes structs by value and floats, and its arguments lie on the heap, where
// they stay in place when a callback moves the goroutine's stack. Elsewhere, and under the build
// tag puregpu_syscalln, every call is a slow one.
//
// The supported platforms are linux/amd64, linux/arm64 and windows/amd64. On all others, and under
// the build tag nogpu, Open returns [ErrUnsupported] and nothing is linked in. On Linux, a program
// with this package is a dynamic ELF file for glibc even with CGO_ENABLED=0; with nogpu it is
// static. A system with musl, such as Alpine Linux, starts a dynamic one only if it names musl's
// loader, or if there is a substitute for glibc's; errors of Open then say that GPU libraries need
// glibc.
//
// Under the build tag puregpu_static, on linux/amd64 with CGO_ENABLED=0, a program is static and
// can load libraries: the first Open finds glibc's loader, or the file in the environment variable
// PUREGPU_LOADER, and starts it in the process. Without glibc, Open returns an error that is
// [ErrNotFound]. This is an experiment. Package internal/hostlibc explains how it works, and the
// differences.
package dl

import (
	"fmt"
	"strconv"
)

// A Spec describes a library. It is data, normally generated; Open keeps a reference
// to it, so it must not change after the first use.
type Spec struct {
	Name    string // the library in messages: "CUDA driver"
	Package string // prefix of error texts: "cuda"
	Env     string // environment variable that names a file, or ""

	// Names are the file names to ask the system loader for, in order.
	Names []string

	// Dirs are directories in which to look for Names once the loader's own search
	// has found none that is ready. $VAR is expanded, and an element that names an unset
	// variable is passed over; an element that is a variable alone may stand for several
	// directories, as PATH does. $multiarch is x86_64-linux-gnu or aarch64-linux-gnu.
	// * and ? match as in [path/filepath.Glob], highest version first.
	Dirs []string

	// Symbols are the functions. The index of a function here is what Slow and Addr
	// take.
	Symbols []Symbol

	// Sets are the groups that functions belong to. The first is required.
	Sets []Set

	// Format returns a version in print; nil prints the plain number.
	Format func(Version) string

	// Floor is the oldest version supported. Open refuses a library that tells an older
	// one; one that tells none is taken if it has the required functions.
	Floor Version

	// Version asks the library what version it is. It runs during Open, when Slow and
	// Addr find a function by its exported name and nothing else of the Library is
	// ready. An error that is [ErrStub] makes Open reject the file and go on to the
	// next candidate; any other error is reported by Explain and leaves the version 0.
	// Version may be nil.
	Version func(*Library) (Version, error)

	// Resolve returns a resolver of the library's own, such as cuGetProcAddress, or
	// nil for none. It runs during Open, after Version, under the same conditions.
	// Resolve may be nil.
	Resolve func(*Library) Resolver

	// Ready asks a library that was found whether it can be used on this machine, such as
	// whether it starts and has a device. It runs during Open, after Resolve, when Slow and
	// Addr find every function. Open takes the first candidate that is ready. If none is it
	// takes the best of those that have the required functions: the first whose error is not
	// [ErrNoDevice], or the first. An error that is [ErrStub] makes Open reject the file, and
	// one that is [ErrHidden] makes Open take it and try no other.
	// What is asked here the program asks again, so asking twice must be harmless.
	//
	// A file that [Options].Path or Env names is not asked: it is taken in any case. If Ready
	// is nil, a library is ready if Version returns no error.
	Ready func(*Library) error

	// Hint says what to do when the library is absent or too old.
	Hint string
}

// A Version numbers a release of a library, in the library's own way; larger is
// newer. Zero stands for unknown.
type Version int32

// A Symbol describes a function of a library.
type Symbol struct {
	Name  string  // exported name: cuCtxCreate_v4
	API   string  // name to ask the Resolver for: cuCtxCreate; "" if it is not to be asked
	Since Version // first version that has it
	Until Version // last one that is known to have it, where newer ones do not; else 0
	Set   uint16  // index into Spec.Sets

	// Sig has one code for each C parameter: w is an integer or pointer of up to 8
	// bytes, f a float, d a double, and s<size>; a struct passed by value that has no
	// float in it, whose size is not 1, 2, 4 or 8 (one of these sizes is a w) and
	// whose alignment is at most 8. h<n>f; and h<n>d; are structs of one to four floats
	// or doubles and nothing else, passed by value. Of these the argument is the address.
	// A result that is a float or a double stands behind it all: >f or >d.
	Sig string

	// Misfits are versions in which the function takes something else than what Sig
	// and the program's types make of it. It counts as missing there.
	Misfits []Misfit
}

// A Misfit is a range of versions in which a function must not be called.
type Misfit struct {
	From, To Version // the first one, and the first one after it that is none; To is 0 if there is none
	Why      string  // what differs
}

// misfit says why a version of the library must not be called, or "". Of a library whose
// version is unknown nothing is known.
func (s *Symbol) misfit(v Version) string {
	for _, m := range s.Misfits {
		if v != 0 && v >= m.From && (m.To == 0 || v < m.To) {
			return "not called: " + m.Why
		}
	}
	return ""
}

// A Set is a group of functions that came, and are used, together.
type Set struct {
	Name  string
	Doc   string
	Since Version
}

// A Resolver returns the address of a function, or 0 and the reason why there is
// none; then its exported name is looked up instead.
type Resolver func(sym *Symbol) (addr uintptr, why string)

// format prints v as the library's users write it.
func (s *Spec) format(v Version) string {
	switch {
	case v == 0:
		return "unknown"
	case s.Format != nil:
		return s.Format(v)
	}
	return strconv.Itoa(int(v))
}

// set returns the name of the set that symbol i is in.
func (s *Spec) set(i int) *Set { return &s.Sets[s.Symbols[i].Set] }

// check reports what is wrong with s: a Spec made by hand should fail in Open with
// a message, not in a call with a fault.
func (s *Spec) check(fast int) error {
	if fast != 0 && fast != len(s.Symbols) {
		return fmt.Errorf("%s: bad spec: room for %d fast functions, but %d symbols", s.Package, fast, len(s.Symbols))
	}
	if len(s.Sets) == 0 && len(s.Symbols) > 0 {
		return fmt.Errorf("%s: bad spec: symbols but no sets", s.Package)
	}
	for i := range s.Symbols {
		sym := &s.Symbols[i]
		if sym.Name == "" {
			return fmt.Errorf("%s: bad spec: symbol %d has no name", s.Package, i)
		}
		if int(sym.Set) >= len(s.Sets) {
			return fmt.Errorf("%s: bad spec: %s is in set %d of %d", s.Package, sym.Name, sym.Set, len(s.Sets))
		}
		if _, err := countParams(sym.Sig); err != nil {
			return fmt.Errorf("%s: bad spec: %s: %w", s.Package, sym.Name, err)
		}
	}
	return nil
}
