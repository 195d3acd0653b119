package recording

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// Blocks returns the value as the blocks of a launch. A second or third dimension of zero means
// one.
func (v *Value) Blocks() [3]uint32 {
	b := *(*[3]uint32)(unsafe.Pointer(v))
	return [3]uint32{b[0], max(b[1], 1), max(b[2], 1)}
}

// gridOf returns the words of a parameter as the blocks of a launch.
func gridOf(words []driver.Ptr) [3]uint32 {
	return (*Value)(unsafe.Pointer(unsafe.SliceData(words))).Blocks()
}

// GridLimits are the limits of a launch's blocks. A launch of no blocks is within all of them.
type GridLimits struct {
	Max      [3]int    // the largest value of each dimension; 0 is no limit
	Multiple [3]uint32 // dimension k must be a multiple of Multiple[k]
	Resident uint64    // the largest number of blocks, if all must run at the same time; 0 is no limit
}

// A limit has the limits of a command's blocks.
type limit struct {
	GridLimits
	command Command
	kernel  string
}

// check returns an error if b, the value of p, is not within the limits of the launch.
func (l *limit) check(p *Param, b [3]uint32) error {
	all, why := uint64(1), ""
	for k, n := range b {
		all *= uint64(n) // overflows only for grids that no device can run
		switch {
		case l.Max[k] > 0 && uint64(n) > uint64(l.Max[k]):
			why = fmt.Sprintf("the device takes %v", l.Max)
		case why == "" && n%l.Multiple[k] != 0:
			why = fmt.Sprintf("the kernel has clusters of %v", l.Multiple)
		}
	}
	if why == "" && l.Resident > 0 && all > l.Resident {
		why = fmt.Sprintf("it is cooperative, and the device runs %d at once", l.Resident)
	}
	if why == "" {
		return nil
	}
	return errs.Argument("execute", "%v gives command %d, launch of %s, a grid of %v blocks: %s", p, l.command, l.kernel, b, why)
}

// checkBlocks returns an error if b is not within the limits of each launch that takes its blocks
// from p.
func (p *Param) checkBlocks(b [3]uint32) error {
	if b[0] == 0 { // the launch is skipped
		return nil
	}
	for i := range p.limits {
		if err := p.limits[i].check(p, b); err != nil {
			return err
		}
	}
	return nil
}

// checkDefault returns an error if the launch cannot have the default of p as its blocks. Graphs
// are made with the default.
func (l *limit) checkDefault(p *Param) error {
	b := p.initial.Blocks()
	if b[0] == 0 {
		return errs.Argument("launch", "the default of %v is no blocks: give it one; only an execution may give none", p)
	}
	return l.check(p, b)
}

// add adds the limits of a command's blocks, unless the parameter has equal limits.
func (p *Param) add(l limit) {
	if !slices.ContainsFunc(p.limits, func(x limit) bool { return x.GridLimits == l.GridLimits }) {
		p.limits = append(p.limits, l)
	}
}

func (c *Recording) limitOf(l *Launch, at Command) *limit { return &limit{l.Limits, at, l.Name} }

// addLimits adds the limits of a recorded launch to the parameter that gives its blocks.
func (c *Recording) addLimits(l *Launch, at Command) {
	for _, u := range l.Uses {
		if u.Index == Blocks {
			u.Param.add(*c.limitOf(l, at))
		}
	}
}

// leavesOut reports whether a launch of a part has no blocks in an execution. No node can launch
// zero blocks. So the part's commands then run one by one, without the graph.
func (p *part) leavesOut(values []Value) bool {
	for _, i := range p.grids {
		if values[i].Blocks()[0] == 0 {
			return true
		}
	}
	return false
}

// addGrids adds to p.grids the parameter that gives a command's blocks, if there is one.
func (p *part) addGrids(cmd *command) {
	if cmd.rare == nil {
		return
	}
	for _, r := range cmd.rare.params {
		if r.index == Blocks && !slices.Contains(p.grids, r.param) {
			p.grids = append(p.grids, r.param)
		}
	}
}

// blocksOf returns the blocks of a launch in the execution that is being issued.
func (c *Recording) blocksOf(cmd *command) [3]uint32 {
	if cmd.rare != nil {
		for _, p := range cmd.rare.params {
			if p.index == Blocks {
				return gridOf(c.current.words(p.param))
			}
		}
	}
	return cmd.launch.Grid
}
