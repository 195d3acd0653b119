package driver

import (
	"errors"
	"testing"
)

func TestCompileError(t *testing.T) {
	why := errors.New("why")
	for _, c := range []struct {
		err  CompileError
		want string
	}{
		{CompileError{}, "C 1 for sm_1: a.cu: why"},
		{CompileError{Log: " \n"}, "C 1 for sm_1: a.cu: why"},
		{CompileError{Log: "odd\n", Messages: []Message{{Kind: "warning", Text: "w"}}}, "C 1 for sm_1: a.cu: why\nodd"},
		{CompileError{Log: "x.h(3): error #20-D: no\n", Messages: []Message{{File: "x.h", Line: 3, Kind: "error", Number: "20-D", Text: "no"}}}, "C 1 for sm_1: x.h(3): error #20-D: no"},
		{CompileError{Log: "fatal: f\nmore\n", Messages: []Message{{Kind: "fatal", Text: "f"}}}, "C 1 for sm_1: fatal: f\nmore"},
		{CompileError{Log: "all\n", Messages: []Message{{Kind: "warning", Text: "w"}, {Kind: "fatal", Text: "f"}, {Kind: "catastrophic error", Text: "c"}}}, "C 1 for sm_1: fatal: f (and 1 more)\nall"},
	} {
		c.err.Source, c.err.Compiler, c.err.Target, c.err.Err = "a.cu", "C 1", "sm_1", why
		if got := c.err.Error(); got != c.want {
			t.Errorf("%+v\nis  %q\nnot %q", c.err, got, c.want)
		}
		if !errors.Is(&c.err, why) {
			t.Errorf("%v is not the compiler's error", &c.err)
		}
	}
}
