package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made is release 1.0 of a made-up library, with its description and overlay.
var made = map[string]string{
	"symbols/vec/library.json": `{
"library": "vec",
"brand": "Vec",
"prefixes": {"functions": ["vec"], "types": ["vec"], "values": ["VEC_"]},
"version": {"function": "vecVersion", "numbers": [{"major": 1000, "minor": 10}]},
"headers": {"files": ["vec.h"], "version": {"header": "vec.h", "macros": ["VEC_MAJOR", "VEC_MINOR"]}, "since": "releases"},
"implementations": [
  {"name": "vector library", "env": "PUREGPU_VEC_LIBRARY", "files": {"linux": ["libvec.so"]}, "hint": "install it"}
]
}
`,
	"symbols/vec/overlay.json": `{
"sets": [
  {"name":"core","since":"1.0","doc":"what every program needs","match":["vecVersion"]},
  {"name":"rest","since":"1.0","doc":"the rest","match":["*"]}
],
"functions": [
],
"params": [
  {"name":"vec*.version","dir":"out","reason":"receives the number"}
],
"types": [
  {"name":"vecStatus","kind":"result","reason":"every function returns it"}
],
"names": [
  {"name":"vecVersion","go":"GetVersion","reason":"Library.Version is what Open found"}
],
"docs": [
  {"name":"vecVersion","text":"tells the version"},
  {"name":"vecFill","text":"fills a vector"},
  {"name":"vecGone","text":"does something"}
]
}
`,
	"1.0/vec.h": `#define VEC_MAJOR 1
#define VEC_MINOR 0
typedef enum { vecSuccess = 0 } vecStatus;
typedef struct { int a; int b; } vecSettings;
vecStatus vecVersion(int *version);
vecStatus vecFill(const vecSettings *settings);
vecStatus vecGone(int n);
`,
	// Release 1.1 changes the order of a struct's fields, removes a function and adds two. One of
	// the two takes an array that looks like an output.
	"1.1/vec.h": `#define VEC_MAJOR 1
#define VEC_MINOR 1
typedef enum { vecSuccess = 0, vecBusy = 1 } vecStatus;
typedef struct { int b; int a; } vecSettings;
vecStatus vecVersion(int *version);
vecStatus vecFill(const vecSettings *settings);
vecStatus vecSum(int *values, int n);
vecStatus vecStop(void);
`,
}

func TestRefresh(t *testing.T) {
	root := t.TempDir()
	for name, text := range made {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(root, "symbols", "vec")
	empty := `{"library":"vec","version":"0.1","headers":[],"handles":[],"scalars":[],"aliases":[],"enums":[],"structs":[],"callbacks":[],"constants":[],"functions":[]}`
	if err := os.WriteFile(filepath.Join(folder, "table.json"), []byte(empty), 0o644); err != nil {
		t.Fatal(err)
	}
	refreshTo := func(release string) (string, error) {
		var out strings.Builder
		r := refresh{out: &out, folder: folder, pkg: filepath.Join(root, "vec"), headers: []string{filepath.Join(root, release)}}
		err := r.run()
		return out.String(), err
	}
	overlay := filepath.Join(folder, "overlay.json")
	edit := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(overlay)
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("the overlay has no %q (%v):\n%s", from, err, text)
		}
		if err := os.WriteFile(overlay, []byte(strings.Replace(string(text), from, to, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := refreshTo("1.0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	// The new release: refresh lists everything to fill in, each with its place, and generates
	// nothing.
	out, err := refreshTo("1.1")
	if !errors.Is(err, errUnsaid) {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"- function vecGone: vecStatus (int n)\n",
		"+ function vecSum: vecStatus (int *values [out, guessed], int n)\n",
		"~ struct vecSettings\n    ~ b: int at 4, 4 bytes -> int at 0, 4 bytes\n",
		"struct vecSettings: the bound layout stays",
		"5 things that the headers do not say:\n",
		overlay + ":11: vecSum.values: which side writes",
		overlay + ":24: vecStop: the summary, or what the error code means\n",
		overlay + ":25: vecBusy: the summary, or what the error code means\n",
		"the set that [vecSum vecStop] belong to",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("refresh does not print %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "vec", "zfuncs.go")); err != nil {
		t.Error(err)
	}
	if again, err := refreshTo("1.1"); !errors.Is(err, errUnsaid) || strings.Count(again, overlay) != 5 {
		t.Errorf("run again with the blanks: %v\n%s", err, again)
	}

	edit(`{"name":"vecSum.values","dir":"?","reason":"?"}`, `{"name":"vecSum.values","dir":"in","len":"n","reason":"the numbers to add"}`)
	edit(`{"name":"vecSum","text":"?"}`, `{"name":"vecSum","text":"adds numbers"}`)
	edit(`{"name":"vecBusy","text":"?"}`, `{"name":"vecBusy","text":"ask again"}`)
	edit(`{"name":"vecStop","text":"?"}`, `{"name":"vecStop","text":"stops"}`)
	edit(`{"name":"?","since":"1.1","doc":"?","match":["vecSum","vecStop"]}`, `{"name":"sums","since":"1.1","doc":"sums","match":["vecSum","vecStop"]}`)
	out, err = refreshTo("1.1")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := "refused: vecFill, where vecSettings has its fields in another order from 1.1 on;"; !strings.Contains(out, want) {
		t.Errorf("refresh does not print %q:\n%s", want, out)
	}
	text, err := os.ReadFile(filepath.Join(root, "vec", "zsymbols.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{Name: "vecSum", Since: 1010, Set: 1, Sig: "ww"}`,
		`{Name: "vecGone", Since: 1000, Until: 1000, Set: 3, Sig: "w"}`,
		`Misfits: []dl.Misfit{{From: 1010, Why: "vecSettings has its fields in another order from 1.1 on"}}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("zsymbols.go has no %s:\n%s", want, text)
		}
	}
	if out, err := refreshTo("1.1"); err != nil || strings.Contains(out, "wrote") {
		t.Errorf("run again after success: %v\n%s", err, out)
	}
	if _, err := refreshTo("1.2"); err == nil || !strings.Contains(err.Error(), filepath.Join(root, "1.2")) {
		t.Errorf("with a missing folder: %v", err)
	}
}
