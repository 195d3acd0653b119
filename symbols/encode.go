package symbols

import (
	"bytes"
	"encoding/json"
)

// Encode writes a table in its canonical form: one record a line, in the order of the headers.
func Encode(t *Table) ([]byte, error) {
	var b bytes.Buffer
	var fail error
	line := func(v any) []byte {
		var l bytes.Buffer
		e := json.NewEncoder(&l)
		e.SetEscapeHTML(false) // a C type may hold & or <
		if err := e.Encode(v); err != nil && fail == nil {
			fail = err
		}
		return bytes.TrimSpace(l.Bytes())
	}
	field := func(name string, v any) {
		b.WriteString("\"" + name + "\": ")
		b.Write(line(v))
		b.WriteString(",\n")
	}
	b.WriteString("{\n")
	field("library", t.Library)
	field("version", t.Version)
	if len(t.Releases) > 0 {
		field("releases", t.Releases)
	}
	lines(&b, "headers", t.Headers, line)
	if len(t.Borrowed) > 0 {
		lines(&b, "borrowed", t.Borrowed, line)
	}
	lines(&b, "handles", t.Handles, line)
	lines(&b, "scalars", t.Scalars, line)
	lines(&b, "aliases", t.Aliases, line)
	lines(&b, "enums", t.Enums, line)
	lines(&b, "structs", t.Structs, line)
	lines(&b, "callbacks", t.Callbacks, line)
	lines(&b, "constants", t.Constants, line)
	lines(&b, "functions", t.Functions, line)
	if len(t.Refused) > 0 {
		lines(&b, "refused", t.Refused, line)
	}
	b.Truncate(b.Len() - len(",\n"))
	b.WriteString("\n}\n")
	return b.Bytes(), fail
}

func lines[T any](b *bytes.Buffer, name string, records []T, line func(any) []byte) {
	b.WriteString("\"" + name + "\": [")
	for i, r := range records {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  ")
		b.Write(line(r))
	}
	b.WriteString("\n],\n")
}
