// Package diskcache keeps data in a folder, by key, for several processes at once, up to a number of bytes.
//
// # What a file is
//
// An entry is a file whose name is its key. It begins with a header: a magic number, which tells the format of the file, the key, the
// length of the data, and a checksum of key and data. A file that is not all of that is no entry: it was cut off, has another key's
// name, or is somebody else's. Get finds nothing then, and the next Put replaces it.
//
// # Several processes
//
// Put writes to a file of another name, and renames it: whoever reads finds an entry as a whole, the old one or the new one. There are no
// locks. Several that put the same key at once write the same data, and one of their files stays.
//
// # The bound
//
// Get sets the time of the file. Put adds up the folder, of which each file takes whole blocks of 4 KiB, and removes what was used the
// longest time ago until the rest is within the bound, as well as files of processes that ended while they wrote. Files of other names are left alone.
package diskcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/puregpu/puregpu/internal/busyfile"
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

func (c Cache) file(key Key) string { return filepath.Join(c.Dir, hex.EncodeToString(key[:])+suffix) }

// Get returns the data that was put last. That there is none, and that it cannot be read, is the same.
func (c Cache) Get(key Key) (data []byte, ok bool) {
	name := c.file(key)
	var b []byte
	err := busyfile.Retry(func() error {
		fi, err := regular.Stat(name)
		if err == nil && fi.Size() >= int64(header) && fi.Size() <= c.Max {
			b, err = regular.ReadFile(name)
		}
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
	os.Chtimes(name, now, now) // in a folder that cannot be written it gets older than it is
	return data, true
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
		return err
	}
	f, err := os.CreateTemp(c.Dir, tempPrefix+"*"+tempSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(append(head(key, data), data...))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = busyfile.Retry(func() error { return os.Rename(f.Name(), c.file(key)) })
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	c.trim(filepath.Base(c.file(key)))
	return nil
}

// onDisk returns how much a file of so many bytes takes.
func onDisk(size int64) int64 { return (size + block - 1) / block * block }

// trim removes entries, those first that were used the longest time ago, until the rest is within the bound. It leaves one that was
// just put.
func (c Cache) trim(but string) {
	files, err := os.ReadDir(c.Dir)
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
		fi, err := f.Info()
		if err != nil || !fi.Mode().IsRegular() {
			continue // removed meanwhile, or nobody's
		}
		if temp && time.Since(fi.ModTime()) > stale && os.Remove(filepath.Join(c.Dir, f.Name())) == nil {
			continue
		}
		total += onDisk(fi.Size())
		if entry && f.Name() != but {
			entries = append(entries, fi)
		}
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, fi := range entries {
		if total <= c.Max {
			return
		}
		if err := os.Remove(filepath.Join(c.Dir, fi.Name())); err == nil || errors.Is(err, fs.ErrNotExist) {
			total -= onDisk(fi.Size())
		}
	}
}

// isEntry reports whether a file's name is a key.
func isEntry(name string) bool {
	digits, ok := strings.CutSuffix(name, suffix)
	key, err := hex.DecodeString(digits)
	return ok && err == nil && len(key) == len(Key{})
}
