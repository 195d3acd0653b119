package symbols

import (
	"fmt"
	"strings"
	"testing"
)

// TestMisfits checks the misfits of a function in a table with the releases 1.0, 1.1, 2.0 and 2.1.
func TestMisfits(t *testing.T) {
	const field = `{"name":"%s","type":"%s","offset":%d,"size":%d}`
	f := func(name, ctype string, offset, size int) string {
		return fmt.Sprintf(field, name, ctype, offset, size)
	}
	for _, test := range []struct {
		name, record, param, change, want string
	}{
		{"longer there", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"2.0","until":"2.0","size":12,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `,` + f("c", "int", 8, 4) + `]}]}`,
			"S *", "", "from 1.2 to before 2.1: S is of 12 bytes from 1.2 to before 2.1, and of 8 else"},
		{"shorter there", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"1.0","until":"1.1","size":4,"align":4,"fields":[` + f("a", "int", 0, 4) + `]}]}`,
			`S *","dir":"out`, "", ""},
		{"shorter there and by value", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"1.0","until":"1.1","size":4,"align":4,"fields":[` + f("a", "int", 0, 4) + `]}]}`,
			"S", "", "before 2.0: S is of 4 bytes before 2.0, and of 8 since"},
		{"another order", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"1.0","until":"1.0","size":8,"align":4,"fields":[` + f("b", "int", 0, 4) + `,` + f("a", "int", 4, 4) + `]}]}`,
			"S *", "", "before 1.1: S has its fields in another order before 1.1"},
		{"another order, harmless", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"1.0","until":"1.0","size":8,"align":4,"fields":[` + f("b", "int", 0, 4) + `,` + f("a", "int", 4, 4) + `]}]}`,
			"S *", `{"name":"S","harmless":true,"reason":"a test"}`, ""},
		{"out of what was reserved", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"1.0","until":"2.0","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("reserved", "int", 4, 4) + `]}]}`,
			"S *", "", ""},
		{"another name", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"1.0","until":"2.0","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("was", "int", 4, 4) + `]}]}`,
			"S *", "", ""},
		{"behind another struct's pointer", `{"name":"S","size":8,"align":4,"fields":[` + f("a", "float", 0, 4) + `,` + f("b", "int", 4, 4) + `],"others":[{"since":"2.0","until":"2.1","size":8,"align":4,"fields":[` + f("a", "int", 0, 4) + `,` + f("b", "int", 4, 4) + `]}]},{"name":"T","size":8,"align":8,"fields":[` + f("s", "S *", 0, 8) + `]}`,
			"const T *", "", "from 1.2 on: S.a is int instead of float from 1.2 on"},
		{"other numbers", `{"name":"E","values":[{"name":"A","value":1,"others":[{"since":"1.0","until":"1.1","value":0}]}]}`,
			"E", `{"name":"E","use":"Other","reason":"a test"}`, "before 2.0: E has other numbers before 2.0; use Other"},
		{"other numbers, harmless", `{"name":"E","values":[{"name":"A","value":1,"others":[{"since":"1.0","until":"1.1","value":0}]}]}`,
			"E *", `{"name":"A","harmless":true,"reason":"a test"}`, ""},
		{"other numbers, harmless by the note's name", `{"name":"E","values":[{"name":"A","value":1,"others":[{"since":"1.0","until":"1.1","value":0}]}]}`,
			"E *", `{"name":"E.A","harmless":true,"reason":"a test"}`, ""},
		{"other numbers, of which one is harmless", `{"name":"E","values":[{"name":"A","value":1,"others":[{"since":"1.0","until":"1.1","value":0}]},{"name":"B","value":2,"others":[{"since":"1.0","until":"1.1","value":1}]}]}`,
			"E *", `{"name":"B","harmless":true,"reason":"a test"}`, "before 2.0: E has other numbers before 2.0"},
		{"other numbers of a macro", `{"name":"E","values":[{"name":"A","value":1}]}],"constants":[{"name":"M","type":"E","value":"1","others":[{"since":"1.0","until":"1.0","type":"E","value":"0"}]}`,
			"E", "", "before 1.1: E has other numbers before 1.1"},
		{"a number in place of an enumeration", `{"name":"E","size":8,"values":[{"name":"A","value":1}]}`,
			`E","others":uint64_t`, "", ""},
		{"a shorter number in place of an enumeration", `{"name":"E","size":8,"values":[{"name":"A","value":1}]}`,
			`E","others":int`, "", "from 1.2 on: it takes int from 1.2 on"},
		{"another parameter", `{"name":"S","size":4,"align":4,"fields":[` + f("a", "int", 0, 4) + `]},{"name":"T","size":8,"align":8,"fields":[` + f("a", "long", 0, 8) + `]}`,
			`S *","others":T *`, `{"name":"fn","since":"1.5","reason":"a test"}`, "from 1.5 on: it takes T * from 1.5 on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind := map[bool]string{true: "enums", false: "structs"}[strings.Contains(test.record, `"values"`)]
			param, other, has := strings.Cut(test.param, `","others":`)
			function := `{"symbol":"fn","api":"fn","since":"1.0","result":"int","params":[{"name":"p","type":"` + param + `"}],"current":true`
			if has {
				function += `,"others":[{"since":"2.0","until":"2.1","result":"int","params":[{"name":"p","type":"` + other + `"}]}]`
			}
			empty := map[string]string{"enums": "", "structs": ""}
			empty[kind] = test.record
			constants := `"constants":[],`
			if strings.Contains(test.record, `"constants"`) {
				constants = "" // the record has constants of its own
			}
			table := `{"library":"x","version":"2.1","releases":["1.0","1.1","2.0","2.1"],"headers":[],"handles":[],"scalars":[],"aliases":[],"enums":[` + empty["enums"] +
				`],"structs":[` + empty["structs"] + `],"callbacks":[],` + constants + `"functions":[` + function + `}]}`
			overlay := `{"sets":[{"name":"core","since":"1.0","doc":"all","match":["*"]}],"functions":[],"params":[],"types":[],"names":[],"docs":[],"changes":[` + test.change + `]}`
			l, err := Decode("table", []byte(table), "overlay", []byte(overlay))
			if err != nil {
				t.Fatal(err)
			}
			l.Description = &Description{Version: Numbering{Numbers: []Number{{Major: 1000, Minor: 10}}}}
			got := ""
			for _, m := range l.Misfits()["fn"] {
				switch {
				case m.From.IsZero():
					got += fmt.Sprintf("before %v: ", m.To)
				case m.To.IsZero():
					got += fmt.Sprintf("from %v on: ", m.From)
				default:
					got += fmt.Sprintf("from %v to before %v: ", m.From, m.To)
				}
				got += m.Text
				if m.Usage != "" {
					got += "; use " + m.Usage
				}
			}
			if got != test.want {
				t.Errorf("%q\nwant %q", got, test.want)
			}
			if unused := l.UnusedChanges(); len(unused) > 0 {
				t.Errorf("notes on %v are not used", unused)
			}
		})
	}
}

// TestMisfitsOfShorterStructs checks where a struct may be shorter in an older release: behind a
// pointer that is known to be to one struct of the caller.
func TestMisfitsOfShorterStructs(t *testing.T) {
	const table = `{"library":"x","version":"2.0","releases":["1.0","2.0"],"headers":[],"handles":[],"scalars":[],"aliases":[],"enums":[],"structs":[
		{"name":"S","size":8,"align":4,"fields":[{"name":"a","type":"int","offset":0,"size":4},{"name":"b","type":"int","offset":4,"size":4}],
			"others":[{"since":"1.0","until":"1.0","size":4,"align":4,"fields":[{"name":"a","type":"int","offset":0,"size":4}]}]},
		{"name":"L","size":16,"align":8,"fields":[{"name":"next","type":"L *","offset":0,"size":8},{"name":"b","type":"int","offset":8,"size":4}],
			"others":[{"since":"1.0","until":"1.0","size":8,"align":8,"fields":[{"name":"next","type":"L *","offset":0,"size":8}]}]},
		{"name":"T","size":8,"align":8,"fields":[{"name":"visit","type":"CB","offset":0,"size":8}]}],
		"callbacks":[{"name":"CB","result":"int","params":[{"name":"s","type":"const S *"},{"name":"again","type":"CB"}]}],"constants":[],"functions":[
		%s]}`
	const overlay = `{"sets":[{"name":"core","since":"1.0","doc":"all","match":["*"]}],"params":[
		{"name":"one.p","dir":"in","reason":"a test"},{"name":"list.p","dir":"in","reason":"a test"},{"name":"both.p","dir":"inout","reason":"a test"},
		{"name":"noted.p","len":"n","dir":"in","reason":"a test"},{"name":"slice.p","slice":true,"reason":"a test"}],
		"changes":[{"name":"sure","harmless":true,"reason":"a test"}]}`
	refused := map[string]bool{"perhaps": true, "told": true, "noted": true, "slice": true, "result": true, "each": true, "set": true, "list": true}
	var functions []string
	for name, what := range map[string][2]string{
		"one":     {"int", `{"name":"p","type":"const S *"}`},
		"both":    {"int", `{"name":"p","type":"S *","guess":true}`},
		"out":     {"int", `{"name":"p","type":"S *","dir":"out"}`},
		"sure":    {"int", `{"name":"p","type":"const S *"}`},
		"perhaps": {"int", `{"name":"p","type":"const S *"},{"name":"n","type":"int"}`},
		"told":    {"int", `{"name":"p","type":"S *","dir":"inout"}`},
		"noted":   {"int", `{"name":"p","type":"const S *"},{"name":"n","type":"int"}`},
		"slice":   {"int", `{"name":"p","type":"const S *"}`},
		"result":  {"const S *", ``},
		"each":    {"int", `{"name":"p","type":"CB"}`},
		"set":     {"int", `{"name":"p","type":"const T *"}`},
		"list":    {"int", `{"name":"p","type":"const L *"}`},
	} {
		functions = append(functions, fmt.Sprintf(`{"symbol":"%s","api":"%[1]s","since":"1.0","result":"%s","params":[%s],"current":true}`, name, what[0], what[1]))
	}
	l, err := Decode("table", fmt.Appendf(nil, table, strings.Join(functions, ",\n")), "overlay", []byte(overlay))
	if err != nil {
		t.Fatal(err)
	}
	misfits := l.Misfits()
	for _, f := range l.Funcs {
		ms := misfits[f.Symbol]
		if (len(ms) > 0) != refused[f.Symbol] || len(ms) > 0 && (len(ms) > 1 || !ms[0].From.IsZero() || !strings.Contains(ms[0].Text, "bytes before 2.0")) {
			t.Errorf("%s is refused: %v, want %v", f.Symbol, ms, refused[f.Symbol])
		}
	}
}
