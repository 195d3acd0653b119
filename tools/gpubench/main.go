// Command gpubench times puregpu against hand-written loops, in one process and in turns, and says whether the goals are met.
//
//	gpubench [-c libcloop.so] [-run regexp] [-rounds N] [-device name] [-json] [-long]
//	gpubench -sim [-run regexp] [-rounds N] [-json] [-long]
//
// One line is printed a row: what was timed, by the raw side, by puregpu's, the ratio, the goal, and whether it was met.
// Figures are medians over the rounds. A time is one of an operation, if the row does not say otherwise.
//
// The rows of the group calls time the bindings alone: the raw side is a loop in C, from testdata/cloop.c, which -c names.
// All others time package gpu: there the raw side is a loop in Go that makes the calls of package cuda that the work cannot
// do without, on a thread of its own to which the context is bound, and asks the driver until the work is done. Where there
// is nothing to compare with, the ratio is that to the same work on the smallest scale, which tells whether it is flat.
// Rows of what the device cannot do, such as memory pools or graphs, are not run, and say so.
//
// With -sim the device is a simulated one, so that no GPU is needed. Its rows tell how the runtime scales; goals that a
// real device has a part in are not applied, and the raw side calls the simulated device.
//
// With -long the scale goes up to 1,000,000 submissions, which takes a minute and 2 GB or so.
//
// The exit status is 1 if a goal was missed or a row failed, and 2 if nothing could be run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the program with its arguments and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gpubench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var opt options
	flags.StringVar(&opt.cloop, "c", "", "shared `library` made from cloop.c, for the rows of the group calls")
	flags.StringVar(&opt.device, "device", "0", "`device` by number, UUID or PCI address")
	flags.BoolVar(&opt.sim, "sim", false, "run on a simulated GPU")
	flags.BoolVar(&opt.long, "long", false, "scale up to 1,000,000 submissions")
	pattern := flags.String("run", "", "run the rows whose names match the `regexp`")
	rounds := flags.Int("rounds", 0, "`number` of rounds in which both sides take turns; 0: as many as suit the row")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	match, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		err = fmt.Errorf("-run: %w", err)
	case flags.NArg() > 0:
		err = fmt.Errorf("takes no arguments, got %q", flags.Args())
	case *rounds < 0:
		err = fmt.Errorf("-rounds %d: there must be one at least", *rounds)
	}
	if err != nil {
		fmt.Fprintln(stderr, "gpubench:", err)
		return 2
	}
	e, err := newEnv(opt)
	if err != nil {
		fmt.Fprintln(stderr, "gpubench:", err)
		return 2
	}
	defer e.close()
	var out printer = &table{w: stdout}
	if *asJSON {
		out = &document{w: stdout}
	}
	line := newProgress(stderr)
	out.begin(e)
	good, ran := true, false
	for _, b := range benches(e) {
		if !b.matches(match) {
			continue
		}
		results := b.measure(e, *rounds, line)
		line.clear()
		for _, r := range results {
			if match.MatchString(r.Row) {
				out.print(r)
				good = good && !r.bad()
				ran = ran || r.NotRun == ""
			}
		}
	}
	if err := out.end(); err != nil {
		fmt.Fprintln(stderr, "gpubench:", err)
		return 2
	}
	switch {
	case !ran:
		fmt.Fprintf(stderr, "gpubench: no row was run: -run %q\n", *pattern)
		return 2
	case !good:
		return 1
	}
	return 0
}

// benches returns all of them, in the order in which they run.
func benches(e *env) []bench {
	var all []bench
	all = append(all, callBenches(e)...)
	all = append(all, latencyBenches()...)
	all = append(all, chainBenches()...)
	all = append(all, poolBenches()...)
	all = append(all, graphBenches()...)
	all = append(all, parkedBench())
	all = append(all, futureBench(e), unrelatedBench(e))
	all = append(all, semaphoreBench(), wakeBench(), idleBench())
	return all
}
