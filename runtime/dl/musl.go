package dl

import (
	"errors"
	"strings"
)

// muslHint says what to do if the system loader is musl's.
const muslHint = "this process has musl for its C library, as on Alpine Linux, and GPU libraries need glibc: " +
	"run the program on a system with glibc, such as Debian or Ubuntu"

// byMusl reports whether musl's loader tried a candidate.
func byMusl(a Attempt) bool {
	e, ok := errors.AsType[*loadError](a.Err)
	return ok && e.musl
}

// explainMusl turns a message of musl's loader about path into plain words. It returns nil if the
// message is not musl's.
func explainMusl(path, words string) *loadError {
	e := &loadError{kind: ErrNotLoadable, loader: words, musl: true}
	if rest, ok := strings.CutPrefix(words, "Error loading shared library "); ok {
		// "NAME: why", or "NAME: why (needed by FILE)".
		name, why, _ := strings.Cut(rest, ": ")
		why, _, dependency := strings.Cut(why, " (needed by ")
		switch {
		case dependency && why == "No such file or directory":
			e.plain = "needs " + name + ", which was not found"
		case !dependency && name == path:
			e.loader = why
			if why == "No such file or directory" {
				e.kind = ErrNotFound
			}
		}
		return e
	}
	if rest, ok := strings.CutPrefix(words, "Error relocating "); ok {
		// "FILE: NAME: symbol not found", or another problem.
		if rest, ok := strings.CutSuffix(rest, ": symbol not found"); ok {
			e.plain = "needs function " + rest[strings.LastIndex(rest, ": ")+len(": "):] + ", which none of the libraries it depends on has"
		}
		return e
	}
	return nil
}
