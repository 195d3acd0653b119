package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// A commandSummary adds up commands of recordings, or work outside of recordings, with the same
// kernel, operation and label.
type commandSummary struct {
	Kernel   string           `json:"kernel,omitempty"`
	Op       string           `json:"op"`
	Label    string           `json:"label,omitempty"`
	Recorded bool             `json:"recorded"` // these are commands of recordings
	Commands int              `json:"commands"` // how many commands of recordings these are; 0 if it is not known
	Count    int              `json:"count"`    // how often they ran
	Total    traceformat.Time `json:"total_ns"`
	Share    float64          `json:"share"` // of the total of the list, from 0 to 1
	Mean     traceformat.Time `json:"mean_ns"`
	Max      traceformat.Time `json:"max_ns"`
	MaxAt    traceformat.Time `json:"max_at_ns"`
	MaxSub   uint64           `json:"max_submission,omitempty"`
}

// commandTimes says how many executions have no times of their commands, and why.
type commandTimes struct {
	Executions int      `json:"executions"`                     // executions of recordings, or of parts of them, that ended without an error
	Untimed    int      `json:"untimed"`                        // executions without times of their commands
	Graphs     int      `json:"untimed_graphs"`                 // executions of graphs among the untimed ones
	Level      string   `json:"level"`                          // level of the trace, or of several traces
	Sources    []string `json:"graph_times_by,omitempty"`       // what timed the commands of graphs
	Lacks      []string `json:"no_graph_times_since,omitempty"` // why the commands of graphs could not be timed
	Note       string   `json:"note,omitempty"`                 // which executions have no times of their commands, and why, as text
}

// timed reports whether the program was asked to trace the times of commands.
func (c *commandTimes) timed() bool { return strings.Contains(c.Level, "commands") }

// commandsOf adds up the commands of recordings. If timed is not nil, the list also has the work
// outside of recordings, and the executions without times of their commands.
func commandsOf(t *trace, timed *timedExecutions) []commandSummary {
	type key struct {
		kernel, op, label string
		recorded          bool
	}
	sums := map[key]*commandSummary{}
	which := map[key]map[commandKey]bool{}
	var total traceformat.Time
	for i := range t.slices {
		x := &t.slices[i]
		a := x.args
		recorded := x.cat == traceformat.CatCommand
		if !recorded && !(timed != nil && x.cat == traceformat.CatDevice && !(a.Op == "execute" && timed.has(t, x.sub))) {
			continue
		}
		k := key{a.Kernel, a.Op, a.Label, recorded}
		s := sums[k]
		if s == nil {
			s = &commandSummary{Kernel: k.kernel, Op: k.op, Label: k.label, Recorded: recorded, MaxAt: x.begin, MaxSub: a.Sub}
			sums[k], which[k] = s, map[commandKey]bool{}
		}
		dur := x.end - x.begin
		s.Count++
		s.Total += dur
		total += dur
		if dur > s.Max {
			s.Max, s.MaxAt, s.MaxSub = dur, x.begin, a.Sub
		}
		if a.Recording != 0 {
			which[k][commandKey{t.tracks[x.track].program, a.Recording, a.Command}] = true
		}
	}
	list := make([]commandSummary, 0, len(sums))
	for k, s := range sums {
		s.Mean, s.Commands = s.Total/traceformat.Time(s.Count), len(which[k])
		if total > 0 {
			s.Share = math.Round(1e4*float64(s.Total)/float64(total)) / 1e4
		}
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b commandSummary) int {
		recorded := 0
		if a.Recorded != b.Recorded {
			recorded = 1
			if a.Recorded {
				recorded = -1
			}
		}
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Label, b.Label), recorded)
	})
	return list
}

// commandTimesOf counts the executions with and without times of their commands.
func commandTimesOf(t *trace, timed *timedExecutions) commandTimes {
	c := commandTimes{Sources: unique(t.nodes), Lacks: unique(t.lacks)}
	var levels []string
	for _, p := range t.programs {
		levels = append(levels, p.args.Level)
	}
	c.Level = strings.Join(unique(levels), ", ")
	for i := range t.subs {
		x := &t.subs[i]
		if x.args.Op != "execute" || x.err != "" || x.done == unknown {
			continue
		}
		c.Executions++
		if !timed.has(t, i) {
			c.Untimed++
			if x.args.Graph {
				c.Graphs++
			}
		}
	}
	c.Note = c.note()
	return c
}

// timedExecutions are the executions whose commands have times.
type timedExecutions struct {
	subs       map[int]bool
	recordings map[commandKey]bool // recordings of commands with times, but without a submission's number
}

func timedOf(t *trace) *timedExecutions {
	e := &timedExecutions{map[int]bool{}, map[commandKey]bool{}}
	for i := range t.slices {
		x := &t.slices[i]
		if x.cat != traceformat.CatCommand {
			continue
		}
		if x.sub >= 0 {
			e.subs[x.sub] = true
		} else if x.args.Recording != 0 {
			e.recordings[commandKey{t.tracks[x.track].program, x.args.Recording, 0}] = true
		}
	}
	return e
}

// has reports whether the commands of a submission have times.
func (e *timedExecutions) has(t *trace, sub int) bool {
	return sub >= 0 && (e.subs[sub] || e.recordings[commandKey{t.subs[sub].program, t.subs[sub].args.Recording, 0}])
}

// unique returns the different texts of a list, sorted, without the empty text.
func unique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}

// printCommands prints commands as a table.
func printCommands(b *strings.Builder, title string, list []commandSummary, top int) {
	if len(list) == 0 {
		return
	}
	t := table{head: []string{title, "label", "", "commands", "count", "total", "", "mean", "longest", "at"}, left: 3}
	if !slices.ContainsFunc(list, func(c commandSummary) bool { return c.Label != "" }) {
		t.head[1] = ""
	}
	if !slices.ContainsFunc(list, func(c commandSummary) bool { return c.Commands > 0 }) {
		t.head[3] = ""
	}
	for i, c := range list {
		if i == top {
			t.more(len(list) - top)
			break
		}
		name := clean(c.Kernel, 60)
		if name == "" {
			name = clean(c.Op, 20)
		} else if c.Op != "launch" {
			name += " (" + clean(c.Op, 20) + ")"
		}
		where, commands := "", ""
		switch {
		case c.Op == "execute":
			where = "its commands have no times"
		case !c.Recorded:
			where = "not recorded"
		}
		if c.Commands > 0 {
			commands = number(c.Commands)
		}
		t.add(name, clean(c.Label, 40), where, commands, number(c.Count), duration(c.Total), fmt.Sprintf("%.0f %%", 100*c.Share), duration(c.Mean), duration(c.Max), duration(c.MaxAt))
	}
	t.write(b)
}

// note says which executions have no times of their commands, and why. In a trace with times of
// commands the note is about graphs only. The note is empty if there are no such executions.
func (c *commandTimes) note() string {
	switch {
	case !c.timed() && c.Untimed > 0:
		return count(c.Untimed, "execution") + " of recordings: the trace has no times of their commands. Trace the program with PUREGPU_TRACE_TIMES=commands"
	case c.Graphs == 0:
		return ""
	case len(c.Lacks) > 0:
		return fmt.Sprintf("%s of graphs: the trace has no times of their commands, because the profiler could not be used: %s. Mend that, or record them in AutoMode without the profiler",
			count(c.Graphs, "execution"), clean(strings.Join(c.Lacks, "; "), 300))
	case len(c.Sources) > 0:
		return count(c.Graphs, "execution") + " of graphs: the trace has no times of their commands, because the program ended, or closed the trace, before the times came. Close the device first"
	}
	return count(c.Graphs, "execution") + " of graphs: the trace has no times of their commands. Record them in AutoMode, or import package runtime/trace/cuptitrace"
}

// printKernels prints only which kernels and commands took the time.
func (s *summary) printKernels(b *strings.Builder, top int) {
	s.head(b)
	if !s.CommandTimes.timed() && s.CommandTimes.Note != "" { // head does not print it
		b.WriteString(s.CommandTimes.Note + "\n")
	}
	if len(s.CommandTimes.Sources) > 0 {
		fmt.Fprintf(b, "The commands of graphs were timed by %s.\n", clean(strings.Join(s.CommandTimes.Sources, ", "), 200))
	}
	if len(s.Kernels) == 0 {
		b.WriteString("The trace has no work with device times.\n")
	}
	printCommands(b, "Kernel or command", s.Kernels, top)
}
