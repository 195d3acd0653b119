package cproof

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/puregpu/puregpu/internal/extract"
	"github.com/puregpu/puregpu/symbols"
)

// header has a declaration for each kind of fact.
const header = `
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>
typedef struct vecCtx_st *vecCtx;
typedef struct vecTree vecTree;
typedef void *vecAny;
typedef enum { VEC_OK = 0, VEC_BAD = 7 } vecStatus;
typedef enum vecSide { VEC_LEFT = -1, VEC_RIGHT = 1 } vecSide;
enum { VEC_LONE = 12 };
typedef uint32_t vecWord;
typedef vecWord vecWord2;
typedef struct vecPair {
  int32_t a;
  vecSide side;
  union { int64_t n; double f; };
  struct { char c; vecStatus s; } in[2];
  const char *__const__ *names;
  int (*cb)(void *, size_t);
} vecPair;
typedef struct { unsigned low : 3, high : 7; int delta : 4; bool on; } vecBits;
struct vecTag { short s; };
typedef void (*vecDone)(vecCtx, const vecPair *);
#define VEC_SIZE 16
#define VEC_NEG (-3)
#define VEC_BIG 0xffffffffffffffffULL
#define VEC_PI 3.25
#define VEC_NAME "vec"
#define VEC_NOWHERE ((vecCtx)0x2)
#define VEC_FIRST VEC_BAD
vecStatus vecOpen(vecCtx *ctx, const char *name, vecDone done);
vecStatus vecNames(vecCtx ctx, const char *const *names, const vecPair *const *pairs);
double vecSum(const double *x, size_t n, struct vecTag t);
vecTree *vecGrow(const vecTree *t, void (*each)(int));
vecSide vecFlip_v2(vecSide s, bool hard, const void *p);
#define vecFlip vecFlip_v2
void vecNone(void);
`

func description() *symbols.Description {
	return &symbols.Description{Library: "vec", Headers: symbols.Headers{Files: []string{"vec.h"}, Release: symbols.Version{Major: 1}, Since: symbols.SinceOverlay}}
}

// table extracts the table of a header, and returns the folder that the header is in.
func table(t *testing.T, header string) (*symbols.Table, string) {
	t.Helper()
	got, err := extract.Table(description(), extract.Input{Releases: []fs.FS{fstest.MapFS{"vec.h": {Data: []byte(header)}}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "vec.h"), []byte(header), 0o666); err != nil {
		t.Fatal(err)
	}
	return got, dir
}

func compilers(t *testing.T) (out []*Compiler) {
	for _, name := range []string{"gcc", "clang"} {
		if cc, err := Find(context.Background(), name); err == nil {
			out = append(out, cc)
		}
	}
	if len(out) == 0 {
		t.Skip("no C compiler")
	}
	return out
}

func prove(t *testing.T, cc *Compiler, tab *symbols.Table, dir string) *Report {
	t.Helper()
	r, err := Prove(context.Background(), tab, Input{Compiler: cc, Description: description(), Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRight(t *testing.T) {
	tab, dir := table(t, header)
	for _, cc := range compilers(t) {
		r := prove(t, cc, tab, dir)
		if err := r.Err(); err != nil {
			t.Errorf("%s:\n%v", cc.Name, err)
		}
		t.Log(cc.Name, r.Right(), r.Facts)
		if len(r.Files) != 1 || r.Files[0].Name != "vec.h" {
			t.Errorf("files: %v", r.Files)
		}
		for _, kind := range []string{
			"scalar", "alias", "handle", "callback", "enum size", "enum sign", "enumerator", "struct size", "struct alignment", "member offset", "member size",
			"member type", "bit-field", "bit-field sign", "constant", "function type", "symbol",
		} {
			if r.Facts[kind] == 0 {
				t.Errorf("%s: no fact of kind %s", cc.Name, kind)
			}
		}
	}
}

// TestHeaderThatAsksForConst proves a header that is not valid C if const is a macro without text.
func TestHeaderThatAsksForConst(t *testing.T) {
	tab, dir := table(t, "#if __has_attribute(const)\n#endif\nconst char *askName(const char *const *list, const int *n);\nstruct ask { const char *name; };\nint askUse(const struct ask *a);\n")
	for _, cc := range compilers(t) {
		r := prove(t, cc, tab, dir)
		if err := r.Err(); err != nil || r.Facts["member type"] != 1 {
			t.Errorf("%s: %v, %v", cc.Name, err, r.Facts)
		}
		wrong := *tab
		wrong.Structs = slices.Clone(tab.Structs)
		wrong.Structs[0].Fields = []symbols.Field{{Name: "name", Type: "int *", Size: 8}}
		if err := prove(t, cc, &wrong, dir).Err(); err == nil || !strings.Contains(err.Error(), "struct ask: type of name") {
			t.Errorf("%s: a wrong type: %v", cc.Name, err)
		}
	}
}

// TestWrong makes one entry of the table wrong at a time, and checks that the proof names it.
func TestWrong(t *testing.T) {
	tab, dir := table(t, header)
	find := func(tab *symbols.Table, name string) *symbols.Struct {
		return &tab.Structs[slices.IndexFunc(tab.Structs, func(s symbols.Struct) bool { return s.Name == name })]
	}
	fn := func(tab *symbols.Table, name string) *symbols.Function {
		return &tab.Functions[slices.IndexFunc(tab.Functions, func(f symbols.Function) bool { return f.Symbol == name })]
	}
	enum := func(tab *symbols.Table, name string) *symbols.Enum {
		return &tab.Enums[slices.IndexFunc(tab.Enums, func(e symbols.Enum) bool { return e.Name == name })]
	}
	constant := func(tab *symbols.Table, name string) *symbols.Constant {
		return &tab.Constants[slices.IndexFunc(tab.Constants, func(c symbols.Constant) bool { return c.Name == name })]
	}
	field := func(s *symbols.Struct, name string) *symbols.Field {
		return &s.Fields[slices.IndexFunc(s.Fields, func(f symbols.Field) bool { return f.Name == name })]
	}
	for _, x := range []struct {
		name string
		make func(*symbols.Table)
		want string
	}{
		{"size", func(t *symbols.Table) { find(t, "vecPair").Size += 8 }, "struct vecPair: size: the table says 56, the compiler 48"},
		{"alignment", func(t *symbols.Table) { find(t, "vecTag").Align = 1 }, "struct vecTag: alignment"},
		{"offset", func(t *symbols.Table) { field(find(t, "vecPair"), "names").Offset = 40 }, "offset of names"},
		{"inner offset", func(t *symbols.Table) { field(find(t, "vecPair.in"), "s").Offset = 1 }, "offset of in[0].s"},
		{"member", func(t *symbols.Table) { field(find(t, "vecPair"), "a").Type = "unsigned int" }, "type of a"},
		{"member enum", func(t *symbols.Table) { field(find(t, "vecPair"), "side").Type = "vecStatus" }, "type of side"},
		{"bits", func(t *symbols.Table) { field(find(t, "vecBits"), "high").BitOffset = 4 }, "bits of high: the table says 4 to 10, the compiler 3 to 9"},
		{"width", func(t *symbols.Table) { field(find(t, "vecBits"), "high").Bits = 6 }, "bits of high"},
		{"bit-field's sign", func(t *symbols.Table) { field(find(t, "vecBits"), "delta").Type = "unsigned int" }, "sign of delta: the table says unsigned int, the compiler signed"},
		{"enumeration's sign", func(t *symbols.Table) { enum(t, "vecSide").Signed = false }, "enum vecSide: signed"},
		{"enumerator", func(t *symbols.Table) { enum(t, "vecStatus").Values[1].Value = 8 }, "enumerator VEC_BAD: value: the table says 8, the compiler 7"},
		{"constant", func(t *symbols.Table) { constant(t, "VEC_SIZE").Value = "15" }, "VEC_SIZE"},
		{"constant's sign", func(t *symbols.Table) { constant(t, "VEC_BIG").Type, constant(t, "VEC_BIG").Value = "int", "-1" }, "VEC_BIG"},
		{"text", func(t *symbols.Table) { constant(t, "VEC_NAME").Value = "vek" }, `VEC_NAME: value: the table says "vek", the compiler "vec"`},
		{"float", func(t *symbols.Table) { constant(t, "VEC_PI").Value = "3" }, "VEC_PI"},
		{"parameter", func(t *symbols.Table) { fn(t, "vecSum").Params[1].Type = "int" }, "function vecSum: type"},
		{"parameters", func(t *symbols.Table) { fn(t, "vecSum").Params = fn(t, "vecSum").Params[1:] }, "function vecSum: type"},
		{"result", func(t *symbols.Table) { fn(t, "vecSum").Result = "float" }, "function vecSum: type"},
		{"by value", func(t *symbols.Table) { fn(t, "vecSum").Params[2].Type = "vecTag *" }, "function vecSum: type"},
		{"const", func(t *symbols.Table) { fn(t, "vecSum").Params[0].Type = "double *" }, "that a const differs"},
		{"symbol", func(t *symbols.Table) { fn(t, "vecFlip_v2").Symbol = "vecFlip" }, "the table says vecFlip, the compiler vecFlip_v2"},
		{"handle", func(t *symbols.Table) { t.Handles[0].Tag = "vecOther" }, "handle vecCtx"},
		{"scalar", func(t *symbols.Table) { t.Scalars[0].Type = "int" }, "scalar vecWord"},
		{"callback", func(t *symbols.Table) {
			t.Callbacks = slices.Clone(t.Callbacks)
			i := slices.IndexFunc(t.Callbacks, func(c symbols.Callback) bool { return c.Name == "vecDone" })
			t.Callbacks[i].Result = "int"
		}, "callback vecDone"},
		{"no such function", func(t *symbols.Table) { f := fn(t, "vecNone"); f.Symbol, f.API = "vecNo", "vecNo" }, "function vecNo"},
	} {
		text, err := symbols.Encode(tab)
		if err != nil {
			t.Fatal(err)
		}
		wrong, err := symbols.DecodeTable("table", text)
		if err != nil {
			t.Fatal(err)
		}
		x.make(wrong)
		for _, cc := range compilers(t) {
			if err := prove(t, cc, wrong, dir).Err(); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %s: %v\nwant %s", x.name, cc.Name, err, x.want)
			}
		}
	}
}
