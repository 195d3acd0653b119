package apitest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestExamples checks that each package that programs import has an example.
func TestExamples(t *testing.T) {
	example := regexp.MustCompile(`(?m)^func Example`)
	for _, dir := range append(slices.Clone(imported), "runtime/driver/hipdriver") {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(name string) bool {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			return example.Match(text)
		}) {
			t.Errorf("package %s has no example: write one into %s/example_test.go that runs without a GPU", dir, dir)
		}
	}
}
