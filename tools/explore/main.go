// Command explore runs tests in many orders, each of which a number stands for, and says with which a test fails.
//
//	explore [flags] [PACKAGE]
//
// The tests of the package, which are scenarios of internal/explore, and all packages of this module that they need, are rewritten into a program that runs one
// goroutine at a time: see internal/explore. PACKAGE is ./tools/explore/scenarios if it is left out. It runs in the root of the module.
//
//	-run REGEXP       the tests; all of them
//	-time D           for how long in all; 0: once through -n
//	-n N              schedules of each test, unless -time is given; 1,000
//	-seed S           of the first schedule; 0: another one each time
//	-strategy NAME    mix, walk, pct, pct:DEPTH, delay or usual
//	-exhaust N        instead, all schedules with fewer than N switches that are not usual
//	-race             build with the race detector, which takes gcc
//	-j N              processes at a time; as many as there are processors
//	-patch FILE,...   put changes in first, as tools/faults does
//	-planted          put faults back that were mended, those that are named or all whose patch names scenarios, and find each
//	-faults DIR       where their patches are; runtime/gpu/testdata/faults
//	-replay FILE      run the schedule of a report
//	-replays N        how often what fails is run again from its seed; 100
//	-steps N          how many a schedule may have
//	-o DIR            where reports of what fails are written; build/explore
//	-trace            print the steps of what is run: with -n 1 and -seed
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
	program                                     string // built before; "" is none
	first                                       bool   // stop at the first failure
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	f := flag.NewFlagSet("explore", flag.ExitOnError)
	f.StringVar(&o.run, "run", ".", "the tests, a regular `expression`")
	f.DurationVar(&o.time, "time", 0, "for how long in all; 0: once through -n")
	f.IntVar(&o.n, "n", 1000, "schedules of each test, unless -time is given")
	f.Uint64Var(&o.seed, "seed", 0, "of the first schedule; 0: another one each time")
	f.StringVar(&o.strategy, "strategy", "mix", "mix, walk, pct, pct:DEPTH, delay or usual")
	f.IntVar(&o.exhaust, "exhaust", 0, "instead, all schedules with fewer than so many switches that are not usual")
	f.BoolVar(&o.race, "race", false, "build with the race detector")
	f.IntVar(&o.j, "j", runtime.NumCPU(), "processes at a time")
	f.StringVar(&o.patch, "patch", "", "a change to put in first, a `file`")
	f.BoolVar(&o.planted, "planted", false, "put faults back that were mended, and find each")
	f.StringVar(&o.faults, "faults", "runtime/gpu/testdata/faults", "the `folder` of their patches")
	f.StringVar(&o.replay, "replay", "", "a `file` with a report, whose schedule is run")
	f.IntVar(&o.replays, "replays", 100, "how often what fails is run again from its seed")
	f.IntVar(&o.steps, "steps", 0, "how many a schedule may have; 0: 200,000")
	f.StringVar(&o.out, "o", "build/explore", "a `folder` for reports of what fails")
	f.BoolVar(&o.trace, "trace", false, "print the steps of what is run")
	f.Parse(args) // which ends the program if it cannot
	switch n := f.NArg(); {
	case n == 0 || o.planted:
		o.pkg = "./tools/explore/scenarios"
	case n == 1:
		o.pkg = f.Arg(0)
	default:
		return errors.New("one package at a time")
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
