package gpu

import (
	"reflect"
	"slices"
	"strconv"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/recording"
)

// A Param is a parameter of a recording: a value that may differ from one execution to the next.
// (For memory that differs, use a binding.) [NewParam] makes a Param. A recorded launch can use a
// Param in place of an argument that is passed by value: pass the Param to [Launch] or use
// [Op.Param]. With [Op.GridParam] a Param replaces the blocks of a launch. Many launches may use
// one Param. An execution gives the Param a value with [Op.With]; otherwise the value is the
// default.
//
// A Param is a small value, and may be copied and compared. The zero Param belongs to no recording:
// using it is [ErrArgument].
type Param[T any] struct {
	_ [0]*T // prevents conversion to another Param type
	p *recording.Param
}

// NewParam adds a parameter to a command buffer that is being recorded. initial is the default: the
// value in executions that do not set the parameter with [Op.With]. T is a type that [Launch]
// passes by value: a scalar of a fixed size, or an array or struct of such scalars. T has at most
// 16 bytes. For other types the error is [ErrArgument]. Pass larger values through memory, with
// [UploadCopy] in front of the execution.
func NewParam[T any](c *CommandBuffer, initial T) (Param[T], error) {
	const op = "parameter"
	if c.isZero() {
		return Param[T]{}, errs.Zero(op, "CommandBuffer")
	}
	t := reflect.TypeFor[T]()
	if _, err := sizeOf[T](op, 1); err != nil {
		return Param[T]{}, err
	}
	if t.Size() > uintptr(recording.MaxValue) {
		return Param[T]{}, errs.Argument(op, "a %v has %d bytes, and a parameter at most %d: pass it through memory", t, t.Size(), recording.MaxValue)
	}
	p, err := c.in().NewParam(t, valueOf(initial))
	return Param[T]{p: p}, err
}

// valueOf returns v as a recording.Value. If v does not fit, the result is zero.
func valueOf[T any](v T) (to recording.Value) {
	if unsafe.Sizeof(v) <= unsafe.Sizeof(to) {
		*(*T)(unsafe.Pointer(&to)) = v
	}
	return to
}

// Value returns the parameter together with a value for one execution, for [Op.With].
func (p Param[T]) Value(v T) ParamValue {
	return ParamValue{recording.Given{Param: p.p, Value: valueOf(v)}}
}

func (p Param[T]) parameter() *recording.Param { return p.p }

// A parameter is a Param of any type.
type parameter interface{ parameter() *recording.Param }

// paramOf returns the parameter of the recording. It returns nil if p is nil or a zero Param.
func paramOf(p parameter) *recording.Param {
	if v := reflect.ValueOf(p); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return p.parameter()
}

// A ParamValue is a parameter with a value for an execution. [Param.Value] makes it.
type ParamValue struct{ given recording.Given }

// With returns an [Execute] with values of parameters of its recording. The values belong to this
// execution alone: other executions have their own values, even if they are in flight at the same
// time. In a graph, only nodes whose values differ from the previous execution are updated. With
// CUDA an update costs the host about half a microsecond a node (cuGraphExecKernelNodeSetParams).
//
// The error is [ErrArgument] if a value belongs to another recording or to a zero Param, if one
// parameter has two values, or if a value exceeds the limits of [Op.GridParam]. An Op that is not
// an Execute is [ErrArgument] too. When the Execute is added to another recording, the values are
// constants of that recording.
//
// An Op has room for 16 bindings and values together. If there are more, With allocates memory.
func (op Op) With(values ...ParamValue) Op {
	if op.kind != executeOp {
		return op.wrong("it takes no values of parameters: Execute does")
	}
	ranges := int(op.n)
	if op.more != nil && op.more.ranges != nil {
		ranges = 0
	}
	had := op.given()
	if n := len(had) + len(values); ranges+n <= opArgs {
		op.values = uint8(n)
		now := op.given()
		for i := range values {
			now[i] = values[i].given
		}
		return op
	}
	all := make([]recording.Given, 0, len(had)+len(values))
	all = append(all, had...)
	for i := range values {
		all = append(all, values[i].given)
	}
	op.ownMore().given = all
	return op
}

// given returns the values of an execution. If the values fit into the Op, they are at the end of
// args, and the values of the last call of With come first.
func (op *Op) given() []recording.Given {
	if op.more != nil && op.more.given != nil {
		return op.more.given
	}
	from := opArgs - int(op.values)
	if from == opArgs {
		return nil
	}
	return unsafe.Slice((*recording.Given)(unsafe.Pointer(&op.args[from])), op.values)
}

// The method given casts Ranges to Givens. Both begin with a pointer, and this line does not
// compile if they differ in size.
var _ [unsafe.Sizeof(Range{})]struct{} = [unsafe.Sizeof(recording.Given{})]struct{}{}

// ownMore sets op.more to a copy of the old opMore, or to an empty opMore, and returns op.more.
// Copies of the Op keep the old opMore.
func (op *Op) ownMore() *opMore {
	more := new(opMore)
	if op.more != nil {
		*more = *op.more
	}
	op.more = more
	return more
}

// wrong returns an Op with an [ErrArgument] that says why op is wrong. If op is the zero Op or has
// an error already, wrong returns op.
func (op *Op) wrong(format string, args ...any) Op {
	if op.kind == zeroOp || op.kind == wrongOp {
		return *op
	}
	return BadOp(errs.Argument(op.String(), format, args...)).Label(op.label)
}

// Param returns a launch in which argument i is p, a [Param]. The launch must be added to the
// recording of p. Arguments are counted from 0, in the order of the kernel's parameters. p replaces
// the argument's value in the launch.
//
// For an [Execute] that will be added to a recording, Param returns an Execute in which p stands
// for parameter i of the executed recording. The parameters of a recording are counted in the order
// of the calls of [NewParam].
//
// The error is [ErrArgument] if argument i does not exist, is memory, is a Param already or has
// another type than p. (For an argument that is a []byte, only the size must be equal.) A zero
// Param is [ErrArgument] too, and so is an Op that is neither a launch nor an Execute. An Op with
// parameters can be added only to the recording of the parameters: a queue, a [Stream] and other
// recordings refuse it with [ErrArgument].
func (op Op) Param(i int, p parameter) Op {
	of := paramOf(p)
	switch {
	case op.kind != launchOp && op.kind != executeOp:
		return op.wrong("it takes no parameter: Launch and Execute do")
	case of == nil:
		return op.wrong("argument %d is a zero Param: make it with NewParam", i)
	case i < 0:
		return op.wrong("argument %d is %v: arguments are counted from 0", i, of)
	}
	if op.kind == launchOp {
		b := op.obj.(*boundKernel)
		if i >= len(b.params) {
			return op.wrong("argument %d is %v, and there are %d arguments", i, of, len(b.params))
		}
		a := &b.params[i]
		where := strconv.Itoa(i)
		if a.name != where {
			where += " (" + a.name + ")"
		}
		switch {
		case a.kind != byValue:
			return op.wrong("argument %s is an address, and the recording's %v is given for it: use a binding", where, of)
		case a.typ != nil && a.typ != of.Type():
			return op.wrong("argument %s has type %v, and the recording's %v is given for it", where, a.typ, of)
		case uintptr(a.size) != of.Type().Size():
			return op.wrong("argument %s has %d bytes, and the recording's %v is given for it", where, a.size, of)
		}
	}
	return op.use(i, of)
}

// GridParam returns a launch whose number of blocks in each dimension is p, in place of the Blocks
// of its [Grid]. The launch must be added to the recording of p. A second or third dimension of
// zero means one. If the first dimension is zero, the execution does not launch the kernel, and the
// commands of the launch's graph run one after the other, without the graph. The first dimension of
// the default of p must not be zero, because a graph is made with the default.
//
// The limits of a launch hold: an execution is refused with [ErrArgument] if the value of p has
// more blocks than the device takes, is not a multiple of the clusters, or has too many blocks for
// a cooperative launch. See [Op.Param] for other errors.
func (op Op) GridParam(p Param[[3]uint32]) Op {
	switch {
	case op.kind != launchOp:
		return op.wrong("it has no blocks: Launch does")
	case p.p == nil:
		return op.wrong("the blocks are a zero Param: make it with NewParam")
	}
	return op.use(recording.Blocks, p.p)
}

// use returns the Op with the parameter p as argument i, or as the blocks if i is recording.Blocks.
func (op *Op) use(i int, p *recording.Param) Op {
	for _, u := range op.uses() {
		if u.Index == i && i == recording.Blocks {
			return op.wrong("the blocks are both %v and %v", u.Param, p)
		} else if u.Index == i {
			return op.wrong("argument %d is both %v and %v", i, u.Param, p)
		}
	}
	more := op.ownMore()
	more.uses = append(slices.Clip(more.uses), recording.Use{Index: i, Param: p})
	return *op
}

func (op *Op) uses() []recording.Use {
	if op.more == nil {
		return nil
	}
	return op.more.uses
}

// noUses returns an error if the Op uses parameters. Only an Op that is recorded can use
// parameters.
func (op *Op) noUses() error {
	all := op.uses()
	if len(all) == 0 {
		return nil
	}
	at := "the blocks are"
	if i := all[0].Index; i != recording.Blocks {
		at = "argument " + strconv.Itoa(i) + " is"
	}
	return errs.Argument(op.String(), "%s %v, which has a value only in a recording: add the Op to that", at, all[0].Param)
}
