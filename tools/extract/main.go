// Command extract reads the C headers of a GPU library and writes its symbol table.
//
//	extract LIBRARY -headers DIR[,DIR...] [-library FILE] [-version V[,V...]] [-IMPLEMENTATION DIR] [-o FILE]
//	extract diff OLD NEW
//
// LIBRARY is a library of package symbols, such as cuda, or a folder with a library.json, which
// says how to read the headers. The name of a folder contains a slash. DIR holds the headers under
// the names that programs include. For some libraries, such as HIP, since-versions come from a
// comparison of releases: give several folders, the newest first, and with -library the shared
// library whose ELF version nodes date the functions. If the headers do not contain their version,
// give a version for each folder. A flag named after another implementation of the API, such as
// -rccl for nccl, names the folder with its additional declarations.
//
// Extraction runs no compiler and reads no header of the machine, so the same headers give the same
// table everywhere. Without -o the table goes to standard output. diff prints the additions,
// removals and changes of a new table. The exit status is 1 if something failed, and 2 if the
// command line is wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/extract"
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

var errUsage = errors.New("usage: extract " + strings.Join(symbols.Names(), "|") + "|./DIR -headers DIR[,DIR...] [-library FILE] [-version V[,V...]] [-IMPLEMENTATION DIR] [-o FILE], or extract diff OLD NEW")

func run(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	name, rest := args[0], args[1:]
	if strings.HasPrefix(name, "-") { // only flags, such as -h
		name, rest = "", args
	}
	d, err := description(name)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("extract", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	headers := flags.String("headers", "", "`folders` with the headers, newest release first, separated by commas")
	library := flags.String("library", "", "shared `library` whose version nodes date the functions")
	version := flags.String("version", "", "`releases` of the headers, one for each folder, where they do not tell it")
	out := flags.String("o", "", "`file` to write")
	onto := flags.String("onto", "", "`table` to which the releases are added: what it binds stays")
	others, err := implementations(flags, d)
	if err != nil {
		return err
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
		return extract.DiffFiles(stdout, flags.Arg(0), flags.Arg(1))
	}
	if d == nil || *headers == "" || flags.NArg() > 0 {
		return errUsage
	}
	in := extract.Input{Report: func(s string) { fmt.Fprintln(stderr, "extract: note:", s) }, Others: map[string]fs.FS{}}
	dirs := strings.Split(*headers, ",")
	for _, dir := range dirs {
		if err := checkFolder(dir); err != nil {
			return fmt.Errorf("-headers: %w", err)
		}
		in.Releases = append(in.Releases, extract.Folder(dir))
	}
	switch h := &d.Headers; {
	case *library != "" && h.Nodes == "":
		return fmt.Errorf("-library: not used for %s: its description names no version nodes", d.Library)
	case *version == "" && h.Version.Header == "" && h.Release.IsZero():
		return fmt.Errorf("the headers of %s do not contain their version: give it with -version", d.Library)
	case *version != "" && h.Version.Header != "":
		return fmt.Errorf("-version: leave it out: the headers of %s contain their version", d.Library)
	case *version != "":
		for text := range strings.SplitSeq(*version, ",") {
			v, err := symbols.ParseVersion(text)
			if err != nil {
				return fmt.Errorf("-version: %w", err)
			}
			in.Versions = append(in.Versions, v)
		}
		if len(in.Versions) != len(dirs) {
			return fmt.Errorf("-version: %d releases for %d folders of headers", len(in.Versions), len(dirs))
		}
	}
	if h := &d.Headers; *onto == "" && h.Typedefs != nil && !exists(dirs[0], h.Typedefs.Header) {
		return fmt.Errorf("-headers: %s has no %s, which dates the functions: put a newer release first", dirs[0], h.Typedefs.Header)
	}
	for lib, dir := range others {
		if *dir == "" {
			continue
		}
		if !slices.ContainsFunc(d.Implementations, func(m symbols.Implementation) bool { return m.Lib == lib }) {
			return fmt.Errorf("-%s: %s has no such implementation", lib, d.Library)
		}
		if err := checkFolder(*dir); err != nil {
			return fmt.Errorf("-%s: %w", lib, err)
		}
		in.Others[lib] = extract.Folder(*dir)
	}
	if *library != "" {
		f, _, err := regular.Open(*library)
		if err != nil {
			return err
		}
		defer f.Close()
		in.Library = f
	}
	if *onto != "" {
		text, err := os.ReadFile(*onto)
		if err != nil {
			return err
		}
		if in.Onto, err = symbols.DecodeTable(*onto, text); err != nil {
			return err
		}
	}
	t, err := extract.Table(d, in)
	if err != nil {
		return err
	}
	text, err := symbols.Encode(t)
	if err != nil {
		return err
	}
	// Write only a table that the other tools accept.
	if _, err := symbols.DecodeTable("the table of "+d.Library, text); err != nil {
		return fmt.Errorf("the headers give an invalid table, which is not written: %w", err)
	}
	if *out == "" {
		_, err = stdout.Write(text)
		return err
	}
	return os.WriteFile(*out, text, 0o644)
}

// description returns the description of an embedded library, or of the library in a folder. It
// returns nil if the name is neither.
func description(name string) (*symbols.Description, error) {
	switch {
	case slices.Contains(symbols.Names(), name):
		return symbols.Describe(name)
	case strings.ContainsAny(name, `/\`):
		if err := checkFolder(name); err != nil {
			return nil, err
		}
		d, err := symbols.ReadDescription(os.DirFS(name), ".")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return d, nil
	}
	return nil, nil
}

// implementations adds a flag for each implementation, except the first, of the library d and of
// all embedded libraries. So help lists all these flags. implementations returns the flags' values
// by the implementations' Lib.
func implementations(flags *flag.FlagSet, d *symbols.Description) (map[string]*string, error) {
	all := []*symbols.Description{}
	if d != nil {
		all = append(all, d)
	}
	for _, name := range symbols.Names() {
		e, err := symbols.Describe(name)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	out := map[string]*string{}
	for _, d := range all {
		for _, m := range d.Implementations {
			switch {
			case m.Lib == "" || out[m.Lib] != nil:
			case flags.Lookup(m.Lib) != nil:
				return nil, fmt.Errorf("%s: an implementation cannot have the name %s: it is a flag of this program", d.Library, m.Lib)
			default:
				out[m.Lib] = flags.String(m.Lib, "", "`folder` with the headers of "+m.Name+", for "+d.Library)
			}
		}
	}
	return out, nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// checkFolder returns an error that names dir if dir is no folder.
func checkFolder(dir string) error {
	fi, err := os.Stat(dir)
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a folder")}
	}
	return err
}
