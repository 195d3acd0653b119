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

// caches are files in which ldconfig records the paths of libraries. The system loader reads only
// its own cache. A program linked with a loader of Nix, Guix or Conda has another cache, or none.
var caches = []string{
	"etc/ld.so.cache",
	"var/cache/ldconfig/ld.so.cache", // Clear Linux
	"run/flatpak/ld.so.cache",        // inside Flatpak
}

// cached appends the paths that the caches below a root folder list for the library's names.
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

// These constants describe the format of a cache. Since 2.32 glibc writes only this format. Older
// releases may write the same entries in an older format first, and then in this format.
const (
	cacheMagic = "glibc-ld.so.cache1.1"
	cacheHead  = len(cacheMagic) + 28 // number of entries, length of the texts, and unused fields
	cacheEntry = 24                   // flags, offsets of name and path, an unused field, and the needed hardware
)

// cacheFlags are, for each platform, the flags of a cache entry for a library that uses glibc.
var cacheFlags = map[string]uint32{"amd64": 0x0303, "arm64": 0x0a03}

// lookUp returns the paths in a cache for a name, in order. It skips libraries for special
// processors, as in a folder glibc-hwcaps: this processor may lack their instructions.
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
