package rendezvous

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/internal/busyfile"
	"github.com/puregpu/puregpu/internal/ownfolder"
)

// maxFile is the size of the largest file that is read.
const maxFile = headSize + maxID

// An exchangeDir is the open folder of an exchange. Its methods use only regular files in the
// folder, and follow no link. If another process renames or replaces the folder, the methods keep
// using the opened folder.
type exchangeDir struct {
	root   *os.Root
	parent *os.Root // the folder [File].Path
	name   string   // name of the exchange's folder in parent
}

// open opens the folder of an exchange, if that folder is this user's alone. If create is set, open
// makes the folder first. Ranks that have left an exchange may be removing the folder: then the
// error is fs.ErrNotExist.
func (d fileExchange) open(create bool) (x *exchangeDir, err error) {
	err = busyfile.Retry(func() error {
		x, err = d.tryOpen(create)
		return err
	})
	if err != nil && isFile(d.path) { // Windows says that a file used as a folder does not exist
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: errors.New("a file, not a directory")}
	}
	return x, err
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && !fi.IsDir()
}

// A folder is opened under a name that ends in "/.", which fails for a named pipe. Opening the pipe
// itself would wait for a writer.
const asFolder = string(filepath.Separator) + "."

func (d fileExchange) tryOpen(create bool) (*exchangeDir, error) {
	if create {
		if err := os.MkdirAll(d.path, 0o700); err != nil {
			return nil, err
		}
	}
	parent, err := os.OpenRoot(d.path + asFolder)
	if err != nil {
		return nil, err
	}
	root, err := d.openIn(parent, create)
	if err != nil {
		parent.Close()
		return nil, err
	}
	return &exchangeDir{root, parent, d.dir}, nil
}

func (d fileExchange) openIn(parent *os.Root, create bool) (*os.Root, error) {
	if create { // only for this user, because any process that reads the id can take part
		if err := parent.Mkdir(d.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	fi, err := parent.Lstat(d.dir)
	if err != nil {
		return nil, err
	}
	if err := ownfolder.Check(fi); err != nil {
		return nil, fmt.Errorf("%s is not safe to use: %w: remove it or set another Path; if the file system changes owners or modes, use TCP",
			filepath.Join(d.path, d.dir), err)
	}
	root, err := parent.OpenRoot(d.dir + asFolder)
	if err != nil {
		return nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(fi, opened) {
		root.Close()
		return nil, fmt.Errorf("%s was replaced: %w", d.dir, errors.Join(fs.ErrNotExist, err))
	}
	return root, nil
}

func (x *exchangeDir) close() {
	x.root.Close()
	x.parent.Close()
}

// removeIfEmpty removes the folder if it is empty. x cannot be used afterwards.
func (x *exchangeDir) removeIfEmpty() {
	fi, err := x.root.Stat(".")
	x.root.Close() // before Remove: on Windows the name of a removed folder stays until the folder is closed
	if err != nil {
		return
	}
	if named, err := x.parent.Lstat(x.name); err == nil && os.SameFile(fi, named) {
		x.parent.Remove(x.name) // fails if the folder is not empty
	}
}

// entries returns the files of ranks in the folder, sorted by name. It ignores other files.
func (x *exchangeDir) entries() (files []exchangeFile, err error) {
	var entries []fs.DirEntry
	err = busyfile.Retry(func() (err error) { entries, err = fs.ReadDir(x.root.FS(), "."); return err })
	for _, e := range entries {
		if f, ok := parseFile(e.Name()); ok && e.Type().IsRegular() {
			files = append(files, f)
		}
	}
	return files, err
}

// regular returns an error if a name is not a regular file, and fs.ErrNotExist if there is no file.
func (x *exchangeDir) regular(name string) (fs.FileInfo, error) {
	fi, err := x.root.Lstat(name)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: remove it", filepath.Join(x.parent.Name(), x.name, name))
	}
	return fi, err
}

// exists returns nil if there is a file, and fs.ErrNotExist if not.
func (x *exchangeDir) exists(name string) error {
	_, err := x.root.Lstat(name)
	return err
}

// remove removes a regular file.
func (x *exchangeDir) remove(name string) error {
	return busyfile.Retry(func() error {
		if _, err := x.regular(name); err != nil {
			return err
		}
		return x.root.Remove(name)
	})
}

// rename renames a regular file. If the new name is taken, rename replaces only a regular file.
func (x *exchangeDir) rename(from, to string) error {
	return busyfile.Retry(func() error {
		if _, err := x.regular(from); err != nil {
			return err
		}
		if _, err := x.regular(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return x.root.Rename(from, to)
	})
}

// create makes a new file, which must not exist.
func (x *exchangeDir) create(name string, content []byte) error {
	var f *os.File
	err := busyfile.Retry(func() (err error) {
		f, err = x.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// read reads a regular file of a bounded size. It reads nothing if the file is replaced meanwhile.
func (x *exchangeDir) read(name string) (content []byte, err error) {
	err = busyfile.Retry(func() error { content, err = x.tryRead(name); return err })
	return content, err
}

func (x *exchangeDir) tryRead(name string) ([]byte, error) {
	fi, err := x.regular(name)
	if err != nil {
		return nil, err
	}
	f, err := x.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil || !os.SameFile(fi, opened) {
		return nil, err
	}
	if opened.Size() > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, and an answer has %d at most: remove it", f.Name(), opened.Size(), maxFile)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// An exchangeFile is the name of a rank's file: KEY.KIND.
type exchangeFile struct{ key, kind string }

func (f exchangeFile) name() string { return f.key + "." + f.kind }

// asks reports whether the file belongs to a waiting rank. The rank of an ack waits too, if the
// attempt of rank 0 that the ack names has ended.
func (f exchangeFile) asks() bool { return f.kind == "ask" || strings.HasPrefix(f.kind, "ack-") }

// minText is the length of rand.Text, which may become longer.
const minText = 26

// parseFile parses the name of a rank's file. It refuses other names.
func parseFile(name string) (f exchangeFile, ok bool) {
	f.key, f.kind, _ = strings.Cut(name, ".")
	rank, text, _ := strings.Cut(f.key, "-")
	if _, err := strconv.ParseUint(rank, 10, 31); err != nil && rank != "x" {
		return f, false
	}
	if len(text) < minText || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return f, false
	}
	if sum, ok := strings.CutPrefix(f.kind, "ack-"); ok {
		b, err := hex.DecodeString(sum)
		return f, err == nil && len(b) == ackSize && sum == strings.ToLower(sum)
	}
	return f, f.kind == "ask" || f.kind == "id" || f.kind == "new"
}
