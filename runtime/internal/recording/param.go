package recording

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Value has the bytes of a parameter's value, as in memory.
type Value [2]uint64

// MaxValue is the size of the largest value, in bytes.
const MaxValue = int(unsafe.Sizeof(Value{}))

// A Param is a parameter of a recording. Each execution gives the parameter a value, or uses the
// parameter's default.
type Param struct {
	of      *Recording
	index   int
	typ     reflect.Type
	initial Value   // the default value
	limits  []limit // limits of the launches whose blocks the parameter gives, without duplicates
}

// A Given is a parameter with its value in an execution.
type Given struct {
	Param *Param
	Value Value
}

// A Use is the place of a parameter in an operation. Index is the number of an argument, or Blocks.
// For Recording.Nest, Index is the number of a parameter of the nested recording.
type Use struct {
	Index int
	Param *Param
}

// Blocks is the Index of a Use that gives the blocks of a launch.
const Blocks = -1

// String returns the parameter's name in messages.
func (p *Param) String() string { return fmt.Sprintf("parameter %d (%v)", p.index, p.typ) }

// Type returns the type of the values.
func (p *Param) Type() reflect.Type { return p.typ }

// Initial returns the default.
func (p *Param) Initial() *Value { return &p.initial }

// A paramRef says that a parameter gives an argument of a command, or the command's blocks.
type paramRef struct {
	index int32 // the argument's index, or Blocks
	param int32 // the parameter's index in Recording.params
}

// NewParam adds a parameter with values of type t. The caller has checked that t has at most
// MaxValue bytes.
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

// checkUses checks the parameters of a launch. If checkUses refuses an argument, the result wrong
// is the argument's number. If checkUses refuses the blocks, or nothing, wrong is -1.
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

// paramRefs returns uses in the form that a command stores.
func paramRefs(uses []Use) []paramRef {
	refs := make([]paramRef, len(uses))
	for i, u := range uses {
		refs[i] = paramRef{int32(u.Index), int32(u.Param.index)}
	}
	return refs
}

// CheckGiven returns an error if a value is not of a parameter of this recording, if a parameter
// has two values, or if a value gives a launch a number of blocks that it cannot have.
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
		if len(p.limits) > 0 {
			// Nodes of a graph get the words as they are, so replace zeros by ones here.
			v := &to[from+i]
			*(*[3]uint32)(unsafe.Pointer(v)) = v.Blocks()
		}
	}
	return to
}

// useParams puts the values of parameters into the arguments of a launch and into its grid.
func (c *Recording) useParams(x *work.Extra, cmd *command) {
	for _, p := range cmd.rare.params {
		words := c.current.words(p.param)
		if p.index == Blocks {
			c.current.launch = cmd.launch
			c.current.launch.Grid = gridOf(words)
			x.Launch = &c.current.launch
			continue
		}
		at := cmd.launch.Args[p.index]
		*work.Address(at) = words[0]
		if cmd.layout[p.index] > 8 {
			*work.Address(unsafe.Add(at, 8)) = words[1]
		}
	}
}

// noteParams adds the places in a graph's node that depend on parameters to x.places.
func (x *graphOf) noteParams(c *Recording, cmd *command, node int) {
	put := func(at unsafe.Pointer, size int, p paramRef) {
		for k := range (size + 7) / 8 {
			ref := int32(len(c.refers)) + 2*p.param + int32(k)
			// The three numbers of blocks fill one and a half words. Arguments take whole words.
			half := p.index == Blocks && size-8*k < 8
			x.places = append(x.places, place{work.Address(unsafe.Add(at, 8*k)), c.current.present[ref], 0, ref, int32(node), half})
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
