package apitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecipesOfGuide checks that the guide shows each recipe in folder deploy as it is.
func TestRecipesOfGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range []string{"*.Containerfile", "*.yaml"} {
		found, err := filepath.Glob("../../deploy/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if blocks := strings.Count(string(page), "\n```dockerfile\n") + strings.Count(string(page), "\n```yaml\n"); blocks != len(files) || blocks == 0 {
		t.Errorf("the page has %d recipes, and the folder %d files", blocks, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := "deploy/" + filepath.Base(file)
		if block := "`" + name + "`:\n\n```"; !strings.Contains(string(page), block) || !strings.Contains(string(page), "\n"+string(text)+"```\n") {
			t.Errorf("the page does not show %s as it is: copy the file into the block below its name", name)
		}
	}
}
