// Package regular opens files whose names come from the user or the environment. It refuses
// everything except regular files: opening a named pipe blocks until there is a writer, and reading
// from a device may block or never end.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrIrregular says that a file is not regular. It is wrapped in an [*fs.PathError].
var ErrIrregular = errors.New("not a regular file")

// kinds are the kinds of irregular files.
var kinds = []struct {
	mode fs.FileMode
	name string
}{
	{fs.ModeDir, "a directory"},
	{fs.ModeNamedPipe, "a named pipe"},
	{fs.ModeSocket, "a socket"},
	{fs.ModeDevice, "a device"},
}

// Stat describes a regular file. It follows links. The error for an irregular file names the file's
// kind.
func Stat(name string) (fs.FileInfo, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	return check(name, fi)
}

// check returns fi, or an error that names the file's kind if the file is not regular.
func check(name string, fi fs.FileInfo) (fs.FileInfo, error) {
	if fi.Mode().IsRegular() {
		return fi, nil
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

// Open opens a regular file for reading. Do not read more than the file's size: some files of the
// system have size 0, and reading them may block.
func Open(name string) (*os.File, fs.FileInfo, error) {
	// Stat comes first because opening a device may have effects. Another file may take the name
	// after Stat, so the function open checks the opened file again.
	if _, err := Stat(name); err != nil {
		return nil, nil, err
	}
	return open(name)
}

// open opens a file for reading, or returns an error if the file is not regular. It never blocks.
func open(name string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|Nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		fi, err = check(name, fi)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// ReadFile reads a regular file, up to the size that it has when it is opened.
func ReadFile(name string) ([]byte, error) {
	f, fi, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, fi.Size())
	n, err := io.ReadFull(f, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil // the file has become shorter since Open
	}
	return b[:n], err
}
