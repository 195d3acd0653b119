package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/dl/dltest"
	"github.com/puregpu/puregpu/symbols"
)

// recorderRuntime is the text that all recorders share. A recorder is a C library compiled from a
// release's own headers. Each function records the fields of its arguments as the C compiler finds
// them, and writes the fields of its results.
const recorderRuntime = `
struct puregpu_record { unsigned param, leaf, element, size, offset; };
struct {
	unsigned function, fail, count, used;
	struct puregpu_record records[4096];
	unsigned char bytes[1 << 17];
	unsigned zero; /* if not 0: functions write zeros to their results */
} puregpu_calls = {.fail = 1};
unsigned char puregpu_arena[4096]; /* pointers that mean nothing lead here */

static void puregpu_begin(unsigned function)
{
	puregpu_calls.function = function;
	puregpu_calls.count = puregpu_calls.used = 0;
}
static void puregpu_put(unsigned param, unsigned leaf, unsigned element, const volatile void *p, unsigned long size)
{
	if (puregpu_calls.count == 4096 || size > sizeof puregpu_calls.bytes - puregpu_calls.used) {
		puregpu_calls.count = 9999;
		return;
	}
	struct puregpu_record *r = &puregpu_calls.records[puregpu_calls.count++];
	r->param = param, r->leaf = leaf, r->element = element, r->size = (unsigned)size, r->offset = puregpu_calls.used;
	for (unsigned long i = 0; i < size; i++)
		puregpu_calls.bytes[puregpu_calls.used++] = ((const volatile unsigned char *)p)[i];
}
static void puregpu_fill(volatile void *p, unsigned long size, unsigned long long seed)
{
	for (unsigned long i = 0; i < size; i++) {
		seed += 0x9e3779b97f4a7c15u;
		unsigned long long z = seed;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		((volatile unsigned char *)p)[i] = puregpu_calls.zero ? 0 : (unsigned char)(z ^ z >> 31);
	}
}
`

const recorderElements = 3 // the length of every array that is passed

// seedOf returns the number from which the bytes of an element of a leaf are made.
func seedOf(symbol string, param int, path string, element int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d/%s/%d", symbol, param, path, element)
	return h.Sum64()
}

func seedBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		b[i] = byte(z ^ z>>31)
	}
	return b
}

// A call is a function that both the package and the release have.
type call struct {
	index  int
	fn     dltest.Function   // the Go method
	bound  *symbols.Function // the function as the package binds it
	theirs *symbols.Function // the function in the release
	params []callParam
	differ []string // differences between bound and the release's function
	tells  bool     // the function returns the release; the recorder records no call of it
}

// A callParam is a parameter of a call, as the package binds it and in the release.
type callParam struct {
	role          dltest.Role
	ours, theirs  []leaf
	pointee       symbols.CType // the release's type of the pointer's target, or of a parameter that is no pointer
	ourSize, size int           // sizes of the struct in the package and in the release; 0 for other types
	sized         bool          // the release's struct begins with its size: see types.sized
}

// calls pairs the functions of a package with those of a release.
func (lib *library) calls(functions map[string]dltest.Function, d *symbols.Description, ours, theirs *symbols.Table) []call {
	x, y := typesOf(ours), typesOf(theirs)
	var all []call
	for i := range theirs.Functions {
		f := &theirs.Functions[i]
		fn, ok := functions[f.Symbol]
		if !ok {
			continue
		}
		c := call{index: len(all), fn: fn, theirs: f, tells: f.Symbol == cmp.Or(d.Version.Function, lib.tells)}
		for k := range ours.Functions {
			if ours.Functions[k].Symbol == f.Symbol {
				c.bound = &ours.Functions[k]
			}
		}
		if c.bound == nil {
			continue
		}
		if len(f.Params) != len(c.bound.Params) {
			c.differ = append(c.differ, fmt.Sprintf("it takes %d parameters, not %d", len(f.Params), len(c.bound.Params)))
		} else {
			for k := range f.Params {
				p, differ := pair(x, y, fn.Params[k], c.bound.Params[k], f.Params[k])
				c.params, c.differ = append(c.params, p), append(c.differ, differ...)
			}
		}
		all = append(all, c)
	}
	return all
}

// pair returns a parameter as the package and the release have it, and the differences between the
// two.
func pair(x, y *types, q dltest.Param, ours, theirs symbols.Param) (p callParam, differ []string) {
	p.role = q.Role
	a, errA := x.resolve(ours.Type)
	b, errB := y.resolve(theirs.Type)
	if errA != nil || errB != nil || q.Role == dltest.String || q.Role == dltest.OutString || q.Role == dltest.Text || q.Opaque {
		return callParam{role: dltest.String}, nil // strings, and types that cannot be read, are not compared
	}
	if a.Pointers+len(a.Dims) != b.Pointers+len(b.Dims) {
		return p, []string{fmt.Sprintf("parameter %s is %s, not %s", ours.Name, theirs.Type, ours.Type)}
	}
	switch q.Role {
	case dltest.Pointer, dltest.Slice, dltest.Out, dltest.CountOut:
		if b.Pointers == 0 || b.Base == "void" && b.Pointers == 1 || a.Base == "void" && a.Pointers == 1 {
			return callParam{role: dltest.String}, nil
		}
		a.Pointers--
		b.Pointers--
	}
	p.pointee = b
	// One table has the type as an enumeration. In the other table the type belongs to another
	// library, so that table lacks the enumerators.
	if x.enums[a.Base] != nil && y.borrowed(b.Base) || x.borrowed(a.Base) && y.enums[b.Base] != nil {
		differ = append(differ, fmt.Sprintf("parameter %s is %s, not %s", ours.Name, theirs.Type, ours.Type))
	}
	if a.Pointers == 0 && len(a.Dims) == 0 {
		sa, sb := x.structs[a.Base], y.structs[b.Base]
		if (sa == nil) != (sb == nil) {
			return p, []string{fmt.Sprintf("parameter %s is %s, not %s", ours.Name, theirs.Type, ours.Type)}
		}
		if sa != nil {
			p.ourSize, p.size, p.sized = sa.Size, sb.Size, y.sized(b)
			if sa.Size != sb.Size {
				differ = append(differ, fmt.Sprintf("%s has %d bytes, not %d", b.Base, sb.Size, sa.Size))
			}
		}
	}
	p.ours = x.leaves(a, "", 0, 0, among(y.leaves(b, "", 0, 0, nil)))
	p.theirs = y.leaves(b, "", 0, 0, among(p.ours))
	byPath := map[string]leaf{}
	for _, l := range p.ours {
		byPath[l.path] = l
	}
	for _, l := range p.theirs {
		o, ok := byPath[l.path]
		delete(byPath, l.path)
		switch {
		case !ok:
			differ = append(differ, fmt.Sprintf("%s has %s", b.Base, l.path))
		case o.offset != l.offset || o.size != l.size:
			differ = append(differ, fmt.Sprintf("%s of %s is %d bytes at %d, not %d at %d", l.path, b.Base, l.size, l.offset, o.size, o.offset))
		case o.enum != nil && l.enum != nil:
			if name, in, out := enumerator(o.enum, l.enum, 0); in != out {
				differ = append(differ, fmt.Sprintf("%s is %d, not %d", name, out, in))
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		differ = append(differ, fmt.Sprintf("%s has no %s", b.Base, path))
	}
	return p, differ
}

// unnamed reports whether a parameter is a pointer to a function of a type that has no name in C.
func unnamed(p symbols.Param) bool { return strings.Contains(p.Type, ".") }

// source returns the C source of a release's recorder. includes are the lines of C that declare the
// release's types and functions. opaque has the struct tag of each handle whose C name is the name
// of the struct itself. C then passes a pointer to the struct.
func (lib *library) source(includes string, opaque map[string]string, d *symbols.Description, version symbols.Version, all []call) string {
	var b strings.Builder
	b.WriteString(includes)
	b.WriteString(recorderRuntime)
	for i := range all {
		c := &all[i]
		f := c.theirs
		params := make([]string, len(f.Params))
		for k, p := range f.Params {
			if unnamed(p) {
				p.Type = "void *"
			}
			for name, tag := range opaque {
				if rest, is := strings.CutPrefix(p.Type, name); is && strings.Trim(rest, " *") == "" {
					p.Type = "struct " + tag + " *" + strings.TrimSpace(rest)
				}
			}
			params[k] = symbols.CDeclaration(p.Type, fmt.Sprintf("puregpu_p%d", k))
		}
		if len(params) == 0 {
			params = []string{"void"}
		}
		declaration := symbols.CDeclaration(f.Result, fmt.Sprintf("puregpu_f%d(%s)", i, strings.Join(params, ", ")))
		fmt.Fprintf(&b, "\n#undef %s\n%s __asm__(\"%s\");\n", f.Symbol, declaration, f.Symbol)
		// Do not compare the types of functions with pointers to pointers: a table does not
		// distinguish const T *const * from const T **.
		if !slices.ContainsFunc(f.Params, func(p symbols.Param) bool { return strings.Contains(p.Type, "**") || unnamed(p) }) {
			fmt.Fprintf(&b, "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), __typeof__(puregpu_f%d)), \"the type of %s\");\n", f.Symbol, i, f.Symbol)
		}
		fmt.Fprintf(&b, "%s\n{\n", declaration)
		switch {
		case c.tells && lib.text != nil:
			fmt.Fprintf(&b, "\t__builtin_snprintf(puregpu_p0, puregpu_p1, \"%%s\", %q);\n\treturn 0;\n}\n", lib.text(version))
			continue
		case c.tells && len(f.Params) == 2 && !strings.Contains(f.Params[0].Type, "*"): // in parts
			fmt.Fprintf(&b, "\t*puregpu_p1 = puregpu_p0 == 0 ? %d : puregpu_p0 == 1 ? %d : %d;\n\treturn 0;\n}\n", version.Major, version.Minor, version.Patch)
			continue
		case c.tells && len(f.Params) == 0: // as its result
			fmt.Fprintf(&b, "\treturn %d;\n}\n", d.Version.Encode(version))
			continue
		case c.tells:
			parts := []int{d.Version.Encode(version)}
			if len(f.Params) > 1 {
				parts = []int{version.Major, version.Minor, version.Patch}
			}
			for k := range f.Params {
				fmt.Fprintf(&b, "\t*puregpu_p%d = %d;\n", k, parts[k])
			}
			b.WriteString(returned(f.Result, "0") + "}\n")
			continue
		}
		fmt.Fprintf(&b, "\tpuregpu_begin(%d);\n", i)
		for k := range c.params {
			c.params[k].record(&b, f.Symbol, k)
		}
		if f.Result != "void" {
			t, err := symbols.ParseType(f.Result)
			if text := err == nil && t.Pointers > 0; text {
				fmt.Fprintf(&b, "\treturn (%s)puregpu_arena;\n", f.Result)
			} else {
				b.WriteString(returned(f.Result, "puregpu_calls.fail ? 999 : 0"))
			}
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// returned writes a statement that returns a code. If the result is a struct, the code is in the
// first bytes of the struct, at most four.
func returned(result, code string) string {
	return fmt.Sprintf("\tint code = %s;\n\t%s result;\n\t__builtin_memset(&result, 0, sizeof result);\n"+
		"\t__builtin_memcpy(&result, &code, sizeof result < sizeof code ? sizeof result : sizeof code);\n\treturn result;\n", code, result)
}

// record writes the code for the parameter with index k in the body of a function.
func (p *callParam) record(b *strings.Builder, symbol string, k int) {
	if p.role == dltest.String || p.role == dltest.CountOut {
		return
	}
	array := p.role == dltest.Slice
	out := p.role == dltest.Out
	pointer := array || out || p.role == dltest.Pointer
	elements := 1
	if array {
		elements = recorderElements
	}
	if pointer {
		fmt.Fprintf(b, "\tif (puregpu_p%d) {\n", k)
		if out {
			fmt.Fprintf(b, "\tif (!puregpu_calls.fail) {\n")
		}
	}
	for e := range elements {
		at := fmt.Sprintf("puregpu_p%d", k)
		if pointer {
			at = fmt.Sprintf("puregpu_p%d[%d]", k, e)
		}
		for i, l := range p.theirs {
			expr := at
			if l.path != "" {
				expr += "." + l.path
				if e == 0 {
					fmt.Fprintf(b, "\t_Static_assert(__builtin_offsetof(__typeof__(%s), %s) == %d, \"offset\");\n", at, l.path, l.offset)
				}
			}
			switch {
			case out && l.pointer:
				fmt.Fprintf(b, "\t{ void *q = puregpu_arena + %d; __builtin_memcpy((void *)&%s, &q, sizeof q); }\n", seedOf(symbol, k, l.path, e)%4000, expr)
			case out && l.enum != nil:
				if name := p.chosen(symbol, k, e, l); name != "" {
					fmt.Fprintf(b, "\t%s = %s;\n", expr, name)
				} else {
					fmt.Fprintf(b, "\t%s = 0;\n", expr)
				}
			case out:
				fmt.Fprintf(b, "\tpuregpu_fill(&%s, sizeof %s, %#xu);\n", expr, expr, seedOf(symbol, k, l.path, e))
			case p.sized && pointer && l.path != "size":
				fmt.Fprintf(b, "\tif (%d < %s.size) puregpu_put(%d, %d, %d, &%s, sizeof %s);\n", l.offset, at, k, i, e, expr, expr)
			default:
				fmt.Fprintf(b, "\tpuregpu_put(%d, %d, %d, &%s, sizeof %s);\n", k, i, e, expr, expr)
			}
		}
	}
	if pointer {
		if out {
			b.WriteString("\t}\n")
		}
		b.WriteString("\t}\n")
	}
}

// our returns the leaf with a path, as the package binds it.
func (p *callParam) our(path string) (leaf, bool) {
	for _, l := range p.ours {
		if l.path == path {
			return l, true
		}
	}
	return leaf{}, false
}

// chosen returns the enumerator for a leaf of the release, or "" for none.
func (p *callParam) chosen(symbol string, k, element int, l leaf) string {
	o, ok := p.our(l.path)
	if !ok || o.enum == nil || l.enum == nil {
		return ""
	}
	name, _, _ := enumerator(o.enum, l.enum, seedOf(symbol, k, l.path, element))
	return name
}
