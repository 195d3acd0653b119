package traceformat

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// A written event never exceeds MaxEvent, since it could not be read otherwise. Each text and list
// may use a quarter of the remaining room in the event, and a text at most maxText bytes. A text
// that is cut ends with the number of bytes left out. A list that is cut is followed by the number
// of points left out.
const (
	maxText     = 1 << 23
	roomForRest = 1 << 16 // bytes of an event for keys, numbers and internal texts
	roomForMark = 64      // bytes at the end of a cut text for the number of bytes left out
)

// room returns the number of bytes that a text or a list may use in an event with n bytes so far.
func room(n int) int { return (MaxEvent - roomForRest - n) / 4 }

// Append appends the event as a JSON object, in one line, without allocating if b has room. Texts
// and lists that are too long are cut.
func (e *Event) Append(b []byte) []byte {
	start := len(b)
	b = append(b, `{"ph":"`...)
	b = append(b, byte(e.Phase))
	b = append(b, '"')
	if e.Cat != "" {
		b = append(b, `,"cat":`...)
		b = appendString(b, e.Cat, room(len(b)-start))
	}
	b = append(b, `,"name":`...)
	b = appendString(b, e.Name, room(len(b)-start))
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, e.PID, 10)
	b = append(b, `,"tid":`...)
	b = strconv.AppendInt(b, e.TID, 10)
	if e.Phase != Metadata {
		b = append(b, `,"ts":`...)
		b = appendTime(b, e.Time)
	}
	switch e.Phase {
	case Complete:
		b = append(b, `,"dur":`...)
		b = appendTime(b, e.Dur)
	case AsyncBegin, AsyncStep, AsyncEnd: // the id is local to the process; otherwise Perfetto shows the event outside all processes
		b = append(b, `,"id2":{"local":"0x`...)
		b = strconv.AppendUint(b, e.ID, 16)
		b = append(b, `"}`...)
	case FlowBegin, FlowStep, FlowEnd:
		b = append(b, `,"id":"0x`...)
		b = strconv.AppendUint(b, e.ID, 16)
		b = append(b, '"')
	case Instant:
		scope := e.Scope
		if scope == 0 {
			scope = 't'
		}
		b = append(b, `,"s":"`...)
		b = append(b, scope, '"')
	}
	if e.Phase == FlowEnd && e.BindEnclosing {
		b = append(b, `,"bp":"e"`...)
	}
	b = e.appendArgs(b, start)
	return append(b, '}')
}

// appendArgs appends the arguments of the event that begins at start.
func (e *Event) appendArgs(b []byte, start int) []byte {
	o := object{b: append(b, `,"args":{`...), start: start}
	a := &e.Args
	if e.Phase == Counter {
		for _, s := range a.Series {
			o.key(s.Name)
			o.b = strconv.AppendInt(o.b, s.Value, 10)
		}
		return o.end(b)
	}
	o.uint("sub", a.Sub)
	o.string("op", a.Op)
	o.string("label", a.Label)
	o.string("kernel", a.Kernel)
	o.dims("grid", a.Grid)
	o.dims("block", a.Block)
	o.uint("bytes", a.Bytes)
	o.points("waits", "more_waits", a.Waits, a.MoreWaits)
	o.points("signals", "more_signals", a.Signals, a.MoreSignals)
	o.time("issued", a.Issued)
	o.string("error", a.Error)
	if a.Untimed {
		o.key("untimed")
		o.b = append(o.b, "true"...)
	}
	o.uint("untimed_commands", uint64(max(a.UntimedCommands, 0)))
	o.uint("recording", a.Recording)
	o.uint("first", uint64(max(a.First, 0)))
	o.uint("commands", uint64(max(a.Commands, 0)))
	if a.Graph {
		o.key("graph")
		o.b = append(o.b, "true"...)
	}
	if e.Cat == CatCommand || e.Phase == Metadata && e.Name == MetaCommand {
		o.int("command", a.Command)
	}
	o.string("channel", a.Channel)
	o.uint("collective", a.Collective)
	if a.Ranks > 0 || e.Name == MetaTrace && e.Phase == Metadata {
		o.int("rank", a.Rank)
	}
	o.uint("ranks", uint64(max(a.Ranks, 0)))
	o.uint("dropped", a.Dropped)
	o.uint("total", a.Total)
	o.uint("undrawn", a.Undrawn)
	o.uint("forgotten", a.Forgotten)
	if e.Cat == CatClock {
		o.key("rate_ppm")
		rate := a.Rate
		if math.IsNaN(rate) || math.IsInf(rate, 0) { // JSON has neither NaN nor infinities
			rate = 0
		}
		o.b = strconv.AppendFloat(o.b, rate, 'g', -1, 64)
	}
	o.time("margin", a.Margin)
	o.time("early", a.Early)
	if e.Phase == Metadata {
		e.appendMeta(&o)
	}
	return o.end(b)
}

func (e *Event) appendMeta(o *object) {
	a := &e.Args
	o.string("name", a.Name)
	o.string("kind", a.Kind)
	switch a.Kind {
	case KindDevice:
		o.int("device", a.Device)
	case KindQueue:
		o.int("queue", a.Queue)
	case KindStream:
		o.int("stream", a.Stream)
	}
	o.string("node_times", a.NodeTimes)
	o.string("model", a.Model)
	o.string("driver", a.Driver)
	switch e.Name {
	case MetaProcessSort, MetaThreadSort:
		o.int("sort_index", a.SortIndex)
	case MetaTrace:
		o.int("format", a.Format)
		o.string("version", a.Version)
		o.string("go", a.Go)
		o.string("program", a.Program)
		o.string("host", a.Host)
		o.int("os_pid", a.OSPID)
		o.int("world", a.World)
		o.string("level", a.Level)
		o.string("start", a.Start)
		o.key("unix_ns")
		o.b = append(o.b, '"') // as a string: the number has more digits than a double holds
		o.b = strconv.AppendInt(o.b, a.Unix, 10)
		o.b = append(o.b, '"')
	}
}

// An object appends members to a JSON object. Its methods string, uint, time, dims and points leave
// out members that are zero.
type object struct {
	b     []byte
	start int // start of the event in b
	any   bool
}

// room returns the number of bytes for the next text or list.
func (o *object) room() int { return room(len(o.b) - o.start) }

// end closes the object. If the object has no member, end returns the parameter before: the text
// without the object.
func (o *object) end(before []byte) []byte {
	if !o.any {
		return before
	}
	return append(o.b, '}')
}

func (o *object) key(k string) {
	if o.any {
		o.b = append(o.b, ',')
	}
	o.any = true
	o.b = appendString(o.b, k, o.room())
	o.b = append(o.b, ':')
}

func (o *object) string(k, v string) {
	if v != "" {
		o.key(k)
		o.b = appendString(o.b, v, o.room())
	}
}

func (o *object) uint(k string, v uint64) {
	if v != 0 {
		o.key(k)
		o.b = strconv.AppendUint(o.b, v, 10)
	}
}

func (o *object) int(k string, v int) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, int64(v), 10)
}

func (o *object) time(k string, v Time) {
	if v != 0 {
		o.key(k)
		o.b = appendTime(o.b, v)
	}
}

func (o *object) dims(k string, v [3]uint32) {
	if v == [3]uint32{} {
		return
	}
	o.key(k)
	for i, n := range v {
		o.b = append(o.b, "[,,"[i])
		o.b = strconv.AppendUint(o.b, uint64(n), 10)
	}
	o.b = append(o.b, ']')
}

// points appends as many points as there is room for. Then it appends the number of points left
// out. This number includes the parameter before, the number that the caller left out.
func (o *object) points(k, more string, points []Point, before uint64) {
	if len(points) == 0 && before == 0 {
		return
	}
	room := o.room()
	o.key(k)
	o.b = append(o.b, '[')
	at, left := len(o.b), before
	for i, p := range points {
		if len(o.b)-at >= room {
			left += uint64(len(points) - i)
			break
		}
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(o.b, `{"semaphore":`...)
		o.b = strconv.AppendUint(o.b, p.Semaphore, 10)
		if p.Name != "" {
			o.b = append(o.b, `,"name":`...)
			o.b = appendString(o.b, p.Name, o.room())
		}
		o.b = append(o.b, `,"value":`...)
		o.b = strconv.AppendUint(o.b, p.Value, 10)
		o.b = append(o.b, '}')
	}
	o.b = append(o.b, ']')
	o.uint(more, left)
}

// appendTime appends microseconds with up to three decimals.
func appendTime(b []byte, t Time) []byte {
	n := uint64(t)
	if t < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendUint(b, n/1000, 10)
	if f := n % 1000; f != 0 {
		b = append(b, '.', byte('0'+f/100))
		if f %= 100; f != 0 {
			b = append(b, byte('0'+f/10))
			if f %= 10; f != 0 {
				b = append(b, byte('0'+f))
			}
		}
	}
	return b
}

// appendString appends s as a JSON string. It cuts s if the string would be longer than room or
// maxText, and appends the number of bytes left out. Bytes that are not UTF-8 become U+FFFD. '<'
// becomes an escape, so that the text is safe in an HTML page.
func appendString(b []byte, s string, room int) []byte {
	const hex = "0123456789abcdef"
	room = max(min(room, maxText), roomForMark)
	b = append(b, '"')
	start := len(b)
	cut, cutAt := start, 0 // for a text that is too long: its end in b, and its end in s
	for i := 0; i < len(s); {
		switch n := len(b) - start; {
		case n > room:
			b = append(b[:cut], "… ("...)
			b = strconv.AppendInt(b, int64(len(s)-cutAt), 10)
			return append(b, ` bytes are left out)"`...)
		case n <= room-roomForMark:
			cut, cutAt = len(b), i
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				b = append(b, "\ufffd"...)
			case r == '\u2028' || r == '\u2029':
				b = append(b, `\u202`...)
				b = append(b, hex[r&0xf])
			default:
				b = append(b, s[i:i+n]...)
			}
			i += n
			continue
		}
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c == 0x7f || c == '<':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}
