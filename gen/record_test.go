package gen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// TestMethodsStayWithTheirABI compares each method's exported C symbol and parameters with the record under testdata/api: what is in the record
// holds for good, and what is new has to be put there with -update. The record of the Go API alone would not tell that a method of the same
// signature has gone to another ABI.
func TestMethodsStayWithTheirABI(t *testing.T) {
	for _, library := range Libraries() {
		p, err := load(library)
		if err != nil {
			t.Fatal(err)
		}
		lib, err := symbols.Load(library)
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, f := range p.funcs {
			var params []string
			for _, a := range f.sym.Params {
				params = append(params, lib.Canonical(a.Type))
			}
			have = append(have, f.name+" "+f.sym.Symbol+" "+lib.Canonical(f.sym.Result)+"("+strings.Join(params, ", ")+")")
		}
		slices.Sort(have)
		file := filepath.Join("..", "testdata", "api", "symbols", library+".txt")
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		recorded := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
		var lost, gained []string
		for _, line := range recorded {
			if !slices.Contains(have, line) {
				lost = append(lost, line)
			}
		}
		for _, line := range have {
			if !slices.Contains(recorded, line) {
				gained = append(gained, line)
			}
		}
		switch {
		case len(lost) > 0:
			t.Errorf("%s: methods are gone, or have another ABI:\n\t%s\nA name stays with its ABI: give what came instead another name, with the overlay's names", file, strings.Join(lost, "\n\t"))
		case len(gained) > 0 && *update:
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Join(have, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		case len(gained) > 0:
			t.Errorf("%s: methods are new: record them with go test ./gen -run Methods -update:\n\t%s", file, strings.Join(gained, "\n\t"))
		}
	}
}
