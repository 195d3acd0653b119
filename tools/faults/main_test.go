package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVerdicts checks the verdicts on faults in a module of two functions.
func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/sums\n\ngo 1.26\n",
		"sums.go": `package sums

// Add adds.
func Add(a, b int) int {
	return a + b
}

// Double doubles.
func Double(a int) int {
	return a * 2
}
`,
		"sums_test.go": `package sums

import (
	"os"
	"testing"
)

func TestAdd(t *testing.T) {
	if n := Add(1, 2); n != 3 {
		t.Error(n)
	}
}

func TestWrong(t *testing.T) {
	t.Error("always")
}

func TestKilled(t *testing.T) {
	if Double(1) != 2 {
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
}
`,
		"caught.patch":  change("^TestAdd$", "a + b", "a - b"),
		"missed.patch":  change("^TestAdd$", "a * 2", "a * 3"),
		"old.patch":     change("^TestAdd$", "a + c", "a - c"),
		"wrong.patch":   change("^TestWrong$", "a + b", "a - b"),
		"nothing.patch": change("^TestSubtract$", "a + b", "a - b"),
		"broken.patch":  change("^TestAdd$", "a + b", "a +"),
		"killed.patch":  change("^TestKilled$", "a * 2", "a * 3"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out strings.Builder
	err := run(t.Context(), []string{"-dir", "."}, &out, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "6 of 7 faults") {
		t.Errorf("%v", err)
	}
	for name, want := range map[string]string{
		"caught":  "caught",
		"missed":  "MISSED: the test passes with the fault",
		"old":     "no longer applies: error: ",
		"wrong":   "FAILS WITHOUT IT: exit status 1",
		"nothing": "no verdict: no test has the name",
		"broken":  "no verdict: exit status 1: ",
		"killed":  "no verdict: exit status 1: ",
	} {
		if !regexp.MustCompile(`(?m)^` + name + ` +` + regexp.QuoteMeta(want)).MatchString(out.String()) {
			t.Errorf("of %s it does not say %q:\n%s", name, want, out.String())
		}
	}
	if text, err := os.ReadFile("sums.go"); err != nil || !strings.Contains(string(text), "return a + b") {
		t.Errorf("the tree has changed: %v\n%s", err, text)
	}
}

// change makes a patch of sums.go.
func change(test, old, new string) string {
	func1, before, after := "Add", " \n // Add adds.\n", " }\n \n // Double doubles.\n"
	at := "@@ -2,5 +2,5 @@\n"
	if strings.Contains(old, "*") {
		func1, before, after, at = "Double", " \n // Double doubles.\n", " }\n", "@@ -7,5 +7,5 @@\n"
	}
	args := map[string]string{"Add": "a, b int", "Double": "a int"}[func1]
	return "# What was wrong.\n# test: -run '" + test + "' .\ndiff --git a/sums.go b/sums.go\n--- a/sums.go\n+++ b/sums.go\n" + at + before +
		" func " + func1 + "(" + args + ") int {\n-\treturn " + old + "\n+\treturn " + new + "\n" + after
}

// TestHeaders checks that the first lines of every patch name the fault and the commit that fixed
// it, and that every patch names a test.
func TestHeaders(t *testing.T) {
	patches, err := find("../../runtime/gpu/testdata/faults", nil)
	if err != nil {
		t.Fatal(err)
	}
	header := regexp.MustCompile(`(?s)\A# [A-Z].*\n# mended: [0-9a-f]{7,} `)
	for _, p := range patches {
		text, err := os.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		if !header.Match(text) {
			t.Errorf("%s does not begin with a sentence about the fault, and a line \"# mended: \" with the commit", p.name)
		}
	}
}

// TestApply checks that every patch applies to the current code. Only a run of tools/faults shows
// whether tests still catch the faults.
func TestApply(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	patches, err := find("runtime/gpu/testdata/faults", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range patches {
		if _, err := p.apply(t.TempDir()); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

func TestUsage(t *testing.T) {
	if err := run(t.Context(), []string{"-nothing"}, io.Discard, io.Discard); !errors.Is(err, errUsage) {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"-dir", t.TempDir()}, io.Discard, io.Discard); err == nil {
		t.Error("a folder without patches is no error")
	}
}
