package gen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// TestReleasesAgainstHeaders compares what the tables say of each release with what gcc makes of that release's headers. PUREGPU_HEADERS names a folder
// with a folder for each library and in that one for each release, as tools/bundle/headers.sh makes it: cuda/12.4, nccl/2.30.7, hip/5.2.
func TestReleasesAgainstHeaders(t *testing.T) {
	root := os.Getenv("PUREGPU_HEADERS")
	if root == "" {
		t.Skip("PUREGPU_HEADERS does not name a folder with headers: make headers makes one")
	}
	compiler := os.Getenv("PUREGPU_TEST_CC")
	if compiler == "" {
		compiler = "gcc"
	}
	tried := 0
	for _, library := range Libraries() {
		lib, err := symbols.Load(library)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range lib.Releases {
			dir := filepath.Join(root, library, v.String())
			if _, err := os.Stat(dir); err != nil {
				t.Logf("%s %v: no headers in %s", library, v, dir)
				continue
			}
			tried++
			t.Run(library+" "+v.String(), func(t *testing.T) { compareRelease(t, compiler, lib, v, dir) })
		}
	}
	if tried == 0 {
		t.Fatalf("%s has the headers of no release", root)
	}
}

func compareRelease(t *testing.T, compiler string, lib *symbols.Library, v symbols.Version, dir string) {
	tmp := t.TempDir()
	for name, stub := range lib.Description.Headers.Stubs {
		file := filepath.Join(tmp, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(stub), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compile := func(source string, options ...string) (string, error) {
		file := filepath.Join(tmp, "release.c")
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(compiler, append(options, "-std=gnu11", "-Wno-deprecated-declarations", "-fmax-errors=0", "-I"+tmp, "-I"+dir, file)...).CombinedOutput()
		return string(out), err
	}
	headers, err := compile(IncludeAll(lib), "-E", "-dD", "-P")
	if err != nil {
		t.Fatalf("%.2000s", headers)
	}
	text, checks, left := ReleaseAsserts(lib, v, headers)
	if out, err := compile(text, "-fsyntax-only"); err != nil {
		t.Fatalf("%d mismatches:\n%.4000s", strings.Count(out, "error:"), out)
	}
	// The check must be able to fail: a wrong size and a wrong type do not compile.
	size := regexp.MustCompile(`sizeof\(\w+\) == \d+`).FindString(text)
	wrong := strings.Replace(text, size, size+"1", 1)
	if _, err := compile(wrong, "-fsyntax-only"); err == nil {
		t.Fatal("a wrong size compiles: nothing is being checked")
	}
	fmt.Printf("%s %v: %d facts are as gcc has them, 0 mismatches; %d names are not in these headers\n", lib.Description.Library, v, checks, left)
}
