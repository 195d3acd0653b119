package symbols

import (
	"slices"
	"testing"
)

func TestWithStubs(t *testing.T) {
	note := func(name string) Stub {
		return Stub{Section: "params", Entry: ParamNote{Name: name, Dir: "?", Reason: "r"}}
	}
	entry := func(name string) string { return `  {"name":"` + name + `","dir":"?","reason":"r"}` }
	for _, x := range []struct{ name, old, want string }{
		{"no section", "{\n\"sets\": []\n}\n", "{\n\"sets\": [],\n\"params\": [\n" + entry("a.b") + "\n]\n}\n"},
		{"nothing", "{}\n", "{\n\"params\": [\n" + entry("a.b") + "\n]\n}\n"},
		{"empty", "{\"params\": []}\n", "{\"params\": [\n" + entry("a.b") + "\n]}\n"},
		{"one line", `{"params": [{"name":"x.y"}]}`, "{\"params\": [{\"name\":\"x.y\"},\n" + entry("a.b") + "\n]}"},
		{"lines", "{\n\"params\": [\n  {\"name\":\"x.y\"}\n],\n\"docs\": []\n}\n", "{\n\"params\": [\n  {\"name\":\"x.y\"},\n" + entry("a.b") + "\n],\n\"docs\": []\n}\n"},
	} {
		if got, err := WithStubs([]byte(x.old), []Stub{note("a.b")}); err != nil || string(got) != x.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", x.name, err, got, x.want)
		}
	}
	spaced := "{\"sets\": [{\"name\": \"core\"}]}"
	want := "{\"sets\": [{\"name\": \"core\"}],\n\"functions\": [\n  {\"name\": \"f\", \"callback\": \"?\", \"reason\": \"a:\\\"b\\\",\"}\n]\n}"
	stub := Stub{Section: "functions", Entry: FunctionNote{Name: "f", Callback: Unknown, Reason: `a:"b",`}}
	if got, err := WithStubs([]byte(spaced), []Stub{stub}); err != nil || string(got) != want {
		t.Errorf("with spaces: %v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := WithStubs([]byte("no JSON"), []Stub{note("a.b")}); err == nil {
		t.Error("no error for a text that is not an overlay")
	}
}

// TestRules checks that the last matching rule of a description applies to a pointer, and that an
// entry of the overlay replaces that rule.
func TestRules(t *testing.T) {
	param := func(name, ctype string) Param { return Param{Name: name, Type: ctype, Dir: Out, Guess: true} }
	table := &Table{Functions: []Function{{Symbol: "f", API: "f", Result: "int", Params: []Param{
		param("a", "float *"), param("b", "float *"), param("c", "float *"), param("d", "int *"), {Name: "e", Type: "float"},
	}}}}
	overlay := &Overlay{Sets: []SetNote{{Name: "core", Match: []string{"*"}}}, Params: []ParamNote{{Name: "f.c", Len: "n"}}}
	lib := join(table, overlay, &Description{Pointers: []ParamNote{
		{Name: "*.*", Types: []string{"float *", "float"}, Type: "DevicePtr"},
		{Name: "f.b", Dir: InOut},
	}})
	args := lib.Funcs[0].Args
	if a := args[0]; a.GoType != "DevicePtr" || a.Dir != "" || a.Guess {
		t.Errorf("by type: %+v", a)
	}
	if b := args[1]; b.GoType != "" || b.Dir != InOut || b.Guess {
		t.Errorf("by name, after the type: %+v", b)
	}
	if c := args[2]; c.GoType != "" || c.Len != "n" || c.Guess {
		t.Errorf("by the overlay: %+v", c)
	}
	if e := args[4]; e.GoType != "" {
		t.Errorf("no pointer: %+v", e)
	}
	open := lib.Unsettled()
	if len(open) != 1 || !slices.ContainsFunc(open[0].Args, func(a Arg) bool { return a.Name == "d" && a.Guess }) {
		t.Errorf("not settled: %+v", open)
	}
}
