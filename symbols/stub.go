package symbols

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Stub is an entry of an overlay section that a person must complete.
type Stub struct {
	Section string // such as "params"
	Entry   any
}

// WithStubs adds entries, one a line, to their sections of an overlay. It adds missing sections. An
// entry becomes the last of its section, or of "sets" the last but one. If the overlay has spaces
// after colons and commas, the entries have them too. The rest of the overlay stays unchanged.
func WithStubs(overlay []byte, list []Stub) ([]byte, error) {
	spaced := bytes.Contains(overlay, []byte(`": "`))
	for _, s := range list {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(s.Entry); err != nil {
			return nil, err
		}
		entry := strings.TrimSpace(line.String())
		if spaced {
			entry = withSpaces(entry)
		}
		entry = "  " + entry
		start := bytes.Index(overlay, []byte(`"`+s.Section+`": [`))
		if start < 0 {
			last := bytes.LastIndexByte(overlay, '}')
			if last < 0 {
				return nil, fmt.Errorf("no section %q, and no closing brace to add it before", s.Section)
			}
			before := bytes.TrimRight(overlay[:last], " \t\r\n")
			comma := ","
			if bytes.HasSuffix(before, []byte("{")) {
				comma = ""
			}
			section := comma + "\n\"" + s.Section + "\": [\n" + entry + "\n]\n"
			overlay = slices.Concat(before, []byte(section), overlay[last:])
			continue
		}
		list := start + len(`"`+s.Section+`": `)
		var text json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(overlay[list:])).Decode(&text); err != nil {
			return nil, fmt.Errorf("section %q: %w", s.Section, err)
		}
		end := list + len(text) - 1 // position of the closing bracket
		before := bytes.TrimRight(overlay[:end], " \t\r\n")
		comma := ","
		if bytes.HasSuffix(before, []byte("[")) {
			comma = ""
		}
		if last := bytes.LastIndexByte(before, '\n'); s.Section == "sets" && last > start {
			overlay = slices.Concat(overlay[:last], []byte("\n"+entry+","), overlay[last:])
			continue
		}
		overlay = slices.Concat(before, []byte(comma+"\n"+entry+"\n"), overlay[end:])
	}
	return overlay, nil
}

// withSpaces writes a space after each colon and comma outside the strings of a JSON text.
func withSpaces(text string) string {
	var b strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		b.WriteByte(text[i])
		switch c := text[i]; {
		case c == '\\':
			i++
			b.WriteByte(text[i])
		case c == '"':
			inside = !inside
		case !inside && (c == ':' || c == ','):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
