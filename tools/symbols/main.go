// Command symbols prints everything known about a name in the C API of a GPU library.
//
//	symbols [-lib cublas|cublaslt|cuda|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|hip|hipblas|hipfft|hiprand|hiprtc|nccl|nvjitlink|nvml|nvrtc] [-json] NAME...
//	symbols [-lib cublas|cublaslt|cuda|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|hip|hipblas|hipfft|hiprand|hiprtc|nccl|nvjitlink|nvml|nvrtc] [-json] -sets
//
// NAME is a C name: a function by its API name or exported symbol, a type by its name or tag, an
// enumerator, or a constant. For a function it prints every ABI with its Go method. With -sets it
// lists the symbol sets of a library and the number of functions in each. The exit status is 1 if a
// name is not known, and 2 if the command line is wrong.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/symbols"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "symbols:", strings.TrimPrefix(err.Error(), "symbols: ")) // package symbols has the same prefix
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

var errUsage = errors.New("usage: symbols [-lib LIBRARY] [-json] NAME..., or symbols [-lib LIBRARY] [-json] -sets")

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("symbols", flag.ContinueOnError)
	lib := flags.String("lib", "", "look in this `library` only: "+strings.Join(symbols.Names(), ", "))
	sets := flags.Bool("sets", false, "list the symbol sets")
	asJSON := flags.Bool("json", false, "print JSON")
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, errUsage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	if *sets != (flags.NArg() == 0) {
		return errUsage
	}
	names := symbols.Names()
	if *lib != "" {
		names = []string{*lib}
	}
	b := &browser{goName: gen.GoName}
	for _, name := range names {
		l, err := symbols.Load(name)
		if err != nil {
			return err
		}
		b.libs = append(b.libs, l)
	}
	if *sets {
		return output(stdout, *asJSON, b.sets(), writeSets)
	}
	return b.names(stdout, *asJSON, flags.Args())
}

// names prints each known name. It returns an error for unknown names after printing the others.
func (b *browser) names(w io.Writer, asJSON bool, names []string) error {
	var all []record
	var unknown []error
	for _, name := range names {
		found, err := b.find(name)
		if err != nil {
			return err
		}
		if found == nil {
			unknown = append(unknown, b.unknown(name))
		}
		all = append(all, found...)
	}
	if len(all) > 0 {
		if err := output(w, asJSON, all, writeRecords); err != nil {
			return err
		}
	}
	return errors.Join(unknown...)
}

func output[T any](w io.Writer, asJSON bool, v T, write func(io.Writer, T) error) error {
	if !asJSON {
		return write(w, v)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
