package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/runtime/dl"
)

// recordDir is the folder, in the module, of the recorded exports of real libraries: a file for
// each.
const recordDir = "testdata/exports"

// A recorded has the exports of a library's releases, oldest first.
type recorded struct {
	releases []recordedRelease
}

type recordedRelease struct {
	name    string
	version dl.Version // version that the library reported; 0 if none
	file    string     // name of the library's file
	exports []string   // sorted
}

// readRecord reads a record. The file has a line for each release, "release NAME VERSION FILE",
// oldest first, and a line for each function: its name and the releases that export it, as NAME, as
// FIRST..LAST, or * for all.
func readRecord(path string) (*recorded, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(recorded)
	at := func(name string) int {
		return slices.IndexFunc(r.releases, func(x recordedRelease) bool { return x.name == name })
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		bad := fmt.Errorf("%s:%d: %q is not a line of a record", path, n, lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] == "release":
			if len(words) != 4 {
				return nil, bad
			}
			v, err := strconv.ParseInt(words[2], 10, 32)
			if err != nil {
				return nil, bad
			}
			r.releases = append(r.releases, recordedRelease{name: words[1], version: dl.Version(v), file: words[3]})
		case len(words) < 2:
			return nil, bad
		default:
			for _, span := range words[1:] {
				first, last := 0, len(r.releases)-1
				if span != "*" {
					from, to, ok := strings.Cut(span, "..")
					first, last = at(from), at(from)
					if ok {
						last = at(to)
					}
				}
				if first < 0 || last < first {
					return nil, bad
				}
				for i := first; i <= last; i++ {
					r.releases[i].exports = append(r.releases[i].exports, words[0])
				}
			}
		}
	}
	return r, lines.Err()
}

func (r *recorded) write(path, library string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The functions that Debian's builds of %s export. Written by go run ./tools/reallibs -write.\n", library)
	names := map[string][]int{}
	for i, x := range r.releases {
		fmt.Fprintf(&b, "release %s %d %s\n", x.name, x.version, x.file)
		for _, name := range x.exports {
			names[name] = append(names[name], i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b.WriteString(name)
		in := names[name]
		if len(in) == len(r.releases) {
			b.WriteString(" *\n")
			continue
		}
		for len(in) > 0 {
			n := 1
			for n < len(in) && in[n] == in[n-1]+1 {
				n++
			}
			b.WriteString(" " + r.releases[in[0]].name)
			if n > 1 {
				b.WriteString(".." + r.releases[in[n-1]].name)
			}
			in = in[n:]
		}
		b.WriteString("\n")
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

// record puts findings into the records of their libraries. Other releases keep their entries.
func record(dir string, all []found) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, lib := range libraries {
		path := filepath.Join(dir, lib.key+".txt")
		r, err := readRecord(path)
		if errors.Is(err, fs.ErrNotExist) {
			r, err = new(recorded), nil
		}
		if err != nil {
			return err
		}
		changed := false
		for _, f := range all {
			if f.lib.key != lib.key {
				continue
			}
			changed = true
			x := recordedRelease{name: f.name, version: f.facts.Version, file: filepath.Base(f.path), exports: f.facts.Exports}
			r.releases = append(slices.DeleteFunc(r.releases, func(y recordedRelease) bool { return y.name == x.name }), x)
		}
		slices.SortFunc(r.releases, func(a, b recordedRelease) int { return compareNames(a.name, b.name) })
		if changed {
			if err := r.write(path, lib.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareNames orders releases by the numbers in their names.
func compareNames(a, b string) int {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int { return cmp.Compare(number(x), number(y)) })
}

// compareRecord prints which releases differ from their record.
func compareRecord(w io.Writer, dir string, all []found) error {
	for _, f := range all {
		r, err := readRecord(filepath.Join(dir, f.lib.key+".txt"))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(r.releases, func(x recordedRelease) bool { return x.name == f.name })
		if i < 0 || !slices.Equal(r.releases[i].exports, f.facts.Exports) || r.releases[i].version != f.facts.Version {
			fmt.Fprintf(w, "%s %s differs from the build in %s, or the tables have new functions: run make real-libs and commit the files\n", f.lib.name, f.name, recordDir)
		}
	}
	return nil
}
