// Command release checks what a release of puregpu needs, and writes what is published with it.
//
//	release [-C DIR] [-o DIR] [VERSION]
//
// VERSION is a version such as v0.1.0; by default, that of the first section of CHANGELOG.md. The
// release is the commit that is checked out. release does not tag it and does not publish anything.
//
// It makes these checks, and continues after one that fails:
//
//	tree        all changes are committed, and no other commit has the tag
//	changelog   the first section of CHANGELOG.md is that of the version, and it is not empty
//	versions    pages name this version and the Go release of go.mod
//	tidy        go mod tidy changes no go.mod and no go.sum
//	verify      no dependency in the module cache was changed after its download
//	records     the exported API is as recorded, and links of pages and comments have a target
//	generated   the generators write the same files again
//	licences    each dependency has a licence that is known and allowed
//	module      the module's zip works through a module proxy: a program that imports all packages
//	            builds, the module's own programs install, and gpuinfo prints the version
//
// If all checks succeed, it writes to DIR (by default build/release) the module's zip as a module
// proxy serves it, a bill of materials (CycloneDX), and SHA256SUMS of both. The exit status is 1 if
// a check fails.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	flags := flag.NewFlagSet("release", flag.ExitOnError)
	root := flags.String("C", ".", "root `folder` of the module")
	out := flags.String("o", "", "`folder` to write into; build/release in the module if empty")
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: release [-C DIR] [-o DIR] [VERSION]")
		flags.PrintDefaults()
	}
	flags.Parse(os.Args[1:])
	if flags.NArg() > 1 {
		flags.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := newRelease(*root, flags.Arg(0))
	if err == nil {
		if *out == "" {
			*out = filepath.Join(r.root, "build", "release")
		}
		err = r.run(ctx, os.Stdout, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A release is a release of the module, at the commit that is checked out.
type release struct {
	root    string // folder of the module
	path    string // the module's import path
	goMod   goMod
	version string
	env     []string // environment variables for the commands, besides those of this process

	zip  []byte    // the module's zip, made by the check module
	bill []library // dependencies, found by the check licences
}

// newRelease reads go.mod, and takes the version from the changelog if version is empty.
func newRelease(root, version string) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &release{root: root, version: version}
	if err := r.readGoMod(); err != nil {
		return nil, err
	}
	if r.version == "" {
		sections, err := r.sections()
		if err != nil {
			return nil, err
		}
		r.version = sections[0].version
	}
	return r, nil
}

type check struct {
	name string
	run  func(context.Context) error
}

func (r *release) checks() []check {
	return []check{
		{"tree", r.tree},
		{"changelog", r.changelog},
		{"versions", r.versions},
		{"tidy", r.tidy},
		{"verify", r.verify},
		{"records", r.records},
		{"generated", r.generated},
		{"licences", r.licences},
		{"module", r.module},
	}
}

// run makes all checks, prints a line for each, and writes the files if all checks succeed.
func (r *release) run(ctx context.Context, w io.Writer, out string) error {
	fmt.Fprintf(w, "%s %s\n", r.path, r.version)
	failed := 0
	for _, c := range r.checks() {
		start := time.Now()
		err := c.run(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed++
			fmt.Fprintf(w, "FAILED  %-10s %s\n", c.name, strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n        "))
			continue
		}
		fmt.Fprintf(w, "ok      %-10s %.1f s\n", c.name, time.Since(start).Seconds())
	}
	if failed > 0 {
		return fmt.Errorf("%s is not ready: %d checks failed, and nothing is written", r.version, failed)
	}
	return r.write(w, out)
}

// command runs a command in a folder, and returns its standard output. The error contains the end
// of the command's whole output.
func (r *release) command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), r.env...), env...)
	var stdout, both bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, &both), &both
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s in %s: %w\n%s", name, strings.Join(args, " "), dir, err, tail(both.String(), 30))
	}
	return stdout.String(), nil
}

// tail returns the last lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
