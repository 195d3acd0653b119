package driver

import (
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/internal/printable"
)

// Compilers compiles programs for the device at run time ([Caps.Compile]).
type Compilers interface {
	// Compiler returns the compiler for this device. The first call opens the compiler's library.
	// If the library is missing, the error says what to install, and is [ErrUnsupported]. Compiler
	// needs a bound thread.
	Compiler() (Compiler, error)
}

// A Compiler makes code for devices of one architecture. Its methods may be called concurrently and
// from any thread, need no device, and may be called after the device has been closed.
type Compiler interface {
	Info() CompilerInfo
	// Compile compiles a source. It blocks while the compiler works, possibly for seconds. If the
	// compiler refuses the source, the error is a [*CompileError].
	Compile(*Source) (Code, error)
}

// A [Compiler] may implement Linkers, which compiles several sources and links them.
type Linkers interface {
	// Linker returns a compiler that accepts sources with Link, for the same devices. That
	// compiler's Info includes the linker. If the linker is missing, Linker returns an error that
	// says what to install and is [ErrUnsupported].
	Linker() (Compiler, error)
}

// CompilerInfo identifies a compiler. The same source and the same CompilerInfo give the same code,
// unless the compiler reads files that are not in the Source.
type CompilerInfo struct {
	Name    string // "NVRTC", "hipRTC"
	Version string // "12.4"; "" if unknown
	Build   string // distinguishes builds of one version
	Target  string // the default target, as the compiler names it: "sm_90", "compute_90", "gfx90a"

	Transient bool // only this process can use the code
}

// A Source is a program in the compiler's language. Its strings must not contain NUL.
type Source struct {
	Name    string            // the text's name in messages; not empty
	Text    string            // the program
	Headers map[string]string // texts of headers, by the names in #include
	Options []string          // options for the compiler, as the compiler defines them
	Names   []string          // expressions, such as scale<float>, to be looked up in Code.Names

	// Link holds more sources, which must not have Link themselves. They are compiled, and linked
	// with this source. Only the compiler that [Linkers].Linker returns accepts a source with Link.
	// Code.Names has the names of all sources.
	Link        []Source
	LinkOptions []string // options for the linker, as the linker defines them
}

// Code is a compiler's output.
type Code struct {
	Image []byte            // for [Device.Load]
	Names map[string]string // names of kernels and variables in the image, by the expressions in Source.Names
	Log   string            // the compiler's messages, such as warnings
}

// A CompileError says why a compiler refuses a source.
type CompileError struct {
	Source   string    // the source's name
	Compiler string    // "NVRTC 12.4"
	Target   string    // the target: "sm_90"
	Messages []Message // the messages parsed from Log, in order, including warnings
	Log      string    // the compiler's output
	Err      error     // the error of the compiler's function
}

// Error returns a text with the first error in the first line, followed by the rest of the log.
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
	log := strings.TrimSpace(e.Log)
	if line, rest, _ := strings.Cut(log, "\n"); n == 1 && line == first { // not twice
		log = rest
	}
	if log != "" {
		b.WriteString("\n" + log)
	}
	return printable.Lines(b.String())
}

// Unwrap returns Err.
func (e *CompileError) Unwrap() error { return e.Err }

// A Message is a message of a compiler.
type Message struct {
	File   string // name of the source or header that the message is about; "" if none
	Line   int    // line number from 1; 0 if unknown
	Column int    // column of the character that the message points at; 0 if unknown
	Kind   string // in the compiler's words: "error", "catastrophic error", "warning"
	Number string // number of this kind of message, for diagnostic options: "177-D"; or ""
	Text   string // the message itself
	Detail string // the lines of source below the message, with a caret
}

// IsError reports whether the message is an error. If there is an error, the compiler made no code.
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
