package main

import (
	"fmt"
	"io"
	"os"
)

// A progress is a line on a terminal with the name of the running bench.
type progress struct {
	w io.Writer // nil if there is no terminal
}

func newProgress(w io.Writer) *progress {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &progress{w}
		}
	}
	return &progress{}
}

func (p *progress) show(what string, round, rounds int) {
	if p.w != nil {
		fmt.Fprintf(p.w, "\r\x1b[K%s: round %d of %d", what, round, rounds)
	}
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
