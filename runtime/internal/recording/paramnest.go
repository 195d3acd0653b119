package recording

import (
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A nestedParam is the replacement of the parameter inner of a nested recording. The replacement is
// a parameter of the outer recording, in the field outer. If outer is nil, the replacement is a
// constant, in the field value.
type nestedParam struct {
	inner, outer *Param
	value        Value
}

// checkNested checks the parameters of the recording child, which is to be nested in c. It returns
// the replacement of each parameter of child.
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

// forwardLimits adds the limits of nested parameters to the outer parameters. The function at
// returns the number that a nested command has in the outer recording. For each command of a body,
// the function at returns the number of the control command.
func forwardLimits(params []nestedParam, at func(Command) Command) {
	for _, p := range params {
		for i := range p.inner.limits {
			if l := p.inner.limits[i]; p.outer != nil {
				l.command = at(l.command)
				p.outer.add(l)
			}
		}
	}
}

// nestParams replaces the parameters of a nested recording's command. The command's arguments are
// in c.args.
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
		cmd.rare = c.cmds.rare(rareCommand{params: kept})
	}
}
