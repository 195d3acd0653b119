package symbols

import (
	"math"
	"strings"
	"testing"
)

// small returns a table and an overlay that pass every check.
func small() (*Table, *Overlay) {
	t := &Table{
		Library:   "x",
		Version:   Version{2, 0, 0},
		Headers:   []Header{{Name: "x.h", Version: Version{2, 0, 0}, SHA256: strings.Repeat("0a", 32)}},
		Handles:   []Handle{{Name: "xStream", Tag: "xStream_st"}},
		Scalars:   []Scalar{{Name: "xPtr", Type: "unsigned long long"}},
		Aliases:   []Alias{{Name: "xStreamOld", Type: "xStream"}, {Name: "xCursor", Type: "xPoint *"}},
		Enums:     []Enum{{Name: "xResult", Values: []EnumValue{{Name: "xSuccess"}, {Name: "xBusy", Value: 1}}}, {Values: []EnumValue{{Name: "xLoose", Value: 7}}}},
		Callbacks: []Callback{{Name: "xFn", Result: "void", Params: []Param{{Name: "data", Type: "void *"}}}},
		Constants: []Constant{{Name: "X_VERSION", Type: "int", Value: "2000"}, {Name: "X_LEGACY", Type: "pointer", Value: "1"}, {Name: "X_OK", Type: "xResult", Value: "0"}},
		Structs: []Struct{
			{Name: "xPoint", Size: 24, Align: 8, Fields: []Field{
				{Name: "a", Type: "int", Offset: 0, Size: 4}, {Name: "next", Type: "xCursor", Offset: 8, Size: 8}, {Name: "pad", Type: "char[2][4]", Offset: 16, Size: 8},
			}},
			{Name: "xBits", Size: 4, Align: 4, Fields: []Field{
				{Name: "low", Type: "unsigned int", Size: 4, Bits: 3}, {Name: "high", Type: "unsigned int", Size: 4, Bits: 29, BitOffset: 3},
			}},
			{Name: "xAny", Union: true, Size: 8, Align: 8, Fields: []Field{{Name: "n", Type: "xResult", Size: 4}, {Name: "p", Type: "void *", Size: 8}}},
		},
		Functions: []Function{
			{Symbol: "xInit", API: "xInit", Since: Version{1, 0, 0}, Result: "xResult", Params: []Param{{Name: "flags", Type: "unsigned int"}}, Current: true},
			{Symbol: "xMake", API: "xMake", Since: Version{1, 0, 0}, Result: "xResult", Params: []Param{{Name: "out", Type: "xStream *", Dir: Out}}},
			{Symbol: "xMake_v2", API: "xMake", Since: Version{2, 0, 0}, Result: "xResult", Params: []Param{{Name: "out", Type: "xStream *", Dir: Out}, {Name: "flags", Type: "int"}}, Current: true},
			{Symbol: "xRead", API: "xRead", Since: Version{1, 0, 0}, Result: "xResult", Params: []Param{{Name: "buf", Type: "char *"}, {Name: "n", Type: "size_t *"}}, Current: true},
		},
	}
	o := &Overlay{
		Sets: []SetNote{
			{Name: "core", Since: Version{1, 0, 0}, Doc: "all need it", Match: []string{"xInit"}},
			{Name: "streams", Since: Version{1, 0, 0}, Doc: "queues of work", Match: []string{"xMake", "x[R]*"}},
		},
		Functions: []FunctionNote{{Name: "xInit", Callback: Yes, Reason: "calls the allocator"}},
		Params:    []ParamNote{{Name: "xRead.buf", Len: "*n", Text: 64, Reason: "the header says nothing"}},
		Types:     []TypeNote{{Name: "xResult", Kind: "result", Reason: "every function returns it"}},
		Names:     []NameNote{{Name: "xLoose", Go: "Loose", Reason: "no prefix"}, {Name: "xPoint.a", Go: "X", Reason: "clearer"}},
		Docs:      []DocNote{{Name: "xMake", Text: "makes a stream"}},
	}
	return t, o
}

func TestSmallTableAndOverlayPass(t *testing.T) {
	table, overlay := small()
	if err := Lenders(nil).checkTable("t", table); err != nil {
		t.Error(err)
	}
	if err := checkOverlay("o", table, overlay); err != nil {
		t.Error(err)
	}
}

func TestTableChecks(t *testing.T) {
	const big = math.MaxInt
	tests := []struct {
		name  string
		spoil func(*Table)
		want  string // part of the error
	}{
		{"no library", func(t *Table) { t.Library = "" }, "t: table: library: is empty"},
		{"no version", func(t *Table) { t.Version = Version{} }, "t: table: version: is empty"},
		{"short sum", func(t *Table) { t.Headers[0].SHA256 = "0a" }, `t: header x.h: sha256: "0a" is not a SHA-256 sum`},
		{"sum in capitals", func(t *Table) { t.Headers[0].SHA256 = strings.Repeat("0A", 32) }, "header x.h: sha256"},

		{"type twice", func(t *Table) { t.Handles = append(t.Handles, Handle{Name: "xPtr"}) }, "scalar xPtr: name: another type has this name"},
		{"type of C's name", func(t *Table) { t.Handles[0].Name = "int" }, "handle int: name: C has a type of this name"},
		{"type without a name", func(t *Table) { t.Scalars[0].Name = "" }, "scalar : name: is not a C name"},
		{"type with a strange name", func(t *Table) { t.Structs[2].Name = "x.1" }, "struct x.1: name: is not a C name"},
		{"alias of an unknown type", func(t *Table) { t.Aliases[0].Type = "xGone" }, `alias xStreamOld: type: type "xGone" is not in the table`},
		{"alias of void", func(t *Table) { t.Aliases[0].Type = "void" }, "alias xStreamOld: type: is void"},
		{"alias of itself", func(t *Table) { t.Aliases[0].Type = "xStreamOld *" }, "alias xStreamOld: type: refers to itself"},
		{"aliases in a circle", func(t *Table) {
			t.Aliases = append(t.Aliases, Alias{"xA", "xB"}, Alias{"xB", "xA"})
		}, "alias xA: type: refers to itself"},
		{"scalar that is no number", func(t *Table) { t.Scalars[0].Type = "xStream" }, `scalar xPtr: type: "xStream" is not an arithmetic type`},
		{"type that cannot be read", func(t *Table) { t.Functions[0].Params[0].Type = "int(*)" }, "function xInit: flags: type \"int(*)\": cannot read"},

		{"enumerator twice", func(t *Table) { t.Enums[1].Values[0].Name = "xBusy" }, "enum : xBusy: enum xResult has this enumerator too"},
		{"enumerator without a name", func(t *Table) { t.Enums[0].Values[0].Name = "" }, "enum xResult: is not a C name"},
		{"constant twice", func(t *Table) { t.Constants = append(t.Constants, t.Constants[0]) }, "constant X_VERSION: name: is in the table twice"},
		{"constant of an unknown type", func(t *Table) { t.Constants[0].Type = "xStream" }, `constant X_VERSION: type: "xStream" is not one of`},
		{"constant that does not read", func(t *Table) { t.Constants[0].Value = "0x10" }, `constant X_VERSION: value: "0x10" is not a value of type int`},
		{"negative address", func(t *Table) { t.Constants[1].Value = "-1" }, "constant X_LEGACY: value"},
		{"constant without a name", func(t *Table) { t.Constants[0].Name = "" }, "constant : name: is not a C name"},

		{"struct of no size", func(t *Table) { t.Structs[0].Size = 0 }, "struct xPoint: size: 0 bytes cannot be aligned to 8"},
		{"struct of negative size", func(t *Table) { t.Structs[0].Size = -8 }, "struct xPoint: size"},
		{"struct larger than memory", func(t *Table) { t.Structs[0].Size = big - 7 }, "struct xPoint: size"},
		{"size that is no multiple of the alignment", func(t *Table) { t.Structs[0].Size = 25 }, "struct xPoint: size"},
		{"alignment that is no power of two", func(t *Table) { t.Structs[0].Align = 12 }, "struct xPoint: size"},
		{"alignment of zero", func(t *Table) { t.Structs[0].Align = 0 }, "struct xPoint: size"},
		{"smallest alignment there is", func(t *Table) { t.Structs[0].Align = math.MinInt }, "struct xPoint: size"},
		{"field without a name", func(t *Table) { t.Structs[0].Fields[0].Name = "" }, "struct xPoint: name: the field at offset 0 has no name"},
		{"field with a strange name", func(t *Table) { t.Structs[0].Fields[0].Name = "a b" }, "struct xPoint: a b: is not a C name"},
		{"field twice", func(t *Table) { t.Structs[0].Fields[2].Name = "a" }, "struct xPoint: a: two fields have this name"},
		{"field of an unknown type", func(t *Table) { t.Structs[0].Fields[0].Type = "xGone" }, "struct xPoint: a: type \"xGone\" is not in the table"},
		{"field of type void", func(t *Table) { t.Structs[0].Fields[0].Type = "void" }, "struct xPoint: a: is void"},
		{"fields overlap", func(t *Table) { t.Structs[0].Fields[1].Offset = 0 }, "struct xPoint: next: offset 0 overlaps the field that ends at 4"},
		{"field outside", func(t *Table) { t.Structs[0].Fields[2].Offset = 20 }, "struct xPoint: pad: 8 bytes at offset 20 do not fit into 24"},
		{"negative offset", func(t *Table) { t.Structs[0].Fields[0].Offset = -4 }, "struct xPoint: a: 4 bytes at offset -4 do not fit"},
		{"huge offset", func(t *Table) { t.Structs[0].Fields[2].Offset = big }, "struct xPoint: pad: 8 bytes at offset"},
		{"huge field", func(t *Table) { t.Structs[0].Fields[2].Size = big }, "struct xPoint: pad"},
		{"negative field", func(t *Table) { t.Structs[0].Fields[2].Size = math.MinInt }, "struct xPoint: pad"},
		{"field of another size than its type", func(t *Table) { t.Structs[0].Fields[0].Size = 8 }, "struct xPoint: a: has 8 bytes, and its type int has 4"},
		{"field through an alias of another size", func(t *Table) { t.Structs[0].Fields[1].Size = 4 }, "struct xPoint: next: has 4 bytes, and its type xCursor has 8"},
		{"huge array", func(t *Table) { t.Structs[0].Fields[2].Type = "xAny[1000000000]" }, "struct xPoint: pad: has 8 bytes"},
		{"array that no memory holds", func(t *Table) { t.Structs[0].Fields[2].Type = "char[1000000000][1000000000]" }, "the array is too large"},
		{"union member not at its start", func(t *Table) { t.Structs[2].Fields[0].Offset = 4 }, "struct xAny: n: is at offset 4 of a union"},
		{"bit-field too wide", func(t *Table) { t.Structs[1].Fields[1].Bits = 30 }, "struct xBits: high: 30 bits at bit 3 do not fit into 4 bytes"},
		{"bit-field that overflows", func(t *Table) { t.Structs[1].Fields[1].Bits, t.Structs[1].Fields[1].BitOffset = big, big }, "struct xBits: high"},
		{"negative bits", func(t *Table) { t.Structs[1].Fields[1].Bits = -1 }, "struct xBits: high: -1 bits"},
		{"first bit of no bit-field", func(t *Table) { t.Structs[1].Fields[1].Bits = 0 }, "struct xBits: high: 0 bits at bit 3"},
		{"bit-fields overlap", func(t *Table) { t.Structs[1].Fields[1].Bits, t.Structs[1].Fields[1].BitOffset = 5, 2 }, "struct xBits: high: bit 2 at offset 0 overlaps"},
		{"struct in itself", func(t *Table) {
			t.Structs = append(t.Structs, Struct{Name: "xLoop", Size: 8, Align: 8, Fields: []Field{{Name: "in", Type: "xLoop", Size: 8}}})
		}, "struct xLoop: fields: contains itself"},
		{"struct gone before it came", func(t *Table) { t.Structs[0].Since, t.Structs[0].Until = Version{2, 0, 0}, Version{1, 0, 0} }, "struct xPoint: until: 1.0 is before 2.0"},

		{"function without a symbol", func(t *Table) { t.Functions[0].Symbol = "" }, "function : symbol: is empty"},
		{"symbol twice", func(t *Table) { t.Functions[1].Symbol = "xInit" }, "function xInit: symbol: is in the table twice"},
		{"symbol that is no name", func(t *Table) { t.Functions[0].Symbol = "x-init" }, "function x-init: symbol: is not a C name"},
		{"function without an API name", func(t *Table) { t.Functions[0].API = "" }, "function xInit: api: is empty"},
		{"API name that is none", func(t *Table) { t.Functions[0].API = "x\n" }, "function xInit: api"},
		{"two current ABIs", func(t *Table) { t.Functions[1].Current = true }, "function xMake_v2: current: xMake already selects xMake"},
		{"function gone before it came", func(t *Table) { t.Functions[2].Until = Version{1, 9, 0} }, "function xMake_v2: until: 1.9 is before 2.0"},
		{"unknown result", func(t *Table) { t.Functions[0].Result = "xGone" }, `function xInit: result: type "xGone" is not in the table`},
		{"unknown parameter type", func(t *Table) { t.Functions[0].Params[0].Type = "xGone *" }, `function xInit: flags: type "xGone" is not in the table`},
		{"parameter of type void", func(t *Table) { t.Functions[0].Params[0].Type = "void" }, "function xInit: flags: is void"},
		{"parameter without a name", func(t *Table) { t.Functions[2].Params[1].Name = "" }, "function xMake_v2: parameter 1: has no name"},
		{"parameter with a strange name", func(t *Table) { t.Functions[0].Params[0].Name = "f*" }, "function xInit: f*: is not a C name"},
		{"parameter twice", func(t *Table) { t.Functions[2].Params[1].Name = "out" }, "function xMake_v2: out: two parameters have this name"},
		{"bad direction", func(t *Table) { t.Functions[0].Params[0].Dir = "sideways" }, `function xInit: flags: direction "sideways" is not one of`},
		{"callback with an unknown result", func(t *Table) { t.Callbacks[0].Result = "xGone" }, "callback xFn: result: type"},
		{"callback with an unknown parameter", func(t *Table) { t.Callbacks[0].Params[0].Type = "xGone" }, "callback xFn: data: type"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table, _ := small()
			tt.spoil(table)
			wantError(t, Lenders(nil).checkTable("t", table), tt.want)
		})
	}
}

func TestOverlayChecks(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*Overlay)
		want  string
	}{
		{"no sets", func(o *Overlay) { o.Sets = nil }, "o: sets: there must be at least one set"},
		{"set without a name", func(o *Overlay) { o.Sets[0].Name = "" }, "set : name: is empty or taken"},
		{"set twice", func(o *Overlay) { o.Sets[1].Name = "core" }, "set core: name: is empty or taken"},
		{"set without a release", func(o *Overlay) { o.Sets[1].Since = Version{} }, "set streams: since: is empty"},
		{"pattern that cannot be read", func(o *Overlay) { o.Sets[1].Match = append(o.Sets[1].Match, "[") }, `set streams: match: "[": syntax error`},
		{"pattern that matches nothing", func(o *Overlay) { o.Sets[1].Match = append(o.Sets[1].Match, "xGone*") }, `set streams: match: "xGone*" matches no function`},
		{"function in no set", func(o *Overlay) { o.Sets[1].Match = []string{"xMake"} }, "o: sets: function xRead is in no set"},

		{"function twice", func(o *Overlay) { o.Functions = append(o.Functions, o.Functions[0]) }, "function xInit: name: has two entries"},
		{"function without a reason", func(o *Overlay) { o.Functions[0].Reason = " " }, "function xInit: reason: is empty"},
		{"function that is not there", func(o *Overlay) { o.Functions[0].Name = "xGone" }, "function xGone: name: the table has no such function"},

		{"parameter twice", func(o *Overlay) { o.Params = append(o.Params, o.Params[0]) }, "param xRead.buf: name: has two entries"},
		{"parameter without a reason", func(o *Overlay) { o.Params[0].Reason = "" }, "param xRead.buf: reason: is empty"},
		{"parameter of no function", func(o *Overlay) { o.Params[0].Name = "xGone.buf" }, "param xGone.buf: name: must be function.parameter"},
		{"parameter without a function", func(o *Overlay) { o.Params[0].Name = "buf" }, "param buf: name: must be function.parameter"},
		{"parameter that is not there", func(o *Overlay) { o.Params[0].Name = "xRead.gone" }, "param xRead.gone: name: xRead has no parameter gone: remove the entry or correct the name"},
		{"direction that is none", func(o *Overlay) { o.Params[0].Dir = "up" }, `param xRead.buf: dir: "up" is not one of`},
		{"length that is no parameter", func(o *Overlay) { o.Params[0].Len = "count" }, `param xRead.buf: len: xRead has no parameter "count"`},
		{"length that is a star", func(o *Overlay) { o.Params[0].Len = "*" }, `param xRead.buf: len: xRead has no parameter ""`},
		{"negative text", func(o *Overlay) { o.Params[0].Text = -1 }, "param xRead.buf: text"},
		{"negative fixed length", func(o *Overlay) { o.Params[0].Fixed = -1 }, "param xRead.buf: fixed: is negative"},
		{"array written late", func(o *Overlay) { o.Params[0].Late = "it is done" }, "param xRead.buf: late: an array needs no late: its memory is the caller's"},
		{"two lengths", func(o *Overlay) { o.Params[0].Fixed = 4 }, "param xRead.buf: len: an array must have only one of"},

		{"type twice", func(o *Overlay) { o.Types = append(o.Types, o.Types[0]) }, "type xResult: name: has two entries"},
		{"type without a reason", func(o *Overlay) { o.Types[0].Reason = "" }, "type xResult: reason: is empty"},
		{"type that is not there", func(o *Overlay) { o.Types[0].Name = "xGone" }, "type xGone: name: the table has no such type"},
		{"pointer that is a handle", func(o *Overlay) { o.Types[0] = TypeNote{Name: "xStream", Kind: "pointer", Reason: "r"} }, "type xStream: kind: only a typedef of void * can be of the kind pointer"},
		{"number that is a handle", func(o *Overlay) { o.Types[0] = TypeNote{Name: "xStream", Kind: "number", Reason: "r"} }, "type xStream: kind: it is a handle, so it cannot be of the kind number"},
		{"kind that is none", func(o *Overlay) { o.Types[0].Kind = "thing" }, `type xResult: kind: "thing" is not one of`},

		{"name twice", func(o *Overlay) { o.Names = append(o.Names, o.Names[0]) }, "name xLoose: name: has two entries"},
		{"name without a reason", func(o *Overlay) { o.Names[0].Reason = "" }, "name xLoose: reason: is empty"},
		{"name of nothing", func(o *Overlay) { o.Names[0].Name = "xGone" }, "name xGone: name: the table has no such function, type, value, field or parameter"},
		{"no Go name", func(o *Overlay) { o.Names[0].Go = "" }, `name xLoose: go: "" is not an exported Go name`},
		{"Go name that is not exported", func(o *Overlay) { o.Names[0].Go = "loose" }, `go: "loose" is not an exported Go name`},
		{"Go name that is none", func(o *Overlay) { o.Names[0].Go = "Lo-ose" }, `go: "Lo-ose" is not an exported Go name`},

		{"doc twice", func(o *Overlay) { o.Docs = append(o.Docs, o.Docs[0]) }, "doc xMake: name: has two entries"},
		{"doc of nothing", func(o *Overlay) { o.Docs[0].Name = "xGone" }, "doc xGone: name: the table has no such"},
		{"doc with a full stop", func(o *Overlay) { o.Docs[0].Text = "makes a stream." }, "doc xMake: text: must be one line"},
		{"doc of two lines", func(o *Overlay) { o.Docs[0].Text = "makes\na stream" }, "doc xMake: text: must be one line"},
		{"empty doc", func(o *Overlay) { o.Docs[0].Text = "" }, "doc xMake: text: must be one line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table, overlay := small()
			tt.spoil(overlay)
			wantError(t, checkOverlay("o", table, overlay), tt.want)
		})
	}
}

func TestChecksStopAfterFiftyComplaints(t *testing.T) {
	table, _ := small()
	for range 1000 {
		table.Functions = append(table.Functions, Function{})
	}
	if n := strings.Count(Lenders(nil).checkTable("t", table).Error(), "\n") + 1; n != 50 {
		t.Errorf("%d lines of errors, want 50", n)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error is\n%v\nwant %q in it", err, want)
	}
}
