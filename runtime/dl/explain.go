package dl

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/puregpu/puregpu/internal/printable"
)

// Explain returns a text of several lines for a bug report: the loaded file and why it was taken,
// its version, its sets, and its missing functions. After a failed Open the text has Open's error
// and, if the library is too old, the missing functions of the required set. Before Open the text
// only says that the library has not been opened.
func (l *Library) Explain() string {
	var b strings.Builder
	if lib := l.open.Load(); lib != nil {
		lib.explain(&b, l.heap.Load())
	} else if f := l.fail.Load(); f != nil {
		f.explain(&b)
	} else {
		b.WriteString("library: not opened yet\n")
	}
	return b.String()
}

func (f *openFail) explain(b *strings.Builder) {
	fmt.Fprintf(b, "library: %s, not open\n", f.spec.Name)
	fmt.Fprintf(b, "error: %s\n", strings.ReplaceAll(f.err.Error(), "\n", "\n\t"))
	if e, ok := f.err.(*TooOldError); ok {
		explainMissing(b, f.spec, e.Missing)
	}
}

// explainAttempts writes why the open library is not ready, if Ready returned an error, and lists
// the other candidates.
func (lib *library) explainAttempts(b *strings.Builder) {
	if err := lib.attempts[lib.taken].Err; err != nil && lib.spec.Ready != nil {
		fmt.Fprintf(b, "not ready: %v\n", err)
	}
	explainAttempts(b, "tried before:\n", lib.attempts[:lib.taken])
	explainAttempts(b, "tried after it:\n", lib.attempts[lib.taken+1:])
}

func explainAttempts(b *strings.Builder, head string, attempts []Attempt) {
	for i, a := range attempts {
		if i == 0 {
			b.WriteString(head)
		}
		fmt.Fprintf(b, "\t%v\n", a)
	}
}

func explainMissing(b *strings.Builder, spec *Spec, missing []MissingSymbol) {
	if len(missing) == 0 {
		return
	}
	b.WriteString("missing functions:\n")
	for _, m := range missing {
		fmt.Fprintf(b, "\t%s (set %s", m.Name, m.Set)
		if m.Since != 0 {
			fmt.Fprintf(b, ", since %s", spec.format(m.Since))
		}
		fmt.Fprintf(b, "): %s\n", m.Why)
	}
}

func (lib *library) explain(b *strings.Builder, heap bool) {
	spec := lib.spec
	fmt.Fprintf(b, "library: %s\n", spec.Name)
	fmt.Fprintf(b, "path: %s", printable.Text(lib.path))
	if real, err := filepath.EvalSymlinks(lib.path); err == nil && real != filepath.Clean(lib.path) {
		fmt.Fprintf(b, " -> %s", printable.Text(real))
	}
	fmt.Fprintf(b, "\nchosen: %s, as %s\n", printable.Text(lib.source), printable.Text(lib.asked))
	lib.explainAttempts(b)
	fmt.Fprintf(b, "version: %s", spec.format(lib.version))
	if lib.verErr != nil {
		fmt.Fprintf(b, " (%v)", lib.verErr)
	}
	if spec.Floor != 0 {
		fmt.Fprintf(b, ", oldest supported %s", spec.format(spec.Floor))
	}
	calls := "fast"
	switch {
	case !Fast:
		calls = "slow (this build has no fast path)"
	case heap:
		calls = "slow (heap frames, for callbacks)"
	}
	fmt.Fprintf(b, "\ncalls: %s\nsets:\n", calls)
	for i, s := range spec.Sets {
		st := SetStatus{Have: lib.have[i], Total: lib.total[i]}
		fmt.Fprintf(b, "\t%s: %v, %d of %d", s.Name, st, st.Have, st.Total)
		if s.Since != 0 {
			fmt.Fprintf(b, ", since %s", spec.format(s.Since))
		}
		b.WriteString("\n")
	}
	explainMissing(b, spec, lib.missing(func(*Symbol) bool { return true }))
}
