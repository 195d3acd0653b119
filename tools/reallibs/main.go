// Command reallibs checks the bindings against real builds of the libraries. Debian has builds of
// many releases. reallibs needs no GPU.
//
//	go run ./tools/reallibs [-dir DIR] [-short] [-within TIME] [-write] [NAME...]
//
// For each release it fetches Debian's packages into a folder and opens the library with its
// binding package, under the C library of the packages' own suite if the library needs it. reallibs
// compares the resolved functions with the file's exports, calls every missing function and checks
// its error, and runs the package's tests of real libraries, which need no GPU. If the package
// refuses a library as too old, reallibs checks that error instead.
//
// Without names it tries all units, or with -short those with small packages. -list prints the
// names of the units. With -write it records the libraries' exports in testdata/exports. The
// command go test ./tools/reallibs -update makes the tables in docs/guide/bindings.md and
// docs/releases.md from these records. reallibs names the units that it could not fetch. That is an
// error only if it could fetch none. -within limits the time for fetching, by default to an hour.
//
// With -headers it proves instead that no call passes the wrong layout if a release has a different
// struct, enumeration or parameter. From each release's own headers it makes a C library that
// records its inputs and writes its outputs field by field. reallibs calls the functions of this
// library through the package, and compares the fields by name. A function may be refused only if
// something about it differs. LIBRARY=DIR in place of a unit's name takes headers from the folder
// DIR, which has them under the names in #include lines. If the headers do not contain their
// release, like NVML's, the release must be the name of the folder.
//
//	go run ./tools/reallibs -headers [-short] [NAME|LIBRARY=DIR...]
//
// With -bind it reads the headers of other libraries, as bindgen does. A C compiler then compares
// everything that bindgen would bind with the headers. reallibs prints how many functions are
// bound, how many are refused and why, and how many facts the compiler disagrees with: there must
// be none. Names select libraries, -v prints each refusal, and -write puts the table into
// docs/bindgen-libraries.md. Thirty of the libraries were drawn at random: -draw draws them again
// into drawn.json.
//
//	go run ./tools/reallibs -bind [-v] [-write] [NAME...]
//	go run ./tools/reallibs -draw
//
// reallibs does not change the system: apt works with its own lists below DIR. The packages come
// from the system's source of Debian packages, or from DEBIAN_MIRROR. Packages that are no longer
// there come from Debian's archive or its snapshots.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reallibs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("reallibs", flag.ExitOnError)
	dir := flags.String("dir", "build/reallibs", "the `folder` for fetched packages")
	short := flags.Bool("short", false, "only releases with small packages")
	write := flags.Bool("write", false, "record the libraries' exports in testdata/exports")
	within := flags.Duration("within", time.Hour, "time limit for fetching")
	list := flags.Bool("list", false, "print the units and stop")
	child := flags.String("probe", "", "open the given file as the `library` and print the findings as JSON: for the program's own use")
	headers := flags.Bool("headers", false, "prove the bindings against headers of releases instead")
	bind := flags.Bool("bind", false, "bind libraries outside the project and compare by a C compiler")
	redraw := flags.Bool("draw", false, "draw the libraries of drawn.json again")
	verbose := flags.Bool("v", false, "with -bind, print all refusals")
	only := flags.String("fetch", "", "fetch a `unit`, also one with tools for scripts, and print its folder")
	calls := flags.Bool("calls", false, "call the functions of a recorder: for the program's own use")
	flags.Parse(args) // ends the program on an error
	fetching, cancel := context.WithTimeoutCause(ctx, *within, fmt.Errorf("fetching has taken %v, the limit of -within", *within))
	defer cancel()
	if *only != "" {
		for _, u := range slices.Concat(units, headerUnits, bindUnits, toolUnits) {
			if u.name != *only {
				continue
			}
			abs, err := filepath.Abs(*dir)
			if err != nil {
				return err
			}
			root, err := u.fetch(fetching, abs)
			if err == nil {
				fmt.Fprintln(w, root)
			}
			return err
		}
		return fmt.Errorf("unknown unit %s", *only)
	}
	if *calls {
		if flags.NArg() != 4 {
			return errors.New("-calls takes a library, a folder, a release and a file")
		}
		lib, _, theirs, all, err := headerFolder{flags.Arg(0), flags.Arg(1), flags.Arg(2)}.prepare()
		if err != nil {
			return err
		}
		c, err := callAll(lib, flags.Arg(3), theirs.Version, all)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(c)
	}
	if *child != "" {
		lib := libraryNamed(*child)
		if lib == nil || flags.NArg() != 1 {
			return fmt.Errorf("-probe takes a library and a file")
		}
		f, err := probe(lib, flags.Arg(0))
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(f)
	}
	if *redraw {
		return draw(ctx, w, *dir)
	}
	if *bind {
		return bindAll(ctx, fetching, w, *dir, flags.Args(), *verbose, *write)
	}
	known := units
	if *headers {
		known = headerUnits
	}
	chosen := known
	if *short {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(u unit) bool { return u.long })
	}
	var folders []headerFolder
	for _, name := range flags.Args() {
		if library, dir, ok := strings.Cut(name, "="); ok && *headers {
			if libraryNamed(library) == nil {
				return fmt.Errorf("unknown library %s", library)
			}
			folders = append(folders, headerFolder{library: library, dir: dir})
			continue
		}
		if !slices.ContainsFunc(known, func(u unit) bool { return u.name == name }) {
			return fmt.Errorf("unknown unit %s; -list prints the units", name)
		}
	}
	if flags.NArg() > 0 {
		chosen = slices.DeleteFunc(slices.Clone(known), func(u unit) bool { return !slices.Contains(flags.Args(), u.name) })
	}
	if *list {
		for _, u := range chosen {
			fmt.Fprintln(w, u.name)
		}
		return nil
	}
	if *headers {
		return proveAll(ctx, fetching, w, *dir, folders, chosen)
	}
	return runUnits(ctx, fetching, w, *dir, chosen, *write)
}
