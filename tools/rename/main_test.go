package main

import (
	"bytes"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden results")

// TestRules compares the rewritten files of a small module, and the reports, with
// testdata/want.txtar. It checks that a second run changes nothing.
func TestRules(t *testing.T) {
	module, err := txtar.ParseFile("testdata/rules.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	for _, f := range module.Files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	rewrite := func(dry bool, builds ...string) (reports string, texts map[string]string) {
		t.Helper()
		var out bytes.Buffer
		if err := run(&out, io.Discard, dry, builds, []string{"./..."}); err != nil {
			t.Fatal(err)
		}
		texts = map[string]string{}
		for _, f := range module.Files {
			text, err := os.ReadFile(f.Name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(text, f.Data) {
				texts[f.Name] = string(text)
			}
		}
		return filepath.ToSlash(out.String()), texts
	}
	planned, texts := rewrite(true)
	if len(texts) > 0 || !strings.Contains(planned, "app/app.go:20: rewritten: Queue.Fill\n") {
		t.Errorf("a dry run says\n%s\nand changes %d files", planned, len(texts))
	}
	reports, texts := rewrite(false, "GOOS=windows")
	got := &txtar.Archive{Comment: []byte("What rename prints about rules.txtar, and the files it changes.\n"),
		Files: []txtar.File{{Name: "reports", Data: []byte(reports)}}}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(texts[name])})
	}
	if _, again := rewrite(false); !maps.Equal(texts, again) {
		t.Error("a second run changes files")
	}
	compare(t, got)
}

var golden, _ = filepath.Abs("testdata/want.txtar")

func compare(t *testing.T, got *txtar.Archive) {
	t.Helper()
	text := txtar.Format(got)
	if *update {
		if err := os.WriteFile(golden, text, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
