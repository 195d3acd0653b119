package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

const module = "github.com/puregpu/puregpu"

// unpack writes the files of an archive into a folder.
func unpack(t *testing.T, a *txtar.Archive, dir string) {
	t.Helper()
	for _, f := range a.Files {
		file := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// split separates the golden files from the input files.
func split(a *txtar.Archive, golden ...string) (sources *txtar.Archive, wanted map[string]*txtar.File) {
	sources, wanted = &txtar.Archive{}, map[string]*txtar.File{}
	for _, name := range golden {
		wanted[name] = nil
	}
	for i := range a.Files {
		f := &a.Files[i]
		if _, ok := wanted[f.Name]; ok {
			wanted[f.Name] = f
		} else {
			sources.Files = append(sources.Files, *f)
		}
	}
	return sources, wanted
}

func compare(t *testing.T, want *txtar.File, got []byte) {
	t.Helper()
	switch {
	case *update:
		want.Data = got
	case !bytes.Equal(got, want.Data):
		t.Errorf("%s is\n%s\nwant\n%s", want.Name, got, want.Data)
	}
}

// A user is another module, which requires puregpu's.
type user struct {
	t   *testing.T
	dir string
}

// newUser makes the module's files.
func newUser(t *testing.T, path string, sources *txtar.Archive) user {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	u := user{t, t.TempDir()}
	unpack(t, sources, u.dir)
	unpack(t, &txtar.Archive{Files: []txtar.File{
		{Name: "go.mod", Data: []byte("module " + path + "\n\ngo 1.26\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n")},
		{Name: "go.sum", Data: sum},
	}}, u.dir)
	return u
}

// command runs the go command in the module and returns what it prints.
func (u user) command(env string, args ...string) string {
	u.t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = u.dir, append(os.Environ(), append([]string{"CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off"}, strings.Fields(env)...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%s go %s: %v\n%s", env, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// files reads the files of the module's folder.
func (u user) files() map[string]string {
	u.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(u.dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(u.dir, file)
		out[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return out
}

// spoil changes the generated files in one place at a time, and checks that running the package's
// test reports each change.
func (u user) spoil(files map[string]string) {
	u.t.Helper()
	for _, x := range []struct{ name, file, old, new, says string }{
		{"two arguments change places", "zfuncs.go", "uintptr(to), uintptr(from), uintptr(bytes)", "uintptr(from), uintptr(to), uintptr(bytes)", "Copy: parameter to"},
		{"a symbol is another one", "zsymbols.go", `"kitEmpty"`, `"kitCount"`, "Empty reached function"},
		{"a float is passed as an integer", "zsymbols.go", `Sig: "wfd"`, `Sig: "www"`, "Scale: parameter"},
		{"a field has another type", "ztypes.go", "Parts int32\n\tMode  Mode", "Parts int64\n\tMode  Mode", "cannot use"},
	} {
		if !strings.Contains(files[x.file], x.old) {
			u.t.Errorf("%s: %s has no %s", x.name, x.file, x.old)
			continue
		}
		write := func(text string) {
			if err := os.WriteFile(filepath.Join(u.dir, x.file), []byte(text), 0o644); err != nil {
				u.t.Fatal(err)
			}
		}
		write(strings.ReplaceAll(files[x.file], x.old, x.new))
		cmd := exec.Command("go", "test", "-vet=off", "-run", "ABI", ".")
		cmd.Dir, cmd.Env = u.dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), x.says) {
			u.t.Errorf("%s, and the test says %v:\n%s\nwant %q", x.name, err, out, x.says)
		}
		write(files[x.file])
	}
}

// spoilProof changes the symbol table, and changes and removes the record of the table's proof. It
// checks that the package's test reports each fault, without a C compiler.
func (u user) spoilProof(files map[string]string) {
	u.t.Helper()
	gocmd, err := exec.LookPath("go")
	if err != nil {
		u.t.Fatal(err)
	}
	for _, x := range []struct{ name, file, old, new, says string }{
		{"it is whole", "", "", "", "facts are as"},
		{"the table changed", "kit.table.json", `"size":`, `"size": `, "kit.table.json has changed since it was proven"},
		{"a header is another one", "testdata/zproof.json", `"name": "kit.h"`, `"name": "kat.h"`, "is made of kit.h, and was not proven against it"},
		{"there is none", "testdata/zproof.json", "", "", "nothing has proven this package's symbol table"},
	} {
		file := filepath.Join(u.dir, x.file)
		switch {
		case x.file == "":
		case x.old == "":
			err = os.Remove(file)
		case !strings.Contains(files[x.file], x.old):
			u.t.Errorf("%s: %s has no %s", x.name, x.file, x.old)
		default:
			err = os.WriteFile(file, []byte(strings.ReplaceAll(files[x.file], x.old, x.new)), 0o644)
		}
		if err != nil {
			u.t.Fatal(err)
		}
		cmd := exec.Command(gocmd, "test", "-vet=off", "-v", "-run", "Proof", ".")
		cmd.Dir, cmd.Env = u.dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off", "PATH="+filepath.Dir(gocmd))
		if out, err := cmd.CombinedOutput(); (err == nil) != (x.file == "") || !strings.Contains(string(out), x.says) {
			u.t.Errorf("%s, and the test says %v:\n%s\nwant %q", x.name, err, out, x.says)
		}
		if x.file != "" {
			if err := os.WriteFile(file, []byte(files[x.file]), 0o644); err != nil {
				u.t.Fatal(err)
			}
		}
	}
}

// TestModule checks the bindings of a library in a module of its own: generated with headers and
// from the table alone they are the same, they compile for each system, the ABI test passes, and a
// program can call the library.
func TestModule(t *testing.T) {
	const file = "testdata/kit.txtar"
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sources, golden := split(a, "want", "kit.table.json", "ztypes.go", "zfuncs.go")
	u := newUser(t, "example.com/kit", sources)
	u.command("", "generate", "./...")
	first := u.files()
	for _, name := range []string{"kit.table.json", "ztypes.go", "zfuncs.go"} {
		compare(t, golden[name], []byte(first[name]))
	}
	if again := u.command("", "generate", "./..."); again != "bindgen: note: 29 functions are bound, 0 declarations are refused\n" {
		t.Errorf("generated again: %s", again)
	}
	// With the table, bindgen needs no headers. The folder may have any name and place.
	bare := newUser(t, "example.com/kit", &txtar.Archive{Files: []txtar.File{
		{Name: "doc.go", Data: []byte(first["doc.go"])}, {Name: "kit.table.json", Data: []byte(first["kit.table.json"])},
		{Name: "kit.overlay.json", Data: []byte(first["kit.overlay.json"])},
		{Name: "kit.json", Data: []byte(strings.Replace(first["kit.json"], `"dir": "include",`, ``, 1))},
	}})
	if err := run([]string{filepath.Join(bare.dir, "kit.json")}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	for name, text := range bare.files() {
		if name != "go.mod" && name != "kit.json" && text != first[name] {
			t.Errorf("%s differs without headers", name)
		}
	}
	for name := range first {
		for _, hidden := range []string{"/internal/", module + "/gen", module + "/symbols"} {
			if strings.HasPrefix(name, "z") && strings.Contains(first[name], hidden) {
				t.Errorf("%s speaks of %s, which no other module should", name, hidden)
			}
		}
	}
	u.command("", "vet", "./...")
	if !testing.Short() {
		for _, system := range []string{"GOOS=windows GOARCH=amd64", "GOOS=darwin GOARCH=arm64", "GOOS=linux GOARCH=arm64"} {
			u.command(system, "vet", "-printf=false", "-lostcancel=false", "./...") // quicker without the checks that need facts of other packages
		}
		u.command("", "build", "-tags", "nogpu", "./...")
	}
	u.spoilProof(first)
	compiler := needCompiler(t)
	if out := u.command("", "test", "-vet=off", "-v", "-run", "ABI", "."); !strings.Contains(out, "functions proven") {
		t.Errorf("the ABI test says\n%s", out)
	}
	if !testing.Short() {
		u.command("", "test", "-vet=off", "-tags", "puregpu_syscalln", "-run", "ABI", ".")
		u.command("", "test", "-vet=off", "-tags", "nogpu", "-run", "ABI", ".")
	}
	if !testing.Short() {
		u.spoil(first)
	}
	// The header made here stands for cuda_runtime_api.h, which the machine may not have.
	stand, err := symbols.StandIns([]string{"cuda"})
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "cuda_runtime_api.h", Data: []byte(stand["cuda_runtime_api.h"])}}}, filepath.Join(u.dir, "cuda"))
	include := []string{"-I" + filepath.Join(u.dir, "include"), "-I" + filepath.Join(u.dir, "cuda")}
	lib, program := filepath.Join(u.dir, "libkit.so"), filepath.Join(u.dir, "prog")
	if out, err := exec.Command(compiler, append(include, "-w", "-shared", "-fPIC", "-o", lib, filepath.Join(u.dir, "kit.c"))...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	u.command("", "build", "-o", program, "./program")
	out, err := exec.Command(program, lib).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compare(t, golden["want"], out)
	if *update && !t.Failed() {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var gccName = regexp.MustCompile(`gcc \(.*?\) [0-9.]+`)

// needCompiler returns the C compiler. It skips the test if there is none, or if this build cannot
// open libraries.
func needCompiler(t *testing.T) string {
	t.Helper()
	compiler := os.Getenv("PUREGPU_TEST_CC")
	if compiler == "" {
		compiler = "gcc"
	}
	if _, err := exec.LookPath(compiler); err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no C compiler, or no system on which libraries are opened")
	}
	return compiler
}

// TestOdd checks the bindings of declarations that other generators bind wrongly without an error.
// It runs the ABI test, and compares the values that a library receives.
func TestOdd(t *testing.T) {
	const file = "testdata/odd.txtar"
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sources, golden := split(a, "want")
	u := newUser(t, "example.com/odd", sources)
	notes := u.command("", "generate", "./...")
	for file, want := range map[string]string{
		"zfuncs.go":   "Params(handleArg int32, handle int32, text string, textCArg int32, names *Names) (err error)",
		"zsymbols.go": `Name: "oddUse_v2"`,
		"ztypes.go":   "type Anon uintptr",
	} {
		if text := u.files()[file]; !strings.Contains(text, want) || file == "zfuncs.go" && !strings.Contains(text, "Old(count int32)") {
			t.Errorf("%s has no %s", file, want)
		}
	}
	u.command("", "vet", "./...")
	compiler := needCompiler(t)
	if out := u.command("", "test", "-vet=off", "-v", "-run", "ABI", "."); !strings.Contains(out, "functions proven") {
		t.Errorf("the ABI test says\n%s", out)
	}
	if !testing.Short() {
		u.command("", "test", "-vet=off", "-tags", "puregpu_syscalln", "-run", "ABI", ".")
		u.command("GOOS=linux GOARCH=arm64", "vet", "-printf=false", "-lostcancel=false", "./...")
		u.command("GOOS=linux GOARCH=386", "vet", "-printf=false", "-lostcancel=false", "./...")
		u.command("GOOS=windows GOARCH=amd64", "vet", "-printf=false", "-lostcancel=false", "./...")
	}
	source, err := os.ReadFile(filepath.Join(u.dir, "include", "odd.h"))
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(u.dir, "odd_plain.h") // the header without [[deprecated]], which compilers older than C23 refuse
	text := strings.NewReplacer("[[deprecated]]", "").Replace(string(source))
	if err := os.WriteFile(plain, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lib, program, code := filepath.Join(u.dir, "libodd.so"), filepath.Join(u.dir, "prog"), filepath.Join(u.dir, "odd.c")
	args := []string{"-I" + filepath.Join(u.dir, "include"), "-include", plain, "-Dinclude_odd", "-w", "-shared", "-fPIC", "-o", lib, code}
	if err := os.WriteFile(filepath.Join(u.dir, "include", "odd.h"), []byte("#pragma once\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	if err := os.WriteFile(filepath.Join(u.dir, "include", "odd.h"), source, 0o644); err != nil {
		t.Fatal(err)
	}
	var absent bytes.Buffer
	if err := run([]string{"-library", lib, filepath.Join(u.dir, "odd.json")}, io.Discard, &absent); err != nil || !strings.Contains(absent.String(), "does not export oddGone: it goes into the optional set absent") {
		t.Errorf("-library: %v\n%s", err, &absent)
	}
	if err := run([]string{"-check", filepath.Join(u.dir, "odd.json")}, io.Discard, io.Discard); err != nil {
		t.Errorf("without -library what is absent is forgotten: %v", err)
	}
	u.command("", "build", "-o", program, "./program")
	out, err := exec.Command(program, lib).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compare(t, golden["want"], append([]byte(notes), out...))
	if *update {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWrongLibrary checks that -library refuses a file without a function that the core names, or
// without any function of the core.
func TestWrongLibrary(t *testing.T) {
	compiler := needCompiler(t)
	a, err := txtar.ParseFile("testdata/refuse/two_releases.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sources, _ := split(a, "error")
	dir := t.TempDir()
	unpack(t, sources, dir)
	unpack(t, &txtar.Archive{Files: []txtar.File{
		{Name: "lib.h", Data: []byte("typedef enum { LIB_OK = 0, LIB_ERROR = 1 } libStatus;\nlibStatus libFine(int a);\nlibStatus libMore(int a);\n")},
		{Name: "named.overlay", Data: []byte(`{"sets": [{"name": "core", "since": "1.0", "doc": "c", "match": ["libFine"]}, {"name": "rest", "since": "1.0", "doc": "r", "match": ["*"]}]}`)},
		{Name: "all.overlay", Data: []byte(`{"sets": [{"name": "core", "since": "1.0", "doc": "c", "match": ["lib*"]}]}`)},
		{Name: "other.c", Data: []byte("int other;")}, {Name: "more.c", Data: []byte("int libMore(int a) { return a; }")}, {Name: "fine.c", Data: []byte("int libFine(int a) { return a; }")},
	}}, dir)
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"other", "more", "fine"} {
		if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", file(name+".so"), file(name+".c")).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", compiler, err, out)
		}
	}
	for _, x := range []struct{ overlay, library, says string }{
		{"named", "other", "other.so: does not export functions of the required set core: libFine; is it Lib's file?"},
		{"named", "more", "more.so: does not export functions of the required set core: libFine; is it Lib's file?"},
		{"named", "fine", ""},
		{"all", "other", "other.so: does not export functions of the required set core: libFine, libMore; is it Lib's file?"},
		{"all", "more", ""},
		{"named", "", "lib.table.json: the file of an earlier -library does not export functions of the required set core: libFine; name Lib's file with -library"},
	} {
		text, err := os.ReadFile(file(x.overlay + ".overlay"))
		if err == nil {
			err = os.WriteFile(file("lib.overlay.json"), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"-headers", dir, file("lib.json")}
		if x.library != "" {
			args = append([]string{"-library", file(x.library + ".so")}, args...)
		}
		if err := run(args, io.Discard, io.Discard); (err == nil) != (x.says == "") || err != nil && !strings.HasSuffix(err.Error(), x.says) {
			t.Errorf("-library %s, core %s: %v\nwant %s", x.library, x.overlay, err, x.says)
		}
	}
}

// TestTwoReleases checks what may change between two releases: the table records both forms, a
// compiler proves them, and functions are refused in the older release if a call would pass wrong
// memory.
func TestTwoReleases(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	for _, name := range []string{"widths", "lengths", "members"} {
		t.Run(name, func(t *testing.T) {
			file := "testdata/" + name + ".txtar"
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources, golden := split(a, "notes")
			dir := t.TempDir()
			unpack(t, sources, dir)
			var notes bytes.Buffer
			args := []string{"-headers", filepath.Join(dir, "2") + "," + filepath.Join(dir, "1"), filepath.Join(dir, "lib.json")}
			if err := run(args, io.Discard, &notes); err != nil {
				t.Fatal(err)
			}
			compare(t, golden["notes"], notes.Bytes())
			if err := run(append([]string{"-check"}, args...), io.Discard, io.Discard); err != nil {
				t.Error(err)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestGuide checks that the first package of the guide can be made as the guide says, and that the
// guide's program prints what the guide shows.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/bindgen.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## A first package\n")
	text, _, _ = strings.Cut(text, "\n## ")
	files := &txtar.Archive{}
	for _, m := range regexp.MustCompile("(?ms)^`([\\w./]+)`, [^`]*?:\n\n```\\w+\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		files.Files = append(files.Files, txtar.File{Name: m[1], Data: []byte(m[2])})
	}
	block := func(language string) string {
		_, rest, _ := strings.Cut(text, "\n```"+language+"\n")
		body, _, _ := strings.Cut(rest, "```\n")
		return body
	}
	if len(files.Files) != 6 || block("sh") == "" {
		t.Fatalf("the guide has %d files and the commands %q", len(files.Files), block("sh"))
	}
	needCompiler(t)
	u := newUser(t, "example.com/try", files)
	own, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	// go get adds this requirement for the tool.
	_, rest, _ := strings.Cut(string(own), "\n")
	mod, err := os.ReadFile(filepath.Join(u.dir, "go.mod"))
	if err == nil {
		_, replaced, _ := strings.Cut(string(mod), "\nrequire ")
		err = os.WriteFile(filepath.Join(u.dir, "go.mod"), []byte("module example.com/try\n"+rest+"\nrequire "+replaced+"\ntool "+module+"/tools/bindgen\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-ec", block("sh"))
	cmd.Dir, cmd.Env = u.dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &said)
	}
	if !strings.HasSuffix(string(out), "\n"+block("text")) || !strings.Contains(said.String(), "6 functions are bound, 0 declarations are refused") {
		t.Errorf("it prints\n%s%s\nwant\n%s", out, &said, block("text"))
	}
}

// TestUses checks a package that uses types of another package made by bindgen.
func TestUses(t *testing.T) {
	a, err := txtar.ParseFile("testdata/uses.txtar")
	if err != nil {
		t.Fatal(err)
	}
	u := newUser(t, "example.com/both", a)
	shape, draw := filepath.Join(u.dir, "shape", "shape.json"), filepath.Join(u.dir, "draw", "draw.json")
	if err := run([]string{draw}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "make the package of ") {
		t.Errorf("the second package first: %v", err)
	}
	for _, file := range []string{shape, draw} {
		if err := run([]string{file}, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	text := u.files()["draw/zfuncs.go"]
	for _, want := range []string{
		`"example.com/both/shape"`, "Shape(shapeArg shape.Shape, mode shape.Mode, at shape.Point) (err error)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("draw/zfuncs.go has no %s:\n%s", want, text)
		}
	}
	u.command("", "vet", "./...")
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no C compiler")
	}
	u.command("", "test", "-vet=off", "-run", "ABI|Proof", "./...")
}

// TestRefusals checks that bindgen refuses declarations that it cannot bind. Each case has the
// files of a package, and the expected errors.
func TestRefusals(t *testing.T) {
	cases, err := filepath.Glob("testdata/refuse/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources, golden := split(a, "error")
			if _, err := exec.LookPath("gcc"); err != nil && bytes.Contains(golden["error"].Data, []byte("gcc")) {
				t.Skip("no gcc")
			}
			dir := t.TempDir()
			unpack(t, sources, dir)
			args := append(strings.Fields(strings.ReplaceAll(string(bytes.TrimSpace(a.Comment)), "DIR", dir)), filepath.Join(dir, "lib.json"))
			var notes bytes.Buffer
			err = run(args, io.Discard, &notes)
			if err == nil {
				t.Fatal("nothing is refused")
			}
			compare(t, golden["error"], []byte(gccName.ReplaceAllString(strings.ReplaceAll(notes.String()+err.Error(), dir, "DIR"), "gcc")+"\n"))
			if written, _ := filepath.Glob(filepath.Join(dir, "z*")); len(written) > 0 {
				t.Errorf("written all the same: %v", written)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestOtherHeader checks the notes on declarations that need a header that is not in headers.files.
func TestOtherHeader(t *testing.T) {
	const reason = "T: is declared in other.h, which is not in headers.files"
	refused := []symbols.Refusal{{Name: "libA", Where: "lib.h:1", Reason: reason}, {Name: "libB", Where: "lib.h:2", Reason: reason}}
	for i, want := range []string{
		`1 declaration is refused for a type of another header: to bind it, write "other.h" into headers.files`,
		`2 declarations are refused for a type of another header: to bind them, write "other.h" into headers.files`,
	} {
		var last string
		b := binding{report: func(s string) { last = s }}
		if b.refused(&symbols.Table{Refused: refused[:i+1]}); last != want {
			t.Errorf("%q, want %q", last, want)
		}
	}
}

// twoReleases has the headers of two releases of a library, in which things differ.
const twoReleases = `
-- lib.json --
{
"library": "lib",
"brand": "Lib",
"prefixes": {"functions": ["lib"], "types": ["lib"], "values": ["LIB_"]},
"version": {"function": "libRelease", "numbers": [{"major": 100, "minor": 1}]},
"headers": {"files": ["lib.h"], "version": {"header": "lib.h", "macros": ["LIB_MAJOR", "LIB_MINOR"]}, "since": "releases"},
"implementations": [{"name": "lib", "env": "LIB_LIBRARY", "files": {"linux": ["liblib.so"]}, "hint": "build it"}]
}
-- lib.overlay.json --
{
"sets": [{"name": "core", "since": "1.0", "doc": "all", "match": ["lib*"]}]
}
-- 1.0/lib.h --
#define LIB_MAJOR 1
#define LIB_MINOR 0
typedef enum { LIB_RED, LIB_BLUE } libColor;
int libRelease(void);
int libPaint(libColor color);
-- 2.0/lib.h --
#define LIB_MAJOR 2
#define LIB_MINOR 0
typedef enum { LIB_RED, LIB_GREEN, LIB_BLUE } libColor;
int libRelease(void);
int libPaint(libColor color);
`

// notes makes the package of twoReleases with another overlay, and returns what bindgen notes.
func notes(t *testing.T, old, new string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if !strings.Contains(twoReleases, old) {
		t.Fatalf("there is no %s", old)
	}
	unpack(t, txtar.Parse([]byte(strings.ReplaceAll(twoReleases, old, new))), dir)
	var said bytes.Buffer
	err := run([]string{"-headers", filepath.Join(dir, "2.0") + "," + filepath.Join(dir, "1.0"), filepath.Join(dir, "lib.json")}, io.Discard, &said)
	return said.String(), err
}

// twoHeaders makes the package of twoReleases with other declarations in the headers of 1.0 and 2.0
// and with more sections of the overlay. It returns what bindgen notes, with its error.
func twoHeaders(t *testing.T, one, two, overlay string) (said string, failed bool) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	dir := t.TempDir()
	text := strings.ReplaceAll(twoReleases, `"match": ["lib*"]}]`, `"match": ["libRelease"]}, {"name": "rest", "since": "1.0", "doc": "others", "match": ["*"]}]`+overlay)
	unpack(t, txtar.Parse([]byte(text)), dir)
	for v, decls := range map[string]string{"1": one, "2": two} {
		header := fmt.Sprintf("#include <stdint.h>\n#define LIB_MAJOR %s\n#define LIB_MINOR 0\nint libRelease(void);\n%s\n", v, decls)
		if err := os.WriteFile(filepath.Join(dir, v+".0", "lib.h"), []byte(header), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var notes bytes.Buffer
	err := run([]string{"-headers", filepath.Join(dir, "2.0") + "," + filepath.Join(dir, "1.0"), filepath.Join(dir, "lib.json")}, io.Discard, &notes)
	if err != nil {
		fmt.Fprintln(&notes, err)
	}
	return gccName.ReplaceAllString(strings.ReplaceAll(notes.String(), dir+"/", ""), "gcc"), err != nil
}

// TestOlderSpelling checks that a type may have another name, or be another pointer, in the older
// headers.
func TestOlderSpelling(t *testing.T) {
	const out = `, "params": [{"name": "libMake.h", "dir": "out", "reason": "a new one"}]`
	for name, x := range map[string]struct{ one, two, overlay string }{
		"alias of a pointer": {
			one: "int libStart(const char *name); typedef struct { int (*open)(const char *name); const char *own; } libTable; int libUse(const libTable *t);",
			two: "typedef const char *libName; int libStart(libName name); typedef struct { int (*open)(libName name); libName own; } libTable; int libUse(const libTable *t);",
		},
		"alias of an array": {
			one: "typedef struct { char id[16]; } libTable; int libUse(const libTable *t);",
			two: "typedef char libID[16]; typedef struct { libID id; } libTable; int libUse(const libTable *t);",
		},
		"alias of an opaque struct": {
			one: "typedef struct libTree libTree; typedef libTree libWood; int libUse(libTree *t); int libSaw(libWood *w);",
			two: "typedef struct libTree libTree; typedef libTree libWood; int libUse(libWood *t); int libSaw(libWood *w);",
		},
		"handle for void *":             {"typedef void *libH; int libMake(libH *h); int libFree(libH h);", "typedef struct libH_ *libH; int libMake(libH *h); int libFree(libH h);", out},
		"void * for a handle":           {"typedef struct libH_ *libH; int libMake(libH *h); int libFree(libH h);", "typedef void *libH; int libMake(libH *h); int libFree(libH h);", out},
		"handle for a name of void":     {"typedef void libH; int libMake(libH **h); int libFree(libH *h); libH *libNew(void);", "typedef struct libH_ libH; int libMake(libH **h); int libFree(libH *h); libH *libNew(void);", out},
		"handle with another tag":       {"typedef struct libH_ *libH; int libMake(libH *h); int libFree(libH h);", "typedef struct libHandle *libH; int libMake(libH *h); int libFree(libH h);", out},
		"struct with another tag":       {"typedef struct libH_ libH; int libMake(libH **h); int libFree(libH *h);", "typedef struct libHandle libH; int libMake(libH **h); int libFree(libH *h);", out},
		"new handle for a plain void *": {"int libMake(void **h); int libFree(void *h);", "typedef struct libH_ *libH; int libMake(libH *h); int libFree(libH h);", out},
	} {
		if said, failed := twoHeaders(t, x.one, x.two, x.overlay); failed || strings.Contains(said, "refused in some") || !strings.Contains(said, "0 declarations are refused") || strings.Contains(said, "NOTHING") {
			t.Errorf("%s:\n%s", name, said)
		}
	}
}

// TestOlderKinds checks that functions whose declarations in the older headers no table can hold are
// refused in the older release, and that functions of the older release only are refused.
func TestOlderKinds(t *testing.T) {
	const refused = "bindgen: note: refused in some releases: "
	for name, x := range map[string]struct {
		one, two, overlay string
		want              []string
	}{
		"number for a handle": {
			"typedef struct lib_st *libObject; int libFree(libObject object); int libGone(libObject object); typedef struct { libObject o; } libBox; int libSee(const libBox *b); typedef int (*libCb)(libObject o); int libEach(libCb f);",
			"typedef int libObject; int libFree(libObject object); typedef struct { libObject o; } libBox; int libSee(const libBox *b); typedef int (*libCb)(libObject o); int libEach(libCb f);",
			`, "functions": [{"name": "libEach", "callback": true, "reason": "it runs f"}]`,
			[]string{
				"bindgen: note: refused: lib.h:5 of 1.0: libGone: it uses libObject, which is a handle there, and of another kind where it is bound\n",
				refused + "libFree: it uses libObject, which is a handle before 2.0\n", refused + "libSee: it uses libObject, which is a handle before 2.0\n",
				refused + "libEach: it uses libObject, which is a handle before 2.0\n", "4 functions are bound, 1 declaration is refused",
			},
		},
		"enumeration for a struct": {
			"typedef struct { int a; } libObject; int libFree(libObject object);", "typedef enum { LIB_A } libObject; int libFree(libObject object);", "",
			[]string{refused + "libFree: it uses libObject, which is a struct before 2.0\n", "2 functions are bound, 0 declarations are refused"},
		},
		"number for a handle's pointer": {
			"typedef int libH; int libFree(libH h);", "typedef struct libH_ *libH; int libFree(libH h);", "",
			[]string{refused + "libFree: it uses libH, which is a number before 2.0\n"},
		},
		"number for a pointer to an opaque struct": {
			"typedef double libH; libH *libNew(int n); int libFree(libH *h);", "typedef struct libH libH; libH *libNew(int n); int libFree(libH *h);", "",
			[]string{refused + "libNew: it uses libH, which is a number before 2.0\n", refused + "libFree: it uses libH, which is a number before 2.0\n"},
		},
		"number in a struct for an opaque struct": {
			"typedef int libH; typedef struct { libH *p; } libBox; int libSee(const libBox *b);", "typedef struct libH libH; typedef struct { libH *p; } libBox; int libSee(const libBox *b);", "",
			[]string{refused + "libSee: it uses libH, which is a number before 2.0\n"},
		},
		"enumeration for an opaque struct": {
			"typedef enum { LIB_A = 7 } libH; int libFree(libH *h); int libGone(libH h);", "typedef struct libH libH; int libFree(libH *h);", "",
			[]string{refused + "libFree: it uses libH, which is an enumeration before 2.0\n", "refused: lib.h:5 of 1.0: libGone: it uses libH, which is an enumeration there"},
		},
		"number for an opaque struct of another name": {
			"int libFree(int *h);", "typedef struct libH libH; int libFree(libH *h);", "",
			[]string{refused + "libFree: it takes int * before 2.0\n"},
		},
		"alias of a number for an opaque struct": {
			"typedef int libM; typedef libM libH; int libFree(libH *h); int libAdd(libM m);", "typedef int libM; typedef struct libH libH; int libFree(libH *h); int libAdd(libM m);", "",
			[]string{refused + "libFree: it uses libH, which is another type before 2.0\n", "3 functions are bound, 0 declarations are refused"},
		},
		"handle for a pointer to it, in a struct": {
			"typedef struct libOp libOp; typedef libOp *libH; typedef struct { libH m; } libBox; int libSee(const libBox *b);", "typedef struct libOp libOp; typedef libOp **libH; typedef struct { libH m; } libBox; int libSee(const libBox *b);", "",
			[]string{refused + "libSee: it uses libH, which is another type before 2.0\n"},
		},
		"handle for a pointer to it, in a callback": {
			"typedef struct libOp libOp; typedef libOp *libH; typedef int (*libCb)(libH h); typedef struct { libCb c; } libBox; int libSee(const libBox *b);", "typedef struct libOp libOp; typedef libOp **libH; typedef int (*libCb)(libH h); typedef struct { libCb c; } libBox; int libSee(const libBox *b);", "",
			[]string{refused + "libSee: it uses libH, which is another type before 2.0\n"},
		},
		"pointers of other depths, in a struct": {
			"typedef int *libH; typedef struct { libH m; } libBox; int libSee(const libBox *b);", "typedef int **libH; typedef struct { libH m; } libBox; int libSee(const libBox *b);", "",
			[]string{refused + "libSee: libBox.m is int * instead of libH before 2.0\n"},
		},
		"number for an enumeration": {
			"typedef int libE; int libUse(libE e);", "typedef enum { LIB_A } libE; int libUse(libE e);", "",
			[]string{"libUse has other parameters in 1.0: e is int, and libE where it is bound", "2 functions are bound, 0 declarations are refused"},
		},
		"handle for a struct": {
			"typedef struct { int a; } libH; int libFree(libH h); int libGone(libH h);", "typedef struct libH_ *libH; int libFree(libH h);", "",
			[]string{refused + "libFree: it uses libH, which is a struct before 2.0\n", "refused: lib.h:5 of 1.0: libGone: it uses libH, which is a struct there", "2 functions are bound, 1 declaration is refused"},
		},
		"void * for a struct": {
			"typedef struct { int a; } libH; int libFree(libH *h); typedef struct tree_st *libTree; int libCut(libTree t);", "typedef void *libH; int libFree(libH h); typedef struct libTree { int a; } libTree; int libCut(const libTree *t);", "",
			[]string{refused + "libFree: it uses libH, which is a struct before 2.0\n", refused + "libCut: it uses libTree, which is a handle before 2.0\n"},
		},
		"union for a struct": {
			"typedef struct { int a, b; } libPair; int libUse(const libPair *p);", "typedef union { int a, b; } libPair; int libUse(const libPair *p);", "",
			[]string{refused + "libUse: it uses libPair, which is a struct before 2.0\n"},
		},
		"enumeration of another size in an old struct": {
			"typedef enum { LIB_A } libE; typedef struct { libE e; int b; } libOld; int libGone(const libOld *o); int libUse(libE e);", "typedef enum { LIB_A, LIB_B = 0x100000000 } libE; int libUse(libE e);", "",
			[]string{refused + "libUse: libE is of 4 bytes before 2.0, and of 8 since\n", "3 functions are bound, 0 declarations are refused"},
		},
		"macros for an enumeration": {
			"typedef enum { LIB_A } libE; int libUse(libE e);", "#define LIB_A 0\nint libUse(int e);", "",
			[]string{"libUse has other parameters in 1.0: e is libE, and int where it is bound", "2 functions are bound, 0 declarations are refused"},
		},
		"rows of another length": {
			"int libFill(float m[4][4]);", "int libFill(float m[4][3]);", `, "params": [{"name": "libFill.m", "fixed": 4, "reason": "a matrix"}]`,
			[]string{refused + "libFill: it has other parameters (m: a row is float[4], and float[3] where it is bound) before 2.0\n"},
		},
		"variadic": {
			"int libPrint(int a, ...); int libGone(int a, ...);", "int libPrint(int a);", "",
			[]string{"refused: lib.h:5 of 1.0: libGone: is variadic", refused + "libPrint: its declaration is refused (is variadic, which no binding can express) before 2.0\n"},
		},
		"inline": {
			"static inline int libNext(int a) { return a; }", "int libNext(int a);", "",
			[]string{"2 functions are bound, 0 declarations are refused"},
		},
	} {
		said, failed := twoHeaders(t, x.one, x.two, x.overlay)
		for _, want := range x.want {
			if failed || !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}

// TestMisfitTexts checks what the notes say about functions that are refused in some releases.
func TestMisfitTexts(t *testing.T) {
	for want, x := range map[string]struct{ one, two, overlay string }{
		"libAdd: libS.low has 3 bits instead of 5 before 2.0": {
			"typedef struct { unsigned low : 3; unsigned up : 5; } libS; int libAdd(const libS *s);", "typedef struct { unsigned low : 5; unsigned up : 3; } libS; int libAdd(const libS *s);", "",
		},
		"libAdd: libS has its fields in another order before 2.0": {
			"typedef struct { int a, b; } libS; int libAdd(const libS *s);", "typedef struct { int b, a; } libS; int libAdd(const libS *s);", "",
		},
		"libOld: libNum is of 4 bytes in all releases that have the function, and of 8 where it is bound": {
			"typedef int32_t libNum; int libOld(libNum n); int libAdd(libNum n);", "typedef int64_t libNum; int libAdd(libNum n);", "",
		},
		"libAdd: libCb takes 1 parameter and not 2 before 2.0": {
			"typedef int (*libCb)(int a); int libAdd(libCb cb);", "typedef int (*libCb)(int a, int b); int libAdd(libCb cb);", `, "functions": [{"name": "libAdd", "callback": true, "reason": "it runs cb"}]`,
		},
		"libAdd: libCb takes int * before 2.0": {
			"typedef int (*libCb)(int *a); int libAdd(libCb cb);", "typedef int (*libCb)(int a); int libAdd(libCb cb);", `, "functions": [{"name": "libAdd", "callback": true, "reason": "it runs cb"}]`,
		},
	} {
		if said, failed := twoHeaders(t, x.one, x.two, x.overlay); failed || !strings.Contains(said, "refused in some releases: "+want+"\n") {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}

// TestProofOfRefused checks that functions which are refused in an older release need not be as its
// headers declare them.
func TestProofOfRefused(t *testing.T) {
	for name, x := range map[string][2]string{
		"struct that only had a tag": {"struct libTag; int libAdd(struct libTag *p);", "typedef struct libTag { int a; } libS; int libAdd(const libS *p);"},
		"struct behind a handle":     {"typedef struct libTag *libH; int libAdd(libH h);", "typedef struct libTag { int a; } libS; typedef struct libTag *libH; int libAdd(const libS *p); int libSee(libH h);"},
	} {
		if said, failed := twoHeaders(t, x[0], x[1], ""); failed || !strings.Contains(said, "refused in some releases: libAdd: libS is opaque before 2.0\n") {
			t.Errorf("%s:\n%s", name, said)
		}
	}
}

// TestUnsettledMisfits checks that a function is not refused for the length of an array while the
// overlay has no entry for the array.
func TestUnsettledMisfits(t *testing.T) {
	const decl = "int libRead(int v[4]);"
	if said, failed := twoHeaders(t, decl, decl, ""); !failed || !strings.Contains(said, "libRead.v") || strings.Contains(said, "refused in some releases") {
		t.Errorf("%s", said)
	}
}

// TestHints checks that the note on a function that is refused in some releases has the entries of
// the overlay with which the function is called there, and that these entries work.
func TestHints(t *testing.T) {
	for name, x := range map[string]struct{ one, two, hint, section, entries string }{
		"one element": {
			"typedef struct { int a; } libItem; int libAdd(const libItem *in);", "typedef struct { int a, b; } libItem; int libAdd(const libItem *in);",
			"libItem is of 4 bytes before 2.0, and of 8 since; if in points to one libItem, not to an array, write into params of the overlay ", "params", `{"name": "libAdd.in", "dir": "in", "reason": "…"}`,
		},
		"enumerator": {
			"typedef enum { LIB_A, LIB_MAX } libE; int libAdd(libE e);", "typedef enum { LIB_A, LIB_B, LIB_MAX } libE; int libAdd(libE e);",
			"; LIB_MAX is 1 there: if no call is given it, write into changes of the overlay ", "changes", `{"name": "LIB_MAX", "harmless": true, "reason": "…"}`,
		},
		"enumerators": {
			"typedef enum { LIB_A, LIB_B } libE; int libAdd(libE e);", "typedef enum { LIB_B, LIB_A } libE; int libAdd(libE e);",
			"; LIB_A is 0, LIB_B is 1 there: if no call is given them, write into changes of the overlay ", "changes", `{"name": "LIB_A", "harmless": true, "reason": "…"}, {"name": "LIB_B", "harmless": true, "reason": "…"}`,
		},
	} {
		if said, failed := twoHeaders(t, x.one, x.two, ""); failed || !strings.Contains(said, x.hint+x.entries+"\n") {
			t.Errorf("%s: no %s%s in\n%s", name, x.hint, x.entries, said)
		}
		if said, failed := twoHeaders(t, x.one, x.two, fmt.Sprintf(", %q: [%s]", x.section, x.entries)); failed || strings.Contains(said, "refused in some releases") {
			t.Errorf("%s, with the entries:\n%s", name, said)
		}
	}
}

// TestConstPointers checks that a pointer to const pointers is an input.
func TestConstPointers(t *testing.T) {
	a, err := txtar.ParseFile("testdata/refuse/spelled.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack(t, a, dir)
	unpack(t, txtar.Parse([]byte(`
-- lib.h --
#include <stddef.h>
int libTag(const char *const *tags, size_t n);
int libTell(const char *const *texts, const char **names, size_t n);
-- lib.overlay.json --
{
"sets": [{"name": "core", "since": "1.0", "doc": "all", "match": ["lib*"]}],
"params": [{"name": "libTell.*", "types": ["const char **"], "len": "n", "reason": "arrays"}]
}
`)), dir)
	if err := run([]string{filepath.Join(dir, "lib.json")}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	funcs, err := os.ReadFile(filepath.Join(dir, "zfuncs.go"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(funcs); !strings.Contains(text, "Tag(tags **byte, n uint64)") || !strings.Contains(text, "Tell(texts []*byte, names []*byte)") || strings.Contains(text, "writes to") {
		t.Errorf("%s", text)
	}
}

// TestTypesOfRules checks that a rule may write a type as the header does or as the table does. The
// table has the handle libTree for the header's libTree *.
func TestTypesOfRules(t *testing.T) {
	a, err := txtar.ParseFile("testdata/refuse/spelled.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, ctype := range []string{"libTree **", "libTree *"} {
		dir := t.TempDir()
		unpack(t, a, dir)
		unpack(t, txtar.Parse([]byte(`
-- lib.h --
typedef struct libTree libTree;
int libNew(libTree **tree);
int libFree(libTree *tree);
-- lib.overlay.json --
{
"sets": [{"name": "core", "since": "1.0", "doc": "all", "match": ["lib*"]}],
"params": [{"name": "*.*", "types": ["`+ctype+`"], "dir": "out", "reason": "made by it"}]
}
`)), dir)
		if err := run([]string{filepath.Join(dir, "lib.json")}, io.Discard, io.Discard); err != nil {
			t.Error(err)
		}
		if funcs, err := os.ReadFile(filepath.Join(dir, "zfuncs.go")); err != nil || !strings.Contains(string(funcs), "New() (tree Tree, n int32, err error)") {
			t.Errorf("%s: %v\n%s", ctype, err, funcs)
		}
	}
}

// TestRequiredMisfit checks the note on a required function that must not be called in a release
// that the required set supports.
func TestRequiredMisfit(t *testing.T) {
	const note = `refused in some releases: libPaint: libColor has other numbers before 2.0; it is in the required set core, so Open refuses these releases: write "since": "2.0" into the set, or move the function out of the set`
	for overlay, want := range map[string]bool{
		`"match": ["lib*"]`: true,
		`"match": ["libRelease"]}, {"name": "rest", "since": "1.0", "doc": "others", "match": ["*"]`: false,
	} {
		if said, err := notes(t, `"match": ["lib*"]`, overlay); err != nil || strings.Contains(said, note) != want {
			t.Errorf("%s: %v\n%s", overlay, err, said)
		}
	}
	if _, err := notes(t, "#define LIB_MAJOR 1", "#define LIB_MAJOR 2"); err == nil || err.Error() != "two folders have the headers of Lib 2.0" {
		t.Errorf("equal releases: %v", err)
	}
	if said, err := notes(t, `"name": "core", "since": "1.0"`, `"name": "core", "since": "2.0"`); err != nil || strings.Contains(said, "Open refuses") {
		t.Errorf("since 2.0: %v\n%s", err, said)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"a.json", "b.json"}, {"mylib"}, {"-color", "a.json"}} {
		if err := run(args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("bindgen %q: %v, want the usage", args, err)
		}
	}
	var stderr bytes.Buffer
	if err := run([]string{"-h"}, io.Discard, &stderr); !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr.String(), "-headers") {
		t.Errorf("-h: %v, %s", err, &stderr)
	}
}

// TestGuess checks that bindgen -guess writes an entry for each pointer with an unknown meaning,
// and refuses the entry until it is filled in.
func TestGuess(t *testing.T) {
	a, err := txtar.ParseFile("testdata/refuse/unsettled.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sources, _ := split(a, "error")
	dir := t.TempDir()
	unpack(t, sources, dir)
	lib, overlay := filepath.Join(dir, "lib.json"), filepath.Join(dir, "lib.overlay.json")
	var out bytes.Buffer
	if err := run([]string{"-guess", lib}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "wrote 4 entries") {
		t.Fatalf("%v, %s", err, &out)
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"name": "libExec.odata", "dir": "?", "reason": "lib.h:6: libStatus libExec(libPlan plan, libComplex *idata, libComplex *odata)"}`; !strings.Contains(string(text), want) {
		t.Errorf("the overlay has no %s:\n%s", want, text)
	}
	if err := run([]string{lib}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "libExec.odata: dir: is not answered") {
		t.Errorf("with blanks: %v", err)
	}
	filled := strings.ReplaceAll(string(text), `"dir": "?"`, `"type": "DevicePtr"`)
	if err := os.WriteFile(overlay, []byte(filled), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{lib}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	funcs, err := os.ReadFile(filepath.Join(dir, "zfuncs.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Exec(plan Plan, idata DevicePtr, odata DevicePtr) (err error)", "Fill(to DevicePtr, n int32) (err error)", "One() (n int32, err error)",
	} {
		if !strings.Contains(string(funcs), want) {
			t.Errorf("no method %s", want)
		}
	}
}

// TestGuessCallbacks checks that bindgen -guess writes an entry for each function that takes a
// function pointer, unless the overlay says when the library calls that pointer.
func TestGuessCallbacks(t *testing.T) {
	a, err := txtar.ParseFile("testdata/refuse/callback.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sources, _ := split(a, "error")
	dir := t.TempDir()
	unpack(t, sources, dir)
	lib, overlay := filepath.Join(dir, "lib.json"), filepath.Join(dir, "lib.overlay.json")
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	dated := `,
  {"name": "libDated", "since": "1.0", "reason": "says nothing of cb"}`
	if err := os.WriteFile(overlay, []byte(strings.Replace(string(text), dated, "", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-guess", lib}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(overlay); err != nil {
		t.Fatal(err)
	}
	if want := `{"name": "libCount", "callback": "?", "reason": "lib.h:13: libStatus libCount(libDev *dev, libVisit cb, void *user, const libSet *set)"}`; !strings.Contains(string(text), want) {
		t.Errorf("the overlay has no %s:\n%s", want, text)
	}
	filled := strings.ReplaceAll(string(text), `"dir": "?"`, `"dir": "out"`)
	if err := os.WriteFile(overlay, []byte(filled), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{lib}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "function libCount: callback: is not answered") {
		t.Errorf("with blanks: %v", err)
	}
	filled = strings.ReplaceAll(strings.Replace(filled, `"libCount", "callback": "?"`, `"libCount", "callback": true`, 1), `"callback": "?"`, `"callback": false`)
	if err := os.WriteFile(overlay, []byte(filled), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{lib}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	funcs, err := os.ReadFile(filepath.Join(dir, "zfuncs.go"))
	if err != nil {
		t.Fatal(err)
	}
	for function, calls := range map[string]string{"Count": "Slow(", "Never": "Status("} {
		_, body, _ := strings.Cut(string(funcs), "\nfunc (l *Library) "+function+"(")
		if body, _, _ = strings.Cut(body, "\n}\n"); !strings.Contains(body, calls) || function == "Count" && strings.Contains(body, "Frame") {
			t.Errorf("%s does not call %s:\n%s", function, calls, body)
		}
	}
}

// TestCheck checks that -check compares without writing, and that a run removes files that are no
// longer generated.
func TestCheck(t *testing.T) {
	a, err := txtar.ParseFile("testdata/kit.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sources, _ := split(a, "want", "kit.table.json", "ztypes.go", "zfuncs.go")
	dir := t.TempDir()
	unpack(t, sources, dir)
	kit := filepath.Join(dir, "kit.json")
	if err := run([]string{"-check", kit}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "zfuncs.go") {
		t.Errorf("-check of a new package: %v", err)
	}
	if err := run([]string{kit}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-check", kit}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	old := filepath.Join(dir, "znames_plan9.go")
	text, err := os.ReadFile(filepath.Join(dir, "znames_other.go"))
	if err == nil {
		err = os.WriteFile(old, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-check", kit}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "znames_plan9.go") {
		t.Errorf("-check with a file too many: %v", err)
	}
	var out bytes.Buffer
	if err := run([]string{kit}, &out, io.Discard); err != nil || out.String() != "removed "+old+"\n" {
		t.Errorf("%v, %s", err, &out)
	}
}

// TestProof checks the result if a C compiler disagrees with the table, and if there is none.
func TestProof(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	a, err := txtar.ParseFile("testdata/kit.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sources, _ := split(a, "want", "kit.table.json", "ztypes.go", "zfuncs.go")
	dir := t.TempDir()
	unpack(t, sources, dir)
	kit, record := filepath.Join(dir, "kit.json"), filepath.Join(dir, "testdata", "zproof.json")
	path := os.Getenv("PATH")
	t.Setenv("PATH", dir) // a folder without a compiler
	var said bytes.Buffer
	if err := run([]string{kit}, io.Discard, &said); err != nil || !strings.Contains(said.String(), "NOTHING IS PROVEN: no C compiler") {
		t.Errorf("without a compiler: %v, %s", err, &said)
	}
	if _, err := os.Stat(record); err == nil {
		t.Error("there is a record of a proof without a compiler")
	}
	if err := run([]string{"-cc", "gcc", kit}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "there is no gcc") {
		t.Errorf("with a compiler that is not there: %v", err)
	}
	t.Setenv("PATH", path)
	if err := run([]string{kit}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	said.Reset()
	if err := run([]string{"-check", kit}, io.Discard, &said); err != nil || strings.Contains(said.String(), "NOTHING") {
		t.Errorf("without a compiler, and with a record: %v, %s", err, &said)
	}
	t.Setenv("PATH", path)
	// A header beside kit.h that differs from the front end's stub of that name.
	stand, err := symbols.StandIns([]string{"cuda"})
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(stand["cuda_runtime_api.h"], "typedef CUstream cudaStream_t;", "typedef int cudaStream_t;", 1)
	if err := os.WriteFile(filepath.Join(dir, "include", "cuda_runtime_api.h"), []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "zfuncs.go")); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{kit}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "the table is not what gcc") || !strings.Contains(err.Error(), "size of stream: the table says 8, the compiler 4") {
		t.Errorf("with another header: %v", err)
	}
	if now, err := os.ReadFile(record); err != nil || !bytes.Equal(now, first) {
		t.Errorf("the record has changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "zfuncs.go")); err == nil {
		t.Error("written all the same")
	}
}
