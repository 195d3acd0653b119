// Callbench compares a C call through package dl, written exactly like a generated
// method, with the same call through cgo (noescape, nocallback). It prints a line for
// each number of arguments,
//
//	call/cgo ARGS RATIO  DL ns  CGO ns
//
// the worst ratio last, and exits with status 1 if a ratio misses its goal or a call
// through dl allocates. Both sides call the same C function, in turns; a ratio is the
// median over the rounds.
//
// With CGO_ENABLED=0 there is nothing to compare: it prints the times of dl alone.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// A goal is a case and the largest ratio allowed.
type goal struct {
	args  string
	ratio float64
}

var goals = []goal{{"0", 0.9}, {"1", 0.9}, {"2", 0.9}, {"2+out", 0.9}, {"3", 0.9}, {"4", 0.9}, {"6", 0.9}, {"11", 1}, {"16", 1}}

func wrong(out uint64, err error) error { return fmt.Errorf("wrong output %d, %v", out, err) }

// measure returns the time of one call.
func measure(loop func(int) error, n int) float64 {
	start := time.Now()
	if err := loop(n); err != nil {
		fatal(err)
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "callbench:", err)
	os.Exit(1)
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

func main() {
	rounds := flag.Int("rounds", 41, "measurements of each side of each case")
	calls := flag.Int("calls", 50000, "calls in a measurement")
	flag.Parse()
	if err := open(&lib); err != nil {
		fatal(err)
	}
	ns := map[string][]float64{}
	base := map[string][]float64{}
	ratios := map[string][]float64{}
	for round := range *rounds + 2 { // the first two warm up
		for _, g := range goals {
			var a, b float64
			// Take turns at being first.
			if round%2 == 0 || !haveCgo {
				a = measure(dlLoops[g.args], *calls)
			}
			if haveCgo {
				b = measure(cgoLoops[g.args], *calls)
				if round%2 == 1 {
					a = measure(dlLoops[g.args], *calls)
				}
			}
			if round < 2 {
				continue
			}
			ns[g.args] = append(ns[g.args], a)
			base[g.args] = append(base[g.args], b)
			ratios[g.args] = append(ratios[g.args], a/b)
		}
	}
	failed := false
	for _, g := range goals {
		if allocs := testing.AllocsPerRun(10, func() { dlLoops[g.args](1000) }); allocs != 0 {
			fmt.Printf("call %s: %v allocations in 1000 calls\n", g.args, allocs)
			failed = true
		}
	}
	if !haveCgo {
		for _, g := range goals {
			fmt.Printf("call %-6s %6.1f ns\n", g.args, median(ns[g.args]))
		}
	} else {
		slices.SortStableFunc(goals, func(a, b goal) int {
			x, y := median(ratios[a.args]), median(ratios[b.args])
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		for _, g := range goals {
			r := median(ratios[g.args])
			note := ""
			if r > g.ratio {
				note = fmt.Sprintf("  goal %.2f missed", g.ratio)
				failed = true
			}
			fmt.Printf("call/cgo %-6s %.3f  %6.1f ns %6.1f ns%s\n", g.args, r, median(ns[g.args]), median(base[g.args]), note)
		}
	}
	if failed {
		os.Exit(1)
	}
}
