package compilelog

import (
	"reflect"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, log string
		want      []driver.Message
	}{
		{"nothing", "", nil},
		{"a NUL", "\x00", nil},
		{"NVRTC 11.8", "h.h(1): error: identifier \"b\" is undefined\n\na.cu(2): warning #177-D: variable \"unused\" was declared but never referenced\n\n" +
			"a.cu(4): error: expected a \";\"\n\n2 errors detected in the compilation of \"a.cu\".\n\x00", []driver.Message{
			{File: "h.h", Line: 1, Kind: "error", Text: `identifier "b" is undefined`},
			{File: "a.cu", Line: 2, Kind: "warning", Number: "177-D", Text: `variable "unused" was declared but never referenced`},
			{File: "a.cu", Line: 4, Kind: "error", Text: `expected a ";"`},
		}},
		{"NVRTC 12.4", "a.cu(2): error: identifier \"nothing\" is undefined\n  *x = nothing;\n       ^\n\n" +
			"Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n" +
			"a.cu(3): catastrophic error: #error directive: bad\n  #error bad\n   ^\n\n1 catastrophic error detected in the compilation of \"a.cu\".\nCompilation terminated.\n\x00", []driver.Message{
			{File: "a.cu", Line: 2, Column: 6, Kind: "error", Text: `identifier "nothing" is undefined`, Detail: "  *x = nothing;\n       ^"},
			{File: "a.cu", Line: 3, Column: 2, Kind: "catastrophic error", Text: "#error directive: bad", Detail: "  #error bad\n   ^"},
		}},
		{"where a template is used", "a.cu(2): error: no\n  x\n  ^\n          detected during instantiation of class \"S<T> [with T=int]\" \n(2): here\n\n", []driver.Message{
			{File: "a.cu", Line: 2, Column: 1, Kind: "error", Text: "no", Detail: "  x\n  ^\n          detected during instantiation of class \"S<T> [with T=int]\" \n(2): here"},
		}},
		{"a name with parentheses", "dir/with (1) paren.cu(3): warning #1105-D: #warning directive: see a.cu(2): error: here\n", []driver.Message{
			{File: "dir/with (1) paren.cu", Line: 3, Kind: "warning", Number: "1105-D", Text: "#warning directive: see a.cu(2): error: here"},
		}},
		{"ptxas", "ptxas application ptx input, line 28; error   : Not a name of any known instruction: 'bogus'\nptxas fatal   : Ptx assembly aborted due to errors\n\x00\x00", []driver.Message{
			{File: "ptx input", Line: 28, Kind: "error", Text: "ptxas: Not a name of any known instruction: 'bogus'"},
			{Kind: "fatal", Text: "ptxas: Ptx assembly aborted due to errors"},
		}},
		{"an option", "nvrtc: error: unrecognized option --no-such found\n\x00", []driver.Message{
			{Kind: "error", Text: "nvrtc: unrecognized option --no-such found"},
		}},
		{"clang", "k.hip:2:7: error: use of undeclared identifier 'x'\n    2 | *x = y;\n      |      ^\n/tmp/c:\\d.hip:3:1: note: here\n1 error generated when compiling for gfx942.\n", []driver.Message{
			{File: "k.hip", Line: 2, Column: 7, Kind: "error", Text: "use of undeclared identifier 'x'", Detail: "    2 | *x = y;\n      |      ^"},
			{File: "/tmp/c:\\d.hip", Line: 3, Column: 1, Kind: "note", Text: "here"},
		}},
		{"clang's on an option", "error: unsupported option '--no-such'\n1 error generated when compiling for gfx90a.\n", []driver.Message{
			{Kind: "error", Text: "unsupported option '--no-such'"},
		}},
		{"nvJitLink", "ERROR in nvvmCompileProgram: NVVM_ERROR_COMPILATION\nb.cu: link error: error: Linking globals named '_Z6factori': symbol multiply defined!\n\n\x00", []driver.Message{
			{File: "b.cu", Kind: "error", Text: "Linking globals named '_Z6factori': symbol multiply defined!"},
		}},
		{"a number too large", "a.cu(99999999999999999999): error: far\n", []driver.Message{{File: "a.cu", Kind: "error", Text: "far"}}},
		{"unknown lines", "something\nelse(1) happened\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Parse(c.log); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q\ngives %+v\nwant  %+v", c.log, got, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a.cu(2): error: no\n  x\n  ^\n\n")
	f.Add("k.hip:2:7: fatal error: no\nptxas error   : x\n\x00")
	f.Fuzz(func(t *testing.T, log string) {
		for _, m := range Parse(log) {
			if m.Line < 0 || m.Column < 0 || m.Kind == "" || strings.Contains(m.Text, "\n") {
				t.Errorf("%q gives %+v", log, m)
			}
			_ = m.String()
		}
	})
}
