// Package regular opens files whose names come from the user or the environment. It refuses what is no regular file: opening a
// named pipe blocks until there is a writer, and reading from a device may block or never end.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrIrregular is a file that is not regular. It is in an [*fs.PathError].
var ErrIrregular = errors.New("not a regular file")

// kinds are what files may be that are not regular.
var kinds = []struct {
	mode fs.FileMode
	name string
}{
	{fs.ModeDir, "a directory"},
	{fs.ModeNamedPipe, "a named pipe"},
	{fs.ModeSocket, "a socket"},
	{fs.ModeDevice, "a device"},
}

// Stat describes a file, or the one that it links to. The error of one that is not regular says what it is.
func Stat(name string) (fs.FileInfo, error) {
	fi, err := os.Stat(name)
	if err != nil || fi.Mode().IsRegular() {
		return fi, err
	}
	what := "something else"
	for _, k := range kinds {
		if fi.Mode()&k.mode != 0 {
			what = k.name
			break
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%s, %w", what, ErrIrregular)}
}

// Open opens a regular file to read it. No more is to be read than the file's size: some that are made by the system have none, and to
// read them may wait.
func Open(name string) (*os.File, fs.FileInfo, error) {
	fi, err := Stat(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	return f, fi, nil
}

// ReadFile reads a regular file.
func ReadFile(name string) ([]byte, error) {
	f, fi, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, fi.Size())
	n, err := io.ReadFull(f, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil // it was cut meanwhile
	}
	return b[:n], err
}
