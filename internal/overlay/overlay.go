// Package overlay writes the file for the -overlay flag, with which go build and go test read other
// files in place of source files.
package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Write writes such a file to a folder, and returns its path. The keys of replace are paths of
// source files, and the values are paths of the files to read instead.
func Write(folder string, replace map[string]string) (string, error) {
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, text, 0o666)
}
