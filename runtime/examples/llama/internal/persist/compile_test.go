//go:build linux && (amd64 || arm64) && !nogpu

package persist

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/nvrtc"
)

// TestSourceCompiles checks that the kernel compiles for compute capability 9.0, if NVRTC is
// installed. With the default tuning, the sizes "full" and "team" must not spill registers. If
// PERSIST_KEEP names a folder, the test compiles all tunings of "full", and keeps the code there.
func TestSourceCompiles(t *testing.T) {
	lib, err := nvrtc.Open(nvrtc.Options{})
	if err != nil {
		t.Skip(err)
	}
	keep, full := os.Getenv("PERSIST_KEEP"), variants
	if keep == "" {
		full = full[:1]
	}
	for name, v := range map[string]struct {
		dims  Dims
		ranks int
		tunes []variant
	}{"full": {fullSize(), 1, full}, "tiny": {tinySize(), 1, variants[:1]}, "half": {halfSize(), 1, variants[:1]}, "team": {doubleSize().of(2), 2, variants[:1]}, "eight": {wideSize().of(8), 8, variants[:1]}} {
		for _, tune := range v.tunes {
			p, err := v.dims.plan(132, 232448, v.ranks, tune.Tuning)
			if err != nil {
				t.Errorf("%s, %s: %v", name, tune.name, err)
				continue
			}
			args := append([]string{"--gpu-architecture=sm_90", "--ptxas-options=-v"}, p.options()...)
			code, log := build(t, lib, args)
			if keep != "" {
				if err := os.WriteFile(filepath.Join(keep, name+"-"+tune.name+".cubin"), code, 0o666); err != nil {
					t.Error(err)
				}
			}
			t.Logf("%s, %s: %d stages of %d bytes, static at most %d\n%s", name, tune.name, p.Stages, stage, p.static()+16*p.Stages, log)
			if (name == "full" || name == "team") && tune.name == "default" && strings.Contains(log, "spill stores") && !strings.Contains(log, " 0 bytes spill stores") {
				t.Errorf("%s, %s spills registers", name, tune.name)
			}
		}
	}
}

// build compiles persist.cu.
func build(t *testing.T, lib *nvrtc.Library, args []string) (code []byte, log string) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	prog, err := lib.CreateProgram(persistText, "persist.cu", nil, nil)
	ok(err)
	defer lib.DestroyProgram(&prog)
	texts, err := nvrtc.Texts(args...)
	ok(err)
	err = lib.CompileProgram(prog, texts)
	n, err2 := lib.GetProgramLogSize(prog)
	ok(err2)
	text := make([]byte, n)
	ok(lib.GetProgramLog(prog, text))
	text = slices.DeleteFunc(text, func(b byte) bool { return b == 0 })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	n, err = lib.GetCUBINSize(prog)
	ok(err)
	code = make([]byte, n)
	ok(lib.GetCUBIN(prog, code))
	return code, string(text)
}
