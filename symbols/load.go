package symbols

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
)

//go:embed tables/*.json overlay/*.json
var files embed.FS

// Names lists the libraries that have a table.
func Names() []string { return []string{"cuda", "hip", "nccl"} }

var loaded = map[string]func() (*Library, error){
	"cuda": sync.OnceValues(func() (*Library, error) { return load("cuda") }),
	"hip":  sync.OnceValues(func() (*Library, error) { return load("hip") }),
	"nccl": sync.OnceValues(func() (*Library, error) { return load("nccl") }),
}

// Load returns an embedded library: "cuda", "hip" or "nccl". It decodes and checks the table on first use.
// It is safe for concurrent use, and the result must not be changed.
func Load(name string) (*Library, error) {
	f, ok := loaded[name]
	if !ok {
		return nil, fmt.Errorf("symbols: no library %q; there are %v", name, Names())
	}
	return f()
}

func load(name string) (*Library, error) {
	table, err := files.ReadFile("tables/" + name + ".json")
	if err != nil {
		return nil, err
	}
	overlay, err := files.ReadFile("overlay/" + name + ".json")
	if err != nil {
		return nil, err
	}
	return Decode("tables/"+name+".json", table, "overlay/"+name+".json", overlay)
}

// Decode reads a table and its overlay, checks them against each other, and joins them. Its error is an [*Error], or a
// [errors.Join] of several, and names the file, the record and the field.
func Decode(tableFile string, table []byte, overlayFile string, overlay []byte) (*Library, error) {
	t, err := DecodeTable(tableFile, table)
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
	return join(t, o), nil
}

// DecodeTable reads a table alone and checks it.
func DecodeTable(file string, text []byte) (*Table, error) {
	t := &Table{}
	if err := decode(file, text, t); err != nil {
		return nil, err
	}
	return t, checkTable(file, t)
}

// An Error says what is wrong with a table or an overlay, and where.
type Error struct {
	File   string
	Record string // "function cuCtxCreate_v4", or a position where the text cannot be read
	Field  string // "" where the record as a whole is meant
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
	err := d.Decode(v)
	if err == nil {
		if _, err := d.Token(); err != io.EOF {
			return &Error{File: file, Record: position(text, d.InputOffset()), Msg: "there is more after the end of the record"}
		}
		return nil
	}
	e := &Error{File: file, Record: position(text, d.InputOffset()), Msg: err.Error()}
	switch err := err.(type) {
	case *json.SyntaxError:
		e.Record = position(text, err.Offset)
	case *json.UnmarshalTypeError:
		e.Record, e.Field = position(text, err.Offset), err.Field
	}
	return e
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
