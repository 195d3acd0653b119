package gen

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// TestLayoutAgainstHeaders compiles assertions of every size, offset and enumerator of a table against the library's own
// headers. PUREGPU_CUDA_HEADERS, and so on for each library, names their folder.
func TestLayoutAgainstHeaders(t *testing.T) {
	for _, library := range Libraries() {
		t.Run(library, func(t *testing.T) {
			env := "PUREGPU_" + strings.ToUpper(library) + "_HEADERS"
			dir, _, _ := strings.Cut(os.Getenv(env), ",") // of several releases, the newest
			if dir == "" {
				t.Skipf("%s does not name a folder with the headers", env)
			}
			compiler := os.Getenv("PUREGPU_TEST_CC")
			if compiler == "" {
				compiler = "gcc"
			}
			if _, err := exec.LookPath(compiler); err != nil {
				t.Skipf("no C compiler %s; install gcc or set PUREGPU_TEST_CC", compiler)
			}
			lib, err := symbols.Load(library)
			if err != nil {
				t.Fatal(err)
			}
			text, err := LayoutAsserts(lib)
			if err != nil {
				t.Fatal(err)
			}
			tmp := t.TempDir()
			d, err := symbols.Describe(library)
			if err != nil {
				t.Fatal(err)
			}
			for name, stub := range d.Headers.Stubs { // for headers of other libraries that are not there
				file := filepath.Join(tmp, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(stub), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			compile := func(source string) (string, error) {
				file := filepath.Join(tmp, "layout.c")
				if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
					t.Fatal(err)
				}
				out, err := exec.Command(compiler, "-std=gnu11", "-fsyntax-only", "-I"+dir, "-idirafter", tmp, file).CombinedOutput()
				return string(out), err
			}
			if out, err := compile(text); err != nil {
				t.Fatalf("the table and the headers differ:\n%.4000s", out)
			}
			// The check must be able to fail: a size that is off by one does not compile.
			size := regexp.MustCompile(`sizeof\(\w+\) == \d+`)
			if _, err := compile(strings.Replace(text, size.FindString(text), size.FindString(text)+"1", 1)); err == nil {
				t.Fatal("a wrong size compiles: nothing is being checked")
			}
			t.Logf("%s: %d assertions hold", library, strings.Count(text, "_Static_assert"))
		})
	}
}

// TestLayoutOfNumbers: what is only a typedef of a number is asserted as well.
func TestLayoutOfNumbers(t *testing.T) {
	lib, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	text, err := LayoutAsserts(lib)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sizeof(cuuint64_t) == 8", "sizeof(CUdevice_v1) == 4", "sizeof(CUdeviceptr_v2) == 8"} {
		if !strings.Contains(text, "_Static_assert("+want+",") {
			t.Errorf("no assertion that %s", want)
		}
	}
}
