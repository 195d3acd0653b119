package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A fault that was put back must be found within this time or within this number of schedules.
const (
	plantedTime      = 60 * time.Second
	plantedSchedules = 10_000
)

// planted puts fixed faults back, one at a time, and explores each with the scenarios that its
// patch names in a line
//
//	# explore: -race -run '^TestX$'
//
// If a fault is named on the command line and its patch has no such line, -run selects the
// scenarios. The first failing schedule must fail again each time that it is run from its seed.
func planted(ctx context.Context, o options, names []string, stdout io.Writer) error {
	var files []string
	for _, n := range names {
		files = append(files, filepath.Join(o.faults, n+".patch"))
	}
	if len(names) == 0 {
		all, err := filepath.Glob(filepath.Join(o.faults, "*.patch"))
		if err != nil {
			return err
		}
		files = all
	}
	missed, tried := 0, 0
	for _, file := range files {
		p := o
		run, race, err := explores(file)
		if err != nil {
			return err
		}
		if run == "" {
			if len(names) == 0 {
				continue
			}
			run = o.run
		}
		p.patch, p.run, p.race, p.first = file, run, race || o.race, true
		if p.time == 0 {
			p.time = plantedTime
		}
		tried++
		name := strings.TrimSuffix(filepath.Base(file), ".patch")
		c, err := explorePackage(ctx, p, io.Discard)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case c == nil:
			fmt.Fprintf(stdout, "%-28s %v\n", name, err)
			missed++
		case len(c.failures) == 0:
			fmt.Fprintf(stdout, "%-28s MISSED in %s\n", name, c.line())
			missed++
		default:
			f := c.failures[0]
			what := "found"
			switch {
			case f.Replayed != f.Replays:
				what = "NOT REPLAYED"
				missed++
			case c.took > plantedTime && c.schedules() > plantedSchedules:
				what = "FOUND LATE"
				missed++
			}
			fmt.Fprintf(stdout, "%-28s %s in %.1f s after %d schedules, by %s: %s: %s; again %d of %d times; %d switches\n", name, what, c.took.Seconds(), c.schedules(), f.Scenario, f.Kind,
				head(f.Text, "", 1), f.Replayed, f.Replays, len(f.Shrunk))
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d faults were not found", missed, tried)
	}
	if tried == 0 {
		return errors.New("no fault to put back")
	}
	return nil
}

// explores returns the scenarios that a patch names, and whether they need the race detector.
func explores(file string) (run string, race bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", false, err
	}
	for line := range strings.Lines(string(text)) {
		args, ok := strings.CutPrefix(line, "# explore: ")
		if !ok {
			continue
		}
		fields := strings.Fields(args)
		for i, a := range fields {
			switch {
			case a == "-race":
				race = true
			case a == "-run" && i+1 < len(fields):
				run = strings.Trim(fields[i+1], "'")
			}
		}
		if run == "" {
			return "", false, fmt.Errorf("%s: %q names no scenario", file, strings.TrimSpace(line))
		}
	}
	return run, race, nil
}
