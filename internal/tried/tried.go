// Package tried adds to a library's error the files that were found for the library, with the
// result for each file. If several files have the same name, a reader needs to know which one
// failed.
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

// Lines returns a line for each file that was found, with its error. Missing files have no line.
// err is the error of the file that Open accepted.
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

// NotReady returns an error if Open accepted a file although no file is ready: the error of that
// file, with the lines of all files. Otherwise it returns nil, also if the user named the file:
// Open accepts such a file without trying it.
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
