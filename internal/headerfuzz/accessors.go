package headerfuzz

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/symbols"
)

// Records returns at least n random units, which declare structs, unions and enumerations.
func Records(r *rand.Rand, n int) []Unit {
	g := &grammar{r: r}
	for i := range n {
		if i%group == 0 {
			g.types, g.enums = nil, nil
			g.wild = pick(g, 25, 60, 1000)
		}
		g.unitOf(0)
		if g.one(4) {
			g.unitOf(6)
		}
	}
	return g.units
}

// patterns fill a struct's memory before a bit-field is set; values are assigned to the bit-field.
const (
	patterns = "0x00, 0xff, 0xa5"
	values   = "0, 1, -1, 2, 5, 0x55, 0x7fffffff, 0x123456789abcdef"
)

var (
	goPackage = regexp.MustCompile(`(?m)^package \w+$`)
	goType    = regexp.MustCompile(`^// (\w+) is .*\(C: ([\w.]+)\)\.$`)
	goGetter  = regexp.MustCompile(`^// (\w+) returns the bit-field (\w+), \d+ wide\.$`)
	goMethod  = regexp.MustCompile(`^func \(s \*(\w+)\) (\w+)\(\) ([\w.]+) \{$`)
)

// Accessors compares the generated bit-field methods of a result's table with the compiler. Go and
// C each set every bit-field to some values, then print the struct's bytes and the value that they
// read. Accessors returns the number of bit-fields compared, and the lines that differ.
func (c *Checker) Accessors(ctx context.Context, r *Result) (n int, wrong []string, err error) {
	t, _, err := extracted(r.Header)
	if t == nil {
		return 0, nil, err
	}
	files, err := generated(t)
	if err != nil {
		return 0, nil, err
	}
	names, err := c.spelled(ctx, r.Header, t)
	if err != nil {
		return 0, nil, err
	}
	var inC, inGo strings.Builder
	inC.WriteString("#include <stdio.h>\n#include <string.h>\n#include \"" + Main + "\"\n" +
		"static void show(const char *what, const void *p, unsigned long n, long long v) { printf(\"%s \", what); for (unsigned long i = 0; i < n; i++) printf(\"%02x\", ((const unsigned char *)p)[i]); printf(\" %lld\\n\", v); }\n" +
		"int main(void) {\nstatic const int patterns[] = {" + patterns + "};\nstatic const long long values[] = {" + values + "};\n" +
		"for (int p = 0; p < sizeof patterns / sizeof *patterns; p++) for (int i = 0; i < sizeof values / sizeof *values; i++) {\n")
	inGo.WriteString("package main\n\nimport (\n\t\"fmt\"\n\t\"unsafe\"\n)\n\n" +
		"func fill[T any](x *T, b byte) []byte {\n\tall := unsafe.Slice((*byte)(unsafe.Pointer(x)), unsafe.Sizeof(*x))\n\tfor i := range all {\n\t\tall[i] = b\n\t}\n\treturn all\n}\n\n" +
		"func number[T any](v T) int64 {\n\tswitch x := any(v).(type) {\n\tcase bool:\n\t\tif x {\n\t\t\treturn 1\n\t\t}\n\t\treturn 0\n\t}\n\tvar n int64\n\t_, err := fmt.Sscan(fmt.Sprintf(\"%d\", v), &n)\n\tif err != nil {\n\t\tvar u uint64\n\t\tfmt.Sscan(fmt.Sprintf(\"%d\", v), &u)\n\t\tn = int64(u)\n\t}\n\treturn n\n}\n\n" +
		"func main() {\n\tfor _, p := range []byte{" + patterns + "} {\n\t\tfor _, v := range []int64{" + values + "} {\n\t\t\t_, _ = p, v\n")
	cname, field := map[string]string{}, ""
	for line := range strings.Lines(string(files["ztypes.go"])) {
		line = strings.TrimSpace(line)
		if m := goType.FindStringSubmatch(line); m != nil {
			cname[m[1]] = m[2]
		}
		if m := goGetter.FindStringSubmatch(line); m != nil {
			field = m[2]
		}
		m := goMethod.FindStringSubmatch(strings.Replace(line, "func (u *", "func (s *", 1))
		if m == nil || field == "" {
			continue
		}
		in := names[cname[m[1]]]
		if in == "" { // the member has no name in C
			field = ""
			continue
		}
		n++
		what := fmt.Sprintf("%s.%s", cname[m[1]], field)
		value := m[3] + "(v)"
		if m[3] == "bool" {
			value = "v != 0"
		}
		fmt.Fprintf(&inC, "{ %s x; memset(&x, patterns[p], sizeof x); x.%s = values[i]; show(%q, &x, sizeof x, x.%s); }\n", in, field, what, field)
		fmt.Fprintf(&inGo, "\t\t\t{\n\t\t\t\tvar x %s\n\t\t\t\tb := fill(&x, p)\n\t\t\t\tx.Set%s(%s)\n\t\t\t\tfmt.Printf(\"%%s %%x %%d\\n\", %q, b, number(x.%s()))\n\t\t\t}\n", m[1], m[2], value, what, m[2])
		field = ""
	}
	if n == 0 {
		return 0, nil, nil
	}
	inC.WriteString("}\nreturn 0; }\n")
	inGo.WriteString("\t\t}\n\t}\n}\n")
	dir := filepath.Join(c.Dir, "accessors")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"ztypes.go", "zconst.go"} {
		text := goPackage.ReplaceAll(files[name], []byte("package main"))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return 0, nil, err
		}
	}
	for name, text := range map[string][]byte{
		filepath.Join(c.Dir, Main): []byte(strings.ReplaceAll(r.Header, "__const__", "")), filepath.Join(dir, "main.c"): []byte(inC.String()), filepath.Join(dir, "main.go"): []byte(inGo.String()),
		filepath.Join(dir, "go.mod"): []byte("module accessors\n\ngo 1.26\n"),
	} {
		if err := os.WriteFile(name, text, 0o666); err != nil {
			return 0, nil, err
		}
	}
	run := func(name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "LC_ALL=C")
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%.2000s", name, err, said.String())
		}
		return out, nil
	}
	if _, err := run(c.Compiler.Path, c.Compiler.Flags("-Dconst=", "-D__const=", "-I"+c.Dir, "-o", "inc", "main.c")...); err != nil {
		return 0, nil, err
	}
	if _, err := run("go", "build", "-o", "ingo", "."); err != nil {
		return 0, nil, err
	}
	c1, err := run(filepath.Join(dir, "inc"))
	if err != nil {
		return 0, nil, err
	}
	g1, err := run(filepath.Join(dir, "ingo"))
	if err != nil {
		return 0, nil, err
	}
	a, b := strings.Split(string(c1), "\n"), strings.Split(string(g1), "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			wrong = append(wrong, fmt.Sprintf("C %s\nGo %s", a[i], b[min(i, len(b)-1)]))
		}
	}
	return n, wrong, nil
}

// spelled returns the C spellings of a table's named structs and unions.
func (c *Checker) spelled(ctx context.Context, header string, t *symbols.Table) (map[string]string, error) {
	var probe strings.Builder
	probe.WriteString(header)
	first := strings.Count(header, "\n") + 1
	var all []string
	for _, s := range t.Structs {
		if !strings.Contains(s.Name, ".") {
			all = append(all, s.Name, "struct "+s.Name, "union "+s.Name)
		}
	}
	for i, name := range all {
		fmt.Fprintf(&probe, "typedef char probe%d[sizeof(%s)];\n", i, name)
	}
	said, err := c.accepts(ctx, probe.String())
	bad := map[int]bool{}
	for _, m := range place.FindAllStringSubmatch(said, -1) {
		line, _ := strconv.Atoi(m[1])
		bad[line-first] = true
	}
	names := map[string]string{}
	for i, name := range all {
		if own := all[i-i%3]; !bad[i] && names[own] == "" {
			names[own] = name
		}
	}
	return names, err
}

// generated returns the Go files for the types of a table.
func generated(t *symbols.Table) (map[string][]byte, error) {
	t.Functions, t.Constants = []symbols.Function{{Symbol: "fzNone", API: "fzNone", Result: "void", Params: []symbols.Param{}, Current: true}}, nil
	t.Headers = []symbols.Header{{Name: Main, Version: symbols.Version{Major: 1}, SHA256: strings.Repeat("0", 64)}}
	for range 40 { // each round drops the structs that the error names
		text, err := symbols.Encode(t)
		var lib *symbols.Library
		if err == nil {
			lib, err = symbols.Decode("table", text, "overlay", []byte(`{"sets": [{"name":"core","since":"1.0","doc":"all","match":["fz*"]}], "types": []}`))
		}
		if err == nil {
			var d *symbols.Description
			if d, err = symbols.DecodeDescription("library", []byte(descriptionText)); err == nil {
				err = lib.Describe("library", d)
			}
		}
		var files map[string][]byte
		if err == nil {
			files, err = gen.Generate(lib)
		}
		if err == nil {
			return files, nil
		}
		said := word.FindAllString(err.Error(), -1)
		before := len(t.Structs)
		t.Structs = slices.DeleteFunc(t.Structs, func(s symbols.Struct) bool {
			name, _, _ := strings.Cut(s.Name, ".")
			return slices.Contains(said, name) || slices.Contains(said, s.Name)
		})
		if len(t.Structs) == before {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the table's check rejects too many records to generate Go")
}

const descriptionText = `{
"library": "fz", "brand": "Fz",
"prefixes": {"functions": ["fz"], "types": [], "values": ["FZ"]},
"version": {"numbers": [{"major": 10, "minor": 1}]},
"headers": {"files": ["fz.h"], "since": "overlay"},
"implementations": [{"name": "fz library", "env": "FZ_LIBRARY", "files": {"linux": ["libfz.so"]}, "hint": "make one"}]
}`
