package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package a

import (
	"sync"

	other "example.com/m/b"
)

type embedded struct {
	x, y int
	embedded2
}

type embedded2 struct{ z int }

// big has 3 + 3 + 1 + 1 + 1 + 4 fields.
type big struct {
	p, q, r int
	embedded
	other.Pair[int]
	*other.Many
	sync.Locker
	a, b, c, d struct{ e, f int }
}

type locks struct {
	bare  sync.Mutex // a leaf
	named sync.Mutex // protects what is below
	field sync.RWMutex // for count
	count int

	head sync.Mutex
	of   int

	// alone has nothing below it.
	alone sync.Mutex

	group struct {
		sync.Mutex
		n int
	}
	two struct {
		a, b sync.Mutex
	}
}

var global sync.Mutex

// guarded guards count.
var guarded sync.Mutex

func (b *big) method(n int, c chan int) int {
	var local sync.Mutex
	local.Lock()
	if n > 1 && n < 5 || n == 7 { // 3
		for range n { // 1
			n++
		}
	}
	f := func() {
		for { // 1
		}
	}
	switch n {
	case 1, 2: // 1
	default:
	}
	select {
	case <-c: // 1
	default:
	}
	f()
	return n
}

func declared()
`

func TestFigures(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.com/m\n\ngo 1.26\n",
		"a/a.go":          source,
		"a/a_test.go":     "package a\n\nvar notCounted int\n",
		"b/b.go":          "package b\n\ntype Pair[T any] struct{ first T }\n\ntype Many struct{ a, b, c, d, e int }\n",
		"b/testdata/c.go": "package c\n",
		"b/broken/d.go":   "package d\n\nfunc f() {\n",
		"long/long.go":    "package long\n\nfunc long() {\n" + strings.Repeat("\t_ = 1\n", 90) + "}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	m := &module{root: root, path: modulePath(root)}
	if got := strings.Join(m.expand([]string{"a", "b/...", "none/..."}), " "); got != "a b b/broken" {
		t.Errorf("folders %s", got)
	}
	a, err := m.load("a")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(source, "\n"); a.lines != want {
		t.Errorf("%d lines, want %d", a.lines, want)
	}
	if name, n := m.largest(a); name != "big" || n != 13 {
		t.Errorf("%s has %d fields", name, n)
	}
	fs := a.functions()
	if len(fs) != 1 || fs[0].name != "big.method" || fs[0].complexity != 8 || fs[0].lines != 23 {
		t.Errorf("functions %+v", fs)
	}
	var mutexes []string
	for _, place := range a.mutexes() {
		_, name, _ := strings.Cut(place, ": ")
		mutexes = append(mutexes, name)
	}
	if got := strings.Join(mutexes, " "); got != "bare alone a global" {
		t.Errorf("mutexes %s", got)
	}
	if p, err := m.load("b/broken"); p == nil || err == nil {
		t.Errorf("what is no Go: %v, %v", p, err)
	}
	if p, err := m.load("none"); p != nil || err != nil {
		t.Errorf("no folder: %v, %v", p, err)
	}

	long, err := m.load("long")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	report(&out, m, []*pkg{long, a}, 1)
	for _, want := range []string{
		"package  lines  largest struct  fields  functions  mutexes\nlong     94                     0       1          0\na        76     big             13      0          4\nall      170                            1          4\n",
		"functions of a complexity above 20 or of more than 80 lines: 1\n",
		"1           92     long      long/long.go:3\n",
		"mutexes that do not say what they protect: 4\na/a.go:27: bare\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report is\n%s\nwithout\n%s", out.String(), want)
		}
	}
}
