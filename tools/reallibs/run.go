package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// patience is the time limit of a program that calls a library: a function of the library may hang.
const patience = 5 * time.Minute

// A found is a release of a library, with the facts about its file.
type found struct {
	release
	lib   *library
	path  string
	facts *facts
}

// runUnits fetches units one after the other, until the context named fetching ends, and tries the
// units' libraries.
func runUnits(ctx, fetching context.Context, w io.Writer, dir string, chosen []unit, write bool) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("Debian has these libraries for linux/amd64 only; this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	module, err := moduleRoot()
	if err != nil {
		return err
	}
	tests := filepath.Join(dir, "tests")
	if err := os.RemoveAll(tests); err != nil { // the programs in it may be from older sources
		return err
	}
	if err := os.MkdirAll(tests, 0o777); err != nil {
		return err
	}
	var all []found
	var absent []string
	var failed []error
	for _, u := range chosen {
		root, err := u.fetch(fetching, dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", u.name, strings.ReplaceAll(err.Error(), "\n", "\n\t")))
			continue
		}
		fs, errs := u.try(ctx, w, module, root, tests)
		all, failed = append(all, fs...), append(failed, errs...)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nlibrary\trelease\ttells\texports\tbound\tresolved\tabsent\trefused")
	for _, f := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t", f.lib.name, f.name, f.lib.format(f.facts.Version), len(f.facts.Exports), f.facts.Bound)
		if f.facts.TooOld != "" {
			fmt.Fprintln(table, "too old\t\t")
			continue
		}
		fmt.Fprintf(table, "%d\t%d\t%d\n", len(f.facts.Resolved), f.facts.Absent, len(f.facts.Refused))
	}
	table.Flush()
	for _, a := range absent {
		fmt.Fprintln(w, "could not be had:", a)
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if len(all) == 0 {
		return errors.New("no library could be fetched")
	}
	if write {
		return record(filepath.Join(module, recordDir), all)
	}
	return compareRecord(w, filepath.Join(module, recordDir), all)
}

// moduleRoot returns the folder of go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod in this folder or above: run it in puregpu's source, from which it compiles the tests")
		}
		dir = up
	}
}

// try probes a unit's libraries and runs the tests of their packages.
func (u *unit) try(ctx context.Context, w io.Writer, module, root, tests string) (all []found, failed []error) {
	fail := func(format string, args ...any) {
		err := fmt.Errorf(u.name+": "+format, args...)
		failed = append(failed, err)
		fmt.Fprintln(w, "FAILED", err)
	}
	dirs, err := libraryDirs(root)
	if err != nil {
		fail("%w", err)
		return
	}
	// command returns the command for a program, which runs under the loader of the unit's C
	// library if the unit has one, and of the system otherwise.
	env := append(os.Environ(), "PUREGPU_TEST_REAL_HIP=1")
	command := func(ctx context.Context, program string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(env[:len(env):len(env)], "LD_LIBRARY_PATH="+strings.Join(dirs, ":"))
		return cmd
	}
	if u.closure {
		loader, err := find(root, "ld-linux-x86-64.so.2")
		if err != nil {
			fail("%w", err)
			return
		}
		command = func(ctx context.Context, program string, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, loader, append([]string{"--library-path", strings.Join(dirs, ":"), program}, args...)...)
			cmd.Env = env
			return cmd
		}
	}
	self, err := os.Executable()
	if err != nil {
		fail("%w", err)
		return
	}
	tooOld := false
	for _, r := range u.releases {
		f := found{release: r, lib: libraryNamed(r.library), facts: new(facts)}
		if f.path, err = find(root, r.file); err != nil {
			fail("%w", err)
			continue
		}
		env = append(env, f.lib.env+"="+f.path)
		var out, said bytes.Buffer
		ctx, cancel := context.WithTimeout(ctx, patience)
		cmd := command(ctx, self, "-probe", r.library, f.path)
		cmd.Stdout, cmd.Stderr = &out, &said
		err := cmd.Run()
		cancel()
		if err != nil {
			fail("%s %s: %w: %s", f.lib.name, r.name, err, lastLines(said.String(), 20))
			continue
		}
		// The library itself may have printed something.
		if err := json.Unmarshal(out.Bytes(), f.facts); err != nil {
			fail("%s %s: %w: %s", f.lib.name, r.name, err, lastLines(out.String(), 20))
			continue
		}
		fmt.Fprintf(w, "%s: %s %s, %s\n", u.name, f.lib.name, f.lib.format(f.facts.Version), f.path)
		for _, n := range f.facts.Notes {
			fmt.Fprintf(w, "\t%s\n", n)
		}
		for _, n := range f.facts.Refused {
			fmt.Fprintf(w, "\t%s is refused\n", n)
		}
		if f.facts.TooOld != "" {
			tooOld = true
			fmt.Fprintf(w, "\t%s\n", f.facts.TooOld)
		}
		for _, n := range f.facts.Wrong {
			fail("%s %s: %s", f.lib.name, r.name, n)
		}
		all = append(all, f)
	}
	if tooOld && len(u.tests) > 0 {
		fail("a library is too old for the tests that are to run")
		return
	}
	for _, t := range u.tests {
		binary := filepath.Join(tests, strings.ReplaceAll(t.pkg, "/", "-")+".test")
		if _, err := os.Stat(binary); err != nil {
			build := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), "test", "-c", "-o", binary, "./"+t.pkg)
			build.Dir = module
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				fail("go test -c ./%s: %w: %s", t.pkg, err, out)
				continue
			}
		}
		cmd := command(ctx, binary, "-test.run", t.run, "-test.v", "-test.timeout", "5m")
		cmd.Dir = filepath.Join(module, t.pkg)
		out, err := cmd.CombinedOutput()
		passed, skipped := bytes.Count(out, []byte("--- PASS: ")), bytes.Count(out, []byte("--- SKIP: "))
		switch {
		case err != nil:
			fail("tests %s of package %s: %w\n%s", t.run, t.pkg, err, out)
		case passed == 0 || skipped > 0:
			fail("tests %s of package %s: %d passed and %d were skipped, of which there should be none\n%s", t.run, t.pkg, passed, skipped, out)
		default:
			fmt.Fprintf(w, "%s: %d tests %s of package %s pass\n", u.name, passed, t.run, t.pkg)
		}
	}
	return all, failed
}
