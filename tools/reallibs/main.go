// Command reallibs holds the bindings against real builds of the libraries, which Debian has of many releases. It needs no GPU.
//
//	go run ./tools/reallibs [-dir DIR] [-short] [-write] [NAME...]
//
// For each release it fetches Debian's packages into a folder, opens the library with its binding package, under the C library of the
// packages' own suite where the library asks for it, and compares what resolves with what the file exports; calls every function that is
// missing, for its error; and runs the package's tests of real libraries, which call what works without a GPU. A library that is older than
// the oldest supported one must be refused.
//
// With -short only the releases that are small to fetch are tried; names of units (-list prints them) choose others. With -write what the
// libraries export is recorded in testdata/exports, of which go test ./tools/reallibs -update makes the tables in README.md and
// docs/releases.md. What could not be had is named, and is an error only if nothing was.
//
// The system is left as it is: apt works with lists of its own below DIR. The packages come from where the system has Debian's from, or from
// where DEBIAN_MIRROR says; what has left there, from Debian's archive or its snapshots.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
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
	flags := flag.NewFlagSet("reallibs", flag.ContinueOnError)
	dir := flags.String("dir", "build/reallibs", "the `folder` for what is fetched")
	short := flags.Bool("short", false, "only releases that are small to fetch")
	write := flags.Bool("write", false, "record in testdata/exports what the libraries export")
	list := flags.Bool("list", false, "print the units and stop")
	child := flags.String("probe", "", "open the given file as the `library`, and print as JSON what was found: for the program's own use")
	if err := flags.Parse(args); err != nil {
		return err
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
	chosen := units
	if *short {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(u unit) bool { return u.long })
	}
	for _, name := range flags.Args() {
		if !slices.ContainsFunc(units, func(u unit) bool { return u.name == name }) {
			return fmt.Errorf("there is no unit %s; -list prints those there are", name)
		}
	}
	if flags.NArg() > 0 {
		chosen = slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return !slices.Contains(flags.Args(), u.name) })
	}
	if *list {
		for _, u := range chosen {
			fmt.Fprintln(w, u.name)
		}
		return nil
	}
	return runUnits(ctx, w, *dir, chosen, *write)
}
