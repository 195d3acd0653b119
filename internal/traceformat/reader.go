package traceformat

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// MaxEvent is the longest event that is read, in bytes: enough for a wait for a hundred thousand
// semaphores, or for a compiler's messages. A longer event is an error, so that a file that is not
// a trace does not fill the memory.
const MaxEvent = 1 << 26

// ErrNotTrace says that a file is not a JSON trace.
var ErrNotTrace = errors.New("not a trace: it does not begin with a JSON array of events")

// A Reader reads the events of a file one by one. The file is an array of events, or an object
// {"traceEvents": [...]}. The array may end anywhere, since a program that died did not finish it.
// A Reader needs memory for one event.
type Reader struct {
	r     *bufio.Reader
	buf   []byte
	state readState
	n     int // events read
	pos   int64
}

type readState int

const (
	stateStart readState = iota
	stateEvents
	stateDone // the array is complete
	stateCut  // the file ended before the array
)

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 1<<16)} }

// Events returns the number of events read.
func (r *Reader) Events() int { return r.n }

// Cut reports, after io.EOF, whether the file ends before the array does: the program died or still
// runs.
func (r *Reader) Cut() bool { return r.state == stateCut }

// Next reads the next event into e. It returns io.EOF after the last complete event. Invalid JSON,
// and an object that is not an event, are errors. Missing members stay zero; [Check] finds them.
func (r *Reader) Next(e *Event) error {
	_, err := r.next(e)
	return err
}

func (r *Reader) next(e *Event) (faults []string, err error) {
	raw, err := r.object()
	if err != nil {
		return nil, err
	}
	r.n++
	faults, err = decode(raw, e)
	if err != nil {
		return nil, fmt.Errorf("event %d, byte %d: %w", r.n, r.pos-int64(len(raw)), err)
	}
	return faults, nil
}

// object reads the next object of the array. The result is valid until the next call.
func (r *Reader) object() ([]byte, error) {
	switch r.state {
	case stateStart:
		if err := r.start(); err != nil {
			return nil, err
		}
	case stateDone, stateCut:
		return nil, io.EOF
	}
	for {
		c, err := r.byte()
		if err != nil {
			return nil, r.cut(err)
		}
		switch c {
		case ' ', '\t', '\r', '\n', ',':
		case ']':
			r.state = stateDone
			return nil, io.EOF
		case '{':
			return r.rest()
		default:
			return nil, fmt.Errorf("after event %d, byte %d: %q where an event or the end of the array should be", r.n, r.pos-1, c)
		}
	}
}

// rest reads an object after its opening brace.
func (r *Reader) rest() ([]byte, error) {
	r.buf = append(r.buf[:0], '{')
	depth, quoted := 1, false
	for depth > 0 {
		c, err := r.byte()
		if err != nil {
			return nil, r.cut(err)
		}
		if len(r.buf) >= MaxEvent {
			return nil, fmt.Errorf("event %d, byte %d: longer than %d bytes", r.n+1, r.pos-int64(len(r.buf)), MaxEvent)
		}
		r.buf = append(r.buf, c)
		switch {
		case quoted && c == '\\':
			if c, err = r.byte(); err != nil {
				return nil, r.cut(err)
			}
			r.buf = append(r.buf, c)
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return r.buf, nil
}

// start finds the array: the first value in the file, or the value of "traceEvents" in an object.
func (r *Reader) start() error {
	var head []byte
	for len(head) < 1<<12 {
		c, err := r.byte()
		if err != nil {
			if err = r.cut(err); err != io.EOF {
				return err
			}
			if len(head) == 0 {
				return fmt.Errorf("%w: it is empty", ErrNotTrace)
			}
			return ErrNotTrace
		}
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || len(head) == 0 && (c == 0xef || c == 0xbb || c == 0xbf):
			continue
		case c == '[' && len(head) == 0:
			r.state = stateEvents
			return nil
		case c == '[' && hasSuffix(head, `"traceEvents":`):
			r.state = stateEvents
			return nil
		case c != '{' && len(head) == 0:
			return ErrNotTrace
		}
		head = append(head, c)
	}
	return ErrNotTrace
}

func hasSuffix(b []byte, s string) bool { return len(b) >= len(s) && string(b[len(b)-len(s):]) == s }

func (r *Reader) byte() (byte, error) {
	c, err := r.r.ReadByte()
	if err == nil {
		r.pos++
	}
	return c, err
}

func (r *Reader) cut(err error) error {
	if err == io.EOF {
		r.state = stateCut
	}
	return err
}
