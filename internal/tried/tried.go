// Package tried adds to a library's error the files found for the library and the answer of each.
// If there are several files of one name, a reader first needs to know which one failed.
package tried

import (
	"errors"
	"strings"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A Library is the part of [dl.Library] that this package uses.
type Library interface {
	Attempts() []dl.Attempt
	Path() string
}

// Lines returns a line with the answer of each file that was found. Missing files have no line. err
// is the answer of a file that Open accepted without asking.
func Lines(attempts []dl.Attempt, err error) string {
	var b strings.Builder
	for _, a := range attempts {
		switch {
		case a.Err == nil:
			a.Err = err
		case errors.Is(a.Err, dl.ErrNotFound):
			continue
		}
		b.WriteString("\n\t" + a.String())
	}
	return b.String()
}

// With returns an error of l with the lines of [Lines] after it. A nil error stays nil.
func With(err error, l Library) error {
	if err == nil {
		return nil
	}
	return &listed{err, Lines(l.Attempts(), err)}
}

// NotReady returns the answer of the file that Open accepted although no file is ready, with the
// lines of all files. It returns nil if the file is ready, or if it was named explicitly, because
// Open does not ask it then.
func NotReady(l Library) error {
	attempts := l.Attempts()
	var answer error
	for _, a := range attempts {
		switch {
		case a.Err == nil:
			return nil
		case a.File == l.Path():
			answer = a.Err
		}
	}
	if answer == nil {
		return nil
	}
	return With(answer, l)
}

// listed is an error with the list of files tried.
type listed struct {
	error
	files string
}

func (l *listed) Error() string { return l.error.Error() + l.files }
func (l *listed) Unwrap() error { return l.error }
