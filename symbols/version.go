package symbols

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Version is a release of a library. The zero Version is unknown.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads "12", "12.5" or "2.28.3".
func ParseVersion(s string) (Version, error) {
	parts := strings.Split(s, ".")
	if len(parts) > 3 {
		return Version{}, fmt.Errorf("version %q: more than three numbers", s)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return Version{}, fmt.Errorf("version %q: %q is not a number", s, p)
		}
		n[i] = int(v)
	}
	return Version{n[0], n[1], n[2]}, nil
}

// String writes major.minor, and the patch level if it is not zero.
func (v Version) String() string {
	if v.Patch != 0 {
		return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// Compare orders versions by age: negative if v is older than w, zero if they are the same.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// IsZero reports whether the version is not known.
func (v Version) IsZero() bool { return v == Version{} }

// MarshalText writes the form that [ParseVersion] reads.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the form that [ParseVersion] reads.
func (v *Version) UnmarshalText(b []byte) (err error) {
	*v, err = ParseVersion(string(b))
	return err
}
