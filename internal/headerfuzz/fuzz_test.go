package headerfuzz

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/cproof"
	"github.com/puregpu/puregpu/symbols"
)

var (
	timeFlag = flag.Duration("headers.time", 0, "how long to make headers; 0 for a few. Accessors take a quarter of it")
	seedFlag = flag.Uint64("headers.seed", 0, "the first `seed`; 0 for one by the clock")
	foundTo  = flag.String("headers.found", "", "append what is found to a `file`, and go on")
	allFlag  = flag.Int("headers.faults", 1, "stop after so many faults")
	small    = flag.Bool("headers.small", true, "leave out of a header what is not needed for the fault")
	only     = flag.String("headers.only", "", "a `pattern` for the faults to look at")
	count    = flag.Int("headers.count", 3, "how many headers to make without -headers.time")
	size     = flag.Int("headers.units", 0, "declarations in a header; 0 for 400, and for 1600 with -headers.time, which is faster for many")
)

var numbers = regexp.MustCompile(`\d+`)

// TestHeaders checks that the tables of random headers agree with a C compiler.
func TestHeaders(t *testing.T) {
	ctx := context.Background()
	var checkers []*Checker
	for _, name := range []string{"gcc", "gcc", "clang"} {
		cc, err := cproof.Find(ctx, name)
		if err != nil {
			continue
		}
		c, err := NewChecker(cc, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		checkers = append(checkers, c)
	}
	if len(checkers) == 0 {
		t.Skip("no C compiler")
	}
	seed := *seedFlag
	switch {
	case seed == 0 && *timeFlag == 0:
		seed = 1001 // by default the test uses the same seed every time
	case seed == 0:
		seed = uint64(time.Now().UnixNano() / 1000)
	}
	units := *size
	switch {
	case units == 0 && *timeFlag == 0:
		units = 400
	case units == 0:
		units = 1600
	}
	var sum Result
	began, headers := time.Now(), 0
	seen, kinds := map[string]bool{}, map[string]int{}
	for ; headers < *count && *timeFlag == 0 || time.Since(began) < *timeFlag; seed++ {
		c := checkers[seed%uint64(len(checkers))]
		r, err := c.Check(ctx, Units(rand.New(rand.NewPCG(seed, 0)), units, c.Compiler.IsGCC()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		headers++
		sum.Units += r.Units
		sum.Invalid += r.Invalid
		sum.Unparsed += r.Unparsed
		sum.Refused += r.Refused
		sum.Records += r.Records
		sum.Facts += r.Facts
		if headers%20 == 0 {
			t.Logf("%d headers, %d declarations in %v", headers, sum.Units, time.Since(began).Round(time.Second))
		}
		records := map[string]bool{}
		for _, f := range r.Faults {
			if records[f.Record] || !regexp.MustCompile(*only).MatchString(f.Kind+": "+f.String()) {
				continue // a fault of this record was printed, or the flag leaves it out
			}
			records[f.Record] = true
			if kinds[f.Kind]++; kinds[f.Kind] > 100 {
				continue // enough faults of this kind
			}
			minimal := r.Text(r.About(f, true))
			if *small {
				limit, cancel := context.WithTimeout(ctx, time.Minute)
				minimal = c.Minimal(limit, r, f)
				cancel()
			}
			shape := f.Kind + numbers.ReplaceAllString(strings.Join(strings.Fields(minimal), ""), "N")
			if seen[shape] {
				continue
			}
			seen[shape] = true
			said := fmt.Sprintf("%s: %v\nseed %d, %s\n%s", f.Kind, f, seed, c.Compiler.Name, minimal)
			if *foundTo == "" {
				t.Error(said)
			} else if err := appendTo(*foundTo, said); err != nil {
				t.Fatal(err)
			}
			if len(seen) >= *allFlag {
				t.Fatalf("%d faults, %d headers in %v", len(seen), headers, time.Since(began).Round(time.Second))
			}
		}
	}
	t.Logf("%d headers, %d declarations: %d records proven by %d facts, %d refused, %d not parsed; %d were no C; %d faults",
		headers, sum.Units, sum.Records, sum.Facts, sum.Refused, sum.Unparsed, sum.Invalid, len(seen))
}

// TestGuessCompared checks that compare, which finds the smallest header for a fault, finds an
// output that is not marked as a guess.
func TestGuessCompared(t *testing.T) {
	cc, err := cproof.Find(t.Context(), "")
	if err != nil {
		t.Skip(err)
	}
	c, err := NewChecker(cc, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	header := Head + "int fz1(int *p);\n"
	table, _, err := extracted(header)
	if err != nil {
		t.Fatal(err)
	}
	p := &table.Functions[0].Params[0]
	p.Dir, p.Guess = symbols.Out, false
	report, err := c.compare(t.Context(), header, table)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Wrong) != 1 || report.Wrong[0].Kind != "guess" {
		t.Errorf("the faults are %v; want the output without the mark of a guess", report.Wrong)
	}
}

// TestAccessors checks that generated methods read and write the bit-fields of random structs as C
// does.
func TestAccessors(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds Go programs")
	}
	ctx := t.Context()
	seed, sum, began := max(*seedFlag, 1), 0, time.Now()
	for n := 0; n < 1 || time.Since(began) < *timeFlag/4; n++ {
		for _, name := range []string{"gcc", "clang"} {
			cc, err := cproof.Find(ctx, name)
			if err != nil {
				continue
			}
			c, err := NewChecker(cc, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Check(ctx, Records(rand.New(rand.NewPCG(seed, 1)), 150))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			fields, wrong, err := c.Accessors(ctx, r)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, cc.Name, err)
			}
			if len(wrong) > 0 {
				t.Fatalf("seed %d, %s: %d lines differ, the first are\n%s", seed, cc.Name, len(wrong), strings.Join(wrong[:min(3, len(wrong))], "\n"))
			}
			sum += fields
			seed++
		}
	}
	t.Logf("%d bit-fields in %v", sum, time.Since(began).Round(time.Second))
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "```\n%s```\n\n", text)
	return err
}
