package headerfuzz

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Files are the headers that a random header may include.
var Files = map[string]string{
	"pshpack1.h": "#pragma pack(push,1)\n",
	"pshpack2.h": "#pragma pack(push,2)\n",
	"pshpack4.h": "#pragma pack(push,4)\n",
	"poppack.h":  "#pragma pack(pop)\n",
	"fzattr.h": `#ifndef FZATTR_H
#define FZATTR_H
#define FZ_PACKED __attribute__((packed))
#define FZ_ALIGN(n) __attribute__((aligned(n)))
#define FZ_ASM(x) __asm__(#x)
#define FZ_BEGIN_PACKED _Pragma("pack(push, 1)")
#define FZ_END_PACKED _Pragma("pack(pop)")
#define FZ_STRINGED(x) _Pragma(#x)
#define FZ_PACK(n) FZ_STRINGED(pack(push, n))
#define FZ_API extern __attribute__((visibility("default")))
#define FZ_CALL
#endif
`,
}

// Head is the beginning of a random header.
const Head = "#include <stdint.h>\n#include <stddef.h>\n#include <stdbool.h>\n#include <limits.h>\n#include \"fzattr.h\"\n"

// A Unit is a part of a header that is kept or dropped as a whole, mostly one declaration.
type Unit struct {
	Text string
	Uses []int // indices of the units whose declarations this unit uses
}

type kind int

const (
	number kind = iota
	enumeration
	record
	pointer
	array
	functionType
	incomplete
)

// A named is a type that later units may use.
type named struct {
	c    string
	kind kind
	unit int
}

// A grammar makes units at random.
type grammar struct {
	r     *rand.Rand
	units []Unit
	types []named
	n     int
	uses  []int
	wild  int     // one of this many choices is unusual
	gcc   bool    // the header is compiled only by gcc
	enums []named // enumerators declared so far
}

// group is the number of units that share types. If a type is refused, everything that uses it is
// refused too, so a group is small.
const group = 40

// Units returns n random units. If gcc is set, they may contain text that clang rejects or reads
// differently, such as a test of the compiler's version.
func Units(r *rand.Rand, n int, gcc bool) []Unit {
	g := &grammar{r: r, gcc: gcc}
	for i := range n {
		if i%group == 0 {
			g.types, g.enums = nil, nil
			g.wild = pick(g, 6, 12, 25, 60, 1000)
		}
		g.unit()
	}
	return g.units
}

func (g *grammar) one(n int) bool { return g.r.IntN(n) == 0 }
func (g *grammar) odd() bool      { return g.one(g.wild) }
func pick[T any](g *grammar, list ...T) T {
	return list[g.r.IntN(len(list))]
}

func (g *grammar) name() string { g.n++; return fmt.Sprintf("fz%d", g.n) }

func (g *grammar) unit() { g.unitOf(g.r.IntN(20)) }

// unitOf makes a unit: a struct or union, an enumeration, a typedef, a macro or a function, as the
// argument says.
func (g *grammar) unitOf(what int) {
	g.uses = nil
	index := len(g.units)
	before := len(g.types)
	var text string
	switch what {
	case 0, 1, 2, 3, 4, 5:
		text = g.structure()
	case 6, 7:
		text = g.enumeration()
	case 8, 9:
		text = g.typedef()
	case 10, 11, 12:
		text = g.macro()
	default:
		text = g.function()
	}
	for i := before; i < len(g.types); i++ {
		g.types[i].unit = index
	}
	for i := range g.enums {
		if g.enums[i].unit < 0 {
			g.enums[i].unit = index
		}
	}
	text = g.around(text)
	slices.Sort(g.uses)
	g.units = append(g.units, Unit{text, slices.Compact(g.uses)})
}

// around may wrap a unit in pragmas and conditions.
func (g *grammar) around(text string) string {
	packed := []string{
		"#pragma pack(push, %d)\n%s#pragma pack(pop)\n", "#pragma pack(push)\n#pragma pack(%d)\n%s#pragma pack(pop)\n", "#pragma pack(%d)\n%s#pragma pack()\n",
		"#pragma pack(push, fz, %d)\n%s#pragma pack(pop, fz)\n", "_Pragma(\"pack(push, %d)\")\n%s_Pragma(\"pack(pop)\")\n",
		"FZ_PACK(%d)\n%sFZ_END_PACKED\n", "#  pragma   pack ( push , %d )\n%s#pragma pack(pop)\n", "#pragma pack(push, 8)\n#pragma pack(push, %d)\n%s#pragma pack(pop)\n#pragma pack(pop)\n",
		"#pragma pack(push, %d)\n#pragma pack(push, 16)\n#pragma pack(pop)\n%s#pragma pack(pop)\n",
	}
	if g.one(10) {
		text = fmt.Sprintf(pick(g, packed...), pick(g, 1, 2, 4, 8, 16), text)
	} else if g.one(25) {
		text = fmt.Sprintf("#include \"pshpack%d.h\"\n%s#include \"poppack.h\"\n", pick(g, 1, 2, 4), text)
	} else if g.one(30) {
		text = "FZ_BEGIN_PACKED\n" + text + "FZ_END_PACKED\n"
	}
	if g.odd() {
		pattern := pick(g,
			"#ifndef __cplusplus\n%s#endif\n", "#if defined(__GNUC__) && __GNUC__ >= 4\n%s#endif\n", "#if __STDC_VERSION__ >= 201112L\n%s#endif\n",
			"#ifdef __x86_64__\n%s#endif\n", "__extension__ %s", "#pragma GCC visibility push(default)\n%s#pragma GCC visibility pop\n",
			"#pragma GCC diagnostic push\n%s#pragma GCC diagnostic pop\n", "_Static_assert(sizeof(int) == 4, \"int\");\n%s", ";\n%s",
		)
		text = strings.Replace(pattern, "%s", text, 1)
	}
	return text
}

// plain lists number types that the extractor knows.
var plain = []string{"int", "unsigned", "unsigned int", "char", "unsigned char", "signed char", "short", "unsigned short", "long", "unsigned long", "long long", "unsigned long long",
	"float", "double", "size_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "bool", "_Bool", "intptr_t", "uintptr_t", "ptrdiff_t"}

var strange = []string{"long unsigned int", "short unsigned", "int long long unsigned", "long double", "float _Complex", "double _Complex", "_Complex double", "__int128", "unsigned __int128", "_Atomic int", "_Atomic(short)", "__signed__ char", "signed", "long int",
	"volatile int", "__volatile__ short", "int const", "const int", "__const int", "__const long", "__const__ short", "wchar_t", "__typeof__(int)", "__typeof__(1 + 1L)", "__typeof__(sizeof(int))", "int volatile", "_Float128", "__float128",
	"_Float16", "_Float32", "_Float64", "_Float32x", "intmax_t", "uintmax_t", "max_align_t", "__builtin_va_list", "__INT64_TYPE__", "__UINT8_TYPE__", "__SIZE_TYPE__"}

// number returns a number type.
func (g *grammar) number() string {
	if g.odd() {
		return pick(g, strange...)
	}
	return pick(g, plain...)
}

// known returns a type that an earlier unit has declared, or "" if eight random tries find no type
// of the given kinds.
func (g *grammar) known(kinds ...kind) string {
	if len(g.types) == 0 {
		return ""
	}
	for range 8 {
		t := g.types[g.r.IntN(len(g.types))]
		if slices.Contains(kinds, t.kind) {
			g.uses = append(g.uses, t.unit)
			return t.c
		}
	}
	return ""
}

// value returns a type that can be used by value.
func (g *grammar) value() string {
	if g.one(2) {
		if t := g.known(number, enumeration, record, pointer, array); t != "" {
			return g.qualified(t)
		}
	}
	return g.number()
}

// target returns a type to which a pointer may point.
func (g *grammar) target() string {
	switch g.r.IntN(6) {
	case 0:
		return g.qualified("void")
	case 1:
		if t := g.known(incomplete, functionType); t != "" {
			return t
		}
	case 2:
		return g.qualified("char")
	}
	return g.qualified(g.value())
}

func (g *grammar) qualified(t string) string {
	switch {
	case g.one(5) && !strings.Contains(t, "const"):
		return pick(g, "const "+t, "const "+t, t+" const")
	case g.odd():
		return pick(g, "volatile "+t, t+" volatile", "const volatile "+t, "__const "+t, "__const__ "+t)
	}
	return t
}

// declare returns a declaration of a name with a random type.
func (g *grammar) declare(name string, depth int) string {
	d, last := name, ""
	for range pick(g, 0, 0, 0, 1, 1, 2, 3) {
		inner := d
		if last == "pointer" {
			inner = "(" + d + ")"
		}
		switch k := g.r.IntN(8); {
		case k < 4:
			d, last = "*"+g.pointerQualifier()+d, "pointer"
		case k < 6:
			d, last = inner+"["+g.length()+"]", "array"
		case last == "pointer" && depth > 0:
			d, last = inner+"("+g.params(depth-1)+")", "function"
		}
	}
	switch last {
	case "pointer":
		return g.target() + " " + d
	case "function":
		return g.result(depth) + " " + d
	}
	return g.value() + " " + d
}

func (g *grammar) pointerQualifier() string {
	switch {
	case g.one(12):
		return "const "
	case g.odd():
		return pick(g, "restrict ", "__restrict ", "volatile ", "const restrict ", "__const__ ", "__attribute__((aligned(16))) ", "_Nonnull ")
	}
	return ""
}

// enumerator returns an enumerator that an earlier unit has declared, or "".
func (g *grammar) enumerator() string {
	if len(g.enums) == 0 {
		return ""
	}
	e := pick(g, g.enums...)
	if e.unit < 0 {
		return ""
	}
	g.uses = append(g.uses, e.unit)
	return e.c
}

// computed returns an expression with an enumerator in it, or "" if it gets no enumerator.
func (g *grammar) computed() string {
	a, b := g.enumerator(), g.enumerator()
	if a == "" || b == "" {
		return ""
	}
	return fmt.Sprintf(pick(g, "%[1]s", "(%[1]s)", "%[1]s + 1", "%[1]s - 5", "%[1]s | 8", "~%[1]s", "-%[1]s", "(%[1]s | %[2]s)", "%[1]s & ~%[2]s", "%[1]s << 2", "%[1]s - 1 < 0", "%[1]s < -1", "%[1]s < 0u ? 3 : 4", "%[1]s - 5 < 0 ? 2 : 3", "%[1]s == %[2]s",
		"%[1]s ? 2 : 5", "(%[1]s - 7) / 2", "%[1]s >> 1", "~%[1]s >> 1", "%[1]s * -1", "%[1]s %% 3", "sizeof(%[1]s)", "(char)%[1]s", "(long)%[1]s - 9", "(unsigned)%[1]s - 9", "%[1]s | 0x80000000", "%[1]s + 0x7fffffff", "!%[1]s", "%[1]s ^ %[2]s", "%[1]s + 1u > 0"), a, b)
}

func (g *grammar) length() string {
	if g.one(12) {
		if e := g.computed(); e != "" {
			return e
		}
	}
	if g.odd() {
		return pick(g, "sizeof(int)", "0", "1 + 2", "(3)", "'\\3'", "CHAR_BIT", "sizeof(long) / 2", "1 ? 2 : 3", "0x4", "07", "-1 < 0u ? 5 : 6")
	}
	return pick(g, "1", "2", "3", "4", "7", "16")
}

func (g *grammar) result(depth int) string {
	if g.one(4) {
		return "void"
	}
	if g.one(4) {
		return g.target() + " *"
	}
	for range 4 {
		if t := g.known(number, enumeration, record, pointer); t != "" && g.one(2) {
			return t
		}
	}
	return g.number()
}

func (g *grammar) params(depth int) string {
	n := pick(g, 0, 1, 1, 2, 2, 3, 5)
	if n == 0 {
		if g.odd() {
			return ""
		}
		return "void"
	}
	var out []string
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		if g.one(12) {
			name = ""
		}
		p := ""
		switch g.r.IntN(10) {
		case 0:
			if t := g.known(functionType); t != "" {
				p = pick(g, t+" *"+name, t+" "+name)
			}
		case 1:
			p = g.value() + " " + name + pick(g, "[]", "[4]", "[2][3]")
			if name != "" || g.one(60) { // the front end cannot read [static 2] and [const] without a name
				p = g.value() + " " + name + pick(g, "[]", "[4]", "[2][3]", "[static 2]", "[const]")
			}
		case 2, 3, 4:
			p = g.target() + " *" + g.pointerQualifier() + name
		case 5:
			p = g.target() + " *" + pick(g, "", "const ") + "*" + name
		}
		if p == "" {
			p = g.declare(name, depth)
		}
		if g.odd() {
			p = pick(g, p+" __attribute__((unused))", "register "+p, "__attribute__((unused)) "+p)
		}
		out = append(out, p)
	}
	if g.odd() && g.one(3) {
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}

// attribute returns an attribute of a struct, or "".
func (g *grammar) attribute() string {
	if !g.one(5) && !g.odd() {
		return ""
	}
	if g.odd() {
		return " " + pick(g,
			"__attribute__((may_alias))", "__attribute__((deprecated))", "__attribute__((ms_struct))", "__attribute__((gcc_struct))",
			"__attribute__((scalar_storage_order(\"big-endian\")))", "__attribute__((designated_init))", "__attribute__((transparent_union))",
			"__attribute__((aligned))", "__attribute__((packed, aligned(1)))", "__attribute__((unused)) __attribute__((packed))", "__attribute__((warn_if_not_aligned(16)))",
			"__attribute__((visibility(\"hidden\")))", "__attribute__((aligned(sizeof(long))))", "[[deprecated]]", "__attribute__(())", "FZ_ALIGN(64)") + " "
	}
	return " " + pick(g, "__attribute__((packed))", "__attribute__((__packed__))", "__attribute((packed))", "FZ_PACKED", "FZ_ALIGN(16)",
		"__attribute__((aligned(16)))", "__attribute__((packed, aligned(4)))", "__attribute__((aligned(8)))", "__attribute__((__aligned__(32)))", "__attribute__((aligned(2)))") + " "
}

// member returns a member of a struct: one line or more.
func (g *grammar) member(i, depth int) string {
	name := fmt.Sprintf("m%d", i)
	switch g.r.IntN(16) {
	case 0, 1, 2, 3:
		return g.bitField(name)
	case 4:
		if depth > 0 {
			return fmt.Sprintf("%s%s {\n%s}%s;\n", pick(g, "struct", "union"), g.attribute(), g.members(depth-1, fmt.Sprintf("%s_", name)), g.attribute())
		}
	case 5:
		if depth > 0 {
			return fmt.Sprintf("%s%s {\n%s}%s %s%s;\n", pick(g, "struct", "union"), g.attribute(), g.members(depth-1, ""), g.attribute(), name, pick(g, "", "", "[2]", "[2][3]"))
		}
	case 6:
		if g.one(2) {
			e := g.name()
			return fmt.Sprintf("enum %s{ %s_A%s, %s_B }%s %s;\n", pick(g, "", e+" "), e, pick(g, "", " = -1", " = 3", " = 0x80000000"), e, g.enumAttribute(), name)
		}
	}
	d := g.declare(name, 1)
	switch {
	case g.one(25):
		d = "_Alignas(" + pick(g, "8", "16", "double", "1", "32") + ") " + d
	case g.odd():
		d = pick(g, d+" __attribute__((packed))", d+" __attribute__((aligned(16)))", "__attribute__((aligned(8))) "+d, d+" __attribute__((aligned(1)))", "__extension__ "+d,
			d+" __attribute__((packed, aligned(2)))", "__attribute__((packed)) "+d, d+" FZ_PACKED", d+" __attribute__((deprecated))", "__attribute__((aligned(4))) __attribute__((packed)) "+d)
	}
	return d + ";\n"
}

func (g *grammar) bitField(name string) string {
	t, most := "", 0
	switch g.r.IntN(12) {
	case 0, 1, 2, 3:
		t, most = pick(g, "unsigned", "unsigned int", "uint32_t"), 32
	case 4, 5:
		t, most = pick(g, "int", "signed", "int32_t", "signed int"), 32
	case 6:
		t, most = pick(g, "unsigned char", "uint8_t", "signed char", "char", "int8_t"), 8
	case 7:
		t, most = pick(g, "short", "uint16_t", "unsigned short"), 16
	case 8:
		t, most = pick(g, "long", "uint64_t", "unsigned long long", "int64_t"), 64
	case 9:
		t, most = pick(g, "bool", "_Bool"), 1
	case 10:
		if t = g.known(enumeration); t != "" {
			most = 8
		}
	}
	if t == "" {
		t, most = "unsigned", 32
	}
	width := 1 + g.r.IntN(most)
	if g.one(3) {
		width = min(most, pick(g, 1, 3, 4, 7, 8, 16, 19, 21, 24))
	}
	switch {
	case g.one(12):
		return t + " : " + pick(g, "0", "1", fmt.Sprint(width)) + ";\n"
	case g.odd():
		return fmt.Sprintf(pick(g, "const %s %s : %d;\n", "%s %s : (%d);\n", "__extension__ %s %s : %d;\n", "volatile %s %s : %d;\n", "%s %s : %d __attribute__((packed));\n",
			"%s %s : %d __attribute__((aligned(8)));\n", "%s __attribute__((packed)) %s : %d;\n", "_Alignas(8) %s %s : %d;\n"), t, name, width)
	case g.one(4):
		return fmt.Sprintf("%s %s : %d, %sx : %d;\n", t, name, width, name, 1+g.r.IntN(most))
	}
	return fmt.Sprintf("%s %s : %d;\n", t, name, width)
}

func (g *grammar) members(depth int, prefix string) string {
	var b strings.Builder
	for i := range pick(g, 1, 1, 2, 2, 3, 4, 6) {
		m := g.member(i, depth)
		b.WriteString(strings.ReplaceAll(m, "\n", "\n  "))
	}
	text := "  " + strings.TrimRight(b.String(), " ")
	if prefix != "" {
		for i := range 10 {
			text = wordReplace(text, fmt.Sprintf("m%d", i), fmt.Sprintf("%s%d", prefix, i))
			text = wordReplace(text, fmt.Sprintf("m%dx", i), fmt.Sprintf("%s%dx", prefix, i))
		}
	}
	return text
}

// structure declares a struct or a union.
func (g *grammar) structure() string {
	n := g.name()
	word := pick(g, "struct", "struct", "struct", "union")
	if g.one(8) { // a type without a definition, or with a later one
		switch g.r.IntN(5) {
		case 0:
			g.types = append(g.types, named{n, pointer, 0})
			return fmt.Sprintf("typedef struct %s_st *%s;\n", n, n)
		case 1:
			g.types = append(g.types, named{n, incomplete, 0})
			return fmt.Sprintf("typedef struct %s %s;\n", n, n)
		case 2:
			g.types = append(g.types, named{n, pointer, 0})
			return fmt.Sprintf("typedef %svoid *%s;\n", pick(g, "", "", "const "), n)
		case 3:
			g.types = append(g.types, named{"struct " + n, incomplete, 0})
			return fmt.Sprintf("struct %s;\n", n)
		default:
			g.types = append(g.types, named{n, pointer, 0})
			return fmt.Sprintf("typedef const struct %s_st *%s;\n", n, n)
		}
	}
	body := "{\n" + g.members(2, "")
	if g.one(25) && word == "struct" {
		body += "  " + g.number() + " last" + pick(g, "[]", "[0]", "[1]") + ";\n"
	}
	if g.odd() {
		body += "  _Static_assert(1, \"\");\n"
	}
	body += "}"
	first, last := g.attribute(), g.attribute()
	head := word + first
	end := pick(g, "", "", g.attribute())
	if g.odd() {
		end = " __attribute__((scalar_storage_order(\"big-endian\")))"
	}
	switch g.r.IntN(11) {
	case 0, 1:
		g.types = append(g.types, named{word + " " + n, record, 0})
		return fmt.Sprintf("%s %s %s%s;\n", head, n, body, last)
	case 2, 3:
		g.types = append(g.types, named{n, record, 0})
		return fmt.Sprintf("typedef %s %s%s %s%s;\n", head, body, last, n, end)
	case 4:
		g.types = append(g.types, named{n, record, 0}, named{word + " " + n + "_s", record, 0})
		return fmt.Sprintf("typedef %s %s_s %s%s %s%s;\n", head, n, body, last, n, end)
	case 5:
		g.types = append(g.types, named{n, record, 0}, named{n + "p", pointer, 0})
		return fmt.Sprintf("typedef %s %s %s%s %s, *%sp;\n", head, n, body, last, n, n)
	case 6:
		g.types = append(g.types, named{n, pointer, 0})
		return fmt.Sprintf("typedef %s %s%s *%s;\n", head, body, last, n)
	case 7:
		g.types = append(g.types, named{n, pointer, 0}, named{word + " " + n + "_s", record, 0})
		return fmt.Sprintf("typedef %s %s_s *%s;\n%s %s_s %s%s;\n", word, n, n, head, n, body, last)
	case 8:
		g.types = append(g.types, named{n, record, 0})
		return fmt.Sprintf("typedef %s %s %s;\n%s %s %s%s;\n", word, n, n, head, n, body, last)
	case 9:
		g.types = append(g.types, named{n, array, 0})
		return fmt.Sprintf("typedef %s %s%s %s[%s];\n", head, body, last, n, g.length())
	default:
		g.types = append(g.types, named{n, record, 0})
		return fmt.Sprintf("typedef %s%s %s%s %s;\n", pick(g, "", "const ", "volatile ", "__const__ ", "_Atomic "), head, body, last, n)
	}
}

func (g *grammar) enumAttribute() string {
	switch {
	case g.one(12):
		return " " + pick(g, "__attribute__((packed))", "__attribute__((__packed__))", "FZ_PACKED") + " "
	case g.odd():
		return " " + pick(g, "__attribute__((mode(DI)))", "__attribute__((aligned(8)))", "__attribute__((deprecated))", "__attribute__((mode(QI)))", "__attribute__((flag_enum))") + " "
	}
	return ""
}

func (g *grammar) enumeration() string {
	n := g.name()
	var list []string
	last := ""
	for i := range pick(g, 1, 2, 3, 5) {
		e := fmt.Sprintf("%s_%c", n, 'A'+i)
		v := ""
		switch {
		case g.one(4):
			v = " = " + pick(g, "0", "1", "3", "-1", "16", "0x10", "1 << 4", "'a'", "255", "-128", "1u", "32767", "65536")
		case g.one(12):
			v = " = " + pick(g, "0x7fffffff", "0x80000000", "-2147483647 - 1", "0xffffffff", "0xffffffffffffffffULL", "1ULL << 40", "-1LL << 40", "1u << 31", "2147483648", "(int)0xffffffff", "~0", "~0u", "0x100000000", "-1L",
				"(char)200", "'\\xff'", "sizeof(long)", "INT_MIN", "UINT_MAX", "LLONG_MAX", "-1 < 0u", "!1", "3 / 2 * 2", "-7 / 2", "-7 % 3", "1 ? 2 : 3", "(unsigned char)-1", "5 > 3", "0b101", "0x7fffffffffffffff", "1 << 31")
		case last != "" && g.one(4):
			v = " = " + last + pick(g, "", " + 1", " << 1", " | 8", " - 1", " | 0x80000000", " - 9 < 0u", " * 3", " ? 4 : 7")
		case g.one(10):
			if c := g.computed(); c != "" {
				v = " = " + c
			}
		}
		g.enums = append(g.enums, named{e, number, -1})
		if g.odd() {
			e, last = e+pick(g, " __attribute__((deprecated))", "", " __attribute__((unused))"), e
		} else {
			last = e
		}
		list = append(list, "  "+e+v+",\n")
	}
	body := "{\n" + strings.Join(list, "") + "}"
	switch g.r.IntN(6) {
	case 0:
		g.types = append(g.types, named{"enum " + n, enumeration, 0})
		return fmt.Sprintf("enum%s %s %s%s;\n", g.enumAttribute(), n, body, g.enumAttribute())
	case 1, 2:
		g.types = append(g.types, named{n, enumeration, 0})
		return fmt.Sprintf("typedef enum%s %s%s %s%s;\n", g.enumAttribute(), body, g.enumAttribute(), n, g.enumAttribute())
	case 3:
		g.types = append(g.types, named{n, enumeration, 0})
		return fmt.Sprintf("typedef enum %s %s%s %s;\n", n, body, g.enumAttribute(), n)
	case 4:
		g.types = append(g.types, named{n, enumeration, 0})
		return fmt.Sprintf("typedef enum %s_e %s%s %s;\n", n, body, g.enumAttribute(), n)
	default:
		return fmt.Sprintf("enum %s%s;\n", body, g.enumAttribute())
	}
}

func (g *grammar) typedef() string {
	n := g.name()
	switch g.r.IntN(10) {
	case 0, 1:
		g.types = append(g.types, named{n, functionType, 0})
		return fmt.Sprintf("typedef %s %s(%s)%s;\n", g.result(1), n, g.params(1), g.functionAttribute())
	case 2:
		g.types = append(g.types, named{n, pointer, 0})
		return fmt.Sprintf("typedef %s (*%s)(%s)%s;\n", g.result(1), n, g.params(1), g.functionAttribute())
	case 3:
		g.types = append(g.types, named{n, array, 0})
		return fmt.Sprintf("typedef %s %s[%s];\n", g.value(), n, g.length())
	case 4:
		g.types = append(g.types, named{n, pointer, 0})
		return fmt.Sprintf("typedef %s *%s%s;\n", g.target(), g.pointerQualifier(), n)
	case 5:
		if t := g.known(functionType, record, enumeration, pointer, number, array, incomplete); t != "" {
			k := g.types[slices.IndexFunc(g.types, func(x named) bool { return x.c == t })].kind
			g.types = append(g.types, named{n, k, 0})
			if g.odd() {
				return fmt.Sprintf("typedef %s %s%s;\n", t, pick(g, "", "", "_Atomic ")+n, pick(g, g.attribute(), " __attribute__((scalar_storage_order(\"big-endian\")))", " __attribute__((aligned(32)))"))
			}
			return fmt.Sprintf(pick(g, "typedef %s %s;\n", "typedef %s %s;\n", "typedef const %s %s;\n", "%s typedef %s;\n"), t, n)
		}
	case 6:
		if g.odd() {
			g.types = append(g.types, named{n, number, 0})
			return fmt.Sprintf("typedef %s;\n", pick(g, "int "+n+" __attribute__((mode(DI)))", "float "+n+" __attribute__((vector_size(16)))", "int "+n+" __attribute__((aligned(16)))", "unsigned "+n+" __attribute__((mode(HI)))",
				"__attribute__((aligned(2))) int "+n, "short "+n+" __attribute__((vector_size(8)))", "double "+n+" FZ_ALIGN(32)", "int "+n+" __attribute__((__mode__(__QI__)))", "char "+n+" __attribute__((aligned(8)))",
				"long __attribute__((aligned(4))) "+n, "int "+n+" __attribute__((may_alias))", "unsigned "+n+" __attribute__((deprecated))"))
		}
	}
	g.types = append(g.types, named{n, number, 0})
	return fmt.Sprintf("typedef %s %s;\n", g.number(), n)
}

func (g *grammar) functionAttribute() string {
	if !g.odd() {
		return ""
	}
	return " " + pick(g, "__attribute__((deprecated))", "__attribute__((nonnull))", "__attribute__((pure))", "__attribute__((const))", "__attribute__((ms_abi))", "__attribute__((sysv_abi))", "__attribute__((noreturn))",
		"__attribute__((visibility(\"default\")))", "__attribute__((weak))", "__attribute__((warn_unused_result))", "__attribute__((malloc))", "__attribute__((nothrow, leaf))", "__attribute__((regparm(3)))", "__attribute__((returns_nonnull))",
		"__attribute__((format(printf, 1, 2)))", "__attribute__((unavailable))", "__attribute__((cdecl))", "__attribute__((vectorcall))", "__attribute__((preserve_most))", "__attribute__((stdcall))", "__attribute__((gnu_inline))", "__attribute__((target(\"avx\")))")
}

// function declares a function.
func (g *grammar) function() string {
	n := g.name()
	switch {
	case g.one(14):
		old := g.params(1)
		args := g.result(1)
		return fmt.Sprintf(pick(g,
			"%[1]s %[2]s(%[3]s) __asm__(\"%[2]s_v2\");\n", "%[1]s %[2]s(%[3]s) FZ_ASM(%[2]s_v3);\n", "%[1]s %[2]s(%[3]s) __asm(\"%[2]s\" \"_v4\");\n", "%[1]s %[2]s(%[3]s) __asm__(\"%[2]s_v2\") __attribute__((nothrow));\n",
			"#define %[2]s %[2]s_v2\n%[1]s %[2]s(%[3]s);\n", "%[1]s %[2]s_v2(%[3]s);\n#define %[2]s %[2]s_v2\n", "%[1]s %[2]s(%[3]s);\n%[1]s %[2]s(%[3]s) __asm__(\"%[2]s_r\");\n",
			"#pragma redefine_extname %[2]s %[2]s_x\n%[1]s %[2]s(%[3]s);\n", "extern %[1]s %[2]s(%[3]s) asm(\"%[2]s_y\");\n", "%[1]s %[2]s_v2(%[3]s) __asm__(\"%[2]s_new\");\n#define %[2]s %[2]s_v2\n",
			"%[1]s %[2]s(%[3]s);\nextern __typeof__(%[2]s) %[2]s __asm__(\"%[2]s_z\");\n"), args, n, old)
	case g.one(15):
		if t := g.known(functionType); t != "" {
			return fmt.Sprintf("%s %s%s;\n", pick(g, "", "extern ")+t, pick(g, "", "", "*")+n, pick(g, "", "", "(void)", "(int)"))
		}
	case g.one(30):
		return fmt.Sprintf("%s (*%s(%s))(%s);\n", g.result(0), n, g.params(0), g.params(0))
	case g.one(40):
		return fmt.Sprintf("%s %s(int a);\n#define %s(a) %s_other(a)\n%s %s_other(int a);\n", "int", n, n, n, "int", n)
	case g.one(30):
		return fmt.Sprintf("static inline int %s(int a) { return a; }\n", n)
	case g.one(60):
		return fmt.Sprintf("%s %s(%s), %sb(%s);\n", g.result(0), n, g.params(0), n, g.params(0))
	case g.one(40):
		return fmt.Sprintf("%s %s(%s);\n%s %s(void);\n", "int", n, "void", "extern int", n)
	}
	lead := pick(g, "", "", "", "extern ", "FZ_API ")
	if g.odd() {
		lead = pick(g, "__attribute__((deprecated)) ", "__extension__ extern ", "_Noreturn ", "extern __attribute__((nonnull)) ", "[[deprecated]] ", "extern __inline ", "__attribute__((ms_abi)) ", "static ", "inline ", "__attribute__((weak)) ")
	}
	middle := ""
	if g.odd() {
		middle = pick(g, "FZ_CALL ", "__attribute__((sysv_abi)) ", "__attribute__((ms_abi)) ", "__attribute__((cdecl)) ")
	}
	return fmt.Sprintf("%s%s %s%s(%s)%s;\n", lead, g.result(1), middle, n, g.params(1), g.functionAttribute())
}

// macro defines a constant, or text that looks like one.
func (g *grammar) macro() string {
	n := strings.ToUpper(g.name())
	text := pick(g, "1", "16", "0x10", "010", "-1", "(-3)", "0xffffffff", "0x80000000", "2147483648", "0xffffffffffffffff", "0xffffffffffffffffULL", "1u", "1L", "1ULL", "~0", "~0u", "~0ULL", "(1 << 4)", "(1 << 31)", "1u << 31", "'a'", "'\\n'", "'\\xff'", "'ab'", "L'a'",
		"'\\0'", "'\\377'", "1.5", "1.5f", "0.1f", "1e10", "0x1p-2", "1.0L", "(1.0/0.0)", "(0.0/0.0)", "1.0/3", "-2.5", "-0.0", "\"text\"", "\"a\" \"b\"", "\"a\\tb\\x41\\101\"", "\"nul\\0in\"", "L\"wide\"", "u8\"eight\"", "u\"x\"", "\"\"", "(\"paren\")", "sizeof(int)", "sizeof(long double)",
		"(unsigned char)300", "((short)0x8000)", "(unsigned)-1", "-1UL", "1u - 2", "-1 < 0u", "!5", "3 / 2", "-7 / 2", "-7 % 3", "-8 >> 1", "1 ? 2 : 3", "(int)2.9", "INT_MAX", "INT_MIN", "UINT_MAX", "LLONG_MIN", "ULLONG_MAX", "SIZE_MAX", "INT64_MAX", "UINT8_MAX", "INT64_C(5)", "UINT64_C(0xffffffffffffffff)",
		"(void *)0", "((void*)0x1)", "((void*)-1)", "NULL", "sizeof(\"abc\")", "true", "false", "(bool)2", "0b1010", "1000000000000", "4294967296", "0x7fffffffffffffff", "-9223372036854775807L", "(char)200", "__STDC__", "__STDC_VERSION__", "CHAR_MIN", "(float)0.1", "1e400", "1 == 1.0",
		"__builtin_offsetof(struct { char a; int b; }, b)", "(long long)-1", "(uint8_t)-1", "(size_t)-1", "((uint64_t)1 << 63)", "L'\\u00e9'", "u'\\u00e9'", "U'x'", "'abc'", "'\\\\'", "'\\''", "'\"'", "'\\e'", "'\\0a'", "'\\x7f'", "'\\x80'", "L'\\xff'", "L'\\x1234'", "'\\101'", "'\\7'", "'\\1234'", "U'\\xff' < 0", "\"\\u00e9\"", "\"\\xe9\\x41\"", "u8\"\\u00e9\" \"x\"", "\"it's\"", "\"\\'\\\"\\\\\"", "\"?\\?\"", "\"\\e[0m\"", "\"\\1234\"", "__INT_MAX__", "__CHAR_BIT__", "__SIZEOF_POINTER__", "__BYTE_ORDER__", "linux", "0xFFFFFFFFu + 1", "1.e3", ".5", "08.5", "1i", "_Alignof(double)", "{1}", "+", "int", "extern", "__attribute__((packed))", "(-2147483647 - 1)", "5 // comment", "/* c */ 6", "7 /* c */", "(3)+(4)", "8 \\\n + 1", "WCHAR_MAX", "-'a'", "~'\\0'", "1L << 40", "-5 / 2u", "1 || 1/0", "0 && 1/0")
	if g.gcc && g.one(20) {
		text = pick(g, "'\\u00e9'", "'é'", "'\\xabc'", "'\\777'", "'abcde'", "'\\u20ac'")
	}
	if g.one(8) {
		if c := g.computed(); c != "" {
			text = c
		}
	}
	if g.one(15) {
		if t := g.known(enumeration, number); t != "" {
			text = fmt.Sprintf(pick(g, "((%s)1)", "((%s)-1)", "(%s)300", "((%s)-1 < 0)", "sizeof(%s)", "(%s)~0 >> 1"), t)
		}
	}
	switch {
	case g.one(12):
		return fmt.Sprintf("#define %s %s\n#undef %s\n#define %s %d\n", n, text, n, n, g.r.IntN(100))
	case g.one(12):
		return fmt.Sprintf("#define %s_X %s\n#define %s (%s_X)\n", n, text, n, n)
	case g.one(15):
		return fmt.Sprintf("#define %s(x) ((x) + %s)\n#define %s_Y %s(4)\n", n, text, n, n)
	case g.one(10): // a condition selects the declaration
		cond := pick(g, "-1 > 0u", "'\\xff' < 0", "'ab' == 24930", "u'\\xffff' == 65535", "L'\\u00e9' == 233", "'\\'' == 39", "'\\e' == 27", "1 ? 0 : 1", "(2 || 3) != 1", "__LP64__", "defined(__LP64__)", "__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__", "defined(__BIG_ENDIAN__)", "__SIZEOF_LONG__ == 8", "__SIZEOF_POINTER__ == 8", "__CHAR_BIT__ == 8", "defined __unix__", "defined(linux)",
			"__INT_MAX__ == 2147483647", "defined(__CHAR_UNSIGNED__)", "__has_attribute(packed)", "defined(__has_attribute) && __has_attribute(__packed__)", "__has_attribute(no_such_attribute)", "__has_include(<stdint.h>)", "__has_include(<nowhere.h>)", "__has_include(\"fzattr.h\")", "__has_include(<stdatomic.h>)", "__has_include(<threads.h>)", "__GNUC__ >= 4", "defined(__has_builtin)", "defined(__has_include)",
			"__has_builtin(__builtin_expect)", "__has_builtin(__builtin_nothing)", "__has_attribute(deprecated) && __has_attribute(always_inline)", "defined(__SIZEOF_INT128__)", "__STDC_VERSION__ >= 201112L", "defined(__STRICT_ANSI__)", "defined(_WIN32)", "defined(__APPLE__)", "__STDC_HOSTED__",
			"defined(__STDC_NO_ATOMICS__)", "0x7fffffffffffffff + 1 > 0", "-1 >> 1 == -1", "7 / 2 == 3", "true", "defined(__ELF__)", "__INTPTR_MAX__ == __INT64_MAX__", "__ORDER_LITTLE_ENDIAN__ == 1234", "defined(__amd64__)", "__FLT_MANT_DIG__ == 24", "defined(__GNUC_STDC_INLINE__)", "__GNUC_PREREQ(4, 1)", "UINTPTR_MAX == UINT64_MAX", "INT_MAX > 0", "defined(__linux__) && !defined(__ANDROID__)")
		if g.gcc && g.one(3) {
			cond = pick(g, "__GNUC__ > 4", "__GNUC_MINOR__ < 3", "defined(__clang__)", "__has_attribute(unavailable)", "__has_attribute(noescape)", "__has_attribute(availability)", "__has_attribute(gcc_struct)", "defined(__has_feature)", "defined(__has_extension)", "defined(__FLT128_DIG__)", "__GCC_IEC_559 > 1",
				"defined(__GXX_ABI_VERSION) && __GXX_ABI_VERSION >= 1017", "__has_builtin(__builtin_bit_cast)", "__has_builtin(__builtin_has_attribute)", "__has_builtin(__builtin_memcpy)", "__has_builtin(__sync_fetch_and_add)", "defined(__has_c_attribute) && __has_c_attribute(deprecated) >= 201904", "__has_c_attribute(noreturn)", "defined(__HAVE_SPECULATION_SAFE_VALUE)",
				"defined(__DECIMAL_BID_FORMAT__)", "__FLT_EVAL_METHOD_TS_18661_3__ == 0", "defined(__OPTIMIZE_SIZE__)", "defined(__FAST_MATH__)", "__FINITE_MATH_ONLY__ == 0", "__GNUC_PREREQ(12, 1)", "__GNUC_PREREQ(13, 0)")
		}
		s := g.name()
		g.types = append(g.types, named{s, record, 0})
		return fmt.Sprintf("#if %s\ntypedef struct { %s m0; char m1; } %s;\n#define %s 1\n#else\ntypedef struct { char m0; %s m1; } %s;\n#define %s 2\n#endif\n", cond, "long", s, n, "short", s, n)
	}
	return fmt.Sprintf("#define %s %s\n", n, text)
}

func wordReplace(text, old, to string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, old)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(old)
		word := i > 0 && isWord(text[i-1]) || end < len(text) && isWord(text[end])
		b.WriteString(text[:i])
		if word {
			b.WriteString(old)
		} else {
			b.WriteString(to)
		}
		text = text[end:]
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
