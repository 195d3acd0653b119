package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// tree checks that all changes are committed, and that the version's tag does not exist or is on
// this commit.
func (r *release) tree(ctx context.Context) error {
	changed, err := r.command(ctx, r.root, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("not committed:\n%s", tail(changed, 20))
	}
	tags, err := r.command(ctx, r.root, nil, "git", "tag", "--list", r.version)
	if err != nil || strings.TrimSpace(tags) == "" {
		return err
	}
	var commits [2]string
	for i, name := range []string{"HEAD", "refs/tags/" + r.version + "^{commit}"} {
		if commits[i], err = r.command(ctx, r.root, nil, "git", "rev-parse", name); err != nil {
			return err
		}
	}
	if commits[0] != commits[1] {
		return fmt.Errorf("the tag %s is on commit %s, and %s is checked out", r.version, strings.TrimSpace(commits[1]), strings.TrimSpace(commits[0]))
	}
	return nil
}

// A section of the changelog describes one release.
type section struct {
	version string
	text    string
}

var sectionHeading = regexp.MustCompile(`(?m)^## \[?([^\]\s]+)\]?.*$`)

// sections returns the sections of the changelog, in the order of the file.
func (r *release) sections() ([]section, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	at := sectionHeading.FindAllSubmatchIndex(text, -1)
	var out []section
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out = append(out, section{version: string(text[m[2]:m[3]]), text: strings.TrimSpace(string(text[m[1]:end]))})
	}
	if len(out) == 0 {
		return nil, errors.New("CHANGELOG.md has no section: it needs a heading such as ## v0.1.0")
	}
	return out, nil
}

func (r *release) changelog(context.Context) error {
	sections, err := r.sections()
	if err != nil {
		return err
	}
	if s := sections[0]; s.version != r.version {
		return fmt.Errorf("the first section of CHANGELOG.md is %s: make it the section of %s", s.version, r.version)
	} else if s.text == "" {
		return fmt.Errorf("the section %s of CHANGELOG.md is empty", r.version)
	}
	for i, s := range sections[1:] {
		if !semver.IsValid(s.version) {
			return fmt.Errorf("the section %s of CHANGELOG.md is no version", s.version)
		}
		if semver.Compare(s.version, sections[i].version) >= 0 {
			return fmt.Errorf("the section %s of CHANGELOG.md comes behind %s, and is not older", s.version, sections[i].version)
		}
	}
	return nil
}

// A goMod has the contents of go.mod.
type goMod struct {
	text     []byte
	language string // the Go release without its patch level: "1.26"
}

func (r *release) readGoMod() error {
	name := filepath.Join(r.root, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	if f.Module == nil || f.Go == nil {
		return fmt.Errorf("%s names no module or no Go release", name)
	}
	if len(f.Replace) > 0 {
		return fmt.Errorf("%s replaces modules, which does not count for programs that use the module", name)
	}
	r.path = f.Module.Mod.Path
	r.goMod = goMod{text: text, language: strings.TrimPrefix(semver.MajorMinor("v"+f.Go.Version), "v")}
	return nil
}

// goReleases matches the sentences of pages, and the images of recipes, that name the Go release
// that puregpu needs.
var goReleases = regexp.MustCompile(`Go (1\.\d+)(?:\.\d+)? or newer|names, now (1\.\d+)|golang:(1\.\d+)`)

// versions compares the versions in pages and recipes with this release and with go.mod.
func (r *release) versions(context.Context) error {
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version {
		return fmt.Errorf("%q is no version such as v0.1.0", r.version)
	}
	if err := module.Check(r.path, r.version); err != nil {
		return err
	}
	own := regexp.MustCompile(regexp.QuoteMeta(r.path) + `(?:/[\w/.-]+)?@(v[0-9][^\s\x60"'),;]*)`)
	var errs []error
	found := 0
	err := r.files(func(name string, text []byte) {
		for _, m := range goReleases.FindAllSubmatch(text, -1) {
			found++
			if is := string(m[1]) + string(m[2]) + string(m[3]); is != r.goMod.language {
				errs = append(errs, fmt.Errorf("%s says %q, and go.mod has go %s", name, m[0], r.goMod.language))
			}
		}
		for _, m := range own.FindAllSubmatch(text, -1) {
			// v0.0.0 is the version of a module that a folder replaces.
			if is := strings.TrimRight(string(m[1]), "."); is != r.version && is != "v0.0.0" {
				errs = append(errs, fmt.Errorf("%s names %s, and the release is %s", name, m[0], r.version))
			}
		}
	}, ".md", "Containerfile")
	if err != nil {
		return err
	}
	if found == 0 {
		errs = append(errs, errors.New("no page says which Go release is needed"))
	}
	return errors.Join(errs...)
}

// files calls do for each file of the module whose name ends with one of the given endings. It
// skips folders that are named build, which git ignores, or whose name begins with a dot.
func (r *release) files(do func(name string, text []byte), endings ...string) error {
	return filepath.WalkDir(r.root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != r.root && (name == "build" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) }) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		shown, err := filepath.Rel(r.root, file)
		if err != nil {
			return err
		}
		do(filepath.ToSlash(shown), text)
		return nil
	})
}

func (r *release) tidy(ctx context.Context) error {
	var dirs []string
	if err := r.files(func(name string, _ []byte) { dirs = append(dirs, filepath.Dir(name)) }, "go.mod"); err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if out, err := r.command(ctx, filepath.Join(r.root, dir), nil, "go", "mod", "tidy", "-diff"); err != nil {
			errs = append(errs, fmt.Errorf("%w\n%s", err, tail(out, 20)))
		}
	}
	return errors.Join(errs...)
}

func (r *release) verify(ctx context.Context) error {
	_, err := r.command(ctx, r.root, nil, "go", "mod", "verify")
	return err
}

// recordTests compare the API with its record, and check the links of pages and comments.
var recordTests = []string{"TestAPI", "TestDocLinks", "TestPageLinks"}

func (r *release) records(ctx context.Context) error {
	out, err := r.command(ctx, r.root, nil, "go", "test", "-count=1", "-json", "-run=^("+strings.Join(recordTests, "|")+")$", "./internal/apitest")
	passed := map[string]bool{}
	var said strings.Builder
	for line := range strings.Lines(out) {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal([]byte(line), &event) == nil {
			said.WriteString(event.Output)
			passed[event.Test] = passed[event.Test] || event.Action == "pass"
		}
	}
	if err != nil {
		return fmt.Errorf("go test ./internal/apitest:\n%s", tail(said.String(), 20))
	}
	for _, name := range recordTests {
		if !passed[name] {
			return fmt.Errorf("go test ./internal/apitest does not run %s", name)
		}
	}
	return nil
}

func (r *release) generated(ctx context.Context) error {
	_, err := r.command(ctx, r.root, nil, "sh", "tools/bundle/drift.sh")
	return err
}
