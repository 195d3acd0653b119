package gpu

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A TypedKernel is a kernel whose arguments are a struct. It is made by [Typed], launches again and again without being checked anew,
// and may be used concurrently. It holds nothing, and ends with its kernel. A zero one launches nothing: [ErrArgument].
type TypedKernel[A any] struct {
	_ [0]*A // keeps one from being converted to another
	boundKernel
}

// A boundKernel is a kernel, and where its arguments are in a struct.
type boundKernel struct {
	kernel *Kernel
	params []param
	layout work.Layout // of the arguments: the fields', or what a Dispatch has
}

// A param is a kernel's parameter, and the field of the struct that is its argument.
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
	bufferAddr           // of a *Buffer
	rangeAddr            // of a Range, or a Slice, which is one
)

// Typed checks once that the fields of a struct are what a kernel takes, in the order of its parameters, and returns the kernel as
// one that is launched with such a struct. Fields are
//
//   - scalars of a fixed size, such as int32, uint64, float32 and bool, and arrays and structs of these. The argument is a copy;
//   - [driver.Ptr], the address of memory that the program sees to itself;
//   - *[Buffer], [Range] and [Slice]. The argument is the address, of a buffer's beginning or the range's, and the buffer stays until
//     the kernel is done. It may be of memory from a pool that is allocated only when the launch is issued, and, in a recording, of a
//     binding.
//
// They may be unexported. Those named _ are left out.
//
// Where the driver tells the sizes of parameters ([Kernel.Info]), number and sizes of the fields are checked against them. Where it
// does not, nothing can be: fields of other sizes than the kernel's parameters then make it read what is not its arguments. An error
// names the field and is [ErrArgument].
func Typed[A any](k *Kernel) (*TypedKernel[A], error) {
	b, err := bindType(k, reflect.TypeFor[A]())
	if err != nil {
		return nil, err
	}
	return &TypedKernel[A]{boundKernel: b}, nil
}

// Launch launches the kernel in a stream. The arguments are copied by the call.
func (k *TypedKernel[A]) Launch(s *Stream, g Grid, args A) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	if k == nil {
		return s.end(errZero)
	}
	return s.end(k.dispatch(s.q, o, g, unsafe.Pointer(&args)))
}

// Dispatch launches the kernel in a queue, as [Queue.Dispatch] does. The arguments are copied by the call.
func (k *TypedKernel[A]) Dispatch(q *Queue, o Order, g Grid, args A) error {
	if k == nil {
		return errZero
	}
	return k.dispatch(q, o, g, unsafe.Pointer(&args))
}

// Record records what Dispatch does, as [CommandBuffer.Dispatch] does. Arguments may be of the command buffer's bindings.
func (k *TypedKernel[A]) Record(c *CommandBuffer, g Grid, args A, after ...Command) (Command, error) {
	if k == nil {
		return -1, errZero
	}
	return k.record(c, g, unsafe.Pointer(&args), after)
}

// bindType makes a plan of how the fields of a struct become a kernel's arguments.
func bindType(k *Kernel, t reflect.Type) (boundKernel, error) {
	if k == nil || k.exe == nil {
		return boundKernel{}, argument("bind", "no kernel")
	}
	op := "bind " + k.name
	if t.Kind() != reflect.Struct {
		return boundKernel{}, argument(op, "the arguments are a %v; they must be a struct, whose fields are the kernel's parameters in order", t)
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
			return boundKernel{}, argument(op, "field %s (%v): %s", where, of, why)
		}
		b.params, b.layout = append(b.params, p), append(b.layout, p.size)
	}
	known := k.info.Params
	if known == nil {
		return b, nil
	}
	for i, p := range b.params {
		if i < len(known) && p.size != known[i] {
			return boundKernel{}, argument(op, "field %s has %d bytes, and parameter %d of the kernel has %d: its parameters have %v", p.name, p.size, i, known[i], known)
		}
	}
	if len(b.params) != len(known) {
		return boundKernel{}, argument(op, "%v has %d fields, and the kernel has %d parameters, of %v bytes", t, len(b.params), len(known), known)
	}
	return b, nil
}

// memory returns the range whose address is an argument.
func (p *param) memory(args unsafe.Pointer) Range {
	field := unsafe.Add(args, p.offset)
	if p.kind == bufferAddr {
		return Range{Buffer: *(**Buffer)(field)} // of which nothing but the address is asked
	}
	return *(*Range)(field)
}

// check checks what can be told without the arguments, and makes a grid what the device takes.
func (b *boundKernel) check(d *Device, g *Grid) error {
	switch {
	case b.kernel == nil:
		return errZero
	case b.kernel.exe.dev != d:
		return argument("dispatch", "kernel %s is of another device", b.kernel.name)
	}
	return g.check(b.kernel)
}

// dispatch launches the kernel with a struct of arguments. It does what Queue.Dispatch does, and copies fields to where that copies
// arguments.
func (b *boundKernel) dispatch(q *Queue, o Order, g Grid, args unsafe.Pointer) error {
	if q == nil {
		return argument("dispatch", "no queue")
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
		if err := s.setBuffer(i, p.memory(args), ended); err != nil {
			s.drop()
			return b.refused(i, err)
		}
	}
	return q.launch(s, o, b.kernel, &g, ended)
}

// refused names the field of an error.
func (b *boundKernel) refused(i int, err error) error {
	if b.params == nil {
		return err
	}
	return fmt.Errorf("field %s of the arguments of %s: %w", b.params[i].name, b.kernel.name, err)
}

// record records a launch of the kernel with a struct of arguments.
func (b *boundKernel) record(c *CommandBuffer, g Grid, args unsafe.Pointer, after []Command) (Command, error) {
	if c == nil {
		return -1, argument("dispatch", "no command buffer")
	}
	values, buffers := make([]unsafe.Pointer, len(b.params)), []BufferArg(nil)
	for i := range b.params {
		if p := &b.params[i]; p.kind == byValue {
			values[i] = unsafe.Add(args, p.offset)
		} else {
			buffers = append(buffers, BufferArg{i, p.memory(args)})
		}
	}
	if err := c.begin(work.Dispatch); err != nil {
		return -1, err
	}
	defer c.leave()
	if err := b.check(c.dev, &g); err != nil {
		return -1, c.fail(work.Dispatch, err)
	}
	return c.recordLaunch(&g, b, values, buffers, after)
}
