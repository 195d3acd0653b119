// Command faults puts fixed faults back, one at a time, and reports whether a test catches each.
//
//	faults [-dir DIR] [-v] [NAME...]
//
// It runs in the root of the module. Each file DIR/NAME.patch begins with comment lines. One of
// them is the test to run:
//
//	# test: -run '^TestX$' -count=5 ./runtime/gpu
//
// The rest is a unified diff against the tree. The test must pass on the unchanged tree. The test
// catches the fault if it fails, panics or hangs with the patch. The limit is 30 s, or the -timeout
// of the arguments. A run that takes 10 minutes, with building, is killed. The tree stays
// unchanged, because go test reads the patched files from elsewhere (-overlay). Quoted arguments
// must not contain blanks. With -race the test is built with cgo, which needs gcc. With -v the
// output of the tests precedes each line.
//
// faults prints one line for each fault: caught, MISSED, FAILS WITHOUT IT (the test fails on the
// unchanged tree), no verdict (no test was run, or the run was killed), or an error in the patch.
// The exit status is 1 unless all faults are caught, and 2 if the command line is wrong.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/puregpu/puregpu/internal/overlay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "faults:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

var errUsage = errors.New("usage: faults [-dir DIR] [-v] [NAME...]")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	dir := flags.String("dir", "runtime/gpu/testdata/faults", "the `folder` with the patches")
	verbose := flags.Bool("v", false, "print what the tests have printed")
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, errUsage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	patches, err := find(*dir, flags.Args())
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "faults")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	sound := map[string]error{} // results of tests on the unchanged tree
	bad := 0
	for _, p := range patches {
		began := time.Now()
		out, err := p.try(ctx, filepath.Join(tmp, p.name), sound)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if *verbose {
			stdout.Write(out)
		}
		fmt.Fprintf(stdout, "%-28s %s (%.0f s)\n", p.name, cmp.Or(message(err), "caught"), time.Since(began).Seconds())
		if err != nil {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d faults are not caught", bad, len(patches))
	}
	return nil
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A patch is a fault to put back.
type patch struct {
	name string
	file string   // absolute
	test []string // arguments of go test
	of   []string // files that it changes, by their paths in the tree
}

// find reads the patches with the given names, or all patches.
func find(dir string, names []string) (all []patch, err error) {
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = filepath.Join(dir, name+".patch")
	}
	if len(names) == 0 {
		if files, err = filepath.Glob(filepath.Join(dir, "*.patch")); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no patches in %s", dir)
	}
	for _, file := range files {
		p, err := read(file)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// read reads the comment and the changed files of a patch.
func read(file string) (p patch, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	if p.file, err = filepath.Abs(file); err != nil {
		return p, err
	}
	p.name = strings.TrimSuffix(filepath.Base(file), ".patch")
	for line := range strings.Lines(string(text)) {
		if args, ok := strings.CutPrefix(line, "# test: "); ok && p.test == nil {
			for _, arg := range strings.Fields(args) {
				p.test = append(p.test, strings.Trim(arg, "'"))
			}
		}
		if path, ok := strings.CutPrefix(line, "--- a/"); ok {
			p.of = append(p.of, strings.TrimSpace(path))
		}
	}
	if len(p.test) == 0 || len(p.of) == 0 {
		return p, fmt.Errorf("%s: no line begins with \"# test: \", or no file is changed", file)
	}
	return p, nil
}

var (
	errMissed   = errors.New("MISSED: the test passes with the fault")
	errNotSound = errors.New("FAILS WITHOUT IT")
)

// try returns the output of the test, and an error if the test does not catch the fault. It writes
// patched files to tmp, which must not exist yet.
func (p patch) try(ctx context.Context, tmp string, sound map[string]error) (out []byte, err error) {
	file, err := p.apply(tmp)
	if err != nil {
		return nil, err
	}
	key := strings.Join(p.test, " ")
	without, tried := sound[key]
	if !tried {
		out, without = goTest(ctx, p.test)
		sound[key] = without
	}
	if errors.Is(without, errNoVerdict) {
		return out, without
	}
	if without != nil {
		return out, fmt.Errorf("%w: %w", errNotSound, without)
	}
	out, err = goTest(ctx, append([]string{"-overlay=" + file}, p.test...))
	switch {
	case err == nil:
		return out, errMissed
	case errors.Is(err, errNoVerdict):
		return out, err
	}
	return out, nil
}

// apply writes the patched files and the overlay for go test, and returns the name of the overlay.
func (p patch) apply(tmp string) (file string, err error) {
	replace := map[string]string{}
	for _, path := range p.of {
		from, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		to := filepath.Join(tmp, path)
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, text, 0o644)
		}
		if err != nil {
			return "", fmt.Errorf("no longer applies: %w", err)
		}
		replace[from] = to
	}
	git := exec.Command("git", "apply", p.file)
	git.Dir = tmp
	// Git must find no repository around tmp: inside a repository git apply leaves files out.
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(tmp))
	if out, err := git.CombinedOutput(); err != nil {
		return "", fmt.Errorf("no longer applies: %s", firstLine(out))
	}
	return overlay.Write(tmp, replace)
}

// limit is the time limit of a test run.
const limit = 10 * time.Minute

// errNoVerdict says that no test was run, or that the run was killed.
var errNoVerdict = errors.New("no verdict")

// goTest runs go test, and returns its output and an error if it failed. The error is errNoVerdict
// if no test was run, for example because the code does not compile, or if the run was killed.
func goTest(ctx context.Context, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := []string{"test", "-vet=off", "-count=1"} // ignore earlier results
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-timeout") }) {
		all = append(all, "-timeout=30s")
	}
	cmd := exec.CommandContext(ctx, "go", append(all, args...)...)
	cmd.Env = os.Environ()
	if slices.Contains(args, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case bytes.Contains(out, []byte("[no tests to run]")):
		return out, fmt.Errorf("%w: no test has the name that the patch gives", errNoVerdict)
	case err == nil:
		return out, nil
	case !bytes.Contains(out, []byte("--- FAIL")) && !bytes.Contains(out, []byte("panic: ")) && !bytes.Contains(out, []byte("fatal error: ")) &&
		!bytes.Contains(out, []byte("WARNING: DATA RACE")) && !bytes.Contains(out, []byte("goleak: ")):
		return out, fmt.Errorf("%w: %v: %s", errNoVerdict, err, firstLine(out))
	}
	return out, err
}

func firstLine(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return "no output"
}
