package recording

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A part consists of adjacent commands that are submitted as a whole. A host call is a part, and so
// is a group of collectives, and a conditional that the host runs. All other adjacent commands form
// parts too. If the recording makes graphs, these parts are divided further: either all commands of
// a part can be nodes of a graph, or none can.
type part struct {
	from, to int
	host     func() error
	control  *command           // a conditional that the host runs
	lane     *comm.Communicator // set if the part is a group of collectives
	label    string             // label of a host call, a conditional, or of the first collective
	graph    bool
	tests    bool    // the graph has conditionals, so the part cannot be run without the graph
	late     bool    // command.depends is set for a command of the part
	native   bool    // issuing the part may call functions of Native
	awaits   bool    // the part has waits for values
	grids    []int32 // indices of the parameters that give the grid of a launch in this part
}

// onHost reports whether a goroutine of the host runs the part.
func (p *part) onHost() bool { return p.host != nil || p.control != nil }

// A layout is a range of a recording's parts. An execution runs the parts of one layout.
type layout struct {
	from, to int
	users    int // number of its parts that use the execution's instance; 0 if all executions share an instance
}

// The layouts of a recording.
const (
	byGraph = iota // graphs run the conditionals that they can run
	byHost         // the host runs all conditionals
)

// addLayout appends the parts of a layout, and returns the layout. how is byGraph or byHost.
func (c *Recording) addLayout(how int) layout {
	l := layout{from: len(c.parts)}
	c.split(how)
	c.needInstances(&l)
	l.to = len(c.parts)
	return l
}

// split divides the commands into parts, and appends the parts to c.parts.
func (c *Recording) split(how int) {
	first, n := len(c.parts), c.cmds.n
	if how == byGraph {
		n += worthGraph * c.conditionals(0, c.cmds.n)
	}
	graphs := c.makesGraphs(n)
	for from := 0; from < c.cmds.n; {
		p := c.nextPart(from, how, graphs)
		if p.onHost() || p.lane != nil {
			p.label = c.names.labels[Command(from)]
		}
		if p.onHost() || p.lane != nil || c.setHow(&p) {
			c.parts = append(c.parts, p)
		}
		from = p.to
	}
	if len(c.parts) == first {
		c.parts = append(c.parts, part{to: c.cmds.n})
	}
	if n := len(c.parts); n > first+1 {
		// A Timing needs work of a stream at both ends, so add empty parts.
		if c.parts[n-1].control != nil {
			c.parts = append(c.parts, part{})
		}
		if c.parts[first].control != nil {
			c.parts = slices.Insert(c.parts, first, part{})
		}
	}
}

// runsAside reports whether a command is a part of its own, or belongs to a group of collectives.
func (c *Recording) runsAside(cmd *command, how int) bool {
	switch cmd.op.Kind {
	case work.HostCall, work.Collect:
		return true
	case work.Control:
		return how == byHost || cmd.rare.cond.why != ""
	}
	return false
}

// nextPart returns the part that begins at the command with index from. how is byGraph or byHost.
// graphs says whether the recording makes graphs.
func (c *Recording) nextPart(from, how int, graphs bool) part {
	first, p := c.cmds.at(from), part{from: from, to: from + 1}
	switch first.op.Kind {
	case work.HostCall:
		p.host = first.rare.fn
		return p
	case work.Collect:
		p.lane = first.rare.lane
		for p.to < c.cmds.n && c.cmds.at(p.to).joins(p.lane) {
			p.to++
		}
		return p
	}
	if c.runsAside(first, how) {
		p.control = first
		return p
	}
	calls := graphs && c.noNode(first)
	for p.to < c.cmds.n {
		cmd := c.cmds.at(p.to)
		if kind := cmd.op.Kind; c.runsAside(cmd, how) || kind != work.Nothing && graphs && c.noNode(cmd) != calls {
			break
		}
		p.to++
	}
	return p
}

// setHow sets how a part is run. It returns false if there is nothing to run: all commands of the
// part are barriers or do nothing. If the recording makes graphs, either all commands of a part can
// be nodes of a graph, or none can. So setHow asks noNode only about the first command.
func (c *Recording) setHow(p *part) bool {
	count, called := worthGraph*c.conditionals(p.from, p.to), false
	p.tests = count > 0
	for cmd := range c.each(p) {
		if cmd.op.Kind != work.Barrier && cmd.op.Kind != work.Nothing {
			count++
			p.late = p.late || cmd.depends
			p.awaits = p.awaits || cmd.op.Kind == work.ValueWait
			called = called || cmd.op.Kind == work.Native
			p.native = p.native || cmd.op.Kind == work.Native && cmd.moves
			p.addGrids(cmd)
		}
	}
	p.graph = c.makesGraphs(count) && !c.noNode(c.cmds.at(p.from))
	p.native = p.native || called && (!p.graph || p.late || c.instances.many || len(p.grids) > 0)
	return count > 0
}

// worthGraph is the least number of commands for which one launch of a graph costs less than the
// separate calls.
const worthGraph = 3

// makesGraphs reports whether n commands become a graph.
func (c *Recording) makesGraphs(n int) bool {
	worth := worthGraph
	if c.dev.Engine.Caps.ChecksOrder {
		// Make a graph of any two commands, so that the simulated GPU can check their order.
		worth = 2
	}
	return c.mode == GraphMode || c.mode == AutoMode && c.dev.Faces.Graphs != nil && n >= worth && !c.dev.timesCalls()
}

// noNode reports whether no node of a graph can do the work of a command.
func (c *Recording) noNode(cmd *command) bool {
	a := &cmd.launch.Attrs
	return c.across(cmd, nil) || cmd.op.Kind == work.ValueWrite || cmd.op.Kind == work.ValueWait ||
		cmd.op.Kind == work.Native && (c.dev.Faces.Capturer == nil || cmd.rare.again) ||
		!c.dev.Engine.Caps.NodeAttrs && (a.Cooperative || a.Cluster != [3]uint32{})
}
