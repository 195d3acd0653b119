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
