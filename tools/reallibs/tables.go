package main

import (
	"bytes"
	"fmt"
	"strings"
)

// A row is a release in the tables.
type row struct {
	lib  *library
	name string
	*facts
}

// releaseTable returns the table of docs/releases.md.
func releaseTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| library | release | tells | exports | bound | resolved | absent | refused |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.lib.unpackaged {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | ", r.lib.name, r.name, r.lib.format(r.Version), len(r.Exports), r.Bound)
		if r.TooOld != "" {
			b.WriteString("too old | | |\n")
			continue
		}
		fmt.Fprintf(&b, "%d | %d | ", len(r.Resolved), r.Absent)
		switch n := len(r.Refused); {
		case n == 0:
			b.WriteString("0 |\n")
		default:
			fmt.Fprintf(&b, "%d: `%s` |\n", n, strings.Join(r.Refused, "`, `"))
		}
	}
	return b.String()
}

// libraryTable returns the table of the guide, a line for each library.
func libraryTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| library | package | functions | resolve, in each release | run |\n|---|---|---|---|---|\n")
	end := func(r row) { fmt.Fprintf(&b, " | %s |\n", r.lib.run) }
	for i, r := range rows {
		if i == 0 || rows[i-1].lib != r.lib {
			if i > 0 {
				end(rows[i-1])
			}
			fmt.Fprintf(&b, "| %s | `%s` | %d | ", r.lib.name, r.lib.pkg, r.Bound)
		} else {
			b.WriteString(", ")
		}
		switch {
		case r.lib.unpackaged:
			b.WriteString("Debian has no build")
		case r.TooOld != "":
			fmt.Fprintf(&b, "%s: too old", r.name)
		case len(r.Refused) > 0:
			fmt.Fprintf(&b, "%s: %d and %d refused", r.name, len(r.Resolved), len(r.Refused))
		default:
			fmt.Fprintf(&b, "%s: %d", r.name, len(r.Resolved))
		}
	}
	if len(rows) > 0 {
		end(rows[len(rows)-1])
	}
	return b.String()
}

// The marks around the generated part of a page.
const (
	markBegin = "<!-- go test ./tools/reallibs -update writes what follows -->\n"
	markEnd   = "<!-- end of what is written -->\n"
)

// replaceBlock returns a page with the text between the marks replaced.
func replaceBlock(page []byte, block string) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(markBegin))
	_, after, too := bytes.Cut(rest, []byte(markEnd))
	if !ok || !too {
		return nil, fmt.Errorf("the page has no line %q, or no line %q after it", strings.TrimSpace(markBegin), strings.TrimSpace(markEnd))
	}
	return []byte(string(before) + markBegin + block + markEnd + string(after)), nil
}
