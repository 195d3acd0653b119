package symbols

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// encodedSmall returns the small table and overlay as text.
func encodedSmall(t testing.TB) (table, overlay string) {
	t.Helper()
	tab, _ := small()
	b, err := Encode(tab)
	if err != nil {
		t.Fatal(err)
	}
	o, err := os.ReadFile(filepath.Join("testdata", "small-overlay.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b), string(o)
}

func TestDecodeErrorsSayWhere(t *testing.T) {
	table, overlay := encodedSmall(t)
	swap := func(text, old, new string) string {
		t.Helper()
		if strings.Count(text, old) != 1 {
			t.Fatalf("%q stands %d times in the text", old, strings.Count(text, old))
		}
		return strings.Replace(text, old, new, 1)
	}
	tests := []struct {
		name           string
		table, overlay string // "" for a text that passes
		file           string
		record         string // the beginning of Record
		field          string
		msg            string // a part of Msg
	}{
		{
			name: "unknown field of a table", table: swap(table, `"version": "2.0",`, "\"version\": \"2.0\",\n\"color\": 3,"),
			file: "t.json", record: "line 4, ", field: "color", msg: "no such field",
		},
		{
			name: "unknown field of a record", table: swap(table, `"name":"xStream","tag"`, `"name":"xStream","color":1,"tag"`),
			file: "t.json", record: "line 8, ", field: "handles[xStream].color", msg: "no such field",
		},
		{
			name: "unknown field of a parameter", table: swap(table, `{"name":"flags","type":"int"}`, `{"name":"flags","type":"int","way":"out"}`),
			file: "t.json", record: "line 37, ", field: "functions[xMake_v2].params[flags].way", msg: "no such field",
		},
		{
			name: "wrong type", table: swap(table, `"size":24`, `"size":"24"`),
			file: "t.json", record: "line 22, ", field: "structs[xPoint].size", msg: "cannot unmarshal string",
		},
		{
			name: "number that no int holds", table: swap(table, `"size":24`, `"size":99999999999999999999`),
			file: "t.json", record: "line 22, ", field: "structs[xPoint].size", msg: "cannot unmarshal number",
		},
		{
			name: "fraction", table: swap(table, `"size":24`, `"size":2.5`),
			file: "t.json", record: "line 22, ", field: "structs[xPoint].size", msg: "cannot unmarshal number",
		},
		{
			name: "list that is none", table: swap(table, `"params":[{"name":"data","type":"void *"}]`, `"params":7`),
			file: "t.json", record: "line 27, ", field: "callbacks[xFn].params", msg: "cannot unmarshal number",
		},
		{
			name: "record that is none", table: swap(table, `{"name":"X_VERSION","type":"int","value":"2000"}`, `true`),
			file: "t.json", record: "line 30, ", field: "constants[0]", msg: "cannot unmarshal bool",
		},
		{
			name: "bad version", table: swap(table, `"xMake_v2","api":"xMake","since":"2.0"`, `"xMake_v2","api":"xMake","since":"two"`),
			file: "t.json", record: "line 37, ", field: "functions[xMake_v2].since", msg: `version "two"`,
		},
		{name: "truncated", table: table[:len(table)/2], file: "t.json", record: "line ", msg: "the text ends too early"},
		{name: "empty", table: " ", file: "t.json", record: "line 1, ", msg: "the text ends too early"},
		{name: "no object", table: "[]", file: "t.json", record: "line 1, column 1", msg: "cannot unmarshal array"},
		{name: "syntax", table: swap(table, `"size":24`, `"size" 24`), file: "t.json", record: "line 22, ", msg: "invalid character"},
		{name: "trailing data", table: table + "{}", file: "t.json", record: "line 41, ", msg: "more after the end"},
		{name: "null", table: "null", file: "t.json", record: "table", field: "library", msg: "is empty"},
		{
			name: "unknown field of an overlay", overlay: swap(overlay, `"callback":true`, `"callbacks":true`),
			file: "o.json", record: "line 7, ", field: "functions[xInit].callbacks", msg: "no such field",
		},
		{
			name: "wrong type in an overlay", overlay: swap(overlay, `"len":"*n"`, `"null":"yes"`),
			file: "o.json", record: "line 10, ", field: "params[xRead.buf].null", msg: "cannot unmarshal string",
		},
		{name: "trailing data after an overlay", overlay: overlay + "]", file: "o.json", record: "line ", msg: "more after the end"},
		{name: "null overlay", overlay: "null", file: "o.json", record: "sets", msg: "there must be at least one set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.table == "" {
				tt.table = table
			}
			if tt.overlay == "" {
				tt.overlay = overlay
			}
			l, err := Decode("t.json", []byte(tt.table), "o.json", []byte(tt.overlay))
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("Decode gives %v and %v, want an *Error", l, err)
			}
			if e.File != tt.file || !strings.HasPrefix(e.Record, tt.record) || e.Field != tt.field || !strings.Contains(e.Msg, tt.msg) {
				t.Errorf("error is %#v,\nwant %s: %s…: %s: …%s…", e, tt.file, tt.record, tt.field, tt.msg)
			}
			if !strings.HasPrefix(err.Error(), tt.file+": ") {
				t.Errorf("error %q does not start with its file", err)
			}
		})
	}
}

func TestDecodeReportsEveryFault(t *testing.T) {
	table, overlay := encodedSmall(t)
	table = strings.ReplaceAll(table, `"xResult","params"`, `"xGone","params"`)
	_, err := Decode("t.json", []byte(table), "o.json", []byte(overlay))
	for _, record := range []string{"function xInit", "function xMake", "function xMake_v2", "function xRead"} {
		wantError(t, err, "t.json: "+record+": result: ")
	}
}

func TestSmallTableSurvivesARoundTrip(t *testing.T) {
	table, _ := encodedSmall(t)
	got, err := DecodeTable("t.json", []byte(table))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Encode(got)
	if err != nil || string(text) != table {
		t.Errorf("second encoding differs (%v):\n%s\nfrom the first:\n%s", err, text, table)
	}
}

func TestEmbeddedTablesAreCanonical(t *testing.T) {
	for _, name := range Names() {
		text, err := files.ReadFile(name + "/table.json")
		if err != nil {
			t.Fatal(err)
		}
		table, err := DecodeTable(name, text)
		if err != nil {
			t.Error(err)
			continue
		}
		again, err := Encode(table)
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%s: Encode(Decode(text)) is not the text (%v); tables are written by tools/extract", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	table, overlay := encodedSmall(f)
	f.Add([]byte(table), []byte(overlay))
	f.Add([]byte("{}"), []byte("{}"))
	f.Add([]byte("null"), []byte("[]"))
	f.Add([]byte(strings.ReplaceAll(table, `"size":24`, `"size":-9223372036854775808`)), []byte(overlay))
	f.Add([]byte(strings.ReplaceAll(table, "char[2][4]", "char[1000000000][1000000000]")), []byte(overlay))
	f.Add([]byte(strings.ReplaceAll(table, `"type":"xStream"`, `"type":"xStreamOld"`)), []byte(overlay))
	f.Fuzz(func(t *testing.T, table, overlay []byte) {
		l, err := Decode("t.json", table, "o.json", overlay)
		if err != nil {
			if l != nil {
				t.Fatal("a library and an error")
			}
			_ = err.Error()
			return
		}
		// Lookup and Encode must work on a library that passed the checks.
		for _, fn := range l.Funcs {
			if fn.Set < 0 || fn.Set >= len(l.Sets) || len(fn.Args) != len(fn.Params) {
				t.Fatalf("%s: set %d of %d, %d of %d arguments", fn.Symbol, fn.Set, len(l.Sets), len(fn.Args), len(fn.Params))
			}
			if l.Lookup(fn.Symbol) == nil || l.Lookup(fn.API) == nil {
				t.Fatalf("%s is not found", fn.Symbol)
			}
		}
		text, err := Encode(l.Table)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeTable("again", text); err != nil {
			t.Fatalf("its own encoding is refused: %v", err)
		}
	})
}
