package testlib

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Parse parses the Go files that match a pattern of [filepath.Match], with comments and without
// test files. At least one must match.
func Parse(t testing.TB, pattern string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s, %v", pattern, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// Submitting returns the methods of interfaces, and the fields, of package runtime/driver that any
// thread may call, as their documentation says in its last sentence.
func Submitting(t testing.TB) (names []string) {
	t.Helper()
	for _, file := range Parse(t, filepath.Join(root(t), "runtime", "driver", "*.go")) {
		ast.Inspect(file, func(n ast.Node) bool {
			if m, ok := n.(*ast.Field); ok && len(m.Names) == 1 {
				name, doc := m.Names[0].Name, strings.Join(strings.Fields(m.Doc.Text()), " ")
				if strings.HasSuffix(doc, "Any thread may call it.") || strings.HasSuffix(doc, "Any thread may call "+name+".") {
					names = append(names, name)
				}
			}
			return true
		})
	}
	return names
}
