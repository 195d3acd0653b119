package gpu

import (
	"fmt"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Launch returns an Op that launches a kernel. The arguments have the types that [Typed] takes:
// scalars of a fixed size, arrays and structs of these, a [driver.Ptr], and a *[Buffer], a [Range]
// or a [Slice] for an address. The number and the sizes of the arguments must match the kernel's
// parameters. Launch checks the number and the sizes if the driver reports the parameters. A []byte
// holds the bytes of an argument that is passed by value, for programs that learn the argument's
// type only at run time. In a recording a [Param] may take the place of an argument that is passed
// by value. An untyped constant is an int or a float64: write uint32(n), float32(2). Each call of
// Launch looks up the types of the arguments, and allocates. [Typed] and generated code look up the
// types once.
func Launch(k *Kernel, g Grid, args ...any) (op Op) {
	if k == nil || k.exe == nil {
		return BadOp(errNoKernel)
	}
	name := "launch " + k.name
	b := &boundKernel{kernel: k, params: make([]param, len(args)), layout: make(work.Layout, len(args))}
	op.kind, op.obj, op.grid = launchOp, b, g
	to, uses := op.room(len(args)), []recording.Use(nil)
	for i, arg := range args {
		p := &b.params[i]
		p.name = strconv.Itoa(i)
		if arg == nil {
			return BadOp(errs.Argument(name, "argument %d is nil", i))
		}
		if raw, ok := arg.([]byte); ok && len(raw) > 0 {
			p.size, b.layout[i] = len(raw), len(raw)
			op.setArg(&to[i], p, unsafe.Pointer(&raw[0]))
			continue
		}
		if x, ok := arg.(parameter); ok {
			of := paramOf(x)
			if of == nil {
				return BadOp(errs.Argument(name, "argument %d is a zero Param: make it with NewParam", i))
			}
			p.typ, p.size = of.Type(), int(of.Type().Size())
			op.setArg(&to[i], p, unsafe.Pointer(of.Initial()))
			b.layout[i] = p.size
			uses = append(uses, recording.Use{Index: i, Param: of})
			continue
		}
		v := reflect.ValueOf(arg)
		where, of, why := p.setType(v.Type())
		if why != "" {
			if n, ok := arg.(int); ok { // perhaps an untyped constant
				why = fmt.Sprintf("%s, or float32(%d) or float64(%[2]d) for a float", why, n)
			}
			return BadOp(errs.Argument(name, "argument %s (%v): %s", where, of, why))
		}
		in := reflect.New(v.Type())
		in.Elem().Set(v)
		op.setArg(&to[i], p, in.UnsafePointer())
		b.layout[i] = p.size
	}
	if err := b.checkSizes(name, "argument", fmt.Sprintf("%d arguments", len(args))); err != nil {
		return BadOp(err)
	}
	if uses != nil {
		op.ownMore().uses = uses
	}
	return op
}

var errNoKernel = errs.Argument("launch", "a nil or zero kernel")

// launch sets up op as a launch of the kernel. args is the address of the struct of arguments.
func (b *boundKernel) launch(op *Op, g *Grid, args unsafe.Pointer) {
	op.kind, op.obj, op.grid = launchOp, b, *g
	to := op.room(len(b.params))
	for i := range b.params {
		p := &b.params[i]
		op.setArg(&to[i], p, unsafe.Add(args, p.offset))
	}
}

// room makes room for n arguments in the Op, and returns the n elements.
func (op *Op) room(n int) []Range {
	if op.n = int32(n); n > opArgs {
		op.more = &opMore{ranges: make([]Range, n)}
		return op.more.ranges
	}
	return op.args[:n]
}

// inlineArg is the size in bytes of the largest argument that is stored in a Range. Larger
// arguments are in opMore.wide.
const inlineArg = int(unsafe.Sizeof(Range{}.Offset) + unsafe.Sizeof(Range{}.Size))

// setArg stores an argument for the parameter p in *to. from points to the argument's Go value. A
// value larger than inlineArg is stored in opMore.wide, and to.Offset is the value's index in
// opMore.wide.
func (op *Op) setArg(to *Range, p *param, from unsafe.Pointer) {
	switch {
	case p.kind == bufferAddr:
		to.Buffer = *(**Buffer)(from) // the kernel needs only the address, so the size stays 0
	case p.kind == rangeAddr:
		*to = *(*Range)(from)
	case p.size <= inlineArg:
		work.SetArg(unsafe.Pointer(&to.Offset), from, p.size)
	default:
		if op.more == nil {
			op.more = new(opMore)
		}
		at := len(op.more.wide)
		op.more.wide = append(op.more.wide, make([]uint64, (p.size+7)/8)...)
		work.SetArg(unsafe.Pointer(&op.more.wide[at]), from, p.size)
		to.Offset = uint64(at)
	}
}

// arg returns the address of the value of the argument a, which is not a buffer.
func (op *Op) arg(a *Range, p *param) unsafe.Pointer {
	if p.size > inlineArg {
		return unsafe.Pointer(&op.more.wide[a.Offset])
	}
	return unsafe.Pointer(&a.Offset)
}

// check checks that the kernel belongs to the device d, and that it can be launched with the grid.
// Like Grid.check, check replaces zero dimensions of the grid by one, except in the Blocks of a
// launch that does nothing.
func (b *boundKernel) check(d *Device, g *Grid) error {
	switch {
	case b.kernel == nil:
		return errNoKernel
	case b.kernel.exe.dev != d:
		return errs.Argument("launch", "kernel %s is of another device", b.kernel.name)
	}
	return g.check(b.kernel)
}

// refused adds the names of argument i, which was refused, and of the kernel to err.
func (b *boundKernel) refused(i int, err error) error {
	return errs.At(fmt.Sprintf("argument %s of %s", b.params[i].name, b.kernel.name), "launch", err)
}

func (q *Queue) launch(o *Order, op *Op) error {
	b, g := op.obj.(*boundKernel), op.grid
	if err := op.noUses(); err != nil {
		return err
	}
	if err := b.check(q.dev, &g); err != nil {
		return err
	}
	if e := op.begun(); e != nil {
		if err := b.kernel.checkBegun(e); err != nil {
			return err
		}
	}
	s := q.get(work.Launch)
	s.setLayout(b.layout)
	ended := q.dev.failed() != nil
	args := op.all()
	for i := range b.params {
		if p := &b.params[i]; p.kind == byValue {
			work.SetArg(s.launch.Args[i], op.arg(&args[i], p), p.size)
			continue
		}
		if err := s.setBuffer(i, args[i].in(), ended); err != nil {
			s.drop()
			return b.refused(i, err)
		}
	}
	if !ended {
		if err := s.holdCode(b.kernel, op.begun()); err != nil {
			return err
		}
	}
	ptrs := s.launch.Args
	s.launch = g.launch(b.kernel)
	s.launch.Args = ptrs
	if s.shared != nil {
		s.launch.Begun = s.shared.Native()
	}
	if g.nothing() {
		if s.Op.Kind = work.Barrier; s.shared != nil {
			s.Op.Kind = work.EventRecord
		}
	}
	return q.submit(s, o)
}

// addLaunch records a launch.
func (c *CommandBuffer) addLaunch(op *Op, after []recording.Command) (recording.Command, error) {
	b, g, r := op.obj.(*boundKernel), op.grid, c.in()
	if err := r.Begin(work.Launch); err != nil {
		return -1, err
	}
	defer r.Leave()
	for _, u := range op.uses() {
		if u.Index == recording.Blocks {
			g.Blocks, g.none = u.Param.Initial().Blocks(), false
		}
	}
	if err := b.check(c.device(), &g); err != nil {
		return -1, r.Fail(work.Launch, err)
	}
	if op.begun() != nil {
		return -1, r.Fail(work.Launch, fmt.Errorf("an event when kernel %s has begun, which no recording has: %w; launch it in a queue", b.kernel.name, driver.ErrUnsupported))
	}
	var wordRoom [2 * opArgs]uint64 // on the stack; enough for most launches
	var bufferRoom [opArgs]recording.Bound
	words, word := b.layout.Append(wordRoom[:0], nil), 0
	args, buffers := op.all(), bufferRoom[:0]
	for i := range b.params {
		p := &b.params[i]
		word = work.At(word, p.size)
		if p.kind == byValue {
			work.SetArg(unsafe.Pointer(&words[word]), op.arg(&args[i], p), p.size)
		} else {
			buffers = append(buffers, recording.Bound{Index: i, Range: args[i].in()})
		}
		word += work.Words(p.size)
	}
	l := recording.Launch{Code: (*codeUse)(b.kernel.exe), Name: b.kernel.name, Launch: g.launch(b.kernel), Layout: b.layout,
		Uses: op.uses(), Limits: g.limits(b.kernel), Nothing: g.nothing()}
	at, wrong, err := r.Launch(&l, buffers, words, after)
	if wrong >= 0 {
		return -1, b.refused(wrong, err)
	}
	return at, err
}
