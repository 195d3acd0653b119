// Package folders finds the folders that may hold a library or a header, by patterns.
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

// Variable is a pattern for the folders to search first: an environment variable that lists them.
const Variable = "$PUREGPU_LIBRARY_PATH"

// multiarch is the value of $multiarch, Debian's name of this platform in folder names.
var multiarch = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]

// Expand replaces $VAR in a pattern by the variable's value, taken literally. It returns nothing if
// a variable is unset or empty: "$ROCM_PATH/lib" must not become "/lib". If the pattern is only a
// variable, its value may list several folders, as PATH does; each folder becomes a pattern as by
// [Named].
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

// Named returns the pattern for a folder that a user has named. If the folder exists, the pattern
// matches only that folder; otherwise the name is the pattern.
func Named(dir string) string {
	if _, err := os.Stat(dir); err == nil {
		return Quote(dir)
	}
	return dir
}

// Quote returns the pattern that matches only path. On Windows a backslash is a separator and does
// not escape.
func Quote(path string) string {
	if filepath.Separator != '\\' {
		path = strings.NewReplacer(`\`, `[\\]`, "[", "[[]").Replace(path)
	} else {
		path = strings.ReplaceAll(path, "[", "[[]")
	}
	return strings.NewReplacer("*", "[*]", "?", "[?]").Replace(path)
}

// Unquote removes the escapes that [Quote] added to a pattern, for messages.
func Unquote(pattern string) string {
	return strings.NewReplacer("[*]", "*", "[?]", "?", "[[]", "[", `[\\]`, `\`).Replace(pattern)
}

// Match returns the folders that match a pattern of [filepath.Glob], highest version first. A
// pattern without *, ? and [ matches itself.
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

// digits returns the length of the run of digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
