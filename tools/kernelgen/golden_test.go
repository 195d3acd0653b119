package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden runs the generator for each case in testdata. A case begins with command lines; only
// the last one may fail. Then come the input files, and in want/ the expected files, the output and
// the error.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	withoutCompilers(t)
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, f := range ar.Files {
				if !strings.HasPrefix(f.Name, "want/") {
					writeFile(t, filepath.Join(dir, f.Name), f.Data)
				}
			}
			var out bytes.Buffer
			var failed error
			for line := range strings.Lines(string(ar.Comment)) {
				args, ok := strings.CutPrefix(strings.TrimSpace(line), "kernelgen ")
				if !ok {
					continue
				}
				if failed != nil {
					t.Fatal(failed)
				}
				failed = run(dir, words(args), &out)
			}
			wantsError := false
			for i, f := range ar.Files {
				name, ok := strings.CutPrefix(f.Name, "want/")
				if !ok {
					continue
				}
				var got []byte
				switch name {
				case "error":
					wantsError = true
					if failed == nil {
						t.Fatal("no error, but one is wanted")
					}
					got = []byte(failed.Error() + "\n")
				case "output":
					got = out.Bytes()
				default:
					if got, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
						t.Fatalf("%v; error %v", err, failed)
					}
				}
				if *update {
					ar.Files[i].Data = got
				} else if !bytes.Equal(got, f.Data) {
					t.Errorf("%s differs; run go test ./tools/kernelgen -run Golden -update and look at the difference\n--- got\n%s\n--- want\n%s", f.Name, got, f.Data)
				}
			}
			if failed != nil && !wantsError {
				t.Fatal(failed)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// withoutCompilers hides the compilers of this machine.
func withoutCompilers(t testing.TB) {
	t.Helper()
	for _, name := range []string{"NVCC", "CLANG", "HIPCC", "PUREGPU_NVRTC_LIBRARY"} {
		t.Setenv(name, "/absent/"+strings.ToLower(name))
	}
}

func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// words splits a command line at spaces outside single quotes.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all[len(all)-1] += part
			continue
		}
		if i > 0 {
			first, rest, _ := strings.Cut(part, " ")
			all[len(all)-1] += first
			part = rest
		}
		all = append(all, strings.Fields(part)...)
		if strings.HasSuffix(part, " ") && i+1 < strings.Count(line, "'") {
			all = append(all, "")
		}
	}
	return all
}
