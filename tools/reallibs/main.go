// Command reallibs holds the bindings against real builds of the libraries, which Debian has of many releases. It needs no GPU.
//
//	go run ./tools/reallibs [-dir DIR] [-short] [-within TIME] [-write] [NAME...]
//
// For each release it fetches Debian's packages into a folder, opens the library with its binding package, under the C library of the
// packages' own suite where the library asks for it, and compares what resolves with what the file exports; calls every function that is
// missing, for its error; and runs the package's tests of real libraries, which call what works without a GPU. A library that is older than
// the oldest supported one must be refused.
//
// With -short only the releases that are small to fetch are tried; names of units (-list prints them) choose others. With -write what the
// libraries export is recorded in testdata/exports, of which go test ./tools/reallibs -update makes the tables in docs/guide/bindings.md and
// docs/releases.md. What could not be had is named, and is an error only if nothing was. What is not fetched within the time that -within gives, an hour
// if nothing else is said, counts as not to be had.
//
// With -headers it proves instead that no call goes wrong because a release has a struct, an enumeration or parameters otherwise. Of each release's own headers it
// makes a C library that records, field by field, what arrives, and writes, field by field, what comes back; calls every function of it through
// the package; and compares by name. A function may be refused, but only if something of it differs. LIBRARY=DIR instead of a unit's name takes
// headers that are there, by the names that programs include them by; the folder of headers that do not tell their release, as NVML's, has its name.
//
//	go run ./tools/reallibs -headers [-short] [NAME|LIBRARY=DIR...]
//
// With -bind it reads the headers of other libraries, as bindgen does. A C compiler then compares everything that bindgen
// would bind with the headers. reallibs prints how many functions are bound, how many are refused and why, and how many facts
// the compiler disagrees with: there must be none. Names choose libraries, -v prints each refusal, and -write puts the table
// into docs/bindgen-libraries.md. Thirty of the libraries were drawn at random: -draw draws them anew into drawn.json.
//
//	go run ./tools/reallibs -bind [-v] [-write] [NAME...]
//	go run ./tools/reallibs -draw
//
// The system is left as it is: apt works with lists of its own below DIR. The packages come from where the system has Debian's from, or from
// where DEBIAN_MIRROR says; what has left there, from Debian's archive or its snapshots.
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
	dir := flags.String("dir", "build/reallibs", "the `folder` for what is fetched")
	short := flags.Bool("short", false, "only releases that are small to fetch")
	write := flags.Bool("write", false, "record in testdata/exports what the libraries export")
	within := flags.Duration("within", time.Hour, "how long to fetch, at most")
	list := flags.Bool("list", false, "print the units and stop")
	child := flags.String("probe", "", "open the given file as the `library`, and print as JSON what was found: for the program's own use")
	headers := flags.Bool("headers", false, "prove the bindings against headers of releases instead")
	bind := flags.Bool("bind", false, "bind libraries that are not the project's own, and have a C compiler compare")
	redraw := flags.Bool("draw", false, "draw the libraries of drawn.json anew")
	verbose := flags.Bool("v", false, "with -bind, print all that is refused")
	only := flags.String("fetch", "", "fetch a unit, also one of those with tools for other scripts, and print the folder that it is unpacked in")
	calls := flags.Bool("calls", false, "call a library, with headers in a folder, that is a recorder: for the program's own use")
	flags.Parse(args) // which ends the program if it cannot
	fetching, cancel := context.WithTimeoutCause(ctx, *within, fmt.Errorf("the %v that fetching may take are over", *within))
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
		return fmt.Errorf("there is no unit %s", *only)
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
				return fmt.Errorf("there is no library %s", library)
			}
			folders = append(folders, headerFolder{library: library, dir: dir})
			continue
		}
		if !slices.ContainsFunc(known, func(u unit) bool { return u.name == name }) {
			return fmt.Errorf("there is no unit %s; -list prints those there are", name)
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
