// Package dl opens a C library at run time, finds its functions, and calls them without cgo.
//
// A [Spec] describes a library before it is opened: its file names, and its functions with their
// sets and versions. [Library.Open] finds the file, looks up every function, and fails only if a
// function of the required set is missing. A call of another missing function returns a
// [*SymbolError].
//
// A machine may have several files with a library's name, and perhaps only one of them works. A
// container or WSL has its own driver, and a distribution's package may add another. So Open tries
// files until one is ready ([Spec].Ready), and records the result of each ([Library.Attempts]). A
// loaded library stays loaded until the process ends, even if Open does not take it: GPU libraries
// start threads and register exit handlers, so unloading such a library is not safe. The guide's
// page "Drivers and devices" lists the places where Open looks, in order.
//
// There are two ways to make a call. [Call] is the fast one: the caller puts the arguments in a
// [Frame] with ordinary Go pointers, nothing is allocated, and nothing escapes. Call works for
// functions whose parameters are all integers and pointers, on platforms with trampolines
// (linux/amd64 and linux/arm64), if C does not call back into Go during the call. [Library.Slow]
// always works. It also takes structs by value and floats, and its arguments are on the heap, where
// they stay in place when a callback moves the goroutine's stack. On other platforms, and under the
// build tag puregpu_syscalln, every call is slow.
//
// The supported platforms are linux/amd64, linux/arm64 and windows/amd64. On all others, and under
// the build tag nogpu, Open returns [ErrUnsupported] and nothing is linked in. On Linux, a program
// with this package is a dynamic ELF file for glibc even with CGO_ENABLED=0; with nogpu it is
// static. A system with musl, such as Alpine Linux, starts a dynamic program only if the program
// names musl's loader, or if a substitute for glibc's loader is installed. Open's errors then say
// that GPU libraries need glibc.
//
// Under the build tag puregpu_static, on linux/amd64 with CGO_ENABLED=0, a program is static and
// can load libraries: the first Open starts glibc's loader in the process. Open takes the loader
// that the environment variable PUREGPU_LOADER names, or else looks in the usual folders. If there
// is no glibc, Open returns an error that is [ErrNotFound]. This is an experiment. The
// documentation of package internal/hostlibc explains how such a program works and how it differs
// from a dynamic one.
package dl

import (
	"fmt"
	"strconv"
)

// A Spec describes a library. It is data, normally generated; Open keeps a reference to it, so the
// Spec must not change after the first use.
type Spec struct {
	Name    string // the library in messages: "CUDA driver"
	Package string // prefix of error texts: "cuda"
	Env     string // environment variable that names a file, or ""

	// Names are the file names of the library, in the order in which Open tries them.
	Names []string

	// Dirs are directories that Open searches for the files in Names, after all other places. $VAR
	// is expanded, and an element with an unset variable is skipped. If an element is only a
	// variable, its value may list several directories, as PATH does. $multiarch is
	// x86_64-linux-gnu or aarch64-linux-gnu. * and ? match as in [path/filepath.Glob], highest
	// version first.
	Dirs []string

	// Symbols are the functions. Slow and Addr take an index into Symbols.
	Symbols []Symbol

	// Sets are the groups that functions belong to. The first set is required.
	Sets []Set

	// Format formats a version; nil formats the plain number.
	Format func(Version) string

	// Floor is the oldest supported version. Open refuses a library that reports an older version.
	// Open accepts a library that reports no version, if the library has the required functions.
	Floor Version

	// Version asks the library for its version. The function Version runs during Open. It may use
	// only Slow and Addr of the Library, which then look up functions by exported name. If the
	// error is [ErrStub], Open rejects the file and tries the next candidate. After any other error
	// the version is 0, and Explain shows the error. Version may be nil.
	Version func(*Library) (Version, error)

	// Resolve returns a Resolver that uses a look-up function of the library itself, such as
	// cuGetProcAddress. It returns nil if the library has no such function. Resolve runs during
	// Open, after Version, and may use the Library in the same way. Resolve may be nil.
	Resolve func(*Library) Resolver

	// Ready checks whether a found library can be used on this machine, such as whether the library
	// starts and has a device. Ready runs during Open, after Resolve. Slow and Addr then find every
	// function that the library has. Open takes the first candidate that is ready. If none is
	// ready, Open takes the first candidate that has the required functions and whose error is not
	// [ErrNoDevice], or else the first with the required functions. If Ready's error is [ErrStub],
	// Open rejects the file; if the error is [ErrHidden], Open takes the file and tries no other.
	// The program makes the calls of Ready again later, so making them twice must be harmless.
	//
	// Open does not call Ready for a file that [Options].Path or Env names: it takes that file
	// unless the file is a stub or too old. If Ready is nil, a library is ready if Version returns
	// no error.
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
	API   string  // name to ask the Resolver for: cuCtxCreate; "" to skip the Resolver
	Since Version // first version that has the function
	Until Version // last version known to have the function, if newer versions lack it; else 0
	Set   uint16  // index into Spec.Sets

	// Sig has one code for each C parameter. w is an integer or pointer of up to 8 bytes, f a
	// float, d a double. s<size>; is a struct passed by value, without floats, whose size is not 1,
	// 2, 4 or 8 (such a struct is a w) and whose alignment is at most 8. h<n>f; and h<n>d; are
	// structs passed by value of one to four floats or doubles and nothing else. The argument for a
	// struct is its address. A result that is a float or a double comes last: >f or >d.
	Sig string

	// Misfits are versions in which the function's parameters differ from Sig or from the program's
	// types. In these versions the function counts as missing.
	Misfits []Misfit

	// Use is the method to call in a version without the function, or "".
	Use string
}

// A Misfit is a range of versions in which a function must not be called.
type Misfit struct {
	From, To Version // first bad version, and the first good one after it; To is 0 if there is none
	Why      string  // what differs
}

// notCalled begins the reason why a function that the library has counts as missing.
const notCalled = "not called: "

// misfit returns the misfit with version v, or nil. It returns nil for an unknown version.
func (s *Symbol) misfit(v Version) *Misfit {
	for i := range s.Misfits {
		if m := &s.Misfits[i]; v != 0 && v >= m.From && (m.To == 0 || v < m.To) {
			return m
		}
	}
	return nil
}

// A Set is a group of functions that were introduced together and are used together.
type Set struct {
	Name  string
	Doc   string
	Since Version
}

// A Resolver returns the address of a function, or 0 and the reason. After 0, Open looks up the
// exported name.
type Resolver func(sym *Symbol) (addr uintptr, why string)

// format formats v as the library's users write it.
func (s *Spec) format(v Version) string {
	switch {
	case v == 0:
		return "unknown"
	case s.Format != nil:
		return s.Format(v)
	}
	return strconv.Itoa(int(v))
}

// set returns the set of symbol i.
func (s *Spec) set(i int) *Set { return &s.Sets[s.Symbols[i].Set] }

// check reports errors in s. A Spec made by hand must fail in Open with a message, not crash in a
// call.
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
