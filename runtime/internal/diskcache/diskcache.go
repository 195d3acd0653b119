// Package diskcache keeps data in a folder, by key, for several processes at once, up to a number
// of bytes.
//
// # What a file is
//
// An entry is a file whose name is its key. It begins with a header: a magic number, which tells
// the format of the file, the key, the length of the data, and a checksum of key and data. A file
// that is not all of that is no entry: it was cut off, has another key's name, or is somebody
// else's. Get finds nothing then, and the next Put replaces it.
//
// # The folder
//
// Whoever can write to the folder decides what is found. So a folder that belongs to another user
// but root, or that others can write to, is refused, and entries of that kind are not found.
//
// # Several processes
//
// Put writes to a file of another name, and renames it. A reader finds a whole entry, the old one
// or the new one. Several processes that put the same key at once write the same data, and one of
// their files stays. Put locks its file until it has been renamed.
//
// # The bound
//
// Get sets the time of the file. Put adds up the entries, each in whole blocks of 4 KiB, and
// removes those that were not used for the longest time until the rest is within the bound. It also
// removes the files of processes that ended while they wrote: nobody has locked them. They do not
// count, and neither do those that are being written. Files of other names are left alone.
package diskcache

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/puregpu/puregpu/internal/busyfile"
	"github.com/puregpu/puregpu/internal/filelock"
	"github.com/puregpu/puregpu/internal/ownfolder"
	"github.com/puregpu/puregpu/internal/printable"
	"github.com/puregpu/puregpu/internal/regular"
)

const (
	magic  = "puregpu\x01"
	header = len(magic) + sha256.Size + 8 + sha256.Size

	suffix     = ".code"
	tempPrefix = "put-"
	tempSuffix = ".tmp"

	block = 4096      // of a file system
	stale = time.Hour // since a file that is not complete was last written
)

// A Key says what the data was made of.
type Key [sha256.Size]byte

// KeyOf returns the key of a list of texts. Other lists have other keys.
func KeyOf(parts ...string) Key {
	h := sha256.New()
	var n [8]byte
	for _, s := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return Key(h.Sum(nil))
}

// A Cache is a folder, which Put makes. Any number of them may be of one folder.
type Cache struct {
	Dir string
	Max int64 // bytes of all files
}

// errTooLarge is data that would not be within the bound by itself.
var errTooLarge = errors.New("more than the cache may have")

// name returns the name of a key's file.
func (k Key) name() string { return hex.EncodeToString(k[:]) + suffix }

// open opens the folder, unless others may have written to it. The folder is looked at once it is
// open, because another one may take its name.
func (c Cache) open() (*os.Root, error) {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, printable.Error(err)
	}
	fi, err := root.Stat(".")
	if err == nil {
		err = ownfolder.Trusted(fi)
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("the folder %s is not used: %w; name a folder that only this user can write to", printable.Text(c.Dir), err)
	}
	return root, nil
}

// Get returns the data that was put last. It returns false if there is none, or none that can be
// read and trusted.
func (c Cache) Get(key Key) (data []byte, ok bool) {
	root, err := c.open()
	if err != nil {
		return nil, false
	}
	defer root.Close()
	var b []byte
	err = busyfile.Retry(func() (err error) {
		b, err = c.read(root, key.name())
		return err
	})
	if err != nil || len(b) < header {
		return nil, false
	}
	data = b[header:]
	if !bytes.Equal(b[:header], head(key, data)) {
		return nil, false
	}
	now := time.Now()
	root.Chtimes(key.name(), now, now) // in a folder that cannot be written it gets older than it is
	return data, true
}

// errNoEntry is a file that is no entry.
var errNoEntry = errors.New("not an entry")

// read reads an entry's file.
func (c Cache) read(root *os.Root, name string) ([]byte, error) {
	if fi, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, errNoEntry
	}
	f, err := root.OpenFile(name, os.O_RDONLY|regular.Nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() < int64(header) || fi.Size() > c.Max || ownfolder.Trusted(fi) != nil {
		return nil, errNoEntry
	}
	b := make([]byte, fi.Size())
	_, err = io.ReadFull(f, b)
	return b, err
}

// head returns what is before the data in a file.
func head(key Key, data []byte) []byte {
	b := make([]byte, 0, header)
	b = append(b, magic...)
	b = append(b, key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	h := sha256.New()
	h.Write(key[:])
	h.Write(data)
	return h.Sum(b)
}

// Put keeps data. An error says why it is not kept; nothing else has changed then.
func (c Cache) Put(key Key, data []byte) error {
	if size := onDisk(int64(header + len(data))); size > c.Max {
		return fmt.Errorf("%d bytes: %w, which is %d", size, errTooLarge, c.Max)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return printable.Error(err)
	}
	root, err := c.open()
	if err != nil {
		return err
	}
	defer root.Close()
	f, temp, err := begin(root)
	if err != nil {
		return err
	}
	_, err = f.Write(append(head(key, data), data...))
	if err == nil {
		err = busyfile.Retry(func() error { return root.Rename(temp, key.name()) })
	}
	if err != nil {
		root.Remove(temp)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	c.trim(root, key.name())
	return nil
}

// begin makes a file that is locked until it is closed, so that no other process takes it for one
// that was left behind.
func begin(root *os.Root) (f *os.File, name string, err error) {
	for range 100 {
		name = tempPrefix + rand.Text() + tempSuffix
		f, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, "", err
		}
		err = filelock.Try(f)
		if !errors.Is(err, filelock.ErrLocked) { // a file system without locks is good enough
			if err = filelock.Named(root, f, name); err == nil {
				return f, name, nil
			}
		}
		f.Close() // somebody has found it not locked yet, and removes it
	}
	return nil, "", fmt.Errorf("cannot make a file: %w", err)
}

// onDisk returns how much a file of so many bytes takes.
func onDisk(size int64) int64 { return (size + block - 1) / block * block }

// trim removes entries, those first that were not used for the longest time, until the rest is
// within the bound. It leaves one that was just put.
func (c Cache) trim(root *os.Root, but string) {
	files, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	var entries []fs.FileInfo
	var total int64
	for _, f := range files {
		entry := isEntry(f.Name())
		temp := strings.HasPrefix(f.Name(), tempPrefix) && strings.HasSuffix(f.Name(), tempSuffix)
		if !entry && !temp {
			continue
		}
		fi, err := root.Lstat(f.Name())
		if err != nil || !fi.Mode().IsRegular() {
			continue // removed meanwhile, or nobody's
		}
		if temp {
			discard(root, fi)
			continue
		}
		total += onDisk(fi.Size())
		if f.Name() != but {
			entries = append(entries, fi)
		}
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, fi := range entries {
		if total <= c.Max {
			return
		}
		if err := root.Remove(fi.Name()); err == nil || errors.Is(err, fs.ErrNotExist) {
			total -= onDisk(fi.Size())
		}
	}
}

// discard removes a file that is not complete, unless a process is writing it: it has locked it.
// Where there are no locks, a process that has not written for long counts as ended.
func discard(root *os.Root, fi fs.FileInfo) {
	f, err := root.OpenFile(fi.Name(), os.O_WRONLY|regular.Nonblock, 0)
	if err != nil {
		return
	}
	defer f.Close()
	switch err := filelock.Try(f); {
	case errors.Is(err, filelock.ErrLocked):
		return
	case err != nil && time.Since(fi.ModTime()) <= stale:
		return
	}
	if filelock.Named(root, f, fi.Name()) == nil { // with the lock the name can no longer go to an entry
		root.Remove(fi.Name())
	}
}

// isEntry reports whether a file's name is a key.
func isEntry(name string) bool {
	digits, ok := strings.CutSuffix(name, suffix)
	key, err := hex.DecodeString(digits)
	return ok && err == nil && len(key) == len(Key{})
}
