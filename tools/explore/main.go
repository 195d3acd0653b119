// Command explore runs tests in many orders of their goroutines. Each order follows from a number,
// its seed. explore prints the seeds with which a test fails.
//
//	explore [flags] [PACKAGE]
//
// The tests of the package are scenarios of internal/explore. explore rewrites them, and all
// packages of this module that they need, into a program that runs one goroutine at a time: see
// internal/explore. The default PACKAGE is ./tools/explore/scenarios. Run explore in the root of
// the module.
//
//	-run REGEXP       the tests; default: all
//	-time D           time limit for all tests, not with -exhaust; 0: run -n schedules of each
//	-n N              schedules of each test, unless -time is given; 1,000
//	-seed S           seed of the first schedule; 0: a new one each time
//	-strategy NAME    mix, walk, pct, pct:DEPTH, delay or usual
//	-exhaust N        instead, schedules with fewer than N unusual switches: all, or -n of each test
//	-race             build with the race detector, which needs gcc
//	-j N              processes at a time; default: the number of processors
//	-patch FILE,...   apply patches first, as tools/faults does
//	-planted          put fixed faults back, those that arguments name or all whose patches name scenarios, and find each
//	-faults DIR       the folder of the faults' patches; default: runtime/gpu/testdata/faults
//	-replay FILE      run the schedule of a report, shrunk if it has been shrunk
//	-replays N        how often to repeat a failure from its seed; 100
//	-steps N          greatest number of steps of a schedule
//	-o DIR            the folder for reports of failures; build/explore
//	-trace            print the steps of a run: with -n 1 and -seed
//
// The exit status is 1 if anything has failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "explore:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	dir, pkg, run, strategy, patch, replay, out string
	time                                        time.Duration
	n, j, replays, exhaust, steps               int
	seed                                        uint64
	race, trace, planted                        bool
	faults                                      string
	program                                     string // file of a program that was built before; "" for none
	first                                       bool   // stop at the first failure
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	f := flag.NewFlagSet("explore", flag.ExitOnError)
	f.StringVar(&o.run, "run", ".", "the tests, a regular `expression`")
	f.DurationVar(&o.time, "time", 0, "time limit for all tests, not with -exhaust; 0: run -n schedules of each")
	f.IntVar(&o.n, "n", 1000, "schedules of each test, unless -time is given")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the first schedule; 0: a new one each time")
	f.StringVar(&o.strategy, "strategy", "mix", "mix, walk, pct, pct:DEPTH, delay or usual")
	f.IntVar(&o.exhaust, "exhaust", 0, "instead, schedules with fewer than so many unusual switches: all, or -n of each test")
	f.BoolVar(&o.race, "race", false, "build with the race detector")
	f.IntVar(&o.j, "j", runtime.NumCPU(), "processes at a time")
	f.StringVar(&o.patch, "patch", "", "apply a patch `file` first; several with commas")
	f.BoolVar(&o.planted, "planted", false, "put fixed faults back, and find each")
	f.StringVar(&o.faults, "faults", "runtime/gpu/testdata/faults", "the `folder` of their patches")
	f.StringVar(&o.replay, "replay", "", "run the schedule of the report in a `file`")
	f.IntVar(&o.replays, "replays", 100, "how often to repeat a failure from its seed")
	f.IntVar(&o.steps, "steps", 0, "greatest number of steps of a schedule; 0: 200,000")
	f.StringVar(&o.out, "o", "build/explore", "a `folder` for reports of failures")
	f.BoolVar(&o.trace, "trace", false, "print the steps of a run")
	f.Parse(args) // ends the program on an error
	switch n := f.NArg(); {
	case n == 0 || o.planted:
		o.pkg = "./tools/explore/scenarios"
	case n == 1:
		o.pkg = f.Arg(0)
	default:
		return errors.New("name one package at a time")
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	var err error
	if o.dir, err = os.Getwd(); err != nil {
		return err
	}
	if o.planted {
		return planted(ctx, o, f.Args(), stdout)
	}
	_, err = explorePackage(ctx, o, stdout)
	return err
}
