package gen

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// toyTable is the table to which each golden case adds.
const toyTable = `{
"library": "toy", "version": "3.1",
"headers": [{"name":"toy.h","version":"3.1","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}],
"handles": [{"name":"toyStream","tag":"toyStream_st"}],
"scalars": [], "aliases": [], "structs": [], "callbacks": [], "constants": [],
"enums": [{"name":"toyResult","values":[{"name":"TOY_SUCCESS","value":0},{"name":"TOY_ERROR_BUSY","value":600}]}],
"functions": []
}`

const toyOverlay = `{
"sets": [{"name":"core","since":"1.0","doc":"what every program needs","match":["toy*"]}],
"types": [{"name":"toyResult","kind":"result","reason":"every function returns it"}]
}`

const toyDescription = `{
"library": "toy", "brand": "Toy",
"prefixes": {"functions": ["toy"], "types": ["toy"], "values": ["TOY_"]},
"version": {"numbers": [{"major": 10, "minor": 1}]},
"headers": {"files": ["toy.h"], "since": "overlay"},
"hooks": {"resolve": "resolver"},
"implementations": [{"name": "toy library", "env": "TOY_LIBRARY", "files": {"linux": ["libtoy.so"]}, "hint": "make one"}]
}`

// TestGolden compares the code that Generate returns for each case in testdata with the case's
// files. A case's table.json and overlay.json add to the toy library, except that the overlay's
// sets replace the library's. The case's library.json replaces the description. If a case has a
// file named error, Generate must return that error.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files, genErr := generateToy(ar)
			for i, f := range ar.Files {
				var got []byte
				switch {
				case strings.HasSuffix(f.Name, ".json"):
					continue
				case f.Name == "error":
					if genErr == nil {
						t.Fatal("no error, but one is wanted")
					}
					got = []byte(genErr.Error() + "\n")
				case genErr != nil:
					t.Fatal(genErr)
				default:
					got = body(files[f.Name])
				}
				if *update {
					ar.Files[i].Data = got
				} else if !bytes.Equal(got, f.Data) {
					t.Errorf("%s differs; run go test ./gen -run Golden -update and review the difference\n--- got\n%s\n--- want\n%s", f.Name, got, f.Data)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func generateToy(ar *txtar.Archive) (map[string][]byte, error) {
	table, overlay := &symbols.Table{}, &symbols.Overlay{}
	if err := json.Unmarshal([]byte(toyTable), table); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(toyOverlay), overlay); err != nil {
		return nil, err
	}
	description := toyDescription
	for _, f := range ar.Files {
		switch f.Name {
		case "library.json":
			description = string(f.Data)
		case "table.json":
			add := &symbols.Table{}
			if err := json.Unmarshal(f.Data, add); err != nil {
				return nil, fmt.Errorf("table.json: %w", err)
			}
			table.Releases = append(table.Releases, add.Releases...)
			table.Handles = append(table.Handles, add.Handles...)
			table.Scalars = append(table.Scalars, add.Scalars...)
			table.Aliases = append(table.Aliases, add.Aliases...)
			table.Enums = append(table.Enums, add.Enums...)
			table.Structs = append(table.Structs, add.Structs...)
			table.Callbacks = append(table.Callbacks, add.Callbacks...)
			table.Constants = append(table.Constants, add.Constants...)
			table.Functions = append(table.Functions, add.Functions...)
			table.Refused = append(table.Refused, add.Refused...)
		case "overlay.json":
			add := &symbols.Overlay{}
			if err := json.Unmarshal(f.Data, add); err != nil {
				return nil, fmt.Errorf("overlay.json: %w", err)
			}
			if add.Sets != nil {
				overlay.Sets = add.Sets
			}
			overlay.Functions = append(overlay.Functions, add.Functions...)
			overlay.Params = append(overlay.Params, add.Params...)
			overlay.Types = append(overlay.Types, add.Types...)
			overlay.Names = append(overlay.Names, add.Names...)
			overlay.Docs = append(overlay.Docs, add.Docs...)
		}
	}
	if len(table.Functions) == 0 { // the pattern of the set must match a function
		table.Functions = append(table.Functions, symbols.Function{Symbol: "toyInit", API: "toyInit", Result: "toyResult", Params: []symbols.Param{}, Current: true, Since: symbols.Version{Major: 1}})
	}
	t, err := json.Marshal(table)
	if err != nil {
		return nil, err
	}
	o, err := json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	lib, err := symbols.Decode("table.json", t, "overlay.json", o)
	if err != nil {
		return nil, err
	}
	if lib.Description, err = symbols.DecodeDescription("library.json", []byte(description)); err != nil {
		return nil, err
	}
	return Generate(lib)
}

// body returns the part of a generated file after the package clause.
func body(src []byte) []byte {
	_, rest, _ := bytes.Cut(src, []byte("package toy\n"))
	return rest
}

// TestGenerated checks that the packages of the embedded libraries are up to date.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("generates every package")
	}
	for _, library := range Libraries() {
		lib, err := symbols.Load(library)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := Run(filepath.Join("..", library), lib, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(changed) > 0 {
			t.Errorf("%v need updating; run: go generate ./%s", changed, library)
		}
	}
}

// TestGenerateTwice checks that Generate returns the same bytes each time.
func TestGenerateTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("generates every package")
	}
	for _, library := range Libraries() {
		lib, err := symbols.Load(library)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Generate(lib)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Generate(lib)
		if err != nil {
			t.Fatal(err)
		}
		for name := range a {
			if !bytes.Equal(a[name], b[name]) {
				t.Errorf("%s differs between two runs", name)
			}
		}
	}
}
