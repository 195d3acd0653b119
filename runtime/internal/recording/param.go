package recording

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Value is the value of a parameter, as it is in memory.
type Value [2]uint64

// MaxValue is the size of the largest value, in bytes.
const MaxValue = int(unsafe.Sizeof(Value{}))

// A Param is a parameter of a recording: each execution gives its value, or has the default.
type Param struct {
	of      *Recording
	index   int
	typ     reflect.Type
	initial Value   // the default
	limits  []limit // of the launches that have it as their blocks; no two are equal
}

// A Given is a parameter with its value in an execution.
type Given struct {
	Param *Param
	Value Value
}

// A Use is the place of a parameter in an operation: the number of an argument, or Blocks.
type Use struct {
	Index int
	Param *Param
}

// Blocks is the Index of a Use as the blocks of a launch.
const Blocks = -1

// String returns how messages call the parameter.
func (p *Param) String() string { return fmt.Sprintf("parameter %d (%v)", p.index, p.typ) }

// Type returns the type of the values.
func (p *Param) Type() reflect.Type { return p.typ }

// Initial returns the default.
func (p *Param) Initial() *Value { return &p.initial }

// Blocks returns the value as the blocks of a launch. A second or third dimension of zero means one.
func (v *Value) Blocks() [3]uint32 {
	b := *(*[3]uint32)(unsafe.Pointer(v))
	return [3]uint32{b[0], max(b[1], 1), max(b[2], 1)}
}

// blocks returns the words of a parameter as the blocks of a launch.
func blocks(words []driver.Ptr) [3]uint32 {
	return (*Value)(unsafe.Pointer(unsafe.SliceData(words))).Blocks()
}

// A paramRef says that an argument of a command, or its blocks, is a parameter.
type paramRef struct {
	index int32 // of the argument, or Blocks
	param int32 // in params
}

// GridLimits are the limits of a launch's blocks. A launch of no blocks is within all of them.
type GridLimits struct {
	Max      [3]int    // a dimension at most; 0 is any number
	Multiple [3]uint32 // each dimension is a multiple of this
	Resident uint64    // all blocks at most, because they must run at once; 0 is any number
}

// A limit has the limits of a command's blocks.
type limit struct {
	GridLimits
	command Command
	kernel  string
}

// check returns an error if the blocks of the launch cannot be b, the value of p.
func (l *limit) check(p *Param, b [3]uint32) error {
	all, why := uint64(1), ""
	for k, n := range b {
		all *= uint64(n) // overflows only beyond Max, or where there is no Max
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

// checkBlocks returns an error if a launch whose blocks the parameter is cannot have b.
func (p *Param) checkBlocks(b [3]uint32) error {
	if b[0] == 0 { // it launches nothing
		return nil
	}
	for i := range p.limits {
		if err := p.limits[i].check(p, b); err != nil {
			return err
		}
	}
	return nil
}

// checkDefault returns an error if the blocks of the launch cannot be the default of p, with which
// graphs are made.
func (l *limit) checkDefault(p *Param) error {
	b := p.initial.Blocks()
	if b[0] == 0 {
		return errs.Argument("launch", "the default of %v is no blocks: give it one; only an execution may give none", p)
	}
	return l.check(p, b)
}

// add adds the limits of a command's blocks.
func (p *Param) add(l limit) {
	if !slices.ContainsFunc(p.limits, func(x limit) bool { return x.GridLimits == l.GridLimits }) {
		p.limits = append(p.limits, l)
	}
}

// NewParam adds a parameter with values of a type of at most MaxValue bytes.
func (c *Recording) NewParam(t reflect.Type, initial Value) (*Param, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.Leave()
	p := &Param{of: c, index: len(c.params), typ: t, initial: initial}
	c.params = append(c.params, p)
	return p, nil
}

// checkUse checks that a parameter can be used in a command of this recording.
func (c *Recording) checkUse(op work.Kind, p *Param) error {
	switch {
	case p == nil:
		return errs.Argument(op.String(), "a zero parameter: make it with NewParam")
	case p.of != c:
		return errs.Argument(op.String(), "%v is of another command buffer", p)
	}
	return nil
}

// checkUses checks the parameters of a launch. wrong is the number of the argument that is refused,
// or -1.
func (c *Recording) checkUses(l *Launch) (wrong int, err error) {
	for _, u := range l.Uses {
		if err := c.checkUse(work.Launch, u.Param); err != nil {
			return u.Index, err
		}
		if u.Index == Blocks {
			if err := c.limitOf(l, Command(c.cmds.n)).checkDefault(u.Param); err != nil {
				return -1, err
			}
		}
	}
	return -1, nil
}

// limitOf returns the limits of a launch's blocks.
func (c *Recording) limitOf(l *Launch, at Command) *limit { return &limit{l.Limits, at, l.Name} }

// addLimits adds the limits of a launch that has been recorded to the parameter that is its blocks.
func (c *Recording) addLimits(l *Launch, at Command) {
	for _, u := range l.Uses {
		if u.Index == Blocks {
			u.Param.add(*c.limitOf(l, at))
		}
	}
}

// paramRefs returns uses as a command has them.
func paramRefs(uses []Use) []paramRef {
	refs := make([]paramRef, len(uses))
	for i, u := range uses {
		refs[i] = paramRef{int32(u.Index), int32(u.Param.index)}
	}
	return refs
}

// CheckGiven returns an error if the recording cannot be executed with the values.
func (c *Recording) CheckGiven(given []Given) error {
	for i := range given {
		g := &given[i]
		switch {
		case g.Param == nil:
			return errs.Argument("execute", "a value of a zero parameter: make it with NewParam")
		case g.Param.of != c:
			return errs.Argument("execute", "a value of %v of another command buffer", g.Param)
		case slices.ContainsFunc(given[:i], func(x Given) bool { return x.Param == g.Param }):
			return errs.Argument("execute", "two values of %v", g.Param)
		}
		if len(g.Param.limits) > 0 {
			if err := g.Param.checkBlocks(g.Value.Blocks()); err != nil {
				return err
			}
		}
	}
	return nil
}

// values appends the values of all parameters in an execution.
func (c *Recording) values(to []Value, given []Given) []Value {
	from := len(to)
	for _, p := range c.params {
		to = append(to, p.initial)
	}
	for i := range given {
		to[from+given[i].Param.index] = given[i].Value
	}
	for i, p := range c.params {
		if len(p.limits) > 0 { // a graph's nodes have the words as they are
			v := &to[from+i]
			*(*[3]uint32)(unsafe.Pointer(v)) = v.Blocks()
		}
	}
	return to
}

// words returns the words of a parameter in the execution that is being issued. They are in present
// behind the addresses, so that a parameter's places in a graph are set as those of an address are.
func (c *Recording) words(param int32) []driver.Ptr {
	at := len(c.refers) + 2*int(param)
	return c.present[at : at+2]
}

// setWords stores the values of an execution. It reports whether one differs from the last
// execution's.
func (c *Recording) setWords(values []Value) (moved bool) {
	for i := range values {
		words := c.words(int32(i))
		for k, w := range values[i] {
			if words[k] != driver.Ptr(w) {
				words[k], moved = driver.Ptr(w), true
			}
		}
	}
	return moved
}

// useParams puts the values of parameters into the arguments of a launch and into its grid.
func (c *Recording) useParams(x *work.Extra, cmd *command) {
	for _, p := range cmd.rare.params {
		words := c.words(p.param)
		if p.index == Blocks {
			c.shaped = cmd.launch
			c.shaped.Grid = blocks(words)
			x.Launch = &c.shaped
			continue
		}
		at := cmd.launch.Args[p.index]
		*work.Address(at) = words[0]
		if cmd.layout[p.index] > 8 {
			*work.Address(unsafe.Add(at, 8)) = words[1]
		}
	}
}

// noteParams notes the places in a graph's node that depend on parameters.
func (x *graphOf) noteParams(c *Recording, cmd *command, node int) {
	put := func(at unsafe.Pointer, size int, p paramRef) {
		for k := range (size + 7) / 8 {
			ref := int32(len(c.refers)) + 2*p.param + int32(k)
			x.places = append(x.places, place{at: work.Address(unsafe.Add(at, 8*k)), has: c.present[ref], ref: ref, node: int32(node), half: size-8*k == 4 && p.index == Blocks})
		}
	}
	for _, p := range cmd.rare.params {
		if p.index == Blocks {
			grid := &x.ops[node].Launch.Grid
			put(unsafe.Pointer(grid), int(unsafe.Sizeof(*grid)), p)
		} else {
			put(cmd.launch.Args[p.index], cmd.layout[p.index], p)
		}
	}
}

// leavesOut reports whether a launch of a part has no blocks in an execution. No node of a graph can
// do nothing, so the part's commands then run one after the other.
func (p *part) leavesOut(values []Value) bool {
	for _, i := range p.grids {
		if values[i].Blocks()[0] == 0 {
			return true
		}
	}
	return false
}

// addGrids adds the parameter that is a command's blocks.
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
				return blocks(c.words(p.param))
			}
		}
	}
	return cmd.launch.Grid
}

// A nestedParam says what a parameter of a nested recording is: a parameter of the outer one or, if
// outer is nil, a constant.
type nestedParam struct {
	inner, outer *Param
	value        Value
}

// checkNested checks the parameters of a recording that is to be nested in this one.
func (c *Recording) checkNested(child *Recording, given []Given, uses []Use) ([]nestedParam, error) {
	if err := child.CheckGiven(given); err != nil {
		return nil, err
	}
	params := make([]nestedParam, len(child.params))
	for i, v := range child.values(nil, given) {
		params[i] = nestedParam{inner: child.params[i], value: v}
	}
	for _, u := range uses {
		if err := c.checkUse(work.Execute, u.Param); err != nil {
			return nil, err
		}
		if u.Index >= len(params) {
			return nil, errs.Argument("execute", "%v stands for parameter %d of a command buffer that has %d", u.Param, u.Index, len(params))
		}
		p := &params[u.Index]
		switch {
		case p.inner.typ != u.Param.typ:
			return nil, errs.Argument("execute", "%v stands for %v of the nested command buffer", u.Param, p.inner)
		case slices.ContainsFunc(given, func(g Given) bool { return g.Param == p.inner }):
			return nil, errs.Argument("execute", "both a value and %v for %v of the nested command buffer", u.Param, p.inner)
		}
		p.outer = u.Param
		for i := range p.inner.limits {
			if err := p.inner.limits[i].checkDefault(u.Param); err != nil {
				return nil, err
			}
		}
	}
	return params, nil
}

// forwardLimits adds the limits of nested parameters to the outer ones. first is the number of the
// nested recording's first command in the outer one.
func forwardLimits(params []nestedParam, first Command) {
	for _, p := range params {
		for i := range p.inner.limits {
			if l := p.inner.limits[i]; p.outer != nil {
				l.command += first
				p.outer.add(l)
			}
		}
	}
}

// nestParams replaces the parameters of a nested recording's command. Its arguments are in args.
func (c *Recording) nestParams(cmd *command, params []nestedParam) {
	if cmd.rare == nil || len(cmd.rare.params) == 0 {
		return
	}
	var kept []paramRef
	for _, r := range cmd.rare.params {
		p := &params[r.param]
		switch {
		case p.outer != nil:
			kept = append(kept, paramRef{r.index, int32(p.outer.index)})
		case r.index != Blocks:
			at := cmd.layout.Point(nil, c.args[cmd.arg:])[r.index]
			work.SetArg(at, unsafe.Pointer(&p.value), cmd.layout[r.index])
		default:
			if cmd.launch.Grid = p.value.Blocks(); cmd.launch.Grid[0] == 0 {
				cmd.op.Kind = work.Nothing
			}
		}
	}
	if cmd.rare = nil; kept != nil && cmd.op.Kind != work.Nothing {
		cmd.rare = c.rare(rareCommand{params: kept})
	}
}
