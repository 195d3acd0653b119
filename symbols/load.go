package symbols

import (
	"bytes"
	"embed"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed */library.json */table.json */overlay.json
var files embed.FS

// Names lists the embedded libraries. The files of each are in a folder of that name.
func Names() []string { return slices.Clone(names()) }

var names = sync.OnceValue(func() []string {
	found, _ := fs.Glob(files, "*/library.json") // no error: the pattern is valid
	for i, file := range found {
		found[i] = path.Dir(file)
	}
	return found
})

var loaded sync.Map // by name, a func() (*Library, error) that decodes the library when it is first called

// Load returns an embedded library, such as "cuda". Load decodes and checks the library's files on
// first use. It is safe for concurrent use, and the result must not be changed.
func Load(name string) (*Library, error) {
	if !slices.Contains(names(), name) {
		return nil, fmt.Errorf("symbols: no library %q; there are %v", name, names())
	}
	f, _ := loaded.LoadOrStore(name, sync.OnceValues(func() (*Library, error) { return Read(files, name) }))
	return f.(func() (*Library, error))()
}

// Describe returns only the description of an embedded library, and reads no table.
func Describe(name string) (*Description, error) {
	if !slices.Contains(names(), name) {
		return nil, fmt.Errorf("symbols: no library %q; there are %v", name, names())
	}
	return ReadDescription(files, name)
}

// Read reads the library whose library.json, table.json and overlay.json are in a folder, and
// checks them against each other.
func Read(fsys fs.FS, dir string) (*Library, error) {
	d, err := ReadDescription(fsys, dir)
	if err != nil {
		return nil, err
	}
	tableFile, overlayFile := path.Join(dir, "table.json"), path.Join(dir, "overlay.json")
	table, err := fs.ReadFile(fsys, tableFile)
	if err != nil {
		return nil, err
	}
	overlay, err := fs.ReadFile(fsys, overlayFile)
	if err != nil {
		return nil, err
	}
	l, err := Decode(tableFile, table, overlayFile, overlay)
	if err != nil {
		return nil, err
	}
	return l, l.Describe(path.Join(dir, "library.json"), d)
}

// Describe attaches a description from a file to the library. It checks the description against the
// table, and applies the description's rules.
func (l *Library) Describe(file string, d *Description) error {
	c := &checker{file: file}
	c.fits(d, l.Table)
	*l = *join(l.Table, l.Overlay, d)
	return c.err()
}

// ReadDescription reads the library.json of a folder.
func ReadDescription(fsys fs.FS, dir string) (*Description, error) {
	file := path.Join(dir, "library.json")
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	return DecodeDescription(file, text)
}

// Decode reads a table and its overlay, checks them against each other, and joins them. The library
// has no description. The error is an [*Error], or several joined by [errors.Join]. Each [Error]
// names the file, the record and the field.
func Decode(tableFile string, table []byte, overlayFile string, overlay []byte) (*Library, error) {
	return Lenders(nil).Decode(tableFile, table, overlayFile, overlay)
}

// Decode decodes a table that may use types of the lenders; see the function [Decode].
func (m Lenders) Decode(tableFile string, table []byte, overlayFile string, overlay []byte) (*Library, error) {
	t, err := m.DecodeTable(tableFile, table)
	if err != nil {
		return nil, err
	}
	o := &Overlay{}
	if err := decode(overlayFile, overlay, o); err != nil {
		return nil, err
	}
	if err := checkOverlay(overlayFile, t, o); err != nil {
		return nil, err
	}
	return join(t, o, nil), nil
}

// DecodeTable reads a table alone and checks it.
func DecodeTable(file string, text []byte) (*Table, error) {
	return Lenders(nil).DecodeTable(file, text)
}

// DecodeTable reads and checks a table that may use types of the lenders.
func (m Lenders) DecodeTable(file string, text []byte) (*Table, error) {
	t := &Table{}
	if err := decode(file, text, t); err != nil {
		return nil, err
	}
	return t, m.checkTable(file, t)
}

// An Error says what is wrong in a table, an overlay or a description, and where.
type Error struct {
	File   string
	Record string // "function cuCtxCreate_v4", or a position if the text cannot be read
	Field  string // "" for the whole record
	Msg    string
}

func (e *Error) Error() string {
	s := e.File + ": " + e.Record
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.Msg
}

func decode(file string, text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(v).(type) {
	case nil:
		if _, err := d.Token(); err != io.EOF {
			return &Error{File: file, Record: position(text, d.InputOffset()), Msg: "there is more after the end"}
		}
		return nil
	case *json.SyntaxError:
		return &Error{File: file, Record: position(text, err.Offset), Msg: err.Error()}
	default:
		if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			return &Error{File: file, Record: position(text, int64(len(text))), Msg: "the text ends too early"}
		}
		offset, field, msg := locate(bytes.TrimRight(text, " \t\r\n"), reflect.TypeOf(v).Elem(), "")
		if msg == "" { // each part can be decoded alone, so the place is unknown
			msg = err.Error()
		}
		return &Error{File: file, Record: position(text, offset), Field: field, Msg: msg}
	}
}

// locate finds the innermost part of a well-formed JSON text that does not fit its Go type. The
// JSON package does not report the place of an unknown field or of a version that cannot be read.
func locate(text []byte, t reflect.Type, field string) (offset int64, where, msg string) {
	err := strict(text, reflect.New(t).Interface())
	if err == nil {
		return 0, field, ""
	}
	d := json.NewDecoder(bytes.NewReader(text))
	first, _ := d.Token()
	_, plain := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	parts := t.Kind() == reflect.Struct && !plain && first == json.Delim('{') || t.Kind() == reflect.Slice && first == json.Delim('[')
	for i := 0; parts && d.More(); i++ {
		inner, name := t, ""
		if t.Kind() == reflect.Struct {
			key, _ := d.Token()
			name = fmt.Sprint(key)
			if field != "" {
				name = field + "." + name
			}
			var ok bool
			if inner, ok = fieldType(t, fmt.Sprint(key)); !ok {
				return d.InputOffset(), name, "there is no such field"
			}
		}
		var part json.RawMessage
		if d.Decode(&part) != nil {
			break
		}
		if t.Kind() == reflect.Slice {
			inner, name = t.Elem(), field+"["+nameIn(part, i)+"]"
		}
		if at, where, msg := locate(part, inner, name); msg != "" {
			return d.InputOffset() - int64(len(part)) + at, where, msg
		}
	}
	return 0, field, strings.TrimPrefix(err.Error(), "json: ")
}

func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// fieldType finds the field that a JSON name selects, as the JSON package does.
func fieldType(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.EqualFold(tag, name) {
			return f.Type, true
		}
	}
	return nil, false
}

// nameIn returns a record's name, or its index if the name cannot be read.
func nameIn(record []byte, i int) string {
	var names map[string]any
	if json.Unmarshal(record, &names) == nil {
		for _, key := range []string{"symbol", "name"} {
			if s, ok := names[key].(string); ok && s != "" {
				return s
			}
		}
	}
	return strconv.Itoa(i)
}

// position turns an offset into a line and column.
func position(text []byte, offset int64) string {
	head := text[:min(max(int(offset), 0), len(text))]
	line := 1 + bytes.Count(head, []byte("\n"))
	return fmt.Sprintf("line %d, column %d", line, len(head)-bytes.LastIndexByte(head, '\n'))
}

// dirs are the directions that a table may hold.
var dirs = []Dir{"", In, Out, InOut}

func knownDir(d Dir) bool { return slices.Contains(dirs, d) }
