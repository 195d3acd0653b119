package extract

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// TestExtraction checks the tables extracted from archives of headers. The names of the headers
// select how they are read:
//
//	x.h                    as one header
//	cuda.h                 as CUDA's, with cudaTypedefs.h
//	nccl/nccl.h            as NCCL's, with rccl/nccl.h or rccl/rccl/rccl.h if present
//	hip1/hip/hip_version.h as releases of HIP: hip1, hip2 and so on, newest first
//	nvjitlink/nvJitLink.h  as nvJitLink's
//	nvml1/nvml.h           as releases 12.2 and 12.1 of NVML: nvml1 and nvml2
//
// An archive's golden parts are called want (the records as lines of JSON), notes (the reports) and
// error.
func TestExtraction(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			golden := map[string]string{}
			headers := &txtar.Archive{Comment: a.Comment}
			files := fstest.MapFS{}
			for _, f := range a.Files {
				switch f.Name {
				case "want", "notes", "error":
					golden[f.Name] = string(f.Data)
				default:
					headers.Files = append(headers.Files, f)
					files[f.Name] = &fstest.MapFile{Data: f.Data}
				}
			}
			got := map[string]string{}
			table, err := extractArchive(t, files, func(s string) { got["notes"] += s + "\n" })
			if err != nil {
				got["error"] = err.Error() + "\n"
			}
			if table != nil {
				got["want"] = lines(t, table)
			}
			if *update {
				for _, part := range []string{"want", "notes", "error"} {
					if got[part] != "" {
						headers.Files = append(headers.Files, txtar.File{Name: part, Data: []byte(got[part])})
					}
				}
				if err := os.WriteFile(name, txtar.Format(headers), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, part := range []string{"want", "notes", "error"} {
				if got[part] != golden[part] {
					t.Errorf("%s is\n%s\nwant\n%s", part, got[part], golden[part])
				}
			}
		})
	}
}

func extractArchive(t *testing.T, files fstest.MapFS, report func(string)) (*symbols.Table, error) {
	sub := func(dir string) fs.FS {
		f, err := fs.Sub(files, dir)
		if err != nil {
			panic(err) // only for names that are not paths
		}
		return f
	}
	switch {
	case files["x.h"] != nil:
		h, err := parse(source{main: "x.h", files: files, keep: func(f string) bool { return f == "x.h" }})
		if err != nil {
			return nil, err
		}
		h.table.Functions = functions(h, nil)
		typeConstants(&h.table, h.alias)
		var errs []error
		for _, r := range h.refused {
			errs = append(errs, r)
		}
		declared := map[string]string{}
		for _, f := range h.funcs {
			declared[f.Symbol] = f.where
		}
		for _, r := range unknown(&symbols.Description{}, h, declared) {
			errs = append(errs, errors.New(r.String()))
		}
		return &h.table, errors.Join(errs...)
	case files["cuda.h"] != nil:
		return Table(describe(t, "cuda"), Input{Releases: []fs.FS{files}})
	case files["nccl/nccl.h"] != nil:
		in := Input{Releases: []fs.FS{sub("nccl")}}
		if files["rccl/nccl.h"] != nil || files["rccl/rccl/rccl.h"] != nil {
			in.Others = map[string]fs.FS{"rccl": sub("rccl")}
		}
		return Table(describe(t, "nccl"), in)
	case files["hip1/hip/hip_version.h"] != nil:
		in := Input{Report: report}
		for _, dir := range []string{"hip1", "hip2", "hip3"} {
			if files[dir+"/hip/hip_version.h"] != nil {
				in.Releases = append(in.Releases, sub(dir))
			}
		}
		return Table(describe(t, "hip"), in)
	case files["nvjitlink/nvJitLink.h"] != nil:
		return Table(describe(t, "nvjitlink"), Input{Releases: []fs.FS{sub("nvjitlink")}})
	case files["nvml1/nvml.h"] != nil:
		versions := []symbols.Version{{Major: 12, Minor: 2}, {Major: 12, Minor: 1}}
		return Table(describe(t, "nvml"), Input{Report: report, Releases: []fs.FS{sub("nvml1"), sub("nvml2")}, Versions: versions})
	}
	return nil, errors.New("the archive has no header that says how to read it")
}

func describe(t *testing.T, name string) *symbols.Description {
	t.Helper()
	d, err := symbols.Describe(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// lines writes a table as one line of JSON for each record, without checksums.
func lines(t *testing.T, table *symbols.Table) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	put := func(kind string, v any) {
		if err := e.Encode(map[string]any{kind: v}); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range table.Headers {
		h.SHA256 = ""
		put("header", h)
	}
	each(put, "handle", table.Handles)
	each(put, "scalar", table.Scalars)
	each(put, "alias", table.Aliases)
	each(put, "enum", table.Enums)
	each(put, "struct", table.Structs)
	each(put, "callback", table.Callbacks)
	each(put, "constant", table.Constants)
	each(put, "function", table.Functions)
	return b.String()
}

func each[T any](put func(string, any), kind string, records []T) {
	for _, r := range records {
		put(kind, r)
	}
}
