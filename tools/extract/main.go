// Command extract reads the C headers of a GPU library and writes its symbol table.
//
//	extract cuda -headers DIR [-o FILE]
//	extract nccl -headers DIR [-rccl DIR] [-o FILE]
//	extract hip  -headers DIR,DIR,... [-library FILE] [-o FILE]
//	extract diff OLD NEW
//
// DIR holds cuda.h and cudaTypedefs.h, nccl.h, or the folder hip; HIP's releases are given newest first, and the library
// is a libamdhip64.so whose ELF version nodes date its functions. Extraction is hermetic: it runs no compiler and reads
// no header of the machine's own, so that the same headers give the same table everywhere. Without -o the table goes to
// standard output. diff prints what a new table adds, removes and changes. The exit status is 1 if something failed, and 2 if
// the command line is wrong.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/regular"
	"github.com/puregpu/puregpu/symbols"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "extract:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

var errUsage = errors.New("usage: extract cuda|nccl|hip -headers DIR[,DIR...] [-rccl DIR] [-library FILE] [-o FILE], or extract diff OLD NEW")

func run(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("extract", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	headers := flags.String("headers", "", "`folders` with the headers, newest release first, separated by commas")
	rccl := flags.String("rccl", "", "`folder` with RCCL's nccl.h")
	library := flags.String("library", "", "shared `library` whose version nodes date the functions (HIP)")
	out := flags.String("o", "", "`file` to write")
	name, rest := args[0], args[1:]
	if strings.HasPrefix(name, "-") { // for -h alone
		name, rest = "", args
	}
	switch err := flags.Parse(rest); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, errUsage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	if name == "diff" {
		if flags.NFlag() > 0 || flags.NArg() != 2 {
			return errUsage
		}
		return diffFiles(stdout, flags.Arg(0), flags.Arg(1))
	}
	if !slices.Contains(symbols.Names(), name) || *headers == "" || flags.NArg() > 0 {
		return errUsage
	}
	dirs := strings.Split(*headers, ",")
	for _, dir := range dirs {
		if err := checkFolder(dir); err != nil {
			return fmt.Errorf("-headers: %w", err)
		}
	}
	if *rccl != "" {
		if err := checkFolder(*rccl); err != nil {
			return fmt.Errorf("-rccl: %w", err)
		}
	}
	report := func(s string) { fmt.Fprintln(stderr, "extract: note:", s) }
	var t *symbols.Table
	var err error
	switch name {
	case "cuda":
		t, err = cudaTable(headerFS(dirs[0]))
	case "nccl":
		var r fs.FS
		if *rccl != "" {
			r = headerFS(*rccl)
		}
		t, err = ncclTable(headerFS(dirs[0]), r)
	case "hip":
		releases := make([]fs.FS, len(dirs))
		for i, d := range dirs {
			releases[i] = headerFS(d)
		}
		var lib io.ReaderAt
		if *library != "" {
			f, _, err := regular.Open(*library)
			if err != nil {
				return err
			}
			defer f.Close()
			lib = f
		}
		t, err = hipTable(releases, lib, report)
	default:
		return errUsage
	}
	if err != nil {
		return err
	}
	text, err := symbols.Encode(t)
	if err != nil {
		return err
	}
	if *out == "" {
		_, err = stdout.Write(text)
		return err
	}
	return os.WriteFile(*out, text, 0o644)
}

// checkFolder returns an error, which names it, if dir is no folder that there is.
func checkFolder(dir string) error {
	fi, err := os.Stat(dir)
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a folder")}
	}
	return err
}

func hashes(files fs.FS, v symbols.Version, names ...string) ([]symbols.Header, error) {
	var out []symbols.Header
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		out = append(out, symbols.Header{Name: name, Version: v, SHA256: hex.EncodeToString(sum[:])})
	}
	return out, nil
}
