package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClashes checks that kernelgen writes no file that would not compile in its package, and says
// why.
func TestClashes(t *testing.T) {
	const source = "extern \"C\" __global__ void big(Big *x, int n);\n__constant__ float table[4];\n"
	const ptx = ".version 7.0\n.target sm_75\n.visible .const .b8 table[16];\n.visible .entry big(.param .u64 x, .param .u32 n) {}\n"
	for name, c := range map[string]struct {
		args  string // the command line without the input files
		files string // name: text; name: text
		error string // "" for no error
		note  string
	}{
		"a type and a kernel":              {"-type Big=Big", "", "kernel big and the type Big of the package, which -type or -arg names for kernel big, would both be Big in Go: give kernel big another name by -rename big=Name", ""},
		"a type and what belongs to all":   {"-type Big=KCode", "", "the type KCode of kernel big would be one of the package, and the code has that name: rename it by -name", ""},
		"a type in an array":               {"-type Big=[3]bigArgs", "", "the arguments of kernel big and the type bigArgs", ""},
		"a type that is there":             {"-type Big=Pair", "p.go: package k; type Pair struct{}", "", ""},
		"a type that is not there yet":     {"-type Big=Pair", "", "", "zk.go uses the type Pair, which the package does not have yet"},
		"a type that is no type":           {"-type Big=Pair", "p.go: package k; var Pair int", " is not a type", ""},
		"a type that the package has":      {"-type Big=float32", "p.go: package k; type Big int", "zk.go would not compile: Big redeclared in this block", ""},
		"a function that the package has":  {"-type Big=float32", "p.go: package k; func LoadK() { no body at all }", "zk.go would not compile: LoadK redeclared in this block", ""},
		"a name of a test":                 {"-type Big=float32", "p_test.go: package k; var KTwins = 1", "zk.go would not compile: KTwins redeclared in this block", ""},
		"a name of another package's test": {"-type Big=float32", "p_test.go: package k_test; var KTwins = 1", "", ""},
		"a method that the package has":    {"-type Big=float32", "p.go: package k; func (b *Big) Launch() {}", "zk.go would not compile: method Big.Launch already declared", ""},
		"a name of an import":              {"-type Big=float32", "p.go: package k; var errors = 1", "it imports errors, and the package has a errors of its own, at p.go:1:16", ""},
		"a file that is not built":         {"-type Big=float32", "p_plan9.go: package k; type Big int; q.go: //go:build ignore\n\npackage main; type Big int", "", ""},
		"a file that is broken":            {"-type Big=float32", "p.go: package k; func (", "", ""},
		"another package":                  {"-type Big=float32", "p.go: package other", "p.go is of package other, and the file to write of package k: give -pkg other", ""},
		"an own file":                      {"-type Big=float32", "zk.go: package k", "there is a zk.go that kernelgen did not write: give another name by -name", ""},
		"a file of one system":             {"-type Big=float32 -name k_windows", "", "Go would build zk_windows.go on some systems only, because of its name's ending: give another name by -name", ""},
		"a file of tests":                  {"-type Big=float32 -name k_test", "", "", "zk_test.go is a test file: programs do not have its kernels"},
		"a parameter named as the type":    {"-type Big=float32 -rename table=BigArgs", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "k.cu"), []byte(strings.Replace(source, "n)", map[bool]string{false: "n)", true: "bigArgs)"}[name == "a parameter named as the type"], 1)))
			writeFile(t, filepath.Join(dir, "k.ptx"), []byte(ptx))
			for f := range strings.SplitSeq(c.files, "; q.go: ") {
				if name, text, ok := strings.Cut(f, ": "); ok {
					writeFile(t, filepath.Join(dir, name), []byte(text))
				} else if f != "" {
					writeFile(t, filepath.Join(dir, "q.go"), []byte(f))
				}
			}
			before, _ := os.ReadFile(filepath.Join(dir, "zk.go"))
			var out bytes.Buffer
			err := run(dir, append(append([]string{"-pkg", "k"}, words(c.args)...), "k.cu", "k.ptx"), &out)
			switch {
			case c.error == "" && err != nil:
				t.Error(err)
			case c.error != "" && (err == nil || !strings.Contains(err.Error(), c.error)):
				t.Errorf("error %v, want %q", err, c.error)
			}
			if !strings.Contains(out.String(), c.note) {
				t.Errorf("output %q, want %q", out.String(), c.note)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, "zk.go")); c.error != "" && !bytes.Equal(before, after) {
				t.Error("a file was written all the same")
			}
		})
	}
}
