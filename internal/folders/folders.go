// Package folders names folders by patterns, in which a library or a header is looked for.
package folders

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// Variable is the environment variable with folders to look in before all others, as a pattern.
const Variable = "$PUREGPU_LIBRARY_PATH"

// multiarch is what Debian and others call this platform in names of folders: $multiarch.
var multiarch = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]

// Expand replaces $VAR in a pattern by the value, which is no pattern itself. It returns nothing if a
// variable is unset or empty: "$ROCM_PATH/lib" must not become "/lib". A variable that is all of the
// pattern may have several folders, as PATH has, each of which is as [Named] returns it.
func Expand(pattern string) []string {
	list := strings.HasPrefix(pattern, "$") && !strings.ContainsAny(pattern, `/\`)
	ok := true
	expanded := os.Expand(pattern, func(name string) string {
		v := multiarch
		if name != "multiarch" {
			v = secureenv.Get(name)
		}
		if v == "" {
			ok = false
		}
		if list {
			return v
		}
		return Quote(v)
	})
	switch {
	case !ok:
		return nil
	case list:
		var named []string
		for _, d := range filepath.SplitList(expanded) {
			if d != "" {
				named = append(named, Named(d))
			}
		}
		return named
	}
	return []string{expanded}
}

// Named returns the pattern for a folder that a person has named: of that folder alone, if it is
// there, or else the name as a pattern.
func Named(dir string) string {
	if _, err := os.Stat(dir); err == nil {
		return Quote(dir)
	}
	return dir
}

// Quote returns the pattern that only a path itself matches. On Windows a backslash separates, and
// escapes nothing.
func Quote(path string) string {
	if filepath.Separator != '\\' {
		path = strings.NewReplacer(`\`, `[\\]`, "[", "[[]").Replace(path)
	} else {
		path = strings.ReplaceAll(path, "[", "[[]")
	}
	return strings.NewReplacer("*", "[*]", "?", "[?]").Replace(path)
}

// Unquote returns a pattern as people write it, without what [Quote] added.
func Unquote(pattern string) string {
	return strings.NewReplacer("[*]", "*", "[?]", "?", "[[]", "[", `[\\]`, `\`).Replace(pattern)
}

// Match returns the folders that match a pattern of [filepath.Glob], highest version first. A pattern
// without *, ? and [ is itself.
func Match(pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return compareNatural(b, a) })
	return dirs
}

// compareNatural compares strings so that runs of digits count as numbers.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			p, q := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if c := cmp.Compare(a[0], b[0]); c != 0 {
			return c
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns the length of the run of digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
