// Command shape prints figures of the core's packages that should stay small: lines, fields of
// structs, complexity of functions, and mutexes that do not say what they protect.
//
//	go run ./tools/shape [-most 15] [folder...]
//
// The default folders are those of the core. A folder that ends in /... includes the folders below
// it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// Limits above which a function is listed.
const (
	maxComplexity = 20
	maxLines      = 80
)

// core lists the folders to read if none is named. Missing folders are left out.
var core = []string{
	"runtime/gpu", "runtime/internal/...", "runtime/collective/...", "runtime/compile/...", "runtime/control/...", "runtime/interop/...", "runtime/trace/...",
}

func main() {
	most := flag.Int("most", 15, "print at most this many functions and mutexes; 0 prints all")
	flag.Parse()
	folders := flag.Args()
	if len(folders) == 0 {
		folders = core
	}
	var pkgs []*pkg
	m := module{root: ".", path: modulePath(".")}
	for _, dir := range m.expand(folders) {
		p, err := m.load(dir)
		if err != nil { // the figures of the other folders are still useful
			fmt.Fprintln(os.Stderr, "shape:", err)
		}
		if p != nil && p.lines > 0 {
			pkgs = append(pkgs, p)
		}
	}
	report(os.Stdout, &m, pkgs, *most)
}

// report prints a row for each package, the longest first, then functions and mutexes, the worst
// first.
func report(out io.Writer, m *module, pkgs []*pkg, most int) {
	slices.SortStableFunc(pkgs, func(a, b *pkg) int { return b.lines - a.lines })
	var functions []function
	var mutexes []string
	lines := 0
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\tlines\tlargest struct\tfields\tfunctions\tmutexes")
	for _, p := range pkgs {
		name, fields := m.largest(p)
		fs := slices.DeleteFunc(p.functions(), func(f function) bool { return f.complexity <= maxComplexity && f.lines <= maxLines })
		ms := p.mutexes()
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%d\n", p.dir, p.lines, name, fields, len(fs), len(ms))
		lines += p.lines
		functions = append(functions, fs...)
		mutexes = append(mutexes, ms...)
	}
	fmt.Fprintf(w, "all\t%d\t\t\t%d\t%d\n", lines, len(functions), len(mutexes))
	w.Flush()

	slices.SortStableFunc(functions, func(a, b function) int {
		if a.complexity != b.complexity {
			return b.complexity - a.complexity
		}
		return b.lines - a.lines
	})
	fmt.Fprintf(out, "\nfunctions of a complexity above %d or of more than %d lines: %d\n", maxComplexity, maxLines, len(functions))
	fmt.Fprintln(w, "complexity\tlines\tfunction\tplace")
	for _, f := range upTo(functions, most) {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\n", f.complexity, f.lines, f.name, f.place)
	}
	w.Flush()
	fmt.Fprintf(out, "\nmutexes that do not say what they protect: %d\n", len(mutexes))
	for _, place := range upTo(mutexes, most) {
		fmt.Fprintln(out, place)
	}
}

// upTo returns the first n of s, or all if n is 0.
func upTo[T any](s []T, n int) []T {
	if n == 0 || n > len(s) {
		n = len(s)
	}
	return s[:n]
}

// modulePath returns the path of the module in folder root, or "".
func modulePath(root string) string {
	text, _ := os.ReadFile(root + "/go.mod")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}
