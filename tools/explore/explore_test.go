package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/internal/explore"
)

var update = flag.Bool("update", false, "write the hashes of schedules anew")

// testOptions returns explore's options for a test. The folder is the module's root.
func testOptions(t *testing.T, pkg string) options {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return options{dir: dir, pkg: pkg, run: ".", n: 3000, j: 2, replays: 100, seed: 1, strategy: "mix", out: t.TempDir()}
}

// textbook is the textbook program, built once for all tests that use it.
var textbook = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	return build(context.Background(), options{dir: dir, pkg: "./tools/explore/internal/textbook"}, tmp)
})

var tmp string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if tmp, err = os.MkdirTemp("", "explore"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(tmp)
	os.Exit(code)
}

// onTextbook returns the options for the textbook program.
func onTextbook(t *testing.T) options {
	t.Helper()
	o := testOptions(t, "./tools/explore/internal/textbook")
	var err error
	if o.program, err = textbook(); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestTextbook checks that exploring finds each fault of the textbook and none in the correct
// twins, and that each seed repeats its failure every time.
func TestTextbook(t *testing.T) {
	onlyRaces := []string{"TestFaultDoubleChecked", "TestFaultRace"}
	kinds := map[string]explore.Kind{
		"TestFaultLostWakeup": explore.Deadlock, "TestFaultABA": explore.Assertion, "TestFaultDoubleChecked": explore.Race, "TestFaultDeadlockOfThree": explore.Deadlock,
		"TestFaultForgottenSignal": explore.Deadlock, "TestFaultLostUpdate": explore.Assertion, "TestFaultRace": explore.Race, "TestFaultLeak": explore.Leak,
		"TestFaultLivelock": explore.Livelock, "TestFaultPanic": explore.Panic,
	}
	for _, race := range []bool{false, true} {
		t.Run(fmt.Sprintf("race=%v", race), func(t *testing.T) {
			if _, err := exec.LookPath("gcc"); race && err != nil {
				t.Skip("the race detector needs gcc")
			}
			if race && testing.Short() {
				t.Skip("building with the race detector takes long")
			}
			o := onTextbook(t)
			if race {
				o.program, o.race = "", true
			}
			c, err := explorePackage(t.Context(), o, io.Discard)
			if c == nil {
				t.Fatal(err)
			}
			for _, f := range c.failures {
				want, ok := kinds[f.Scenario]
				switch {
				case !ok:
					t.Errorf("%s: %s: %s", f.Scenario, f.Kind, f.Text)
				case f.Kind != want:
					t.Errorf("%s: %s; want %s", f.Scenario, f.Kind, want)
				case f.Replayed != 100 || f.Replays != 100:
					t.Errorf("%s: it failed again %d of %d times", f.Scenario, f.Replayed, f.Replays)
				case len(f.Shrunk) > 6 || len(f.Trace) == 0 || len(f.ShrunkTrace) == 0:
					t.Errorf("%s: %d switches are left, %d and %d lines of trace", f.Scenario, len(f.Shrunk), len(f.Trace), len(f.ShrunkTrace))
				}
				delete(kinds, f.Scenario)
			}
			for name := range kinds {
				if !slices.Contains(onlyRaces, name) {
					t.Errorf("%s: nothing is found", name)
				} else if race {
					t.Errorf("%s: no race is found", name)
				}
			}
			for k := range kinds { // both rounds use the map: empty it for the next round
				delete(kinds, k)
			}
			if race {
				return
			}
			for _, k := range onlyRaces {
				kinds[k] = explore.Race
			}
			for k, v := range map[string]explore.Kind{"TestFaultLostWakeup": explore.Deadlock, "TestFaultABA": explore.Assertion, "TestFaultDeadlockOfThree": explore.Deadlock,
				"TestFaultForgottenSignal": explore.Deadlock, "TestFaultLostUpdate": explore.Assertion, "TestFaultLeak": explore.Leak, "TestFaultLivelock": explore.Livelock,
				"TestFaultPanic": explore.Panic} {
				kinds[k] = v
			}
		})
	}
}

// TestDeterminism checks that schedules are the same with other numbers of processors and other
// settings of the garbage collector. The textbook's schedules must also be the same on every
// machine.
func TestDeterminism(t *testing.T) {
	for _, x := range []struct{ pkg, test, golden string }{
		{"./tools/explore/internal/textbook", "TestTwinABA", "testdata/hashes.txt"},
		{"./tools/explore/scenarios", "TestCloseAgainst", ""},
	} {
		t.Run(x.test, func(t *testing.T) {
			tmp, program := t.TempDir(), ""
			var err error
			if x.golden != "" {
				program, err = textbook()
			} else {
				program, err = build(t.Context(), testOptions(t, x.pkg), tmp)
			}
			if err != nil {
				t.Fatal(err)
			}
			var first []byte
			for i, env := range [][]string{{"GOMAXPROCS=1"}, {"GOMAXPROCS=4", "GOGC=10"}, {"GOMAXPROCS=2", "GODEBUG=gcstoptheworld=1"}} {
				hashes := filepath.Join(tmp, fmt.Sprint(i))
				c, err := json.Marshal(explore.Config{Seed: 1, Schedules: 60, Hashes: hashes})
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(program, "-test.run", "^"+x.test+"$")
				cmd.Env = append(append(os.Environ(), explore.ConfigEnv+"="+string(c)), env...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", env, err, out)
				}
				got, err := os.ReadFile(hashes)
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = got
				}
				if len(got) < 10*8 || !bytes.Equal(got, first) {
					t.Errorf("%v: other schedules, or fewer than ten", env)
				}
			}
			if x.golden == "" {
				return
			}
			text := fmt.Sprintf("%x\n", first)
			if *update {
				if err := os.WriteFile(x.golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(x.golden); err != nil || string(want) != text {
				t.Errorf("other schedules than on the machine that wrote %s, unless the textbook or internal/explore has changed: then -update (%v)", x.golden, err)
			}
		})
	}
}

// TestDistinct checks that equal hashes of two tests count as two schedules, also if the names of
// the tests begin alike.
func TestDistinct(t *testing.T) {
	c := &campaign{hashes: map[uint64]struct{}{}}
	for _, test := range []string{"TestCloseAgainst", "TestCloseAgain", "TestCloseAgainst"} {
		hashes := filepath.Join(t.TempDir(), "hashes")
		if err := os.WriteFile(hashes, []byte("8 bytes."), 0o644); err != nil {
			t.Fatal(err)
		}
		c.count(job{test: test, config: explore.Config{Hashes: hashes}})
	}
	if n := len(c.hashes); n != 2 {
		t.Errorf("%d distinct schedules, want 2", n)
	}
}

// TestReplay checks that the schedule of a report fails again when it is replayed, and that a report
// of a test that the run does not include is an error.
func TestReplay(t *testing.T) {
	o := onTextbook(t)
	o.run, o.replays = "^TestFaultABA$", 1
	c, err := explorePackage(t.Context(), o, io.Discard)
	if err == nil || c == nil || len(c.failures) != 1 {
		t.Fatal(err)
	}
	reports, err := filepath.Glob(filepath.Join(o.out, "*.json"))
	if err != nil || len(reports) != 1 {
		t.Fatalf("%q, %v", reports, err)
	}
	o.replay, o.out = reports[0], t.TempDir()
	c, err = explorePackage(t.Context(), o, io.Discard)
	if err == nil || c == nil || len(c.failures) != 1 || c.failures[0].Kind != explore.Assertion {
		t.Errorf("the schedule of the report does not fail: %v", err)
	}
	o.run = "^TestTwinABA$"
	if _, err := explorePackage(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "TestFaultABA") {
		t.Errorf("a report of a test that -run leaves out: error %v", err)
	}
}

// TestExhaust checks that three faults of the textbook fail in some schedule with fewer than three
// unusual switches, and that their twins fail in none.
func TestExhaust(t *testing.T) {
	o := onTextbook(t)
	o.exhaust, o.replays, o.n = 3, 1, 100_000
	o.run = "^Test(Fault|Twin)(LostUpdate|DeadlockOfThree|LostWakeup)$"
	c, err := explorePackage(t.Context(), o, io.Discard)
	if c == nil {
		t.Fatal(err)
	}
	for _, what := range []string{"LostUpdate", "DeadlockOfThree", "LostWakeup"} {
		if c.per["TestFault"+what].failures != 1 {
			t.Errorf("the fault %s is not found", what)
		}
		if p := c.per["TestTwin"+what]; p.failures > 0 || !p.all {
			t.Errorf("the twin of %s: %d failures; all schedules were run: %v", what, p.failures, p.all)
		}
	}
	for _, f := range c.failures {
		if strings.Contains(f.Scenario, "Twin") {
			t.Errorf("%s: %s", f.Scenario, f.Text)
		}
	}
}
