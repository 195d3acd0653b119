package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// A promise is the greatest ratio of a row's time in a static program (build tag puregpu_static) to
// the row's time in a dynamic program.
type promise struct {
	row string
	max float64
}

var staticPromises = []promise{{"calls/a C function", 1.3}, {"calls/cuLaunchKernel", 1.02}}

// leastTurns is the least number of runs of each program.
const leastTurns = 3

// compareFiles compares runs of a dynamic program with runs of a static program. The files hold the
// JSON output of the two programs in turns, beginning with the dynamic program. compareFiles
// returns whether all promises are kept.
func compareFiles(files []string, stdout io.Writer) (kept bool, err error) {
	if len(files) < 2*leastTurns || len(files)%2 != 0 {
		return false, fmt.Errorf("-compare takes at least %d files, in turns of a dynamic program and a static one, but got %d", 2*leastTurns, len(files))
	}
	docs := make([]contents, len(files))
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal(text, &docs[i]); err != nil {
			return false, fmt.Errorf("%s is not output of -json: %w", name, err)
		}
		if d := docs[0]; docs[i].Device != d.Device || docs[i].Driver != d.Driver || docs[i].Platform != d.Platform || docs[i].CPUs != d.CPUs {
			return false, fmt.Errorf("%s and %s are from different machines or releases of Go", files[0], name)
		}
	}
	return compare(docs, files, stdout)
}

// compare prints the medians of puregpu's side of each row that all documents have, and returns
// whether all promises are kept. If a document has no figure for a promise, compare returns an
// error.
func compare(docs []contents, names []string, stdout io.Writer) (kept bool, err error) {
	fmt.Fprintf(stdout, "%s on %s, %s, medians of %d turns\n", docs[0].Device, docs[0].Driver, docs[0].Platform, len(docs)/2)
	fmt.Fprintf(stdout, "%-52s %10s %10s %8s %10s %4s\n", "row", "dynamic", "static", "ratio", "goal", "ok")
	kept = true
	for _, p := range staticPromises {
		for i, d := range docs {
			if d.figure(p.row) == nil {
				err = errors.Join(err, fmt.Errorf("%s has no figure of %s: %s", names[i], p.row, d.why(p.row)))
			}
		}
	}
	if err != nil {
		return false, err
	}
	verdict := ""
	for _, r := range docs[0].Rows {
		var sides [2][]float64
		for i, d := range docs {
			if v := d.figure(r.Row); v != nil {
				sides[i%2] = append(sides[i%2], *v)
			}
		}
		if len(sides[0])+len(sides[1]) != len(docs) {
			continue
		}
		dynamic, static := median(sides[0]), median(sides[1])
		ratio, goal, ok := *static / *dynamic, "-", "-"
		for _, p := range staticPromises {
			if p.row != r.Row {
				continue
			}
			goal, ok = fmt.Sprintf("≤ %.2f×", p.max), "ok"
			if !(ratio <= p.max) {
				kept, ok = false, "MISS"
			}
			verdict += fmt.Sprintf(", %s %.3f (%s) %s", p.row, ratio, goal, ok)
		}
		fmt.Fprintf(stdout, "%-52s %10s %10s %8.3f %10s %4s\n", r.Row, figure(r.Unit, dynamic), figure(r.Unit, static), ratio, goal, ok)
	}
	fmt.Fprintf(stdout, "static to dynamic: %s\n", verdict[len(", "):])
	return kept, nil
}

// figure returns the result of puregpu's side of a row, or nil.
func (c *contents) figure(row string) *float64 {
	for _, r := range c.Rows {
		if r.Row == row && r.Error == "" && r.NotRun == "" && r.Puregpu != nil && *r.Puregpu > 0 {
			return r.Puregpu
		}
	}
	return nil
}

// why returns why a row has no figure.
func (c *contents) why(row string) string {
	for _, r := range c.Rows {
		switch {
		case r.Row != row:
		case r.Error != "":
			return "failed: " + r.Error
		case r.NotRun != "":
			return r.NotRun
		}
	}
	return "the run did not measure it: run the group calls on CUDA"
}
