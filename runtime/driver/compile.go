package driver

import (
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/internal/printable"
)

// Compilers is what a [Device] implements besides where [Caps.Compile] is set: programs can be compiled for it at run time.
type Compilers interface {
	// Compiler returns the compiler for this device, which is opened when it is needed for the first time. That it is missing is an
	// error of this call, says what to install, and is [ErrUnsupported]. Creating.
	Compiler() (Compiler, error)
}

// A Compiler makes code for devices of one architecture. Its methods may be called concurrently and from any thread, need no device,
// and may be called after the device has been closed.
type Compiler interface {
	Info() CompilerInfo
	// Compile compiles a source, of which it keeps nothing, and blocks while the compiler works, which may be for seconds. What the
	// compiler says against the source is a [*CompileError].
	Compile(*Source) (Code, error)
}

// Linkers is what a [Compiler] implements besides that can have several sources linked.
type Linkers interface {
	// Linker returns a compiler for the same devices that takes sources with Link. Its Info tells of the linker too. What it links with is opened when
	// it is needed for the first time. That it is missing is an error of this call, says what to install, and is [ErrUnsupported].
	Linker() (Compiler, error)
}

// CompilerInfo tells which compiler it is. The same source and the same CompilerInfo give the same code, but for what the
// compiler reads besides.
type CompilerInfo struct {
	Name    string // "NVRTC", "hipRTC"
	Version string // "12.4"; "" if it does not tell
	Build   string // what tells builds of one version apart
	Target  string // what it compiles for where the options do not say so, in its own words: "sm_90", "compute_90", "gfx90a"

	Transient bool // the code is of use to this process alone
}

// A Source is a program in the compiler's language. No text in it has a NUL.
type Source struct {
	Name    string            // what messages call the text; not empty
	Text    string            //
	Headers map[string]string // by the names that it includes them by
	Options []string          // in the compiler's own words
	Names   []string          // expressions, such as scale<float>, of which Code.Names is to have the names

	// Link are sources without Link that are to be compiled too and linked with this one, which only a compiler of [Linkers] is given. Code.Names has
	// the names of all.
	Link        []Source
	LinkOptions []string // for the linker, in its own words
}

// Code is what a compiler has made of a source.
type Code struct {
	Image []byte            // for [Device.Load]
	Names map[string]string // of kernels and variables in the image, by the expressions of Source.Names
	Log   string            // what the compiler has said, warnings for example
}

// A CompileError is what a compiler says against a source.
type CompileError struct {
	Source   string    // its name
	Compiler string    // "NVRTC 12.4"
	Target   string    // what it was compiled for: "sm_90"
	Messages []Message // what was understood of Log, in its order; also warnings
	Log      string    // all that the compiler has said
	Err      error     // what the compiler's function returned
}

// Error tells the first error in the first line, and then the log.
func (e *CompileError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s for %s: ", e.Compiler, e.Target)
	first, n := "", 0
	for _, m := range e.Messages {
		if !m.IsError() {
			continue
		}
		if n++; n == 1 {
			first = m.String()
		}
	}
	switch {
	case n == 0:
		fmt.Fprintf(&b, "%s: %v", e.Source, e.Err)
	case n == 1:
		b.WriteString(first)
	default:
		fmt.Fprintf(&b, "%s (and %d more)", first, n-1)
	}
	if log := strings.TrimSpace(e.Log); log != "" && log != first {
		b.WriteString("\n" + log)
	}
	return printable.Lines(b.String())
}

// Unwrap returns Err.
func (e *CompileError) Unwrap() error { return e.Err }

// A Message is one of a compiler's.
type Message struct {
	File   string // the source's name, or a header's; "" where it is about none
	Line   int    // from 1 on; 0 if it is not told, as is
	Column int    // of the character that the compiler points at
	Kind   string // in the compiler's words: "error", "catastrophic error", "warning"
	Number string // of a kind of message, which options for diagnostics take: "177-D"; or ""
	Text   string // what is wrong
	Detail string // the lines that come with it: that of the source, and one with a caret below what is meant
}

// IsError reports whether there is no code because of it.
func (m Message) IsError() bool {
	return strings.HasSuffix(m.Kind, "error") || strings.HasPrefix(m.Kind, "fatal")
}

// String returns the message in one line, without Detail: "saxpy.cu(7): error: expected a \";\"".
func (m Message) String() string {
	var b strings.Builder
	b.WriteString(m.File)
	if m.Line > 0 {
		fmt.Fprintf(&b, "(%d)", m.Line)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(m.Kind)
	if m.Number != "" {
		b.WriteString(" #" + m.Number)
	}
	return b.String() + ": " + m.Text
}
