// Package diskcache is a cache on disk: data by key, in a folder that several processes may use at
// once. The size of the cache is limited.
//
// # File format
//
// An entry is a file whose name is its key. The file begins with a header: a magic number for the
// format, the key, the length of the data, and a checksum of key and data. Get checks all of this.
// If something is wrong, the file was cut off, renamed or written by something else. Then Get finds
// nothing, and the next Put replaces the file.
//
// # The folder
//
// A user who can write to the folder decides which data Get returns, and the data may be code. So
// the package refuses a folder that other users can write to, or that belongs to another user,
// unless that is root. In the same way Get ignores an entry that other users can write to, or that
// belongs to another user, unless that is root.
//
// # Several processes
//
// Put writes a temporary file and renames it. So a reader finds a whole entry, the old one or the
// new one. If several processes put the same key at once, they write the same data, and one of
// their files stays. If the file system has locks, Put keeps its temporary file locked until the
// file has its new name.
//
// # Size limit
//
// Get sets the modification time of the entry to now. Put computes the total size of all entries,
// each rounded up to 4 KiB. Put then removes the least recently used entries until the total is
// within the limit. Put also removes temporary files of processes that ended while they wrote:
// files that nobody has locked or, if the file system has no locks, files that nobody has written
// for some time. Temporary files do not count towards the limit. Files with other names are left
// alone.
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

	block = 4096      // assumed block size of the file system
	stale = time.Hour // minimum age of a temporary file that may be removed if the file system has no locks
)

// A Key is a hash of everything that the data was made from.
type Key [sha256.Size]byte

// KeyOf returns the key of a list of texts. Different lists have different keys.
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

// A Cache is a folder with a size limit. Put creates the folder if necessary. Several Caches may
// use the same folder.
type Cache struct {
	Dir string
	Max int64 // limit of the total size of all entries, in bytes
}

// errTooLarge is the error of Put for an entry that is larger than the limit.
var errTooLarge = errors.New("more than the cache may have")

// name returns the name of the file of an entry.
func (k Key) name() string { return hex.EncodeToString(k[:]) + suffix }

// open opens the folder. It returns an error if other users may have written to the folder. It
// checks the folder after opening it: between a check by name and the opening somebody could
// replace the folder.
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

// Get returns the data of an entry. It returns false if there is no entry, or if the entry is
// damaged or cannot be read or trusted.
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
	// Ignore an error: in a read-only folder the entry only seems older than it is.
	root.Chtimes(key.name(), now, now)
	return data, true
}

// errNoEntry is the error of read for a file that cannot be an entry.
var errNoEntry = errors.New("not an entry")

// read returns the contents of the file of an entry, including the header.
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

// head returns the header of an entry.
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

// Put stores data under key, and removes the least recently used entries if the cache gets too
// large. If Put cannot write its file or rename it, the entry that key had before stays. If closing
// the file fails, the file system may have lost some of the data: then the entry is damaged.
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

// begin creates a temporary file. If the file system has locks, the file is locked until it is
// closed, so that no other process mistakes the file for a file that was left behind.
func begin(root *os.Root) (f *os.File, name string, err error) {
	for range 100 {
		name = tempPrefix + rand.Text() + tempSuffix
		f, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, "", err
		}
		err = filelock.Try(f)
		if !errors.Is(err, filelock.ErrLocked) {
			// Without locks in the file system, go on without one.
			if err = filelock.Named(root, f, name); err == nil {
				return f, name, nil
			}
		}
		f.Close() // another process has locked the new file first, and removes it
	}
	return nil, "", fmt.Errorf("cannot make a file: %w", err)
}

// onDisk returns the space that a file of the given size takes on disk.
func onDisk(size int64) int64 { return (size + block - 1) / block * block }

// trim removes the least recently used entries until the total size is within the limit. The
// parameter newest is the file name of the entry that was just put, which trim does not remove.
func (c Cache) trim(root *os.Root, newest string) {
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
			continue // another process has removed the file, or the file is not of this package
		}
		if temp {
			discard(root, fi)
			continue
		}
		total += onDisk(fi.Size())
		if f.Name() != newest {
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

// discard removes a temporary file, unless a process is still writing it and so has locked it. If
// the file system has no locks, discard removes the file if nobody has written it for longer than
// the constant stale.
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
	// A writer renames its file while it holds the lock. So the file cannot become an entry now.
	if filelock.Named(root, f, fi.Name()) == nil {
		root.Remove(fi.Name())
	}
}

// isEntry reports whether name is the file name of an entry.
func isEntry(name string) bool {
	digits, ok := strings.CutSuffix(name, suffix)
	key, err := hex.DecodeString(digits)
	return ok && err == nil && len(key) == len(Key{})
}
