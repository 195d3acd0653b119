package gen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/runtime/dl/dltest"
	"github.com/puregpu/puregpu/symbols"
)

// The echo library exports every bound function of a table. Each function records the bytes of its
// arguments as C received them. It fills its outputs and its result with values that follow from
// its name; package dltest derives the same values in Go.

// echoRuntime is the part of the echo library that is the same for all functions.
const echoRuntime = `
/* One record a call. kind 'v' is an argument as passed, 'm' the memory that it points to. */
struct record { uint32_t param, kind, size, offset; };
struct echo {
	uint32_t function, fail, count, used;
	struct record records[128];
	unsigned char bytes[1 << 16];
	uint32_t size; /* if not 0: what the functions that return sizes of arrays return, with success and no record */
} puregpu_echo;
unsigned char puregpu_arena[4096]; /* pointers that mean nothing lead here */

static void begin(uint32_t function) {
	puregpu_echo.function = function;
	puregpu_echo.count = puregpu_echo.used = 0;
}
static void put(uint32_t param, uint32_t kind, const void *p, size_t size) {
	struct echo *e = &puregpu_echo;
	if (e->count == 128 || size > sizeof e->bytes - e->used) { e->count = 0xffff; return; }
	struct record *r = &e->records[e->count++];
	r->param = param; r->kind = kind; r->size = (uint32_t)size; r->offset = e->used;
	__builtin_memcpy(e->bytes + e->used, p, size);
	e->used += (uint32_t)size;
}
static uint64_t next(uint64_t *s) { /* splitmix64 */
	uint64_t z = (*s += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
/* fill writes size bytes from a seed; where a pointer lies it is one into the arena, since Go looks at pointers. */
static void fill(void *p, size_t size, uint64_t seed, const uint16_t *ptrs, int nptrs) {
	unsigned char *b = p;
	if (!p) return;
	for (size_t i = 0; i < size; i++) b[i] = (unsigned char)next(&seed);
	for (int i = 0; i < nptrs; i++) {
		void *q = puregpu_arena + (b[ptrs[i]] | (unsigned)(b[ptrs[i] + 1] & 15) << 8);
		__builtin_memcpy(b + ptrs[i], &q, sizeof q);
	}
}
static void text(uint32_t param, const char *p) { if (p) put(param, 'm', p, __builtin_strlen(p) + 1); }
#define VALUE(i, x) put(i, 'v', &(x), sizeof(x))
#define MEMORY(i, p, n) do { if (p) put(i, 'm', (p), (n)); } while (0)
`

// EchoSource returns the C source of an embedded library's echo library.
func EchoSource(library string) (string, error) {
	p, err := load(library)
	if err != nil {
		return "", err
	}
	return p.echoSource()
}

func (p *pkg) echoSource() (string, error) {
	var b strings.Builder
	types, err := p.lib.CTypes()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "/* Generated from the table of %s: every function, recording what it is called with. */\n", p.desc.Library)
	b.WriteString(types)
	b.WriteString(echoRuntime)
	sizes := map[string]bool{}
	for _, f := range p.funcs {
		for _, a := range f.params {
			sizes[a.c.Size] = true
		}
	}
	for i, f := range p.funcs {
		p.echoFunction(&b, i, f, sizes[f.sym.Symbol])
	}
	return b.String(), nil
}

func (p *pkg) echoFunction(b *strings.Builder, index int, f function, isSize bool) {
	var params []string
	for _, a := range f.sym.Args {
		params = append(params, symbols.CDeclaration(a.Type, "p_"+a.Name))
	}
	if params == nil {
		params = []string{"void"}
	}
	result := strings.TrimSpace(symbols.CDeclaration(f.sym.Result, ""))
	fmt.Fprintf(b, "\n%s(%s) {\n", symbols.CDeclaration(f.sym.Result, f.sym.Symbol), strings.Join(params, ", "))
	for _, a := range f.params {
		if isSize && a.role == roleOut {
			fmt.Fprintf(b, "\tif (puregpu_echo.size) { *p_%s = puregpu_echo.size; return (%s)0; }\n", a.c.Name, result)
		}
	}
	fmt.Fprintf(b, "\tbegin(%d);\n", index)
	for i, a := range f.params {
		name := "p_" + a.c.Name
		fmt.Fprintf(b, "\tVALUE(%d, %s);\n", i, name)
		switch a.role {
		case rolePointer:
			if size := p.pointee(a); size != "" {
				fmt.Fprintf(b, "\tMEMORY(%d, %s, %s);\n", i, name, size)
			}
		case roleString:
			fmt.Fprintf(b, "\ttext(%d, %s);\n", i, name)
		case roleSlice:
			fmt.Fprintf(b, "\tMEMORY(%d, %s, (size_t)(%s) * %s);\n", i, name, p.elements(f, a), p.elementSize(a))
		case roleCountOut:
			fmt.Fprintf(b, "\tMEMORY(%d, %s, sizeof *%s);\n", i, name, name)
		}
	}
	for i, a := range f.params { // outputs last: all inputs are recorded first
		name, seed := "p_"+a.c.Name, fmt.Sprintf("%#xu", dltest.Seed(f.sym.Symbol, i))
		switch a.role {
		case roleOut:
			ptrs := p.pointers(f, a)
			if ct, err := symbols.ParseType(a.c.Type); err == nil && p.isVoidPointer(ct) {
				fmt.Fprintf(b, "\tfill(%s, %d, %s, 0, 0);\n", name, a.typ.size, seed)
				continue
			}
			if len(ptrs) == 0 {
				fmt.Fprintf(b, "\tfill(%s, sizeof *%s, %s, 0, 0);\n", name, name, seed)
				continue
			}
			fmt.Fprintf(b, "\tstatic const uint16_t at%d[] = {%s};\n", i, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ptrs)), ", "), "[]"))
			fmt.Fprintf(b, "\tfill(%s, sizeof *%s, %s, at%d, %d);\n", name, name, seed, i, len(ptrs))
		case roleCountOut:
			fmt.Fprintf(b, "\tfill(%s, sizeof *%s, %s, 0, 0);\n", name, name, seed)
		case roleOutStr:
			fmt.Fprintf(b, "\tif (%s) *%s = \"%s.%s\";\n", name, name, f.sym.Symbol, a.c.Name)
		case roleText:
			fmt.Fprintf(b, "\tstatic const char text%d[] = \"%s\";\n", i, f.sym.Symbol)
			room := strconv.Itoa(a.c.Text)
			if a.len >= 0 {
				room = "p_" + f.params[a.len].c.Name
			}
			fmt.Fprintf(b, "\tif (%s) for (size_t i = 0; i < sizeof text%d && i < (size_t)%s; i++) %s[i] = text%d[i];\n", name, i, room, name, i)
		}
	}
	switch f.ret {
	case retResult:
		if p.resultPair != nil {
			// On success the second code may have any value.
			fmt.Fprintf(b, "\t%s result = {puregpu_echo.fail ? %d : 0, %[2]d + 1};\n\treturn result;\n", result, dltest.Code(f.sym.Symbol))
			break
		}
		fmt.Fprintf(b, "\treturn (%s)(puregpu_echo.fail ? %d : 0);\n", result, dltest.Code(f.sym.Symbol))
	case retValue:
		if f.value.kind == kindFloat || f.value.kind == kindDouble {
			fmt.Fprintf(b, "\treturn (%s)(puregpu_echo.fail == 2 ? 0 : %d);\n", result, dltest.Code(f.sym.Symbol))
		} else if f.value.kind == kindStruct {
			word := fmt.Sprintf("puregpu_echo.fail == 2 ? 0 : %d", dltest.Code(f.sym.Symbol))
			if len(p.structPointers(f.value.expr, 0)) > 0 {
				word = fmt.Sprintf("(uintptr_t)(puregpu_arena + %d)", dltest.Code(f.sym.Symbol))
			}
			fmt.Fprintf(b, "\tuint64_t word = %s;\n\t%s result;\n\t__builtin_memcpy(&result, &word, sizeof result);\n\treturn result;\n", word, result)
		} else if f.value.kind == kindPointer {
			fmt.Fprintf(b, "\treturn (%s)(puregpu_arena + %d);\n", result, dltest.Code(f.sym.Symbol))
		} else {
			fmt.Fprintf(b, "\treturn (%s)(uintptr_t)(puregpu_echo.fail == 2 ? 0 : %d);\n", result, dltest.Code(f.sym.Symbol))
		}
	case retString:
		fmt.Fprintf(b, "\treturn \"%s\";\n", f.sym.Symbol)
	}
	b.WriteString("}\n")
}

// pointee returns the C expression for the size of the memory behind a pointer argument, or "" for
// an unsafe.Pointer.
func (p *pkg) pointee(a param) string {
	elem := strings.TrimPrefix(a.typ.expr, "*")
	if elem == a.typ.expr || a.typ.expr == "unsafe.Pointer" {
		return ""
	}
	if a.c.Fixed > 0 {
		return fmt.Sprintf("%d * sizeof *p_%s", a.c.Fixed, a.c.Name)
	}
	return "sizeof *p_" + a.c.Name
}

// elements returns the C expression for the length of an array. An array without a count has three
// elements in the test.
func (p *pkg) elements(f function, a param) string {
	if a.len < 0 {
		return "3"
	}
	n := f.params[a.len]
	if n.role == roleCountOut {
		return "(p_" + n.c.Name + " ? *p_" + n.c.Name + " : 0)"
	}
	return "p_" + n.c.Name
}

func (p *pkg) elementSize(a param) string {
	ct, err := symbols.ParseType(a.c.Type)
	if err == nil && p.isVoidPointer(ct) {
		return "1"
	}
	return "sizeof *p_" + a.c.Name
}

// pointers lists the offsets of Go pointers in an output: the words that the garbage collector
// scans.
func (p *pkg) pointers(f function, a param) []int {
	ct, err := symbols.ParseType(a.c.Type)
	if err != nil {
		return nil
	}
	if strings.HasPrefix(a.typ.expr, "*") || a.typ.expr == "unsafe.Pointer" {
		return []int{0}
	}
	if ct.Pointers == 1 && a.c.GoType == "" {
		return p.structPointers(a.typ.expr, 0)
	}
	return nil
}

func (p *pkg) structPointers(goName string, base int) (out []int) {
	if lender, name := p.lent(goName); lender != nil {
		return lender.structPointers(name, base)
	}
	for _, s := range p.structs {
		if s.name != goName || s.union {
			continue
		}
		for _, m := range s.fields {
			elem, n := m.typ.expr, 1
			for strings.HasPrefix(elem, "[") {
				i := strings.IndexByte(elem, ']')
				var d int
				fmt.Sscan(elem[1:i], &d)
				n, elem = n*d, elem[i+1:]
			}
			for k := range n {
				at := base + m.offset + k*m.size/max(n, 1)
				if strings.HasPrefix(elem, "*") || elem == "unsafe.Pointer" {
					out = append(out, at)
				} else {
					out = append(out, p.structPointers(elem, at)...)
				}
			}
		}
		return out
	}
	return nil
}
