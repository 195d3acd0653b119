package traceformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// wireEvent is an event in a file. A nil pointer is a missing member.
type wireEvent struct {
	Ph   *string         `json:"ph"`
	Name *string         `json:"name"`
	Cat  string          `json:"cat"`
	Ts   *wireTime       `json:"ts"`
	Dur  *wireTime       `json:"dur"`
	PID  *int64          `json:"pid"`
	TID  *int64          `json:"tid"`
	ID   json.RawMessage `json:"id"`
	ID2  struct {
		Local json.RawMessage `json:"local"`
	} `json:"id2"`
	Scope string          `json:"s"`
	Bind  string          `json:"bp"`
	Args  json.RawMessage `json:"args"`
}

type wirePoint struct {
	Semaphore uint64 `json:"semaphore"`
	Name      string `json:"name"`
	Value     uint64 `json:"value"`
}

type wireArgs struct {
	Sub             uint64      `json:"sub"`
	Op              string      `json:"op"`
	Label           string      `json:"label"`
	Kernel          string      `json:"kernel"`
	Grid            [3]uint32   `json:"grid"`
	Block           [3]uint32   `json:"block"`
	Bytes           uint64      `json:"bytes"`
	Waits           []wirePoint `json:"waits"`
	Signals         []wirePoint `json:"signals"`
	MoreWaits       uint64      `json:"more_waits"`
	MoreSignals     uint64      `json:"more_signals"`
	Issued          wireTime    `json:"issued"`
	Error           string      `json:"error"`
	Untimed         bool        `json:"untimed"`
	Recording       uint64      `json:"recording"`
	First           int         `json:"first"`
	Commands        int         `json:"commands"`
	Command         int         `json:"command"`
	Channel         string      `json:"channel"`
	Collective      uint64      `json:"collective"`
	Rank            int         `json:"rank"`
	Ranks           int         `json:"ranks"`
	Name            string      `json:"name"`
	Kind            string      `json:"kind"`
	Device          int         `json:"device"`
	Queue           int         `json:"queue"`
	Stream          int         `json:"stream"`
	Model           string      `json:"model"`
	Driver          string      `json:"driver"`
	SortIndex       int         `json:"sort_index"`
	NodeTimes       string      `json:"node_times"`
	Format          int         `json:"format"`
	Version         string      `json:"version"`
	Go              string      `json:"go"`
	Program         string      `json:"program"`
	Host            string      `json:"host"`
	OSPID           int         `json:"os_pid"`
	World           int         `json:"world"`
	Level           string      `json:"level"`
	Start           string      `json:"start"`
	Unix            int64       `json:"unix_ns,string"`
	Dropped         uint64      `json:"dropped"`
	Total           uint64      `json:"total"`
	Undrawn         uint64      `json:"undrawn"`
	Forgotten       uint64      `json:"forgotten"`
	Rate            float64     `json:"rate_ppm"`
	Margin          wireTime    `json:"margin"`
	Early           wireTime    `json:"early"`
	Graph           bool        `json:"graph"`
	UntimedCommands int         `json:"untimed_commands"`
}

// wireTime reads microseconds.
type wireTime Time

func (t *wireTime) UnmarshalJSON(b []byte) error {
	if v, ok := parseMicros(b); ok {
		*t = wireTime(v)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number of microseconds", b)
	}
	f = math.Round(f * 1000)
	if !(math.Abs(f) < 1<<62) {
		return fmt.Errorf("%.40s microseconds is out of range", b)
	}
	*t = wireTime(f)
	return nil
}

// parseMicros reads the form that appendTime writes, without rounding. It returns false for numbers
// with an exponent or too many digits.
func parseMicros(b []byte) (Time, bool) {
	whole, frac, _ := bytes.Cut(b, []byte("."))
	if len(whole) > 15 || len(frac) > 3 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(whole), 10, 64)
	if err != nil {
		return 0, false
	}
	n *= 1000
	scale := int64(100)
	if len(whole) > 0 && whole[0] == '-' {
		scale = -100
	}
	for _, c := range frac {
		if c < '0' || c > '9' {
			return 0, false
		}
		n += int64(c-'0') * scale
		scale /= 10
	}
	return Time(n), true
}

// decode turns a JSON object into an event. The result faults lists the rules of the format that
// the event breaks. decode returns an error if the object is not an event.
func decode(raw []byte, e *Event) (faults []string, err error) {
	*e = Event{}
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("not an event: %w", err)
	}
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if w.Ph == nil || len(*w.Ph) != 1 {
		return nil, errors.New(`not an event: "ph" is missing or is not one letter`)
	}
	e.Phase = Phase((*w.Ph)[0])
	if !strings.ContainsRune("BEXiCMbnestf", rune(e.Phase)) {
		fault("phase %q is not used in these traces", *w.Ph)
	}
	if w.Name != nil {
		e.Name = *w.Name
	}
	if e.Name == "" && e.Phase != End {
		fault(`"name" is missing`)
	}
	e.Cat = w.Cat
	if w.PID == nil {
		fault(`"pid" is missing`)
	} else {
		e.PID = *w.PID
	}
	if w.TID == nil {
		fault(`"tid" is missing`)
	} else {
		e.TID = *w.TID
	}
	if w.Ts != nil {
		if e.Time = Time(*w.Ts); e.Time < 0 {
			fault(`"ts" is negative`)
		}
	} else if e.Phase != Metadata {
		fault(`"ts" is missing`)
	}
	if w.Dur != nil {
		if e.Dur = Time(*w.Dur); e.Dur < 0 {
			fault(`"dur" is negative`)
		}
	}
	switch e.Phase {
	case Complete:
		if w.Dur == nil {
			fault(`a slice (X) has no "dur"`)
		}
	case Instant:
		if w.Scope != "g" && w.Scope != "p" && w.Scope != "t" {
			fault(`an instant has "s" %q, not "g", "p" or "t"`, w.Scope)
		} else {
			e.Scope = w.Scope[0]
		}
	case AsyncBegin, AsyncStep, AsyncEnd, FlowBegin, FlowStep, FlowEnd:
		var ok bool
		if e.Phase == AsyncBegin || e.Phase == AsyncStep || e.Phase == AsyncEnd {
			if len(w.ID2.Local) > 0 {
				w.ID = w.ID2.Local
			} else if len(w.ID) > 0 {
				fault(`an async event has an "id" of all processes, not one of its own ("id2": {"local": …})`)
			}
		}
		if e.ID, ok = parseID(w.ID); !ok {
			fault(`"id" is missing or is not a number (%.40s)`, w.ID)
		}
		if e.Cat == "" {
			fault(`"cat" is missing, without which an id does not count`)
		}
	}
	if w.Bind != "" {
		if w.Bind != "e" || e.Phase != FlowEnd {
			fault(`"bp" is %q in phase %q`, w.Bind, *w.Ph)
		}
		e.BindEnclosing = w.Bind == "e"
	}
	if len(w.Args) == 0 {
		if e.Phase == Counter {
			fault("a counter has no value")
		}
		return faults, nil
	}
	if e.Phase == Counter {
		var series map[string]float64
		if err := json.Unmarshal(w.Args, &series); err != nil || len(series) == 0 {
			fault("the arguments of a counter are not numbers by name")
			return faults, nil
		}
		for name, v := range series {
			e.Args.Series = append(e.Args.Series, Series{name, int64(max(min(v, 1<<62), -1<<62))})
		}
		slices.SortFunc(e.Args.Series, func(a, b Series) int { return strings.Compare(a.Name, b.Name) })
		return faults, nil
	}
	var a wireArgs
	if err := json.Unmarshal(w.Args, &a); err != nil {
		fault("arguments: %v", err)
		return faults, nil
	}
	e.Args = Args{
		Sub: a.Sub, Op: a.Op, Label: a.Label, Kernel: a.Kernel, Grid: a.Grid, Block: a.Block, Bytes: a.Bytes,
		Waits: points(a.Waits), Signals: points(a.Signals), MoreWaits: a.MoreWaits, MoreSignals: a.MoreSignals, Issued: Time(a.Issued), Error: a.Error, Untimed: a.Untimed,
		Recording: a.Recording, First: a.First, Commands: a.Commands, Command: a.Command, NodeTimes: a.NodeTimes,
		Channel: a.Channel, Collective: a.Collective, Rank: a.Rank, Ranks: a.Ranks,
		Name: a.Name, Kind: a.Kind, Device: a.Device, Queue: a.Queue, Stream: a.Stream, Model: a.Model, Driver: a.Driver,
		SortIndex: a.SortIndex, Format: a.Format, Version: a.Version, Go: a.Go, Program: a.Program, Host: a.Host,
		OSPID: a.OSPID, World: a.World, Level: a.Level, Start: a.Start, Unix: a.Unix,
		Dropped: a.Dropped, Total: a.Total, Undrawn: a.Undrawn, Forgotten: a.Forgotten, Rate: a.Rate, Margin: Time(a.Margin),
		Early: Time(a.Early), Graph: a.Graph, UntimedCommands: a.UntimedCommands,
	}
	return faults, nil
}

func points(w []wirePoint) []Point {
	if len(w) == 0 {
		return nil
	}
	p := make([]Point, len(w))
	for i, v := range w {
		p[i] = Point(v)
	}
	return p
}

// parseID reads a number, or a string that holds a number.
func parseID(raw json.RawMessage) (uint64, bool) {
	s := string(raw)
	if len(s) >= 2 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	n, err := strconv.ParseUint(s, 0, 64)
	return n, err == nil
}
