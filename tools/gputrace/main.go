// Command gputrace shows where the time of a program went, from its trace:
//
//	gputrace [flags] trace.json...
//	gputrace run [flags] -- program arguments...
//	gputrace kernels [flags] trace.json...
//	gputrace run -kernels [flags] -- program arguments...
//	gputrace -version
//
// A program that uses package gpu writes a trace if the environment variable PUREGPU_TRACE names a
// file. run sets the variable, and reads the trace when the program has ended. run leaves Ctrl-C to
// the program, and passes SIGTERM on to it. Send SIGTERM to gputrace alone: if it goes to the
// process group, the program gets it twice. Several files are the traces of several ranks; gputrace
// puts them on one clock.
//
// With kernels, or -kernels, gputrace prints only which kernels and commands took the time, inside
// recordings and outside of them. run -kernels sets PUREGPU_TRACE_TIMES, so that the trace has
// times of commands, unless the variable is set already.
//
// Without kernels or -kernels, gputrace prints how long each device and queue was busy, idle, or
// did several things at once; the longest operations; the critical path from the first submission
// to the end of the last; how long submissions were not issued; and the causes of idle devices.
// -json prints the same as JSON. -html FILE writes a page with a timeline, which a browser opens
// without other files. -o FILE writes the trace again: the ranks merged, and with an end if the
// program died before it wrote one. -check compares the trace with its format
// (docs/trace-format.md) instead.
//
// The memory use grows with the part of the trace that is read. -from and -to select a part, and
// -max limits its events. Submissions from before -from are kept until the end, because they may
// end in the part.
//
// The exit status is 1 if a trace cannot be read or breaks its format, and 2 if the command line is
// wrong. Otherwise, with run, the exit status is the program's.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/version"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are the settings of the command line.
type options struct {
	html, merged string
	json, check  bool
	kernels      bool
	top          int
	win          window
}

// run runs the program and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	starts, kernels := len(args) > 0 && args[0] == "run", len(args) > 0 && args[0] == "kernels"
	if starts || kernels {
		args = args[1:]
	}
	flags := flag.NewFlagSet("gputrace", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage:\n  gputrace [flags] trace.json...\n  gputrace run [flags] -- program arguments...\n  gputrace kernels [flags] trace.json...\nflags:\n")
		flags.PrintDefaults()
	}
	var o options
	flags.StringVar(&o.html, "html", "", "write a page with a timeline to this `file`")
	flags.StringVar(&o.merged, "o", "", "write the trace, merged and whole, to this `file`")
	flags.BoolVar(&o.json, "json", false, "print the summary as JSON")
	flags.BoolVar(&o.check, "check", false, "compare the trace with the rules of its format")
	flags.BoolVar(&o.kernels, "kernels", kernels, "print only which kernels and commands took the time")
	flags.IntVar(&o.top, "top", 10, "print so many rows of a table")
	flags.IntVar(&o.win.maxEvents, "max", everything.maxEvents, "read at most so many events, of up to some hundred bytes of memory each")
	from := flags.Duration("from", 0, "leave out what had ended earlier, since the start of the trace")
	to := flags.Duration("to", 0, "leave out what was submitted, or began, later")
	onlyVersion := flags.Bool("version", false, "print the versions of puregpu and Go, and the platform")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *onlyVersion:
		fmt.Fprintf(stdout, "gputrace: %v\n", version.Read())
		return 0
	}
	wrong := ""
	o.win.from, o.win.to = traceformat.Time(*from), everything.to
	if *to > 0 {
		o.win.to = traceformat.Time(*to)
	}
	switch {
	case flags.NArg() == 0 && starts:
		wrong = "run takes the program to run, and its arguments, behind --"
	case flags.NArg() == 0:
		wrong = "takes the files of a trace, or run"
	case *from < 0 || *to < 0 || o.win.to < o.win.from:
		wrong = fmt.Sprintf("-from %v and -to %v leave nothing", *from, *to)
	case o.top < 1 || o.win.maxEvents < 1:
		wrong = "-top and -max take a number above 0"
	}
	if wrong != "" {
		fmt.Fprintf(stderr, "gputrace: %s\n", wrong)
		flags.Usage()
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "gputrace: %v\n", err)
		return 1
	}
	files, status := flags.Args(), 0
	if starts {
		dir, err := os.MkdirTemp("", "gputrace")
		if err != nil {
			return fail(err)
		}
		defer os.RemoveAll(dir)
		if status, err = start(files, dir, o.kernels, stdout, stderr); err != nil {
			return fail(err)
		}
		files, err = filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return fail(err)
		}
		if len(files) == 0 && status != 0 {
			return status // start has printed the error
		}
		if len(files) == 0 {
			return fail(fmt.Errorf("%s wrote no trace: it opened no device of package gpu, or one with a driver not opened by package drivers (see package runtime/trace)", flags.Arg(0)))
		}
	}
	if err := look(files, o, stdout, stderr); err != nil {
		return fail(err)
	}
	return status
}

// timesVariable is the environment variable that selects which work gets device times in a trace.
const timesVariable = "PUREGPU_TRACE_TIMES"

// start runs a program. The program, and the programs that it starts, write their traces into dir.
// If commands is set, the traces have times of commands, unless the environment says otherwise.
// start returns the exit status.
func start(args []string, dir string, commands bool, stdout, stderr io.Writer) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PUREGPU_TRACE="+filepath.Join(dir, "trace-%p.json"))
	if commands && os.Getenv(timesVariable) == "" {
		cmd.Env = append(cmd.Env, timesVariable+"=commands")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	// Ctrl-C in a terminal interrupts the traced program as well as gputrace. SIGTERM is to be sent
	// to gputrace alone, which passes it on: if it goes to the process group, the program gets it
	// twice. The program decides whether it ends. gputrace goes on, to print the trace afterwards.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	err := cmd.Start()
	if err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case sig := <-signals:
			if sig == syscall.SIGTERM {
				cmd.Process.Signal(sig) // fails if the program has ended
			}
		case err = <-ended:
			running = false
		}
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status := max(exit.ExitCode(), 1) // -1 if it was killed
		fmt.Fprintf(stderr, "gputrace: %s: %v\n", args[0], err)
		return status, nil
	}
	return 0, err
}

// look does what the options say with the trace in the named files.
func look(names []string, o options, stdout, stderr io.Writer) error {
	files := make([]*os.File, 0, len(names))
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		files = append(files, f)
		if info, err := f.Stat(); err != nil {
			return err
		} else if info.IsDir() {
			return fmt.Errorf("%s is a folder, not a trace", name)
		}
	}
	if o.merged != "" {
		if err := writeFile(o.merged, names, func(w io.Writer) error { return traceformat.Merge(w, sources(files)) }); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "gputrace: wrote %s\n", o.merged)
	}
	if o.check {
		return check(files, stdout)
	}
	t, err := loadFiles(files, o.win)
	if err != nil {
		return err
	}
	s := summarize(t)
	if o.kernels {
		s.onlyKernels, s.Kernels = true, commandsOf(t, s.timed)
	}
	if o.html != "" {
		if err := writeFile(o.html, names, func(w io.Writer) error { return writePage(w, t, s) }); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "gputrace: wrote %s\n", o.html)
	}
	if o.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	return s.print(stdout, o.top)
}

func sources(files []*os.File) []traceformat.Source {
	var list []traceformat.Source
	for _, f := range files {
		list = append(list, traceformat.Source{Name: f.Name(), Reader: f})
	}
	return list
}

// reader calls read with the trace of all files on one clock.
func reader(files []*os.File, read func(io.Reader) error) error {
	if len(files) == 1 { // the file may be a merged trace, or a pipe
		if info, err := files[0].Stat(); err != nil {
			return err
		} else if info.Mode().IsRegular() {
			if _, err := files[0].Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		if err := read(files[0]); err != nil {
			return fmt.Errorf("%s: %w", files[0].Name(), err)
		}
		return nil
	}
	r, w := io.Pipe()
	merged := make(chan error)
	go func() {
		err := traceformat.Merge(w, sources(files))
		w.CloseWithError(err)
		merged <- err
	}()
	err := read(r)
	r.CloseWithError(io.ErrClosedPipe)
	if mergeErr := <-merged; mergeErr != nil && !errors.Is(mergeErr, io.ErrClosedPipe) {
		return mergeErr
	}
	return err
}

func loadFiles(files []*os.File, win window) (t *trace, err error) {
	err = reader(files, func(r io.Reader) error {
		t, err = load(r, win)
		return err
	})
	return t, err
}

// check writes where each file breaks the rules of the format, or what is in a file that breaks
// none. It stops with an error after the first file that breaks a rule.
func check(files []*os.File, stdout io.Writer) error {
	for _, f := range files {
		if err := reader([]*os.File{f}, func(r io.Reader) error {
			rep, err := traceformat.Check(r)
			if err != nil {
				return err
			}
			for _, p := range rep.Problems {
				fmt.Fprintf(stdout, "%s: %s\n", f.Name(), clean(p.String(), 400))
			}
			if n := len(rep.Problems) + rep.More; n > 0 {
				return fmt.Errorf("breaks the rules in %s", count(n, "place"))
			}
			state := "whole"
			if rep.Cut {
				state = "without its end"
			}
			fmt.Fprintf(stdout, "%s: %s, %s: %s, %s, %s; no rule is broken\n", f.Name(), count(rep.Events, "event"), state,
				count(rep.Submissions, "submission"), count(rep.Slices, "slice"), count(rep.Arrows, "arrow"))
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file completely or not at all. The file must not be one of the input files.
// Only the owner can read a new file, as with traces. If the file is not regular, such as
// /dev/stdout, writeFile writes to it directly.
func writeFile(name string, read []string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil {
		if slices.ContainsFunc(read, func(r string) bool {
			other, err := os.Stat(r)
			return err == nil && os.SameFile(info, other)
		}) {
			return fmt.Errorf("%s is an input file, and would be overwritten", name)
		}
		if !info.Mode().IsRegular() { // such as /dev/stdout
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			return errors.Join(write(f), f.Close())
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".gputrace-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
