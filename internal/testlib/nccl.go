package testlib

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// Answering returns a library made of testdata/fakes/answer.c, with the functions of a symbol
// table. A file beside the library, with the library's name and .answer, may hold an error code.
// The library then refuses to start, with this code.
func Answering(t testing.TB, table string) Fake {
	t.Helper()
	tab, err := symbols.Load(table)
	if err != nil {
		t.Fatal(err)
	}
	f := Fake{File: "lib" + table + ".so", Source: "answer.c", Defines: []string{"LIBRARY=" + strings.ToUpper(table)}}
	for _, fn := range tab.Funcs {
		if !strings.HasPrefix(fn.Symbol, "cuGetProcAddress") {
			f.Symbols = append(f.Symbols, fn.Symbol)
		}
	}
	return f
}

// Broken builds two copies of a library with the functions of a table, in separate folders, and
// returns the folders. Both refuse to start: they return the given error code.
func Broken(t testing.TB, table, name string, code int) (dirs []string) {
	t.Helper()
	library, err := os.ReadFile(Answering(t, table).Build(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		for file, data := range map[string][]byte{path: library, path + ".answer": []byte(fmt.Sprint(code))} {
			if err := os.WriteFile(file, data, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// NVML returns an NVML 13.0 made of testdata/fakes/nvml.c.
func NVML(t testing.TB, defines ...string) Fake {
	t.Helper()
	tab, err := symbols.Load("nvml")
	if err != nil {
		t.Fatal(err)
	}
	f := Fake{File: "libnvidia-ml.so.1", Source: "nvml.c", Defines: defines}
	for _, fn := range tab.Funcs {
		if v := fn.Since; v.Major < 13 || v.Major == 13 && v.Minor == 0 {
			f.Symbols = append(f.Symbols, fn.Symbol)
		}
	}
	return f
}

// NCCL returns a release of NCCL made of testdata/fakes/comms.c. The parameter release is the
// version code: 22803 for 2.28.3. If rccl is set, the file has the name of AMD's library.
func NCCL(t testing.TB, release int, rccl bool) Fake {
	t.Helper()
	tab, err := symbols.Load("nccl")
	if err != nil {
		t.Fatal(err)
	}
	f := Fake{File: "libnccl.so.2", Source: "comms.c", Defines: []string{fmt.Sprint("VERSION=", release)}}
	if rccl {
		f.File = "librccl.so.1"
	}
	for _, fn := range tab.Funcs {
		v := fn.Since
		code := 10000*v.Major + 100*v.Minor + v.Patch
		if v.Minor < 9 { // codes of releases up to 2.8 have one digit less
			code = 1000*v.Major + 100*v.Minor + v.Patch
		}
		if code <= release && !strings.HasPrefix(tab.Sets[fn.Set].Name, "rccl") {
			f.Symbols = append(f.Symbols, fn.Symbol)
		}
	}
	return f
}
