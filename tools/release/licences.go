package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed are the licences that a dependency may have, by their SPDX names.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// A library is a dependency of the module's packages, programs or tests, or of gputrace's pages.
type library struct {
	purl, name, version string
	sum                 string // the hash in go.sum
	licence             string // an SPDX name, or several with AND between them
	test                bool   // only tests need it
}

// licences checks the licence of each module that the packages, programs and tests import on Linux,
// Windows, macOS or FreeBSD, and of the scripts in gputrace's pages. It lists these dependencies in
// r.bill.
func (r *release) licences(ctx context.Context) error {
	libraries := map[string]library{}
	var errs []error
	for _, tests := range []bool{false, true} {
		for _, system := range []string{"linux", "windows", "darwin", "freebsd"} {
			args := []string{"list", "-deps", "-json=Module"}
			if tests {
				args = append(args, "-test")
			}
			out, err := r.command(ctx, r.root, []string{"GOOS=" + system, "GOARCH=amd64", "CGO_ENABLED=0"}, "go", append(args, "./...")...)
			if err != nil {
				return err
			}
			type pkg struct {
				Module *struct {
					Path, Version, Dir, Sum string
					Main                    bool
				}
			}
			for d := json.NewDecoder(strings.NewReader(out)); ; {
				var p pkg
				if err := d.Decode(&p); err == io.EOF {
					break
				} else if err != nil {
					return err
				}
				m := p.Module
				if m == nil || m.Main {
					continue
				}
				if _, known := libraries[m.Path]; known {
					continue
				}
				licence, err := licenceOf(m.Dir)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
				}
				libraries[m.Path] = library{
					purl: "pkg:golang/" + m.Path + "@" + m.Version, name: m.Path, version: m.Version,
					sum: m.Sum, licence: licence, test: tests,
				}
			}
		}
	}
	r.bill = nil
	for _, l := range libraries {
		r.bill = append(r.bill, l)
	}
	scripts, err := r.scripts()
	if err != nil {
		errs = append(errs, err)
	}
	r.bill = append(r.bill, scripts...)
	for _, l := range r.bill {
		for name := range strings.SplitSeq(l.licence, " AND ") {
			if name != "" && !slices.Contains(allowed, name) {
				errs = append(errs, fmt.Errorf("%s %s: the licence %s is not one of %s", l.name, l.version, name, strings.Join(allowed, ", ")))
			}
		}
	}
	if name, err := licenceOf(r.root); err != nil || name != "Apache-2.0" {
		errs = append(errs, fmt.Errorf("the module's own licence is %q, want Apache-2.0 (%v)", name, err))
	}
	slices.SortFunc(r.bill, func(a, b library) int { return strings.Compare(a.purl, b.purl) })
	return errors.Join(errs...)
}

// licenceOf returns the licence of the module in a folder. Several are joined with AND.
func licenceOf(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") || e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		name, ok := classify(string(text))
		if !ok {
			return "", fmt.Errorf("%s is not the text of a licence that is known here: read it, and teach tools/release its name", filepath.Join(dir, e.Name()))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%s has no file LICENSE or COPYING", dir)
	}
	return strings.Join(names, " AND "), nil
}

// marks are sentences by which a licence is recognized, in lower case and without line ends. A text
// has the first licence of the list whose sentences it contains.
var marks = []struct {
	name      string
	sentences []string
}{
	{"AGPL-3.0", []string{"gnu affero general public license"}},
	{"LGPL", []string{"gnu lesser general public license"}},
	{"GPL", []string{"gnu general public license"}},
	{"MPL-2.0", []string{"mozilla public license"}},
	{"Apache-2.0", []string{"apache license version 2.0", "grant of copyright license"}},
	{"BSD-3-Clause", []string{"redistributions in binary form must reproduce", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice shall be included"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software", "provided that the above copyright notice and this permission notice appear"}},
	{"0BSD", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted. the software"}},
}

func classify(text string) (string, bool) {
	plain := strings.ToLower(strings.Join(strings.Fields(text), " "))
	plain = strings.ReplaceAll(plain, "license, version", "license version")
	for _, m := range marks {
		if !slices.ContainsFunc(m.sentences, func(s string) bool { return !strings.Contains(plain, s) }) {
			return m.name, true
		}
	}
	return "", false
}

var (
	scriptList = regexp.MustCompile(`(?m)^((?:[\w@/.-]+ [0-9][\w.]*(?:, )?)+):$`)
	scriptName = regexp.MustCompile(`([\w@/.-]+) ([0-9][\w.]*)`)
)

// scripts reads the list of libraries in the script of gputrace's pages: lines that have names with
// versions and end with a colon, each followed by the licence.
func (r *release) scripts() ([]library, error) {
	name := filepath.Join(r.root, "tools", "gputrace", "web", "LICENSES")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	at := scriptList.FindAllSubmatchIndex(text, -1)
	if len(at) == 0 {
		return nil, fmt.Errorf("%s has no line such as d3-zoom 3.0.1:", name)
	}
	var out []library
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		licence, ok := classify(string(bytes.TrimSpace(text[m[1]:end])))
		if !ok {
			return nil, fmt.Errorf("%s: the licence of %s is not known here", name, text[m[2]:m[3]])
		}
		for _, n := range scriptName.FindAllSubmatch(text[m[2]:m[3]], -1) {
			out = append(out, library{purl: fmt.Sprintf("pkg:npm/%s@%s", n[1], n[2]), name: string(n[1]), version: string(n[2]), licence: licence})
		}
	}
	return out, nil
}
