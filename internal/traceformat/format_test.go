package traceformat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/tracetest"
)

const µs = tracetest.Microsecond

// small is a trace with most kinds of events.
func small(rank int, start time.Time) *tracetest.Builder {
	b := tracetest.New("small", rank, 2, start)
	host := b.Host("host 1")
	dev := b.Device(0, `H200 "<b>"`)
	q := b.Queue(dev, 0, "queue 0")
	s := b.Stream(dev, 1)
	ch := b.Channel(dev, "channel grad")
	input, done := b.Semaphore("input"), b.Semaphore("")
	b.Call(host, "load", 1*µs, 30*µs, Args{Label: "mlp.ptx"})
	b.Call(host, "signal", 40*µs, 41*µs, Args{Signals: []Point{input(1)}})
	b.Submit(q, s, tracetest.Submission{
		Args:      Args{Op: "launch", Kernel: "saxpy", Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{256, 1, 1}, Waits: []Point{input(1)}, Signals: []Point{done(1)}},
		Submitted: 35 * µs, Issued: 42 * µs, Begun: 45*µs + 1, Ended: 55*µs + 20, Done: 60 * µs, Parked: true,
	})
	b.Submit(q, s, tracetest.Submission{
		Args:      Args{Op: "execute", Label: "step", Commands: 2, Waits: []Point{done(1)}, Signals: []Point{done(2)}},
		Submitted: 36 * µs, Issued: 43 * µs, Begun: 56 * µs, Ended: 80 * µs, Done: 85 * µs,
		Commands: []tracetest.Command{{Args: Args{Op: "fill", Bytes: 64}, Begun: 56 * µs, Ended: 60 * µs}, {Args: Args{Op: "launch", Kernel: "k"}, Begun: 60 * µs, Ended: 80 * µs}},
	})
	b.Submit(q, ch, tracetest.Submission{
		Args:      Args{Op: "all-reduce", Bytes: 1 << 20, Channel: "grad", Collective: 1, Rank: rank, Ranks: 2, Waits: []Point{done(2)}, Signals: []Point{done(3)}},
		Submitted: 37 * µs, Issued: 44 * µs, Begun: 82 * µs, Ended: 100 * µs, Done: 101 * µs,
	})
	b.Submit(q, s, tracetest.Submission{Args: Args{Op: "copy", Bytes: 1 << 20, Error: "device lost"}, Submitted: 90 * µs, Done: 120 * µs})
	b.Wait(host, 50*µs, 102*µs, done(3))
	b.Count(dev, CounterInFlight, 44*µs, Series{"operations", 3})
	b.Instant(dev, CatClock, "clock fit", 1*µs, Args{Rate: -1.5, Margin: 200})
	b.Instant(dev, CatLoss, "device lost", 119*µs, Args{Error: "device lost"})
	b.Instant(1, CatDrop, "dropped", 119*µs, Args{Dropped: 2, Total: 2})
	return b
}

func TestAppendIsReadBack(t *testing.T) {
	b := small(0, time.Unix(1000, 5))
	data := b.JSON()
	if !json.Valid(data) {
		t.Fatalf("not JSON:\n%s", data)
	}
	r := NewReader(bytes.NewReader(data))
	for i, want := range b.Events {
		var got Event
		if err := r.Next(&got); err != nil {
			t.Fatal(err)
		}
		if want.Phase == Instant && want.Scope == 0 {
			want.Scope = 't'
		}
		if want.Phase == Complete && want.Cat != CatCommand {
			want.Args.Command = 0
		}
		if want.Args.Ranks == 0 && want.Name != MetaTrace {
			want.Args.Rank = 0
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("event %d\nread  %+v\nwrote %+v", i+1, got, want)
		}
	}
	var e Event
	if err := r.Next(&e); err != io.EOF || r.Cut() {
		t.Errorf("at the end: %v, cut %v", err, r.Cut())
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	events := small(0, time.Unix(1000, 0)).Events
	buf := make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(10, func() {
		b := buf
		for i := range events {
			b = events[i].Append(b)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAFileCutAnywhereIsRead(t *testing.T) {
	b := small(0, time.Unix(1000, 0))
	data := b.JSON()
	for n := range len(data) {
		rep, err := Check(bytes.NewReader(data[:n]))
		if n == 0 {
			if !errors.Is(err, ErrNotTrace) {
				t.Errorf("empty file: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		whole := n >= len(data)-1
		if rep.Cut == whole {
			t.Errorf("cut at %d of %d: Cut is %v", n, len(data), rep.Cut)
		}
		if want := min(strings.Count(string(data[:n]), "}\n")+strings.Count(string(data[:n]), "},\n"), len(b.Events)); rep.Events < want {
			t.Errorf("cut at %d: %d events, want %d", n, rep.Events, want)
		}
		for _, p := range rep.Problems {
			t.Errorf("cut at %d: %v", n, p)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "it is empty"},
		{"white space", " \n", "it is empty"},
		{"text", "hello", "not a trace"},
		{"another object", `{"a": 1}`, "not a trace"},
		{"a binary file", "\x0a\x99\x01[", "not a trace"},
		{"a number in the array", "[1]", `byte 1: '1' where an event`},
		{"no JSON", `[{"ph":"X",}]`, "event 1, byte 1: not an event"},
		{"no phase", `[{"name":"a"}]`, `"ph" is missing`},
		{"a phase of two letters", `[{"ph":"XX"}]`, `"ph" is missing or is not one letter`},
		{"a text without end", `[{"ph":"` + strings.Repeat("x", MaxEvent+9), "longer than"},
		{"brackets without end", `[{"a":` + strings.Repeat("[", MaxEvent+9), "longer than"},
		{"a long head", `{` + strings.Repeat(`"a":1,`, 1<<12), "not a trace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Check(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestReaderTakesAnObjectAround(t *testing.T) {
	in := "\ufeff{\"displayTimeUnit\": \"ns\", \"traceEvents\" : [ {\"ph\":\"X\",\"name\":\"a}]\\\"\",\"ts\":1e3,\"dur\":0.0005} ] , \"x\": [1]}"
	r := NewReader(strings.NewReader(in))
	var e Event
	if err := r.Next(&e); err != nil || e.Name != `a}]"` || e.Time != 1e6 || e.Dur != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	if err := r.Next(&e); err != io.EOF || r.Cut() {
		t.Error(err, r.Cut())
	}
}

func TestCheckCountsWhatThereIs(t *testing.T) {
	rep, err := Check(bytes.NewReader(small(0, time.Unix(1000, 0)).JSON()))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Submissions != 4 || rep.Slices != 8 || rep.Arrows != 4 || len(rep.Problems) != 0 {
		t.Errorf("%+v", rep)
	}
}

func TestCheckFinds(t *testing.T) {
	head := `{"ph":"M","name":"puregpu","pid":1,"tid":0,"args":{"format":1,"unix_ns":"1"}},
{"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"stream","kind":"stream"}},
{"ph":"M","name":"thread_name","pid":2,"tid":2,"args":{"name":"queue","kind":"queue"}},
{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":10,"id2":{"local":"0x1"},"args":{"sub":1,"op":"fill","signals":[{"semaphore":1,"value":1}]}},
{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":20,"id2":{"local":"0x1"},"args":{"issued":11}},
{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":10,"id2":{"local":"0x2"},"args":{"sub":2,"op":"fill","waits":[{"semaphore":1,"value":2}]}},
{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":40,"id2":{"local":"0x2"},"args":{"issued":11}}`
	for _, c := range []struct{ name, events, want string }{
		{"nothing", ``, ""},
		{"phase", `{"ph":"Q","name":"a","pid":1,"tid":1,"ts":1}`, `phase "Q" is not used`},
		{"name", `{"ph":"i","s":"t","pid":1,"tid":1,"ts":1}`, `"name" is missing`},
		{"pid", `{"ph":"i","s":"t","name":"a","tid":1,"ts":1}`, `"pid" is missing`},
		{"tid", `{"ph":"i","s":"t","name":"a","pid":1,"ts":1}`, `"tid" is missing`},
		{"ts", `{"ph":"i","s":"t","name":"a","pid":1,"tid":1}`, `"ts" is missing`},
		{"negative ts", `{"ph":"i","s":"t","name":"a","pid":1,"tid":1,"ts":-0.001}`, `"ts" is negative`},
		{"dur", `{"ph":"X","cat":"wait","name":"a","pid":2,"tid":1,"ts":1}`, `has no "dur"`},
		{"scope", `{"ph":"i","name":"a","pid":1,"tid":1,"ts":1}`, `an instant has "s" ""`},
		{"id", `{"ph":"s","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id":"x"}`, `"id" is missing or is not a number`},
		{"an id of all processes", `{"ph":"b","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id":3},{"ph":"e","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id":3}`, `an "id" of all processes`},
		{"category of an id", `{"ph":"b","name":"a","pid":1,"tid":1,"ts":1,"id2":{"local":3}},{"ph":"e","name":"a","pid":1,"tid":1,"ts":1,"id2":{"local":3}}`, `"cat" is missing`},
		{"bp", `{"ph":"i","s":"t","bp":"x","name":"a","pid":1,"tid":1,"ts":1}`, `"bp" is "x"`},
		{"counter", `{"ph":"C","name":"a","pid":1,"tid":1,"ts":1,"args":{"a":"b"}}`, `are not numbers by name`},
		{"negative counter", `{"ph":"C","name":"a","pid":1,"tid":1,"ts":1,"args":{"a":-1}}`, `"a" is negative`},
		{"arguments", `{"ph":"X","cat":"wait","name":"a","pid":2,"tid":1,"ts":1,"dur":1,"args":{"sub":"x"}}`, `arguments: `},
		{"category", `{"ph":"X","cat":"other","name":"a","pid":2,"tid":1,"ts":1,"dur":1}`, `a slice has category "other"`},
		{"track", `{"ph":"X","cat":"wait","name":"a","pid":2,"tid":9,"ts":1,"dur":1}`, `track 2/9 has no "thread_name"`},
		{"kind of a track", `{"ph":"M","name":"thread_name","pid":2,"tid":3,"args":{"name":"s","kind":"x"}}`, `track 2/3 is of kind "x"`},
		{"kind of a process", `{"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"s"}}`, `process 2 is of kind ""`},
		{"newer", `{"ph":"M","name":"puregpu","pid":1001,"tid":0,"args":{"format":3,"unix_ns":"1"}}`, `version 3, newer than 2`},
		{"a command that is not listed", `{"ph":"X","cat":"command","name":"k","pid":2,"tid":1,"ts":12,"dur":1,"args":{"sub":1,"recording":7,"command":3}}`, `command 3 of recording 7 runs and is not listed`},
		{"a listed command, without a submission", `{"ph":"M","name":"puregpu_command","pid":2,"tid":0,"args":{"recording":7,"command":3,"op":"launch"}},{"ph":"X","cat":"command","name":"k","pid":2,"tid":1,"ts":12,"dur":1,"args":{"recording":7,"command":3}}`, ""},
		{"a command without a recording and a submission", `{"ph":"X","cat":"command","name":"k","pid":2,"tid":1,"ts":12,"dur":1,"args":{"command":3}}`, `without the number of its submission`},
		{"a listed command without its operation", `{"ph":"M","name":"puregpu_command","pid":2,"tid":0,"args":{"recording":7,"command":3}}`, `without a recording or an operation`},
		{"metadata twice", `{"ph":"M","name":"puregpu","pid":3,"tid":0,"args":{"format":1,"unix_ns":"1"}}`, `"puregpu" twice`},
		{"B without E", `{"ph":"B","name":"a","pid":2,"tid":1,"ts":1}`, `"a" begins (B) and does not end`},
		{"E without B", `{"ph":"E","pid":2,"tid":1,"ts":1}`, `E without B`},
		{"overlap", `{"ph":"X","cat":"wait","name":"a","pid":2,"tid":1,"ts":1,"dur":2},{"ph":"X","cat":"wait","name":"b","pid":2,"tid":1,"ts":2,"dur":1.001}`, `"b" overlaps "a" of event 8`},
		{"inside", `{"ph":"X","cat":"wait","name":"b","pid":2,"tid":1,"ts":2,"dur":1},{"ph":"X","cat":"wait","name":"a","pid":2,"tid":1,"ts":1,"dur":2}`, ""},
		{"side by side", `{"ph":"X","cat":"wait","name":"b","pid":2,"tid":1,"ts":2,"dur":1},{"ph":"X","cat":"wait","name":"a","pid":2,"tid":1,"ts":3,"dur":2}`, ""},
		{"async without end", `{"ph":"b","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id2":{"local":3}}`, `async slice "a" of id 0x3 does not end`},
		{"async without beginning", `{"ph":"e","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id2":{"local":3}}`, `without a beginning`},
		{"async crossed", `{"ph":"b","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id2":{"local":3}},{"ph":"b","cat":"c","name":"b","pid":1,"tid":1,"ts":1,"id2":{"local":3}},{"ph":"e","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id2":{"local":3}},{"ph":"e","cat":"c","name":"b","pid":1,"tid":1,"ts":1,"id2":{"local":3}}`, `async end "a" of id 0x3 inside "b"`},
		{"async back in time", `{"ph":"b","cat":"c","name":"a","pid":1,"tid":1,"ts":2,"id2":{"local":3}},{"ph":"e","cat":"c","name":"a","pid":1,"tid":1,"ts":1,"id2":{"local":3}}`, `is earlier than the one`},
		{"submission twice", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x1"},"args":{"sub":1,"op":"fill"}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x1"},"args":{"issued":50}}`, `submission 1 was there before`},
		{"submission without operation", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"sub":3}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"issued":50}}`, `without its operation`},
		{"never issued", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"sub":3,"op":"fill"}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"}}`, `ended well and was never issued`},
		{"issued too early", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"sub":3,"op":"fill"}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"issued":49}}`, `not between`},
		{"device slice without submission", `{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":12,"dur":2,"args":{"sub":9}}`, `submission 9 is executed and was not submitted`},
		{"device slice without number", `{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":12,"dur":2}`, `without the number of its submission`},
		{"executed twice", `{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":12,"dur":2,"args":{"sub":1}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":15,"dur":2,"args":{"sub":1}}`, `submission 1 is executed twice`},
		{"begun too early", `{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":9,"dur":2,"args":{"sub":1}}`, `before it was submitted`},
		{"ended too late", `{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":12,"dur":9,"args":{"sub":1}}`, `after it was seen done`},
		{"flow without end", `{"ph":"s","cat":"signal","name":"a","pid":2,"tid":1,"ts":12,"id":1}`, `flow 0x1 begins and does not end`},
		{"flow without beginning", `{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":1,"ts":12,"id":1}`, `flow 0x1 ends and does not begin`},
		{"flow outside", `{"ph":"s","cat":"signal","name":"a","pid":2,"tid":1,"ts":12,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":1,"ts":12,"id":1}`, `flow 0x1 begins outside of every slice`},
		{"flow to the next slice", `{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":12,"dur":2,"args":{"sub":1}},{"ph":"s","cat":"c","name":"a","pid":2,"tid":1,"ts":12,"id":1},{"ph":"f","cat":"c","name":"a","pid":2,"tid":1,"ts":12,"id":1}`, `without "bp"`},
		{"flow that is no release", `{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":12,"dur":2,"args":{"sub":1}},{"ph":"X","cat":"device","name":"b","pid":2,"tid":1,"ts":20,"dur":2,"args":{"sub":2}},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":1,"ts":13,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":1,"ts":20,"id":1}`, `flow 0x1 leads from [{1  1}] to a wait for [{1  2}]`},
		{"flow between slices of one moment", `{"ph":"M","name":"thread_name","pid":2,"tid":3,"args":{"name":"h","kind":"host"}},{"ph":"X","cat":"wait","name":"o","pid":2,"tid":3,"ts":29,"dur":3},{"ph":"X","cat":"call","name":"signal","pid":2,"tid":3,"ts":30,"dur":0,"args":{"signals":[{"semaphore":1,"value":2}]}},{"ph":"X","cat":"call","name":"function","pid":2,"tid":3,"ts":30,"dur":0,"args":{"waits":[{"semaphore":1,"value":2}]}},{"ph":"X","cat":"call","name":"later","pid":2,"tid":3,"ts":30,"dur":1},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":3,"ts":30,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":3,"ts":30,"id":1}`, ""},
		{"flow that is no release of one moment", `{"ph":"M","name":"thread_name","pid":2,"tid":3,"args":{"name":"h","kind":"host"}},{"ph":"X","cat":"wait","name":"o","pid":2,"tid":3,"ts":29,"dur":3},{"ph":"X","cat":"call","name":"signal","pid":2,"tid":3,"ts":30,"dur":0,"args":{"signals":[{"semaphore":1,"value":1}]}},{"ph":"X","cat":"call","name":"function","pid":2,"tid":3,"ts":30,"dur":0,"args":{"waits":[{"semaphore":1,"value":2}]}},{"ph":"X","cat":"call","name":"later","pid":2,"tid":3,"ts":30,"dur":1},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":3,"ts":30,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":3,"ts":30,"id":1}`, `to a wait for [{1  2}]`},
		{"flow to itself", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"sub":3,"op":"fill","waits":[{"semaphore":1,"value":3}],"signals":[{"semaphore":1,"value":4}]}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":60,"id2":{"local":"0x3"},"args":{"issued":50}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":51,"dur":5,"args":{"sub":3}},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":1,"ts":55.999,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":1,"ts":51,"id":1}`, `flow 0x1 leads from submission 3 to itself`},
		{"flow to itself at one moment", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"sub":3,"op":"fill","waits":[{"semaphore":1,"value":3}],"signals":[{"semaphore":1,"value":4}]}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":60,"id2":{"local":"0x3"},"args":{"issued":50}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":51,"dur":0,"args":{"sub":3}},{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x4"},"args":{"sub":4,"op":"fill","signals":[{"semaphore":1,"value":2}]}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":60,"id2":{"local":"0x4"},"args":{"issued":50}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":51,"dur":0,"args":{"sub":4}},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":1,"ts":51,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":1,"ts":51,"id":1}`, `flow 0x1 leads from submission 3 to itself`},
		{"flow to another at one moment", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"sub":3,"op":"fill","waits":[{"semaphore":1,"value":3}],"signals":[{"semaphore":1,"value":4}]}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":60,"id2":{"local":"0x3"},"args":{"issued":50}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":51,"dur":0,"args":{"sub":3}},{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x4"},"args":{"sub":4,"op":"fill","signals":[{"semaphore":1,"value":3}]}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":60,"id2":{"local":"0x4"},"args":{"issued":50}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":51,"dur":0,"args":{"sub":4}},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":1,"ts":51,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":1,"ts":51,"id":1}`, ``},
		{"flow from another at one moment, which signals more", `{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x3"},"args":{"sub":3,"op":"fill","waits":[{"semaphore":1,"value":3}],"signals":[{"semaphore":1,"value":4}]}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":60,"id2":{"local":"0x3"},"args":{"issued":50}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":51,"dur":0,"args":{"sub":3}},{"ph":"b","cat":"submission","name":"q","pid":2,"tid":2,"ts":50,"id2":{"local":"0x4"},"args":{"sub":4,"op":"fill","signals":[{"semaphore":1,"value":9}]}},{"ph":"e","cat":"submission","name":"q","pid":2,"tid":2,"ts":60,"id2":{"local":"0x4"},"args":{"issued":50}},{"ph":"X","cat":"device","name":"a","pid":2,"tid":1,"ts":51,"dur":0,"args":{"sub":4}},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":1,"ts":51,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":1,"ts":51,"id":1}`, ``},
		{"flow of a host call to itself", `{"ph":"M","name":"thread_name","pid":2,"tid":3,"args":{"name":"h","kind":"host"}},{"ph":"X","cat":"call","name":"host call","pid":2,"tid":3,"ts":30,"dur":2,"args":{"sub":3,"waits":[{"semaphore":1,"value":3}],"signals":[{"semaphore":1,"value":4}]}},{"ph":"s","cat":"signal","name":"a","pid":2,"tid":3,"ts":31,"id":1},{"ph":"f","bp":"e","cat":"signal","name":"a","pid":2,"tid":3,"ts":30,"id":1}`, `flow 0x1 leads from submission 3 to itself`},
		{"loss", `{"ph":"i","s":"p","cat":"loss","name":"a","pid":2,"tid":1,"ts":1}`, `a loss without an error`},
		{"drop", `{"ph":"i","s":"p","cat":"drop","name":"a","pid":2,"tid":1,"ts":1}`, `a drop of 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := "[" + head
			if c.events != "" {
				in += ",\n" + c.events
			}
			rep, err := Check(strings.NewReader(in + "]"))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(rep.Problems) > 0 {
					t.Errorf("%v", rep.Problems)
				}
				return
			}
			for _, p := range rep.Problems {
				if strings.Contains(p.String(), c.want) {
					return
				}
			}
			t.Errorf("%v, want %q", rep.Problems, c.want)
		})
	}
}

func TestCheckListsSoManyProblems(t *testing.T) {
	rep, err := Check(strings.NewReader("[" + strings.Repeat(`{"ph":"E","pid":1,"tid":1,"ts":1},`, 250)))
	if err != nil || len(rep.Problems) != MaxProblems || rep.More != 151 {
		t.Errorf("%d and %d more, %v", len(rep.Problems), rep.More, err)
	}
}

func TestMergePutsRanksOnOneClock(t *testing.T) {
	start := time.Unix(1700000000, 123456789)
	one := small(1, start.Add(-40*time.Microsecond)).JSON()
	zero := small(0, start).JSON()
	zero = zero[:len(zero)-20] // the end is missing, as if the process was killed
	var out bytes.Buffer
	if err := Merge(&out, []Source{{"one", bytes.NewReader(one)}, {"zero", bytes.NewReader(zero)}}); err != nil {
		t.Fatal(err)
	}
	rep, err := Check(bytes.NewReader(out.Bytes()))
	if err != nil || len(rep.Problems) > 0 || rep.Cut || rep.Submissions != 8 || rep.Arrows != 8 {
		t.Fatalf("%+v, %v", rep, err)
	}
	var begun []Time
	r := NewReader(&out)
	var e Event
	for r.Next(&e) == nil {
		if e.Phase == Complete && e.Args.Kernel == "saxpy" {
			begun = append(begun, e.Time)
		}
		if e.Phase == Metadata && e.Name == MetaProcess && !strings.HasPrefix(e.Args.Name, "rank ") {
			t.Errorf("process %q", e.Args.Name)
		}
	}
	if want := []Time{85*µs + 1, 45*µs + 1}; !reflect.DeepEqual(begun, want) {
		t.Errorf("begun at %v, want %v", begun, want)
	}
}

// TestMergeNamesRanks checks that Merge takes the rank of a program without a launcher from its
// communicators, and that a program without communicators has none.
func TestMergeNamesRanks(t *testing.T) {
	start := time.Unix(1700000000, 0)
	untold := func(rank int) []byte {
		data := bytes.Replace(small(rank, start).JSON(), []byte(`"world":2`), []byte(`"world":0`), 1)
		return bytes.Replace(data, fmt.Appendf(nil, `"rank":%d`, rank), []byte(`"rank":0`), 1) // the program's own rank
	}
	other := tracetest.New("other", 0, 0, start)
	other.Host("host 1")
	for _, x := range []struct {
		files [][]byte
		want  string
	}{
		{[][]byte{untold(1), untold(0)}, "rank 0: small, rank 0: GPU 0: H200 \"<b>\", rank 1: small, rank 1: GPU 0: H200 \"<b>\""},
		{[][]byte{small(1, start).JSON(), untold(0)}, "rank 0: small, rank 0: GPU 0: H200 \"<b>\", rank 1: small, rank 1: GPU 0: H200 \"<b>\""},
		{[][]byte{other.JSON(), other.JSON()}, "process 4000: other, process 4000: other"},
		{[][]byte{untold(1)}, "small, GPU 0: H200 \"<b>\""},
	} {
		var all []Source
		for i, f := range x.files {
			all = append(all, Source{fmt.Sprint(i), bytes.NewReader(f)})
		}
		var out bytes.Buffer
		if err := Merge(&out, all); err != nil {
			t.Fatal(err)
		}
		var names []string
		ranks := 0
		r := NewReader(&out)
		var e Event
		for r.Next(&e) == nil {
			switch {
			case e.Phase == Metadata && e.Name == MetaProcess:
				names = append(names, e.Args.Name)
			case e.Phase == Metadata && e.Name == MetaTrace && e.Args.World == 2:
				if e.Args.Rank != ranks {
					t.Errorf("program %d says that it is rank %d", ranks, e.Args.Rank)
				}
				ranks++
			}
		}
		if got := strings.Join(names, ", "); got != x.want {
			t.Errorf("%s; want %s", got, x.want)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	whole := small(0, time.Unix(1, 0)).JSON()
	var merged bytes.Buffer
	if err := Merge(&merged, []Source{{"a", bytes.NewReader(whole)}, {"b", bytes.NewReader(whole)}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in, want string }{
		{"a merged one", merged.String(), "the file is already merged"},
		{"one of another program", `[{"ph":"i","s":"t","name":"a","pid":1,"tid":1,"ts":1}]`, "it was not written by puregpu"},
		{"an empty one", "", "x.json: not a trace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Merge(io.Discard, []Source{{"x.json", strings.NewReader(c.in)}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(small(0, time.Unix(1000, 0)).JSON())
	f.Add([]byte(`{"traceEvents":[{"ph":"X","ts":1e300,"dur":-1,"pid":1e3}]}`))
	f.Add([]byte(`[{"ph":"E"},{"ph":"f","id":1}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		rep, err := Check(bytes.NewReader(in))
		if err == nil && rep == nil {
			t.Error("neither a report nor an error")
		}
		_ = Merge(io.Discard, []Source{{"x", bytes.NewReader(in)}})
	})
}
