// Package tried adds to an error of a library which files were found for it, and what each of them
// answered. With several files of one name the first question of a reader is which one failed.
package tried

import (
	"errors"
	"strings"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A Library is a [dl.Library], as far as this package asks it.
type Library interface {
	Attempts() []dl.Attempt
	Path() string
}

// Lines returns a line for each file that was found, with its answer. Files that do not exist have
// none. err is the answer of a file that Open took without a question.
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

// NotReady returns what the file answered that Open took although none is ready, with the lines of all
// files. It returns nil if the file is ready, and if the file was named, because Open does not ask it.
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

// listed is an error with the files that were tried.
type listed struct {
	error
	files string
}

func (l *listed) Error() string { return l.error.Error() + l.files }
func (l *listed) Unwrap() error { return l.error }
