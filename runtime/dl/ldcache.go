package dl

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/regular"
)

// caches are files in which ldconfig has written where libraries are. The system loader reads one of
// them. It may be another one than the system's: a loader of Nix, Guix or Conda, with which a program
// may be linked, has a cache of its own, or none.
var caches = []string{
	"etc/ld.so.cache",
	"var/cache/ldconfig/ld.so.cache", // Clear Linux
	"run/flatpak/ld.so.cache",        // inside of Flatpak
}

// cached appends the files that caches below a root folder tell of.
func (s *Spec) cached(cs []candidate, root string) []candidate {
	if runtime.GOOS != "linux" {
		return cs
	}
	var have []string
	for _, c := range caches {
		path := filepath.Join(root, c)
		data, err := regular.ReadFile(path)
		if err != nil {
			continue
		}
		for _, name := range s.Names {
			for _, file := range lookUp(data, name, runtime.GOARCH) {
				if !slices.Contains(have, file) {
					have = append(have, file)
					cs = append(cs, candidate{path: file, source: path})
				}
			}
		}
	}
	return cs
}

// The format of a cache, of which glibc has written no other since 2.32. Older ones may put the cache in an older
// format before it, which has the same entries.
const (
	cacheMagic = "glibc-ld.so.cache1.1"
	cacheHead  = len(cacheMagic) + 28 // number of entries, length of the texts, and what is not read
	cacheEntry = 24                   // flags, offsets of name and path, what is not read, and the hardware needed
)

// cacheFlags are those of a library for glibc on a platform.
var cacheFlags = map[string]uint32{"amd64": 0x0303, "arm64": 0x0a03}

// lookUp returns the paths that a cache has for a name, in order. It passes over libraries for some
// processors only, as in a folder glibc-hwcaps: this one may lack what they need.
func lookUp(cache []byte, name, goarch string) (paths []string) {
	at := bytes.Index(cache, []byte(cacheMagic))
	if at < 0 || at > 0 && !bytes.HasPrefix(cache, []byte("ld.so-1.7.0")) || len(cache) < at+cacheHead {
		return nil
	}
	cache = cache[at:]
	order := binary.LittleEndian
	text := func(offset uint32) string {
		if uint64(offset) >= uint64(len(cache)) {
			return ""
		}
		t, _, ended := bytes.Cut(cache[offset:], []byte{0})
		if !ended {
			return ""
		}
		return string(t)
	}
	entries := cache[cacheHead:]
	for n := order.Uint32(cache[len(cacheMagic):]); n > 0 && len(entries) >= cacheEntry; n-- {
		if order.Uint32(entries) == cacheFlags[goarch] && order.Uint64(entries[16:]) == 0 && text(order.Uint32(entries[4:])) == name {
			if p := text(order.Uint32(entries[8:])); strings.HasPrefix(p, "/") && !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
		entries = entries[cacheEntry:]
	}
	return paths
}
