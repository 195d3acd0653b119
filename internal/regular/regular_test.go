package regular

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("12345"), 0o666); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(file); string(b) != "12345" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.Symlink(file, link); err == nil {
		if b, err := ReadFile(link); string(b) != "12345" || err != nil {
			t.Errorf("through a link: %q, %v", b, err)
		}
	}
	if _, err := ReadFile(dir); err == nil || !strings.HasSuffix(err.Error(), ": a directory, not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("none: %v", err)
	}
}
