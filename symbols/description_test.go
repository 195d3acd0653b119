package symbols

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// smallDescription returns the text of a description that fits the small table.
func smallDescription(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "small-library.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDescriptionErrorsSayWhere checks that the error for a description with one fault names its
// place.
func TestDescriptionErrorsSayWhere(t *testing.T) {
	small := smallDescription(t)
	for _, tt := range []struct {
		name, old, new     string
		record, field, msg string // beginnings of Record and Field, and a part of Msg
	}{
		{"unknown field", `"brand": "X"`, `"color": 3`, "line 3, ", "color", "no such field"},
		{"unknown field of the headers", `"omit": ["px"]`, `"leave": ["px"]`, "line 16, ", "headers.leave", "no such field"},
		{"unknown field of an implementation", `"hint": "install RX"`, `"hints": "install RX"`, "line 35, ", "implementations[RX].hints", "no such field"},
		{"wrong type", `"major": 1000,`, `"major": "1000",`, "line 7, ", "version.numbers[0].major", "cannot unmarshal string"},
		{"no library", `"library": "x",`, ``, "library", "library", "cannot name a Go package"},
		{"library in capitals", `"library": "x"`, `"library": "X"`, "library", "library", "cannot name a Go package"},
		{"no brand", `"brand": "X",`, ``, "library", "brand", "is empty"},
		{"no prefixes", `"functions": ["x"], `, ``, "prefixes", "functions", "is missing"},
		{"initialism in small letters", `"brand": "X",`, `"brand": "X", "initialisms": ["Xyz"],`, "library", "initialisms", "not a word in capitals"},
		{"function that is no name", `"xRead"`, `"x Read"`, "version", "function", "not a C name"},
		{"stub without a function", `"function": "xRead",`, ``, "version", "stub", "no function"},
		{"uses of what lends nothing", `"brand": "X",`, `"brand": "X", "uses": ["nccl"],`, "library", "uses", "no library \"nccl\" lends"},
		{"folder elsewhere", `"omit": ["px"]`, `"omit": ["px"], "dir": "../x"`, "headers", "dir", "not a path with slashes below"},
		{"release that the headers tell", `"omit": ["px"]`, `"omit": ["px"], "release": "1.0"`, "headers", "release", "must be absent"},
		{"nothing to include of what is lent", `"brand": "X",`, `"brand": "X", "lends": {"headers": []},`, "lends", "headers", "is empty"},
		{"Go type without a shape", `"brand": "X",`, `"brand": "X", "lends": {"headers": ["x.h"], "types": [{"name": "a", "type": "b", "go": "A"}]},`, "lends", "types", "not a C built-in type"},
		{"no numbers", `[{"major": 1000, "minor": 100, "patch": 1}, {"since": "2.0", "major": 10000, "minor": 100, "patch": 1}]`, `[]`, "version", "numbers", "is empty"},
		{"numbers that overlap", `"major": 1000, "minor": 100`, `"major": 100, "minor": 1000`, "version", "numbers", "must divide"},
		{"no minor number", `"major": 1000, "minor": 100`, `"major": 1000`, "version", "numbers", "must divide"},
		{"first way with a beginning", `{"major": 1000`, `{"since": "1.0", "major": 1000`, "version", "numbers", "the first must have no since"},
		{"second way without a beginning", `"since": "2.0", `, ``, "version", "numbers", "must be later"},
		{"numbers that fall", `"major": 10000, "minor": 100`, `"major": 500, "minor": 100`, "version", "numbers", "do not grow"},
		{"no headers", `["x.h", "xtypes.h"]`, `[]`, "headers", "files", "is empty"},
		{"header outside of the folder", `["x.h", "xtypes.h"]`, `["x.h", "xtypes.h", "../y.h"]`, "headers", "files", "not the name of a header"},
		{"included header that is none", `"include": ["x.h"]`, `"include": ["x.h", "z.h"]`, "headers", "include", "not one of files"},
		{"first header not included", `"include": ["x.h"]`, `"include": ["xtypes.h"]`, "headers", "include", "must begin with"},
		{"handle that is no name", `"tag": "other_st"`, `"tag": ""`, "headers", "handles", "not a C name"},
		{"every function left out", `["px"]`, `[""]`, "headers", "omit", "empty prefix"},
		{"version without macros", `, "macros": ["X_VERSION"]`, ``, "headers", "version", "one to three macros"},
		{"macro that is no name", `"X_VERSION"`, `"X("`, "headers", "version", "not the name of a macro"},
		{"no since", `"since": "typedefs",`, ``, "headers", "since", `"" is not one of`},
		{"typedefs for nothing", `"since": "typedefs"`, `"since": "overlay"`, "headers", "typedefs", "not allowed otherwise"},
		{"nodes for nothing", `"since": "typedefs"`, `"nodes": "x_", "since": "typedefs"`, "headers", "nodes", "only for"},
		{"old ABIs told twice", `"since": "typedefs"`, `"old": "X_OLD", "since": "typedefs"`, "headers", "old", "or since is typedefs"},
		{"typedefs in no header", `{"header": "xtypes.h"`, `{"header": "y.h"`, "headers", "typedefs.header", "not one of files"},
		{"typedefs without a prefix", `"prefix": "PFN_", `, ``, "headers", "typedefs.prefix", "cannot start"},
		{"typedefs without a macro", `"define": "X_EVERY_ABI", `, ``, "headers", "typedefs.define", "not a C name"},
		{"twin that is no ending", `["_pt"]`, `["(pt"]`, "headers", "typedefs.twins", "cannot end"},
		{"hook that is no name", `"resolver"`, `"dl.Resolver"`, "hooks", "resolve", "not the name of a Go function"},
		{"no name", `"name": "RX",`, ``, "implementation ", "name", "is empty"},
		{"no hint", `"hint": "install X"`, `"hint": " "`, "implementation X library", "hint", "is empty"},
		{"no variable", `"env": "X_LIBRARY",`, ``, "implementation X library", "env", "not the name of a variable"},
		{"variable twice", `"RX_LIBRARY"`, `"X_LIBRARY"`, "implementation RX", "env", "taken"},
		{"no files", `"files": {"linux": ["librx.so"]},`, ``, "implementation RX", "files", "is empty"},
		{"unknown system", `"windows": ["x.dll"]`, `"plan9": ["x.a"]`, "implementation X library", "files.plan9", "not a supported system"},
		{"no names", `["librx.so"]`, `[]`, "implementation RX", "files.linux", "is empty"},
		{"directories of another system", `{"linux": ["librx.so"]}`, `{"linux": ["librx.so"]}, "dirs": {"windows": ["C:/x"]}`, "implementation RX", "dirs.windows", "no names for this system"},
		{"second without a mark", `"lib": "rx",`, ``, "implementation RX", "lib", "not a name"},
		{"first with a mark", `"name": "X library"`, `"lib": "xx", "name": "X library"`, "implementation X library", "lib", "must be empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Count(small, tt.old) != 1 {
				t.Fatalf("%q is %d times in the text", tt.old, strings.Count(small, tt.old))
			}
			d, err := DecodeDescription("library.json", []byte(strings.Replace(small, tt.old, tt.new, 1)))
			e, ok := errors.AsType[*Error](err)
			if !ok || d != nil {
				t.Fatalf("DecodeDescription gives %v and %v, want an *Error", d, err)
			}
			if e.File != "library.json" || !strings.HasPrefix(e.Record, tt.record) || e.Field != tt.field || !strings.Contains(e.Msg, tt.msg) {
				t.Errorf("error is %#v,\nwant library.json: %s…: %s: …%s…", e, tt.record, tt.field, tt.msg)
			}
		})
	}
}

func TestEmptyDescriptionLacksEverything(t *testing.T) {
	_, err := DecodeDescription("library.json", []byte("{}"))
	for _, place := range []string{
		"library: library", "library: brand", "prefixes: functions", "prefixes: types", "prefixes: values", "version: numbers", "headers: files",
		"headers: since", "library: implementations",
	} {
		wantError(t, err, "library.json: "+place+": ")
	}
}

// TestRead checks that Read returns the library of a folder, and an error if a file is missing or
// the files contradict each other.
func TestRead(t *testing.T) {
	table, overlay := encodedSmall(t)
	description := smallDescription(t)
	for _, tt := range []struct{ name, old, new, err string }{
		{"whole", "", "", ""},
		{"of another library", `"library": "x"`, `"library": "y"`, `d/library.json: library: library: is "y", but the table is of "x"`},
		{"number that is too large", `"major": 10000, "minor": 100`, `"major": 2000000000, "minor": 100`, "d/library.json: version: numbers: 2.0 is 4000000000, which does not fit"},
		{"function that is not there", `"xRead"`, `"xVersion"`, "d/library.json: version: function: the table has no xVersion"},
		{"code that is not there", `"xBusy"`, `"xStub"`, "d/library.json: version: stub: the table has no enumerator xStub"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Read(fstest.MapFS{
				"d/library.json": {Data: []byte(strings.Replace(description, tt.old, tt.new, 1))},
				"d/table.json":   {Data: []byte(table)}, "d/overlay.json": {Data: []byte(overlay)},
			}, "d")
			if tt.err != "" {
				wantError(t, err, tt.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Description.Systems(); !slices.Equal(got, []string{"linux", "windows"}) {
				t.Errorf("the systems are %v", got)
			}
			if got := l.Description.Implementations[1].OpenName(); got != "OpenRX" {
				t.Errorf("the second one is opened by %s", got)
			}
		})
	}
	marked := strings.Replace(table, `"symbol":"xInit"`, `"lib":"other","symbol":"xInit"`, 1)
	_, err := Read(fstest.MapFS{"library.json": {Data: []byte(description)}, "table.json": {Data: []byte(marked)}, "overlay.json": {Data: []byte(overlay)}}, ".")
	wantError(t, err, `library.json: library: implementations: no implementation has the lib "other" of xInit`)
	for _, missing := range []string{"library.json", "table.json", "overlay.json"} {
		files := fstest.MapFS{"library.json": {Data: []byte(description)}, "table.json": {Data: []byte(table)}, "overlay.json": {Data: []byte(overlay)}}
		delete(files, missing)
		if _, err := Read(files, "."); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// TestNumbers checks that Encode and Decode translate between releases and their numbers.
func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		library string
		version Version
		number  int
	}{
		{"cuda", Version{11, 2, 0}, 11020}, {"cuda", Version{12, 5, 0}, 12050}, {"cuda", Version{13, 0, 0}, 13000},
		{"hip", Version{5, 2, 0}, 50200000}, {"hip", Version{6, 4, 43484}, 60443484},
		{"nccl", Version{2, 3, 5}, 2305}, {"nccl", Version{2, 8, 4}, 2804}, {"nccl", Version{2, 9, 6}, 20906}, {"nccl", Version{2, 28, 3}, 22803},
	} {
		d, err := Describe(tt.library)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Version.Encode(tt.version); got != tt.number {
			t.Errorf("%s %v is %d, want %d", tt.library, tt.version, got, tt.number)
		}
		if got := d.Version.Decode(tt.number); got != tt.version {
			t.Errorf("%s: %d is %v, want %v", tt.library, tt.number, got, tt.version)
		}
	}
	if _, err := Describe("opencl"); err == nil || !strings.Contains(err.Error(), "cuda") {
		t.Errorf("Describe of an unknown library: %v", err)
	}
}

func FuzzDescription(f *testing.F) {
	f.Add([]byte(smallDescription(f)))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := DecodeDescription("library.json", text)
		if err != nil {
			return
		}
		for _, v := range []Version{{}, {1, 2, 3}, {1 << 20, 1, 1}} {
			d.Version.Decode(d.Version.Encode(v)) // checks only that it does not panic
		}
		d.Systems()
		d.Headers.Included()
	})
}

// TestContributing checks that the description and the overlay in CONTRIBUTING.md can be decoded.
func TestContributing(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```json\n")
	if len(parts) != 3 {
		t.Fatalf("the page has %d blocks of JSON, want a description and an overlay", len(parts)-1)
	}
	block := func(i int) []byte {
		json, _, _ := strings.Cut(parts[i], "```")
		return []byte(json)
	}
	if _, err := DecodeDescription("CONTRIBUTING.md", block(1)); err != nil {
		t.Error(err)
	}
	if err := decode("CONTRIBUTING.md", block(2), new(Overlay)); err != nil {
		t.Error(err)
	}
}
