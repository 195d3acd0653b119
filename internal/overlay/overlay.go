// Package overlay writes the file by which go build and go test read other source in place of files
// (-overlay).
package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Write writes such a file to a folder, and returns its path. The keys of replace are the paths of files of
// the source, and the values those of the files to read in their place.
func Write(folder string, replace map[string]string) (string, error) {
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, text, 0o666)
}
