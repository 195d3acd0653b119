package recording

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Command names a command of a recording, by its number.
type Command int

// A commandList stores commands in arrays of a fixed size, the pages. So a command never moves in
// memory.
type commandList struct {
	pages  []*[pageSize]command
	n      int
	bounds []argRef      // storage of command.bound
	afters []Command     // storage of command.after
	rares  []rareCommand // storage of command.rare
}

const pageSize = 32

func (l *commandList) add(cmd *command) {
	if l.n == len(l.pages)*pageSize {
		l.pages = append(l.pages, new([pageSize]command))
	}
	l.pages[l.n/pageSize][l.n%pageSize] = *cmd
	l.n++
}

func (l *commandList) at(i int) *command { return &l.pages[i/pageSize][i%pageSize] }

// rare stores a rareCommand, and returns its address.
func (l *commandList) rare(r rareCommand) *rareCommand {
	kept := &carve(&l.rares, 1)[0]
	*kept = r
	return kept
}

// carve takes n zeroed elements off the front of a chunk. If the chunk has fewer, carve replaces it
// by a new one first.
func carve[T any](chunk *[]T, n int) []T {
	if len(*chunk) < n {
		*chunk = make([]T, max(n, 64))
	}
	taken := (*chunk)[:n:n]
	*chunk = (*chunk)[n:]
	return taken
}

// A command is a command of a recording.
type command struct {
	op       work.Op
	depends  bool          // the address of dst, src or a range of Native is known only in an execution
	moves    bool          // the result of Recording.moves
	arg      int32         // index in Recording.args of the first argument
	dst, src int32         // indexes in Recording.refers, or -1
	launch   driver.Launch // the launch of a kernel; End sets launch.Args, for Native too
	layout   work.Layout   // layout of the arguments of a launch or of Native
	bound    []argRef
	after    []Command
	rare     *rareCommand
}

// A rareCommand has the fields that most commands do not need. Fills, copies, and launches without
// a gpu.Param have no rareCommand.
type rareCommand struct {
	stage  *memory.Block // pinned memory of an upload
	fn     func() error  // the function of a host call
	timer  int           // index of a timestamp's event in an instance's timers
	native func(driver.Stream, []driver.Ptr) error
	again  bool               // each execution calls native: no graph captures native's work
	lane   *comm.Communicator // the communicator of a group of collectives
	group  []Collective       // the collectives of the group
	params []paramRef         // the parameters that a launch uses
	cond   *conditional       // the data of a control command
}

// An argRef says that an argument of a command is the address of a reference.
type argRef struct {
	index int32 // the argument's index
	ref   int32 // index in Recording.refers
}

// joins reports whether a command continues a group of the communicator lane. A collective of that
// communicator continues the group, unless cmd.after lists commands. A command that does nothing
// but has a communicator continues any group: a collective that moves no data, or the end of a
// nested recording.
func (cmd *command) joins(lane *comm.Communicator) bool {
	if cmd.op.Kind == work.Collect && len(cmd.after) > 0 {
		return false
	}
	return cmd.op.Kind == work.Collect && cmd.rare.lane == lane || cmd.op.Kind == work.Nothing && cmd.rare != nil && cmd.rare.lane != nil
}
