package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/cproof"
)

// drawn.json has packages of Debian 12. The packages are drawn from the -dev packages of the
// section libdevel that are not in bind-main. In the order of a shuffle they are the first
// packages, drawnPackages in number, that are small and have headers which gcc accepts alone as C
// and which declare a function. This project has no influence on the choice.
const (
	drawnFile     = "tools/reallibs/drawn.json"
	drawnPackages = 30
	drawnSeed     = 42
	// The greatest number of bytes to fetch for a package, together with its -dev dependencies.
	drawnSize = 3 << 20
)

// A drawn library is a Debian package with C headers.
type drawn struct {
	Package  string   `json:"package"`
	Packages []string `json:"packages"`          // the package and its -dev dependencies
	Folders  []string `json:"folders,omitempty"` // folders with headers, below usr/include
	Include  []string `json:"include"`           // all its headers that compile, one after the other
}

//go:embed drawn.json
var drawnText []byte

// drawnLibraries returns the contents of drawn.json.
func drawnLibraries() (list []drawn, err error) {
	err = json.Unmarshal(drawnText, &list)
	return list, err
}

// draw draws the libraries again and writes drawn.json.
func draw(ctx context.Context, w io.Writer, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	main := &bindUnits[0]
	if _, err := main.fetch(ctx, dir); err != nil {
		return err
	}
	d := &drawing{ctx: ctx, lists: filepath.Join(dir, main.name)}
	if d.cc, err = cproof.Find(ctx, "gcc"); err != nil {
		return err
	}
	if err := d.read(); err != nil {
		return err
	}
	names := []string{}
	for name, p := range d.packages {
		if p["Section"] == "libdevel" && strings.HasSuffix(name, "-dev") && !slices.Contains(main.packages, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	rand.New(rand.NewPCG(drawnSeed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	list := []drawn{}
	for i, name := range names {
		if len(list) == drawnPackages {
			fmt.Fprintf(w, "%d of %d packages were looked at\n", i, len(names))
			break
		}
		got, err := d.try(name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(w, "%s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(w, "%s: %d headers\n", name, len(got.Include))
		list = append(list, *got)
	}
	text, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(drawnFile, append(text, '\n'), 0o644)
}

type drawing struct {
	ctx      context.Context
	lists    string // folder with the package lists
	cc       *cproof.Compiler
	packages map[string]map[string]string // the fields of each package in the lists
}

// read reads the list of all packages.
func (d *drawing) read() error {
	text, err := apt(d.ctx, d.lists, "apt-cache", "dumpavail")
	d.packages = map[string]map[string]string{}
	for _, paragraph := range strings.Split(text, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(paragraph) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
				fields[name] = value
			}
		}
		d.packages[fields["Package"]] = fields
	}
	return err
}

var dependency = regexp.MustCompile(`[a-z0-9][a-z0-9.+-]*-dev\b`)

// closure returns a package and its -dev dependencies, without those of the C and C++ libraries,
// and the number of bytes to fetch.
func (d *drawing) closure(name string) (all []string, size int) {
	all = []string{name}
	for i := 0; i < len(all); i++ {
		var n int
		fmt.Sscan(d.packages[all[i]]["Size"], &n)
		size += n
		for _, need := range strings.Split(d.packages[all[i]]["Depends"]+", "+d.packages[all[i]]["Pre-Depends"], ",") {
			dep := dependency.FindString(strings.TrimSpace(need))
			if dep != "" && d.packages[dep] != nil && !slices.Contains(all, dep) && dep != "libc6-dev" && dep != "linux-libc-dev" && !strings.HasPrefix(dep, "libstdc++") {
				all = append(all, dep)
			}
		}
	}
	return all, size
}

// try fetches a package and finds the headers that compile.
func (d *drawing) try(name string) (*drawn, error) {
	all, size := d.closure(name)
	if size > drawnSize {
		return nil, fmt.Errorf("%d bytes to fetch", size)
	}
	debs := filepath.Join(d.lists, "cache/archives")
	if _, err := apt(d.ctx, d.lists, "apt-get", append([]string{"download"}, all...)...); err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp("", "draw")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	own := filepath.Join(root, "own")
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		for _, to := range []string{filepath.Join(root, "all"), own} {
			if to == own && !strings.HasPrefix(filepath.Base(file), name+"_") {
				continue
			}
			if out, err := exec.CommandContext(d.ctx, "dpkg", "-x", file, to).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%w: %s", err, out)
			}
		}
		os.Remove(file)
	}
	include := filepath.Join(root, "all/usr/include")
	got := &drawn{Package: name, Packages: all, Folders: flags(filepath.Join(root, "all"))}
	dirs := []string{include, filepath.Join(include, "x86_64-linux-gnu")}
	for _, f := range got.Folders {
		dirs = append(dirs, filepath.Join(include, f))
	}
	var headers []string
	err = filepath.WalkDir(filepath.Join(own, "usr/include"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(path, ".h") {
			rel, _ := filepath.Rel(filepath.Join(own, "usr/include"), path)
			headers = append(headers, strings.TrimPrefix(rel, "x86_64-linux-gnu/"))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(headers) == 0 {
		return nil, errors.New("no headers")
	}
	for _, h := range headers { // in the alphabetical order of WalkDir
		if d.compiles(dirs, []string{h}) && d.compiles(dirs, append(slices.Clip(got.Include), h)) {
			got.Include = append(got.Include, h)
		}
	}
	if len(got.Include) == 0 {
		return nil, errors.New("no header that compiles alone as C")
	}
	if !d.declares(root, dirs, got.Include) {
		return nil, errors.New("no function in C")
	}
	return got, nil
}

// compiles reports whether a compiler accepts headers, one after the other.
func (d *drawing) compiles(dirs, headers []string, more ...string) bool {
	args := d.cc.Flags(append(more, "-fsyntax-only", "-x", "c", "-")...)
	for _, dir := range dirs {
		args = append(args, "-I"+dir)
	}
	cmd := exec.CommandContext(d.ctx, d.cc.Path, args...)
	cmd.Stdin = strings.NewReader("#include <" + strings.Join(headers, ">\n#include <") + ">\n")
	return cmd.Run() == nil
}

// declares reports whether one of the headers declares a function. gcc lists all prototypes with
// their files.
func (d *drawing) declares(root string, dirs, headers []string) bool {
	list := filepath.Join(root, "prototypes")
	d.compiles(dirs, headers, "-aux-info", list)
	text, _ := os.ReadFile(list)
	return slices.ContainsFunc(headers, func(h string) bool { return strings.Contains(string(text), "/"+h+":") })
}

// flags returns the folders below usr/include that the .pc files of packages name.
func flags(root string) (folders []string) {
	var files []string
	for _, pattern := range []string{"usr/lib/x86_64-linux-gnu/pkgconfig/*.pc", "usr/share/pkgconfig/*.pc", "usr/lib/pkgconfig/*.pc"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		files = append(files, found...)
	}
	variable := regexp.MustCompile(`\$\{(\w+)\}`)
	for _, file := range files {
		text, _ := os.ReadFile(file)
		values := map[string]string{}
		for line := range strings.Lines(string(text)) {
			line = variable.ReplaceAllStringFunc(strings.TrimSpace(line), func(v string) string { return values[v[2:len(v)-1]] })
			if name, value, ok := strings.Cut(line, "="); ok && !strings.ContainsAny(name, " :") {
				values[name] = value
			}
			if rest, ok := strings.CutPrefix(line, "Cflags:"); ok {
				for _, flag := range strings.Fields(rest) {
					if dir, ok := strings.CutPrefix(filepath.Clean(strings.TrimPrefix(flag, "-I")), "/usr/include/"); ok && !slices.Contains(folders, dir) && dir != "x86_64-linux-gnu" {
						folders = append(folders, dir)
					}
				}
			}
		}
	}
	slices.Sort(folders)
	return folders
}
