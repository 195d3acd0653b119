// Package overlay writes files for the flag -overlay of go build and go test. With such a file,
// these commands read other files in place of source files.
package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Write writes an overlay file to a folder, and returns its path. The keys of replace are paths of
// source files; each value is the path of the file to read instead.
func Write(folder string, replace map[string]string) (string, error) {
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, text, 0o666)
}
