package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/tools/explore/internal/rewrite"
)

// explorePackage rewrites a package, builds it, and runs its scenarios.
func explorePackage(ctx context.Context, o options, stdout io.Writer) (*campaign, error) {
	tmp, err := os.MkdirTemp("", "explore")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	began := time.Now()
	program := o.program
	if program == "" {
		if program, err = build(ctx, o, tmp); err != nil {
			return nil, err
		}
	}
	tests, err := list(ctx, program, o.run)
	if err != nil {
		return nil, err
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no test of %s matches %q", o.pkg, o.run)
	}
	fmt.Fprintf(stdout, "%d scenarios, rewritten and built in %.0f s; first seed %d\n", len(tests), time.Since(began).Seconds(), o.seed)
	c := &campaign{o: o, program: program, tmp: tmp, out: stdout, began: time.Now(), hashes: map[uint64]struct{}{}, per: map[string]*total{}}
	return c, c.run(ctx, tests)
}

// build builds the rewritten test program of the package.
func build(ctx context.Context, o options, tmp string) (string, error) {
	source := map[string][]byte{}
	if o.patch != "" {
		var err error
		if source, err = patched(ctx, o.dir, o.patch, tmp); err != nil {
			return "", err
		}
	}
	overlay, err := rewrite.Overlay(rewrite.Options{Dir: o.dir, Package: o.pkg, Source: source, Race: o.race, Out: tmp})
	if err != nil {
		return "", fmt.Errorf("rewrite %s: %w", o.pkg, err)
	}
	program := filepath.Join(tmp, "scenarios.test")
	args := []string{"test", "-c", "-overlay", overlay, "-o", program}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if o.race {
		args = append(args, "-race")
		env = append(os.Environ(), "CGO_ENABLED=1")
	}
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), append(args, o.pkg)...)
	cmd.Dir, cmd.Env = o.dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the rewritten %s: %w\n%s", o.pkg, err, out)
	}
	return program, nil
}

// patched returns the new contents of the files that patches change. The argument patches has the
// names of the patch files, separated by commas.
func patched(ctx context.Context, dir, patches, tmp string) (map[string][]byte, error) {
	tree := filepath.Join(tmp, "tree")
	files := map[string][]byte{}
	for patch := range strings.SplitSeq(patches, ",") {
		text, err := os.ReadFile(patch)
		if err != nil {
			return nil, err
		}
		n := len(files)
		for line := range strings.Lines(string(text)) {
			name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- a/")
			if _, has := files[name]; !ok || has {
				continue
			}
			src, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}
			to := filepath.Join(tree, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, src, 0o644)); err != nil {
				return nil, err
			}
			files[name] = nil
		}
		if len(files) == 0 && n == 0 {
			return nil, fmt.Errorf("%s changes no file", patch)
		}
		cmd := exec.CommandContext(ctx, "git", "apply", "-")
		cmd.Dir, cmd.Stdin = tree, bytes.NewReader(text)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+tmp)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s no longer applies: %w\n%s", patch, err, out)
		}
	}
	out := map[string][]byte{}
	for name := range files {
		text, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil {
			return nil, err
		}
		out[filepath.Join(dir, name)] = text
	}
	return out, nil
}

func list(ctx context.Context, program, run string) ([]string, error) {
	out, err := exec.CommandContext(ctx, program, "-test.list", run).Output()
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	var tests []string
	for l := range strings.Lines(string(out)) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "Test") {
			tests = append(tests, l)
		}
	}
	return tests, nil
}

// A campaign is a run of explore: it runs scenarios in several processes at a time.
type campaign struct {
	o       options
	program string
	tmp     string
	out     io.Writer
	began   time.Time

	mu       sync.Mutex
	hashes   map[uint64]struct{}
	per      map[string]*total
	running  map[int]explore.Report
	failures []*explore.Failure
	told     time.Time
	took     time.Duration // time until the first failure; zero if there is none
	stop     func()        // ends all processes
}

// A total counts the runs of a scenario.
type total struct {
	schedules int
	steps     int64
	seconds   float64
	failures  int
	all       bool
}

// slice is the longest time that a process runs its scenario, with -time. Then the next scenario
// has its turn.
const slice = 10 * time.Second

// A job describes a process that runs one scenario.
type job struct {
	id     int
	test   string
	config explore.Config
	until  time.Time // its deadline; zero for none
}

func (c *campaign) run(ctx context.Context, tests []string) error {
	var replay *explore.Failure
	if c.o.replay != "" {
		text, err := os.ReadFile(c.o.replay)
		replay = &explore.Failure{}
		if err == nil {
			err = json.Unmarshal(text, replay)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.o.replay, err)
		}
		if !slices.Contains(tests, replay.Scenario) {
			return fmt.Errorf("%s: %s has no test %s that -run %q matches", c.o.replay, c.o.pkg, replay.Scenario, c.o.run)
		}
		tests = []string{replay.Scenario}
	}
	c.running = map[int]explore.Report{}
	for _, t := range tests {
		c.per[t] = &total{}
	}
	seed, stop := c.o.seed, c.began.Add(c.o.time)
	var (
		wg   sync.WaitGroup
		jobs = make(chan job)
		errs = make(chan error, c.o.j)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.stop = cancel
	for range c.o.j {
		wg.Go(func() {
			for j := range jobs {
				if err := c.do(ctx, j); err != nil && ctx.Err() == nil {
					select {
					case errs <- err:
					default:
					}
					cancel()
				}
			}
		})
	}
	id := 0
	for ctx.Err() == nil {
		for _, t := range tests {
			if c.failed(t) {
				continue
			}
			config := explore.Config{Strategy: c.o.strategy, Seed: seed, Schedules: c.o.n, Shrink: true, Replays: c.o.replays, Trace: c.o.trace, Steps: c.o.steps,
				Exhaustive: c.o.exhaust}
			var until time.Time
			if c.o.time > 0 && c.o.exhaust == 0 {
				each := min(slice, max(c.o.time*time.Duration(c.o.j)/time.Duration(len(tests)), 100*time.Millisecond))
				config.Schedules, config.Time, until = 1<<40, each, stop
			}
			if replay != nil {
				config.Schedules = 1
				config.Deeds = replay.Shrunk
				if len(config.Deeds) == 0 {
					config.Deeds = replay.Deeds
				}
			}
			config.Report = "/dev/fd/3"
			config.Hashes = filepath.Join(c.tmp, fmt.Sprintf("hashes-%d", id))
			select {
			case jobs <- job{id, t, config, until}:
			case <-ctx.Done():
			}
			id++
			seed += 1 << 32
		}
		if c.failed(tests...) || c.o.time == 0 || c.o.exhaust > 0 || !time.Now().Before(stop) || replay != nil {
			break
		}
	}
	close(jobs)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	return c.summary()
}

// failed reports whether all the given tests have failed. A failed test does not run again.
func (c *campaign) failed(tests ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tests {
		if c.per[t].failures == 0 {
			return false
		}
	}
	return true
}

// do runs the process of a job and stores its failure.
func (c *campaign) do(ctx context.Context, j job) error {
	if !j.until.IsZero() {
		j.config.Time = min(j.config.Time, time.Until(j.until))
		if j.config.Time <= 0 {
			return nil
		}
	}
	text, err := json.Marshal(j.config)
	if err != nil {
		return err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer from.Close()
	var out bytes.Buffer
	args := []string{"-test.run", "^" + j.test + "$", "-test.timeout", "0"}
	if j.config.Trace {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Dir = c.tmp
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &out, []*os.File{to}
	cmd.Env = append(os.Environ(), explore.ConfigEnv+"="+string(text), "GOMAXPROCS=1", "GORACE=suppress_equal_stacks=0 suppress_equal_addresses=0 exitcode=0")
	if err := cmd.Start(); err != nil {
		to.Close()
		return err
	}
	to.Close()
	var last explore.Report
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var r explore.Report
			if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
			last = r
			c.tell(j, r)
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	c.count(j)
	if j.config.Trace {
		c.out.Write(out.Bytes())
	}
	if err == nil || last.Failure != nil {
		if f := last.Failure; f != nil {
			if f.Kind == explore.Race {
				f.Text += "\n" + head(out.String(), "WARNING: DATA RACE", 60)
			}
			return c.found(f)
		}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The process has crashed, for example with a fatal error of the Go runtime.
	return c.found(&explore.Failure{Scenario: j.test, Kind: "crash", Text: fmt.Sprintf("after %d schedules from seed %d: %v\n%s", last.Schedules, j.config.Seed, err, tail(out.String(), 60)),
		Strategy: j.config.Strategy, Seed: j.config.Seed + uint64(last.Schedules)})
}

func head(text, from string, lines int) string {
	if i := strings.Index(text, from); i >= 0 {
		text = text[i:]
	}
	l := strings.Split(text, "\n")
	return strings.Join(l[:min(len(l), lines)], "\n")
}

func tail(text string, lines int) string {
	l := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(l[max(0, len(l)-lines):], "\n")
}

// tell updates the counts from a report. It prints a line if it has printed none for five seconds.
func (c *campaign) tell(j job, r explore.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[j.id] = r
	if r.Done {
		delete(c.running, j.id)
		t := c.per[j.test]
		t.schedules += r.Schedules
		t.steps += r.Steps
		t.seconds += r.Seconds
		t.all = t.all || r.All
		if r.Failure != nil {
			t.failures++
		}
	}
	if now := time.Now(); now.Sub(c.told) >= 5*time.Second {
		c.told = now
		fmt.Fprintf(c.out, "%6.0f s  %s\n", now.Sub(c.began).Seconds(), c.line())
	}
}

// schedules returns the number of schedules that have run.
func (c *campaign) schedules() (n int) {
	for _, t := range c.per {
		n += t.schedules
	}
	for _, r := range c.running {
		n += r.Schedules
	}
	return n
}

func (c *campaign) line() string {
	var schedules int
	var steps int64
	for _, t := range c.per {
		schedules += t.schedules
		steps += t.steps
	}
	for _, r := range c.running {
		schedules += r.Schedules
		steps += r.Steps
	}
	s := time.Since(c.began).Seconds()
	return fmt.Sprintf("%d schedules, %d steps, %d distinct, %d faults; %.0f schedules/s, %.0f steps/s", schedules, steps, len(c.hashes), len(c.failures), float64(schedules)/s, float64(steps)/s)
}

// count reads the hashes of the schedules that a process has run, and adds them to those of the
// campaign, up to 16 Mi hashes. Equal schedules of two tests count as two.
func (c *campaign) count(j job) {
	text, err := os.ReadFile(j.config.Hashes)
	if err != nil {
		return
	}
	os.Remove(j.config.Hashes)
	of := fnv.New64a()
	io.WriteString(of, j.test)
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; len(text) >= 8 && len(c.hashes) < 16<<20; text = text[8:] {
		c.hashes[binary.LittleEndian.Uint64(text)^of.Sum64()] = struct{}{}
	}
}

// found prints and stores a failure.
func (c *campaign) found(f *explore.Failure) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failures) == 0 {
		c.took = time.Since(c.began)
	}
	c.failures = append(c.failures, f)
	if c.o.first {
		defer c.stop()
	}
	if len(c.failures) > 20 {
		return errors.New("more than 20 schedules have failed")
	}
	dir := c.o.out
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.o.dir, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s-%d", f.Scenario, f.Seed))
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(name+".json", text, 0o644), os.WriteFile(name+".txt", []byte(describe(f, c.o)), 0o644)); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nFAULT %s: %s: %s\n  seed %d, %s; it failed again %d of %d times; %d switches, %d when shrunk; see %s.txt\n", f.Scenario, f.Kind, head(f.Text, "", 1), f.Seed, f.Strategy,
		f.Replayed, f.Replays, f.Switches, len(f.Shrunk), name)
	return nil
}

// describe returns the text of a failure.
func describe(f *explore.Failure, o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n%s\n\n", f.Scenario, f.Kind, f.Text)
	race := ""
	if o.race {
		race = "-race "
	}
	fmt.Fprintf(&b, "Repeat it with the same source: go run ./tools/explore %s-run '^%s$' -strategy %s -seed %d -n 1 %s\n", race, f.Scenario, cmp.Or(f.Strategy, "mix"), f.Seed, o.pkg)
	fmt.Fprintf(&b, "%d steps, %d unusual switches; %d of them needed for the failure:\n", f.Steps, f.Switches, len(f.Shrunk))
	for _, d := range f.Shrunk {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	part := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n%s\n", title, strings.Join(lines, "\n"))
		}
	}
	if f.ShrunkText != "" {
		fmt.Fprintf(&b, "\nThe shrunk schedule fails with:\n%s\n", f.ShrunkText)
	}
	part("Who was where, shrunk:", f.ShrunkWaiting)
	part("Steps, shrunk:", f.ShrunkTrace)
	part("Who was where:", f.Waiting)
	part("Steps:", f.Trace)
	return b.String()
}

// summary prints the totals, and returns an error if anything has failed.
func (c *campaign) summary() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := []string{}
	for n := range c.per {
		names = append(names, n)
	}
	slices.Sort(names)
	fmt.Fprintln(c.out)
	for _, n := range names {
		t := c.per[n]
		if t.schedules == 0 {
			continue
		}
		all := ""
		if t.all {
			all = ", all there are"
		}
		fmt.Fprintf(c.out, "%-40s %9d schedules%s, %6d steps each, %7.0f schedules/s", n, t.schedules, all, t.steps/int64(t.schedules), float64(t.schedules)/max(t.seconds, 1e-3))
		if t.failures > 0 {
			fmt.Fprintf(c.out, "  %d FAULTS", t.failures)
		}
		fmt.Fprintln(c.out)
	}
	fmt.Fprintf(c.out, "in %.0f s: %s\n", time.Since(c.began).Seconds(), c.line())
	if n := len(c.failures); n > 0 {
		return fmt.Errorf("%d schedules have failed", n)
	}
	return nil
}
