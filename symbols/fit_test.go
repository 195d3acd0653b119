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
			"S *", "", ""},
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
			"const T *", "", "from 1.2 on: S has its fields in another order from 1.2 on"},
		{"other numbers", `{"name":"E","values":[{"name":"A","value":1,"others":[{"since":"1.0","until":"1.1","value":0}]}]}`,
			"E", `{"name":"E","use":"Other","reason":"a test"}`, "before 2.0: E has other numbers before 2.0; use Other"},
		{"other numbers, harmless", `{"name":"E","values":[{"name":"A","value":1,"others":[{"since":"1.0","until":"1.1","value":0}]}]}`,
			"E *", `{"name":"A","harmless":true,"reason":"a test"}`, ""},
		{"other numbers of a macro", `{"name":"E","values":[{"name":"A","value":1}]}],"constants":[{"name":"M","type":"E","value":"1","others":[{"since":"1.0","until":"1.0","type":"E","value":"0"}]}`,
			"E", "", "before 1.1: E has other numbers before 1.1"},
		{"a number in place of an enumeration", `{"name":"E","size":8,"values":[{"name":"A","value":1}]}`,
			`E","others":uint64_t`, "", ""},
		{"a shorter number in place of an enumeration", `{"name":"E","size":8,"values":[{"name":"A","value":1}]}`,
			`E","others":int`, "", "from 1.2 on: it takes int from 1.2 on"},
		{"another parameter", `{"name":"S","size":4,"align":4,"fields":[` + f("a", "int", 0, 4) + `]},{"name":"T","size":8,"align":8,"fields":[` + f("a", "long", 0, 8) + `]}`,
			`S *","others":T *`, `{"name":"fn","since":"1.5","reason":"a test"}`, "from 1.5 on: it takes T from 1.5 on"},
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
