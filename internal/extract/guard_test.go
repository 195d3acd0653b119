package extract

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/symbols"
)

// parseText reads a header, which may include y.h; y.h includes the header again. If parsing takes
// longer than a minute, parseText ends the test process: nothing else stops the C front end.
func parseText(text string) (*header, error) {
	late := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("parsing takes too long: %.2000q", text)) })
	defer late.Stop()
	files := fstest.MapFS{"x.h": {Data: []byte(text)}, "y.h": {Data: []byte("int y1(int);\n#include \"x.h\"\nint y2(int);\n")}}
	h, err := parse(source{main: "x.h", files: files, keep: func(f string) bool { return f == "x.h" }})
	if err == nil {
		functions(h, nil)
		typeConstants(&h.table, h.alias)
		handles(&h.table, h.opaque)
		var errs []error
		for _, r := range h.refused {
			errs = append(errs, r)
		}
		err = errors.Join(errs...)
	}
	return h, err
}

// The list odd has unusual headers; many would make the C front end loop or panic. The field err is
// a part of the error, or "" for none.
var odd = []struct{ name, text, err string }{
	{"cut in a parameter", "int f(int *", "end of x.h:1:1: unexpected ';', expected type qualifier"},
	{"cut in a declarator", "int *", "end of x.h:1:1: unexpected ';', expected type qualifier"},
	{"cut in a cast", "int a[sizeof(int *", "expected type qualifier"},
	{"cut in a block", "int (^", "expected type qualifier"},
	{"cut in an array", "int f(int a[static", "unexpected"},
	{"no declarator", "int *;", "x.h:1:6: unexpected ';', expected type qualifier"},
	{"cut by a missing header", "int *\n#include \"none.h\"", `include file not found: "none.h"`},
	{"cut in a macro's arguments", "#define F(x) x\nint * F(", "unterminated argument list"},
	{"cut in a macro", "int f(int);\n#define X_NULL ((void *", ""},
	{"a macro that ends in a macro which does not end", "#define OPEN (int * const\n#define X OPEN\n#define Y OPEN) 0\n", ""},
	{"cut in a character", `'\`, "character constant not terminated"},
	{"cut in a string", "\"\\\r\n", "string literal not terminated"},
	{"cut in the name of a header", `#include <x\`, "unexpected"},
	{"not known to the front end", "_Pragma(", "unterminated argument list"},
	{"cut in a comment", "int * /*", "comment not terminated"},
	{"includes itself", "#include \"x.h\"\nint a;\n", "x.h: x.h includes x.h: more than 2000000 tokens"},
	{"is included by what it includes", "int a(int);\n#include \"y.h\"\n", "x.h: x.h includes y.h includes x.h: more than"},
	{"includes itself, guarded", "#ifndef X\n#define X\n#include \"y.h\"\nint a(int);\n#endif\n", ""},
	{"an empty declaration", "int g(int); ;", ""},
	{"nothing else", ";", ""},
	{"nothing", "", ""},
	{"a sum that doubles", doubling(40), "x.h:41: macro A40: more than 4096 tokens without"},
	{"macros that double, of which none is used", strings.ReplaceAll(doubling(40), "int x", "#define x"), "more than 4096 tokens without"},
	{"a macro with brackets, which is not used", "#define X " + strings.Repeat("(", 200_000) + "\n", "x.h:1: more than 256 brackets"},
	{"brackets", "int a;\nint x = " + strings.Repeat("(", 200_000) + "1" + strings.Repeat(")", 200_000) + ";", "x.h:2: more than 256 brackets"},
	{"structs in structs", strings.Repeat("struct {", 100_000) + "int x;" + strings.Repeat("} a;", 100_000), "more than 256 brackets"},
	{"brackets from macros", "#define A ((((((((\n#define B A A A A A A A A\n#define C B B B B B B B B\nint x = C 1;", "more than 256 brackets"},
	{"macros that double", strings.ReplaceAll(doubling(40), "1 +", "a,"), "x.h:41: macro A40: more than 2000000 tokens"},
	{"more errors than anybody reads", strings.Repeat("int f(int x;\n", 50), "and 30 more errors"},
	{"stars", "int " + strings.Repeat("*", 1_000_000) + "x;", "more than 4096 tokens without"},
	{"operators", "int x = " + strings.Repeat("!", 1_000_000) + "1;", "more than 4096 tokens without"},
	{"sums", "enum { a = 1" + strings.Repeat("+1", 1_000_000) + "};", "more than 4096 tokens without"},
}

func doubling(n int) string {
	var b strings.Builder
	b.WriteString("#define A0 1 +\n")
	for i := range n {
		fmt.Fprintf(&b, "#define A%d A%d A%d\n", i+1, i, i)
	}
	fmt.Fprintf(&b, "int x = A%d 1;\n", n)
	return b.String()
}

func TestOddHeaders(t *testing.T) {
	for _, x := range odd {
		t.Run(x.name, func(t *testing.T) {
			switch _, err := parseText(x.text); {
			case x.err == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil || !strings.HasPrefix(err.Error(), "x.h:") || !strings.Contains(err.Error(), x.err):
				t.Errorf("%v; want %q", err, x.err)
			}
		})
	}
}

// TestLargeHeaders checks that long headers without deep nesting can be read.
func TestLargeHeaders(t *testing.T) {
	list := func(n int, format, sep string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, sep)
	}
	for name, text := range map[string]string{
		"declarations": list(20_000, "int f%d(int);", "\n"),
		"enumerators":  "typedef enum e {" + list(20_000, "A%d", ",") + "} e;",
		"fields":       "typedef struct s {" + list(20_000, "int a%d;", "") + "} s;",
		"parameters":   "int f(" + list(20_000, "int a%d", ",") + ");",
		"statements":   "static void f(void) {" + list(20_000, "if (%d) {} else", " ") + ";}",
	} {
		if _, err := parseText(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHeaderFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "nccl.h"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Table(describe(t, "nccl"), Input{Releases: []fs.FS{Folder(dir)}}); err == nil || !strings.Contains(err.Error(), "a directory, not a regular file") {
		t.Error(err)
	}
	if _, err := Folder(dir).Open("../x.h"); err == nil {
		t.Error("a header outside of the folder is opened")
	}
}

// FuzzDamaged checks that a damaged header gives a table that can be written, or an error that
// names the header. It joins the beginning of a header with the end of another one, and changes one
// byte. The headers come from the archives and from the files that PUREGPU_FUZZ_HEADERS names.
func FuzzDamaged(f *testing.F) {
	var texts []string
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range a.Files {
			if strings.HasSuffix(x.Name, ".h") && len(x.Data) > 0 {
				texts = append(texts, string(x.Data))
			}
		}
	}
	for _, name := range filepath.SplitList(os.Getenv("PUREGPU_FUZZ_HEADERS")) {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for i := range texts {
		f.Add(uint16(i), uint16(i+1), uint32(1<<30), uint32(1<<31), uint32(0), byte(0))
		f.Add(uint16(i), uint16(i), uint32(len(texts[i])/2), uint32(0), uint32(len(texts[i])/3), byte(1))
	}
	f.Fuzz(func(t *testing.T, first, second uint16, cut, from, at uint32, flip byte) {
		a, b := texts[int(first)%len(texts)], texts[int(second)%len(texts)]
		damaged := []byte(a[:int(cut)%(len(a)+1)] + b[int(from)%(len(b)+1):])
		if len(damaged) > 0 {
			damaged[int(at)%len(damaged)] ^= flip
		}
		h, err := parseText(string(damaged))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.h:") {
				t.Errorf("the error does not name the header: %v", err)
			}
			return
		}
		if _, err := symbols.Encode(&h.table); err != nil {
			t.Errorf("the table cannot be written: %v", err)
		}
	})
}

// FuzzExtract checks that any text gives a table, or an error that names the header.
func FuzzExtract(f *testing.F) {
	for _, x := range odd {
		if len(x.text) < 1000 && !strings.Contains(x.err, "more than") { // headers that exceed a limit take long
			f.Add(x.text)
		}
	}
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range a.Files {
			if strings.HasSuffix(x.Name, ".h") {
				f.Add(string(x.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseText(text); err != nil && !strings.HasPrefix(err.Error(), "x.h:") {
			t.Errorf("the error does not name the header: %v", err)
		}
	})
}
