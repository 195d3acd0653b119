package printable

import (
	"errors"
	"io/fs"
	"testing"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                           "",
		`C:\new "folder"/Größe 日本`:   `C:\new "folder"/Größe 日本`,
		"a\x1b[2Jb\nc\r\td\x00":      `a\x1b[2Jb\nc\r\td\x00`,
		"\x7f\u0085\u202e\xff\ufffd": "\\x7f\\u0085\\u202e\\xff\ufffd",
	} {
		got := Text(s)
		if got != want {
			t.Errorf("Text(%q) = %q, want %q", s, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("Text(%q) = %q", got, again)
		}
	}
}

func TestLines(t *testing.T) {
	for s, want := range map[string]string{"": "", "a\n\tb\n": "a\n\tb\n", "\x1bm\n\rb": `\x1bm` + "\n" + `\rb`} {
		if got := Lines(s); got != want {
			t.Errorf("Lines(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestError(t *testing.T) {
	plain := errors.New("plain")
	if Error(nil) != nil || Error(plain) != plain {
		t.Error("an error without control characters has changed")
	}
	err := Error(&fs.PathError{Op: "open", Path: "a\nb", Err: fs.ErrNotExist})
	if want := `open a\nb: file does not exist`; err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q, want %q", err, want)
	}
}
