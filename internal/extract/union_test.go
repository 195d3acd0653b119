package extract

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/puregpu/puregpu/symbols"
)

// lives holds the first and the last release of each record of a random header.
type lives map[string][2]int

func (l lives) has(r *rand.Rand, name string, minor int) bool {
	if _, ok := l[name]; !ok {
		from := r.IntN(4)
		l[name] = [2]int{20 + from, 20 + from + r.IntN(6)}
	}
	return l[name][0] <= minor && minor <= l[name][1]
}

// randomHeader returns a random header for a release of NCCL, with the records that l has for the
// release. Their values and types differ from release to release.
func randomHeader(r *rand.Rand, l lives, minor int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("#include <stdint.h>\n#define NCCL_MAJOR 2\n#define NCCL_MINOR %d\n#define NCCL_PATCH 1", minor)
	line("typedef struct ncclComm *ncclComm_t;")
	line("typedef enum { ncclSuccess = 0")
	for i := range 4 {
		if l.has(r, fmt.Sprint("error", i), minor) {
			line(", ncclError%d = %d", i, 10*i+r.IntN(2))
		}
	}
	line("} ncclResult_t;")
	for i := range 3 {
		if l.has(r, fmt.Sprint("limit", i), minor) {
			line("#define NCCL_LIMIT_%d %d", i, r.IntN(3))
		}
	}
	have := []string{}
	for i := range 3 {
		if l.has(r, fmt.Sprint("record", i), minor) {
			line("typedef struct { int a;")
			for j := range 3 {
				if r.IntN(2) > 0 {
					line("%s m%d;", []string{"int", "long", "ncclComm_t"}[r.IntN(3)], j)
				}
			}
			line("} ncclRecord%d_t;", i)
			have = append(have, fmt.Sprintf("ncclRecord%d_t *", i))
		}
	}
	have = append(have, "int", "unsigned long")
	for i := range 3 {
		if l.has(r, fmt.Sprint("number", i), minor) {
			line("typedef %s ncclNumber%d_t;", []string{"int", "int32_t", "unsigned", "long", "double"}[r.IntN(5)], i)
			have = append(have, fmt.Sprintf("ncclNumber%d_t", i))
		}
		if l.has(r, fmt.Sprint("wide", i), minor) {
			line("typedef enum { ncclWide%d = 1%s } __attribute__((packed)) ncclWide%[1]d_t;", i, []string{"", fmt.Sprintf(", ncclWidest%d = 300", i), fmt.Sprintf(", ncclWidest%d = -1", i)}[r.IntN(3)])
			have = append(have, fmt.Sprintf("ncclWide%d_t *", i))
		}
		if l.has(r, fmt.Sprint("visit", i), minor) {
			line("typedef %s (*ncclVisit%d_t)(%s x%s);", []string{"int", "void"}[r.IntN(2)], i, []string{"int", "long", "ncclComm_t"}[r.IntN(3)], strings.Repeat(", int y", r.IntN(2)))
			have = append(have, fmt.Sprintf("ncclVisit%d_t", i))
		}
	}
	for i := range 5 {
		if l.has(r, fmt.Sprint("call", i), minor) {
			line("ncclResult_t ncclCall%d(%s x, int y%s);", i, have[r.IntN(len(have))], strings.Repeat(", int z", r.IntN(2)))
		}
	}
	return b.String()
}

// factsAt returns the enumerators, structs, constants and functions of a table, by kind and name.
func factsAt(t *symbols.Table) map[string]any {
	out := map[string]any{}
	types := func(result string, params []symbols.Param) []string {
		types := []string{result}
		for _, p := range params {
			types = append(types, p.Type)
		}
		return types
	}
	for _, e := range t.Enums {
		out["enum "+e.Name] = []any{e.Bytes(), e.Signed}
		for _, v := range e.Values {
			if !strings.HasPrefix(v.Name, "ncclWidest") { // the bound enumeration may be too small for it
				out["enumerator "+v.Name] = v.Value
			}
		}
	}
	for _, s := range t.Scalars {
		size, goType, _ := symbols.Builtin(s.Type)
		out["scalar "+s.Name] = []any{size, goType}
	}
	for _, c := range t.Callbacks {
		out["callback "+c.Name] = types(c.Result, c.Params)
	}
	for _, s := range t.Structs {
		out["struct "+s.Name] = []any{s.Size, s.Align, s.Fields}
	}
	for _, c := range t.Constants {
		out["constant "+c.Name] = c.Value
	}
	for _, f := range t.Functions {
		out["function "+f.Symbol] = types(f.Result, f.Params)
	}
	return out
}

// TestUnionKeepsEveryRelease checks that a table of random releases, joined in any order, still has
// the records of each release.
func TestUnionKeepsEveryRelease(t *testing.T) {
	d := describe(t, "nccl")
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, releases := lives{}, map[symbols.Version]fs.FS{}
		var versions []symbols.Version
		for i := range 5 {
			v := symbols.Version{Major: 2, Minor: 20 + i, Patch: 1}
			versions = append(versions, v)
			releases[v] = fstest.MapFS{"nccl.h": {Data: []byte(randomHeader(r, l, 20+i))}}
		}
		var table *symbols.Table
		perm := r.Perm(len(versions))
		for len(perm) > 0 {
			n := 1
			if table != nil { // adds several releases at once, in any order
				n += r.IntN(len(perm))
			}
			var some []fs.FS
			for _, i := range perm[:n] {
				some = append(some, releases[versions[i]])
			}
			perm = perm[n:]
			next, err := Table(d, Input{Releases: some, Onto: table})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			text, err := symbols.Encode(next)
			if err != nil {
				t.Fatal(err)
			}
			if table, err = symbols.DecodeTable("joined", text); err != nil {
				t.Fatalf("seed %d: the joined table is refused: %v", seed, err)
			}
		}
		if !slices.Equal(table.Releases, versions) {
			t.Fatalf("seed %d: releases %v", seed, table.Releases)
		}
		for _, v := range versions {
			alone, err := Table(d, Input{Releases: []fs.FS{releases[v]}})
			if err != nil {
				t.Fatal(err)
			}
			want, got := factsAt(alone), factsAt(table.At(v))
			for name, x := range want {
				if !reflect.DeepEqual(got[name], x) {
					t.Errorf("seed %d: %s of %v is %v in the joined table, want %v", seed, name, v, got[name], x)
				}
			}
			for name := range got {
				if want[name] == nil {
					t.Errorf("seed %d: %v has no %s, and the joined table says so", seed, v, name)
				}
			}
		}
	}
}

// TestUnionOfMacrosForEnumerators checks a table of two releases. Names that are enumerators in the
// older one are macros in the newer one, for the enumerators of another enumeration.
func TestUnionOfMacrosForEnumerators(t *testing.T) {
	const head = "#define NCCL_MAJOR 2\n#define NCCL_MINOR %d\n#define NCCL_PATCH 1\ntypedef enum { ncclSuccess = 0 } ncclResult_t;\n"
	older := fmt.Sprintf(head, 20) + `
typedef enum { NCCL_OPTION_A = 0, NCCL_OPTION_B = 1, NCCL_NUM_OPTIONS = 2 } ncclOption;
ncclResult_t ncclSet(ncclOption *options, int n);
`
	newer := fmt.Sprintf(head, 21) + `
typedef enum { ncclChoiceA = 0, ncclChoiceB = 1, ncclChoiceC = 2, ncclNumChoices = 3 } ncclChoice;
#define ncclOption ncclChoice
#define NCCL_OPTION_A ncclChoiceA
#define NCCL_OPTION_B ncclChoiceB
#define NCCL_OPTION_C ncclChoiceC
#define NCCL_NUM_OPTIONS ncclNumChoices
ncclResult_t ncclSet(ncclOption *options, int n);
`
	table, err := Table(describe(t, "nccl"), Input{Releases: []fs.FS{
		fstest.MapFS{"nccl.h": {Data: []byte(newer)}}, fstest.MapFS{"nccl.h": {Data: []byte(older)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := symbols.Encode(table)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := symbols.DecodeTable("joined", text); err != nil {
		t.Fatal(err)
	}
	if f := table.Functions[0]; len(f.Others) > 0 {
		t.Errorf("ncclSet has other parameters: %v", f.Others)
	}
	got := map[string]string{}
	for _, c := range table.At(symbols.Version{Major: 2, Minor: 20, Patch: 1}).Constants {
		if c.Type == "ncclChoice" {
			got[c.Name] = c.Value
		}
	}
	want := map[string]string{"NCCL_OPTION_A": "0", "NCCL_OPTION_B": "1", "NCCL_NUM_OPTIONS": "2"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("2.20.1 has %v, want %v", got, want)
	}
}
