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

// TestManyIsNoOutput checks that a comment that speaks of an array makes no output of one element.
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
