package gpu

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A TypedKernel is a kernel whose arguments are the fields of a struct. [Typed] makes a TypedKernel
// and checks the struct once, so launches need not check it. A TypedKernel may be used
// concurrently. It needs no Close, and is valid as long as its kernel. If a nil or zero TypedKernel
// is launched, the error is [ErrArgument].
type TypedKernel[A any] struct {
	_ [0]*A // prevents conversion to another TypedKernel type
	boundKernel
}

// A boundKernel is a kernel with the types and the layout of its arguments.
type boundKernel struct {
	kernel *Kernel
	params []param
	layout work.Layout // layout of the arguments: the struct's fields, or the arguments given to Launch
}

// A param describes a parameter of a kernel, and the struct field or the argument of Launch that
// gives its value.
type param struct {
	name   string // the field's name, or the argument's index
	kind   paramKind
	offset uintptr      // of the field in the struct; 0 for an argument of Launch
	size   int          // of the kernel's argument, in bytes
	typ    reflect.Type // of the Go value; nil if the value is a []byte given to Launch
}

// A paramKind says how a Go value becomes an argument of a kernel.
type paramKind uint8

const (
	byValue    paramKind = iota
	bufferAddr           // the Go value is a *Buffer
	rangeAddr            // the Go value is a Range, or a Slice, which has a Range's layout
)

// Typed checks that the fields of a struct match a kernel's parameters, in order. Typed returns the
// kernel for launches with such a struct. Fields are
//
//   - scalars of a fixed size, such as int32, uint64, float32 and bool, and arrays and structs of
//     these. The argument is a copy;
//   - [driver.Ptr], the address of memory that the program manages itself;
//   - *[Buffer], [Range] and [Slice]. The argument is the address of the buffer's beginning or of
//     the range. The buffer is held until the kernel is done. The buffer may be memory of a pool,
//     if the memory is allocated when the launch is issued. In a recording the buffer may also be
//     one of [CommandBuffer.Binding] or [CommandBuffer.Scratch].
//
// Fields may be unexported. Fields named _ are ignored. Embedded fields are refused.
//
// If the driver reports the kernel's parameters ([Kernel.Info]), Typed compares the fields with
// the parameters, in number and size. Otherwise a field of a wrong size makes the kernel read wrong
// arguments. Errors are [ErrArgument]. If a field is wrong, the error names it.
func Typed[A any](k *Kernel) (*TypedKernel[A], error) {
	b, err := bindType(k, reflect.TypeFor[A]())
	if err != nil {
		return nil, err
	}
	return &TypedKernel[A]{boundKernel: b}, nil
}

// Launch copies the arguments, and returns an Op that launches the kernel. If the Op is added to a
// recording, arguments may be bindings or scratch buffers of that recording.
func (k *TypedKernel[A]) Launch(g Grid, args A) (op Op) {
	if k == nil {
		return BadOp(errNoKernel)
	}
	k.launch(&op, &g, unsafe.Pointer(&args))
	return op
}

// bindType determines how the fields of the struct type t become the arguments of the kernel.
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
		p := param{name: f.Name, offset: f.Offset}
		where, of, why := p.setType(f.Type)
		if f.Anonymous {
			why = "it is embedded, and may be one parameter or several: give it a name, or name its fields here"
		}
		if why != "" {
			return boundKernel{}, errs.Argument(op, "field %s (%v): %s", where, of, why)
		}
		b.params, b.layout = append(b.params, p), append(b.layout, p.size)
	}
	return b, b.checkSizes(op, "field", fmt.Sprintf("%v has %d fields", t, len(b.params)))
}

// setType sets how values of the type t become the kernel's argument. If t cannot be an argument,
// setType returns the name and the type of the wrong part, and the reason. Otherwise the reason is
// "".
func (p *param) setType(t reflect.Type) (where string, of reflect.Type, why string) {
	p.size, p.typ = 8, t
	switch {
	case t == reflect.TypeFor[*Buffer]():
		p.kind = bufferAddr
	case t == reflect.TypeFor[Range](), isSlice(t):
		p.kind = rangeAddr
	case t.Size() == 0:
		why = "it has no bytes"
	default:
		p.size = int(t.Size())
		return notOnDevice(t, p.name)
	}
	return p.name, t, why
}

// checkSizes compares the number and the sizes of the arguments with those of the parameters, if
// the driver reports the parameters. The strings op, what and all are parts of error messages: the
// operation, the word for an argument, and the number of arguments.
func (b *boundKernel) checkSizes(op, what, all string) error {
	known := b.kernel.info.Params
	if known == nil {
		return nil
	}
	for i, p := range b.params {
		if i < len(known) && p.size != known[i] {
			return errs.Argument(op, "%s %s has %d bytes, and parameter %d of the kernel has %d: its parameters have %v", what, p.name, p.size, i, known[i], known)
		}
	}
	if len(b.params) != len(known) {
		return errs.Argument(op, "%s, and the kernel has %d parameters, of %v bytes", all, len(known), known)
	}
	return nil
}
