package gen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// TestMethodsStayWithTheirABI checks that each method in the records of ../testdata/api/symbols
// still calls the same C symbol with the same parameters. New methods are added with -update.
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
			t.Errorf("%s: methods were removed or call another ABI version:\n\t%s\nA name stays with its ABI version: use the overlay's names to give the new one another name", file, strings.Join(lost, "\n\t"))
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
