//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/symbols"
)

// changedHIP returns HIP 6.4 from the table, after a change, and its C declarations.
func changedHIP(t *testing.T, change func(*symbols.Table)) (*symbols.Table, string) {
	t.Helper()
	lib, err := symbols.Load("hip")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(lib.Table)
	if err != nil {
		t.Fatal(err)
	}
	own := *lib
	own.Table = new(symbols.Table)
	if err := json.Unmarshal(text, own.Table); err != nil {
		t.Fatal(err)
	}
	for i := range own.Structs { // C needs a name for every member
		for k := range own.Structs[i].Fields {
			own.Structs[i].Fields[k].Anonymous = false
		}
	}
	change(own.Table)
	own.Version = symbols.Version{Major: 6, Minor: 4}
	types, err := own.CTypes()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(types)
	for _, e := range own.Enums {
		for _, v := range e.Values {
			fmt.Fprintf(&b, "#define %s ((%s)%d)\n", v.Name, e.Name, v.Value)
		}
	}
	for _, f := range own.Functions {
		params := make([]string, len(f.Params))
		for i, p := range f.Params {
			params[i] = symbols.CDeclaration(p.Type, "")
		}
		if len(params) == 0 {
			params = []string{"void"}
		}
		fmt.Fprintf(&b, "%s;\n", symbols.CDeclaration(f.Result, f.Symbol+"("+strings.Join(params, ", ")+")"))
	}
	return own.Table, b.String()
}

func structNamed(t *symbols.Table, name string) *symbols.Struct {
	return &t.Structs[slices.IndexFunc(t.Structs, func(s symbols.Struct) bool { return s.Name == name })]
}

// TestRecorderFindsOtherLayouts checks that callAll reports the functions of a release that differ
// from the package's in structs, enumerators or parameters, and no others.
func TestRecorderFindsOtherLayouts(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	lib := libraryNamed("hip")
	functions, err := gen.Functions("hip")
	if err != nil {
		t.Fatal(err)
	}
	d, err := symbols.Describe("hip")
	if err != nil {
		t.Fatal(err)
	}
	ours, _ := changedHIP(t, func(*symbols.Table) {})
	for _, c := range []struct {
		name   string
		change func(*symbols.Table)
		wrong  []string // functions whose calls must be reported
		says   string   // part of the report about the first function
	}{
		{"nothing", func(*symbols.Table) {}, nil, ""},
		{
			"fields in another order", func(t *symbols.Table) {
				f := structNamed(t, "hipMemAllocationProp").Fields
				f[0].Offset, f[1].Offset = 4, 0
				f[0], f[1] = f[1], f[0]
			},
			[]string{"hipMemCreate", "hipMemGetAllocationGranularity", "hipMemGetAllocationPropertiesFromHandle"}, "parameter prop: C found ",
		},
		{
			"other numbers", func(t *symbols.Table) {
				e := &t.Enums[slices.IndexFunc(t.Enums, func(e symbols.Enum) bool { return e.Name == "hipGraphNodeType" })]
				for i := range e.Values {
					e.Values[i].Value++
				}
			},
			[]string{"hipGraphAddNode", "hipGraphExecNodeSetParams", "hipGraphNodeGetType", "hipGraphNodeSetParams"}, "result pType: Go found ",
		},
		{
			"a larger struct", func(t *symbols.Table) {
				s := structNamed(t, "hipMemsetParams")
				s.Fields = append(s.Fields, symbols.Field{Name: "more", Type: "size_t", Offset: s.Size, Size: 8})
				s.Size += 8
			},
			[]string{"hipGraphAddMemsetNode", "hipGraphExecMemsetNodeSetParams", "hipGraphMemsetNodeGetParams", "hipGraphMemsetNodeSetParams"},
			"it is not refused, and the struct of pMemsetParams has 56 bytes, where the package's has 48",
		},
		{
			"one parameter more", func(t *symbols.Table) {
				f := &t.Functions[slices.IndexFunc(t.Functions, func(f symbols.Function) bool { return f.Symbol == "hipStreamSynchronize" })]
				f.Params = append(f.Params, symbols.Param{Name: "flags", Type: "unsigned int"})
			},
			[]string{"hipStreamSynchronize"}, "it is not refused, and it takes 2 parameters, not 1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			theirs, includes := changedHIP(t, c.change)
			all := lib.calls(functions, d, ours, theirs)
			dir := t.TempDir()
			file := filepath.Join(dir, "librecorder.so")
			if err := compile(t.Context(), dir, lib.source(includes, nil, d, theirs.Version, all), file, d, ""); err != nil {
				t.Fatal(err)
			}
			got, err := callAll(lib, file, theirs.Version, all)
			if err != nil {
				t.Fatal(err)
			}
			var wrong []string
			for _, w := range got.Wrong {
				name, says, _ := strings.Cut(w, ": ")
				if len(wrong) == 0 && !strings.HasPrefix(says, c.says) {
					t.Errorf("%s, want that it says %s", w, c.says)
				}
				wrong = append(wrong, name)
			}
			slices.Sort(wrong)
			if wrong = slices.Compact(wrong); !slices.Equal(wrong, c.wrong) {
				t.Errorf("wrong are %q, want %q\n%.3000q", wrong, c.wrong, got.Wrong)
			}
			if len(got.Refused) > 0 || len(got.Compared) < 400 {
				t.Errorf("refused are %q, and compared %d functions", got.Refused, len(got.Compared))
			}
		})
	}
}
