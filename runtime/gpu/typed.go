package gpu

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A TypedKernel is a kernel whose arguments are a struct. [Typed] makes it and checks the struct
// once, so launches need not check it. It may be used concurrently. It needs no Close, and is valid
// as long as its kernel. A zero TypedKernel launches nothing: [ErrArgument].
type TypedKernel[A any] struct {
	_ [0]*A // prevents conversion to another TypedKernel type
	boundKernel
}

// A boundKernel is a kernel with the positions of its arguments in a struct.
type boundKernel struct {
	kernel *Kernel
	params []param
	layout work.Layout // of the arguments: the struct's fields, or the arguments of a Dispatch
}

// A param is a kernel parameter and the struct field that is its argument.
type param struct {
	name   string
	kind   paramKind
	offset uintptr // in the struct
	size   int     // of the argument, bytes
}

// A paramKind says how a field becomes an argument.
type paramKind uint8

const (
	byValue    paramKind = iota
	bufferAddr           // the field is a *Buffer
	rangeAddr            // the field is a Range, or a Slice, which has a Range's layout
)

// Typed checks that the fields of a struct match a kernel's parameters, in order. It returns the
// kernel for launches with such a struct. Fields are
//
//   - scalars of a fixed size, such as int32, uint64, float32 and bool, and arrays and structs of
//     these. The argument is a copy;
//   - [driver.Ptr], the address of memory that the program manages itself;
//   - *[Buffer], [Range] and [Slice]. The argument is the address of the buffer's beginning or of
//     the range. The buffer is held until the kernel is done. It may have memory from a pool that
//     is allocated only when the launch is issued. In a recording it may also be a binding.
//
// Fields may be unexported. Fields named _ are ignored.
//
// If the driver knows the sizes of parameters ([Kernel.Info]), the number and sizes of the fields
// are checked against them. Otherwise they cannot be checked: a field of a wrong size then makes
// the kernel read wrong arguments. An error names the field and is [ErrArgument].
func Typed[A any](k *Kernel) (*TypedKernel[A], error) {
	b, err := bindType(k, reflect.TypeFor[A]())
	if err != nil {
		return nil, err
	}
	return &TypedKernel[A]{boundKernel: b}, nil
}

// Launch launches the kernel in a stream. The call copies the arguments.
func (k *TypedKernel[A]) Launch(s *Stream, g Grid, args A) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	if k == nil {
		return s.end(errs.ErrZero)
	}
	return s.end(k.dispatch(s.q, o, g, unsafe.Pointer(&args)))
}

// Dispatch launches the kernel in a queue, as [Queue.Dispatch] does. The call copies the arguments.
func (k *TypedKernel[A]) Dispatch(q *Queue, o Order, g Grid, args A) error {
	if k == nil {
		return errs.ErrZero
	}
	return k.dispatch(q, o, g, unsafe.Pointer(&args))
}

// Record records a launch of the kernel, as [CommandBuffer.Dispatch] does. Arguments may be
// bindings of the command buffer.
func (k *TypedKernel[A]) Record(c *CommandBuffer, g Grid, args A, after ...Command) (Command, error) {
	if k == nil {
		return -1, errs.ErrZero
	}
	return k.record(c, g, unsafe.Pointer(&args), after)
}

// bindType determines how the fields of a struct become a kernel's arguments.
func bindType(k *Kernel, t reflect.Type) (boundKernel, error) {
	if k == nil || k.exe == nil {
		return boundKernel{}, errs.Argument("bind", "no kernel")
	}
	op := "bind " + k.name
	if t.Kind() != reflect.Struct {
		return boundKernel{}, errs.Argument(op, "the arguments are a %v; they must be a struct, whose fields are the kernel's parameters in order", t)
	}
	b := boundKernel{kernel: k}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		p := param{name: f.Name, offset: f.Offset, size: 8}
		where, of, why := f.Name, f.Type, ""
		switch {
		case f.Anonymous:
			why = "it is embedded, and may be one parameter or several: give it a name, or name its fields here"
		case f.Type == reflect.TypeFor[*Buffer]():
			p.kind = bufferAddr
		case f.Type == reflect.TypeFor[Range](), isSlice(f.Type):
			p.kind = rangeAddr
		case f.Type.Size() == 0:
			why = "it has no bytes"
		default:
			p.size = int(f.Type.Size())
			where, of, why = notOnDevice(f.Type, f.Name)
		}
		if why != "" {
			return boundKernel{}, errs.Argument(op, "field %s (%v): %s", where, of, why)
		}
		b.params, b.layout = append(b.params, p), append(b.layout, p.size)
	}
	known := k.info.Params
	if known == nil {
		return b, nil
	}
	for i, p := range b.params {
		if i < len(known) && p.size != known[i] {
			return boundKernel{}, errs.Argument(op, "field %s has %d bytes, and parameter %d of the kernel has %d: its parameters have %v", p.name, p.size, i, known[i], known)
		}
	}
	if len(b.params) != len(known) {
		return boundKernel{}, errs.Argument(op, "%v has %d fields, and the kernel has %d parameters, of %v bytes", t, len(b.params), len(known), known)
	}
	return b, nil
}

// memory returns the range whose address is the argument.
func (p *param) memory(args unsafe.Pointer) Range {
	field := unsafe.Add(args, p.offset)
	if p.kind == bufferAddr {
		return Range{Buffer: *(**Buffer)(field)} // only the address is needed, so the size stays 0
	}
	return *(*Range)(field)
}

// check makes the checks that do not need the arguments, and replaces zero dimensions of the grid
// by one.
func (b *boundKernel) check(d *Device, g *Grid) error {
	switch {
	case b.kernel == nil:
		return errs.ErrZero
	case b.kernel.exe.dev != d:
		return errs.Argument("dispatch", "kernel %s is of another device", b.kernel.name)
	}
	return g.check(b.kernel)
}

// dispatch launches the kernel with a struct of arguments. It is Queue.Dispatch, except that it
// copies the arguments from fields.
func (b *boundKernel) dispatch(q *Queue, o Order, g Grid, args unsafe.Pointer) error {
	if q == nil {
		return errs.Argument("dispatch", "no queue")
	}
	if err := b.check(q.dev, &g); err != nil {
		return err
	}
	s := q.get(work.Dispatch)
	s.setArgs(b.layout, nil)
	ended := q.dev.failed() != nil
	for i := range b.params {
		p := &b.params[i]
		if p.kind == byValue {
			work.SetArg(s.launch.Args[i], unsafe.Add(args, p.offset), p.size)
			continue
		}
		if err := s.setBuffer(i, p.memory(args).in(), ended); err != nil {
			s.drop()
			return b.refused(i, err)
		}
	}
	return q.launch(s, o, b.kernel, &g, ended)
}

// refused adds the name of the field to an error.
func (b *boundKernel) refused(i int, err error) error {
	if b.params == nil {
		return err
	}
	return fmt.Errorf("field %s of the arguments of %s: %w", b.params[i].name, b.kernel.name, err)
}

// record records a launch of the kernel with a struct of arguments.
func (b *boundKernel) record(c *CommandBuffer, g Grid, args unsafe.Pointer, after []Command) (Command, error) {
	if c == nil {
		return -1, errs.Argument("dispatch", "no command buffer")
	}
	values, buffers := make([]unsafe.Pointer, len(b.params)), []BufferArg(nil)
	for i := range b.params {
		if p := &b.params[i]; p.kind == byValue {
			values[i] = unsafe.Add(args, p.offset)
		} else {
			buffers = append(buffers, BufferArg{i, p.memory(args)})
		}
	}
	if err := c.in().Begin(work.Dispatch); err != nil {
		return -1, err
	}
	defer c.in().Leave()
	if err := b.check(c.device(), &g); err != nil {
		return -1, c.in().Fail(work.Dispatch, err)
	}
	return c.recordLaunch(&g, b, values, buffers, after)
}
