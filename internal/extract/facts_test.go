package extract

import (
	"debug/elf"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

func TestDiffPassesWriteErrorsOn(t *testing.T) {
	if err := Diff(brokenWriter{}, &symbols.Table{}, &symbols.Table{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("diff to a closed pipe: %v", err)
	}
}

// TestDiffRelease checks that DiffRelease compares a release with the one before it, and the oldest
// with the next one, and that it leaves out constants that only state the release.
func TestDiffRelease(t *testing.T) {
	v := func(minor int) symbols.Version { return symbols.Version{Major: 1, Minor: minor} }
	d := &symbols.Description{
		Headers: symbols.Headers{Version: symbols.HeaderVersion{Macros: []string{"X_MAJOR", "X_MINOR"}}},
		Version: symbols.Numbering{Numbers: []symbols.Number{{Major: 1000, Minor: 10}}},
	}
	table := &symbols.Table{Library: "x", Version: v(3), Releases: []symbols.Version{v(1), v(2), v(3)}, Constants: []symbols.Constant{
		{Name: "X_MAJOR", Type: "int", Value: "1"},
		{Name: "X_MINOR", Type: "int", Value: "3", Others: []symbols.OtherConstant{{Span: symbols.Span{Since: v(1), Until: v(2)}, Type: "int", Value: "2"}}},
		{Name: "X_BUILD", Type: "int", Value: "77", Others: []symbols.OtherConstant{{Span: symbols.Span{Since: v(1), Until: v(2)}, Type: "int", Value: "5"}}},
		{Name: "X_VERSION", Type: "int", Value: "1030", Others: []symbols.OtherConstant{
			{Span: symbols.Span{Since: v(1), Until: v(1)}, Type: "int", Value: "1010"}, {Span: symbols.Span{Since: v(2), Until: v(2)}, Type: "int", Value: "1020"},
		}},
		{Name: "X_FORMAT_VERSION", Type: "int", Value: "7", Others: []symbols.OtherConstant{{Span: symbols.Span{Since: v(1), Until: v(1)}, Type: "int", Value: "6"}}},
	}}
	for _, c := range []struct {
		of   symbols.Version
		want string
	}{
		{v(1), "x 1.2 -> 1.1\n~ constant X_FORMAT_VERSION: 7 (int) -> 6 (int)\n"},
		{v(2), "x 1.1 -> 1.2\n~ constant X_FORMAT_VERSION: 6 (int) -> 7 (int)\n"},
		{v(3), "x 1.2 -> 1.3\nnothing differs\n"},
		{v(4), "x 1.4: there is no other release to compare it with\n"},
	} {
		var got strings.Builder
		if err := DiffRelease(&got, d, table, c.of); err != nil || got.String() != c.want {
			t.Errorf("%v: %v\n%swant\n%s", c.of, err, &got, c.want)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestVersionNodesOfWhatIsNoLibrary(t *testing.T) {
	_, err := versionNodes(strings.NewReader(strings.Repeat("#!/bin/sh\n", 20)), "hip_")
	if _, ok := errors.AsType[*elf.FormatError](err); !ok {
		t.Errorf("a script gives %v, want a format error", err)
	}
}

func TestExportsOfWhatIsNoLibrary(t *testing.T) {
	_, err := Exports(strings.NewReader(strings.Repeat("#!/bin/sh\n", 20)))
	if _, ok := errors.AsType[*elf.FormatError](err); !ok {
		t.Errorf("a script gives %v, want a format error", err)
	}
}

// TestManyIsNoOutput checks that an output whose comment describes an array or device memory is
// marked as a guess.
func TestManyIsNoOutput(t *testing.T) {
	c := parseComment("/** \\param[out] one the count\n * \\param[out] many array of counts\n * \\param[out] device the sum, in device memory\n */")
	params := []symbols.Param{{Name: "one", Type: "int *"}, {Name: "many", Type: "int *"}, {Name: "device", Type: "float *"}, {Name: "silent", Type: "int *"}}
	applyFacts(params, c)
	for i, guess := range []bool{false, true, true, true} {
		if params[i].Guess != guess {
			t.Errorf("%+v: guess is not %v", params[i], guess)
		}
	}
}

func FuzzComment(f *testing.F) {
	f.Add("/** \\param out - Returned handle */")
	f.Add("/*! @param[in,out] n the count (in bytes)\n */\n")
	f.Add("/** one */ /** \\deprecated")
	f.Add("/**/")
	f.Add("/*!*/ int a; /* \\param x */")
	f.Add("/**\n * \\param\n * \\param [] x\n */")
	f.Fuzz(func(t *testing.T, sep string) {
		c := parseComment(sep)
		for name, p := range c.params {
			if name == "" {
				t.Errorf("%q: a parameter without a name", sep)
			}
			switch p.dir {
			case "", symbols.In, symbols.Out, symbols.InOut:
			default:
				t.Errorf("%q: %s has the direction %q", sep, name, p.dir)
			}
			if p.unit != "" && p.unit != "bytes" {
				t.Errorf("%q: %s has the unit %q", sep, name, p.unit)
			}
		}
		params := []symbols.Param{{Name: "x", Type: "int *"}, {Name: "n", Type: "size_t"}}
		applyFacts(params, c)
	})
}
