package simdriver

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// A Kernel is a Go function that stands in for a GPU's kernel. Make it with [NewKernel].
type Kernel struct {
	k *kernel
}

type kernel struct {
	fn     reflect.Value
	params []reflect.Type // types of the parameters after *Grid
	sizes  []int
}

// calls holds the unused calls of one stream. Streams do not share unused calls, because the race
// detector would take the sharing for an order of streams.
type calls struct {
	mu   sync.Mutex
	free map[*kernel]*call
}

// A call is one launch of a kernel.
type call struct {
	k    *kernel
	f    *function
	grid Grid             // argument of fn; set while fn runs
	in   []reflect.Value  // arguments of fn: &grid, then the kernel's arguments
	args []unsafe.Pointer // where the kernel's arguments are stored
	next *call
	task *task // the node's task, which records uses of memory; nil outside a graph

	goFunc func(standin.Memory) error // if not nil, called instead of fn
	usable func() error               // if not nil, a launch of a graph with the call fails with its error

	blocks, threads [3]uint32
	shared          uint32
	attrs           driver.LaunchAttrs
}

// NewKernel makes a kernel from fn, which must be a func(*Grid, …) or a func(*Grid, …) error.
//
// The other parameters of fn are the kernel's parameters, in order and of the same sizes: integers
// of a fixed size (no int, uint or uintptr), floats, [driver.Ptr] for addresses, and arrays and
// structs of these. fn is called once per launch, on the goroutine that executes the launch, and
// does the work of all threads. It reaches device memory through [View]. Several launches may call
// fn concurrently. An error, a panic or a failed View loses the device, like an illegal instruction
// or address.
//
// Launching a kernel whose function has no result does not allocate.
func NewKernel(fn any) (Kernel, error) {
	f := reflect.ValueOf(fn)
	if f.Kind() != reflect.Func {
		return Kernel{}, fmt.Errorf("simdriver: a %T cannot be a kernel: %w: it must be a func(*simdriver.Grid, …)", fn, ErrInvalidValue)
	}
	t := f.Type()
	bad := func(why string) (Kernel, error) {
		return Kernel{}, fmt.Errorf("simdriver: %v cannot be a kernel: %w: %s", t, ErrInvalidValue, why)
	}
	switch {
	case f.IsNil():
		return bad("it is nil")
	case t.NumIn() == 0 || t.In(0) != reflect.TypeFor[*Grid]():
		return bad("its first parameter must be a *simdriver.Grid")
	case t.IsVariadic():
		return bad("it must not be variadic")
	case t.NumOut() > 1 || t.NumOut() == 1 && t.Out(0) != reflect.TypeFor[error]():
		return bad("it may have no result but an error")
	}
	k := &kernel{fn: f}
	for i := 1; i < t.NumIn(); i++ {
		p := t.In(i)
		if !plain(p) || p.Size() == 0 {
			return bad(fmt.Sprintf("parameter %d is a %v, which a GPU cannot have: use integers of a fixed size (C's int is int32), floats, driver.Ptr, and arrays and structs of these", i, p))
		}
		k.params = append(k.params, p)
		k.sizes = append(k.sizes, int(p.Size()))
	}
	return Kernel{k}, nil
}

// MustKernel is NewKernel for functions that are known to be valid: it panics if fn cannot be a
// kernel.
func MustKernel(fn any) Kernel {
	k, err := NewKernel(fn)
	if err != nil {
		panic(err)
	}
	return k
}

// Params returns the sizes of the kernel's parameters in bytes.
func (k Kernel) Params() []int {
	if k.k == nil {
		return nil
	}
	return slices.Clone(k.k.sizes)
}

// plain reports whether any bytes are a valid value of type t. Memory of a device may hold any
// bytes.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// get returns an unused call for k, or a new one.
func (cs *calls) get(k *kernel) *call {
	cs.mu.Lock()
	c := cs.free[k]
	if c != nil {
		cs.free[k], c.next = c.next, nil
	}
	cs.mu.Unlock()
	if c != nil {
		return c
	}
	return newCall(k)
}

// newCall makes a call.
func newCall(k *kernel) *call {
	c := &call{k: k}
	c.in = append(c.in, reflect.ValueOf(&c.grid))
	for _, t := range k.params {
		p := reflect.New(t)
		c.in = append(c.in, p.Elem())
		c.args = append(c.args, p.UnsafePointer())
	}
	return c
}

// set sets c to a launch of f.
func (c *call) set(f *function, l *driver.Launch) {
	c.f = f
	c.shared, c.attrs = l.SharedMem, l.Attrs
	c.blocks, c.threads = l.Dims()
	c.attrs.Cluster = l.Attrs.ClusterDims()
	c.copyArgs(l.Args)
}

// copyArgs copies a launch's arguments into the call.
func (c *call) copyArgs(args []unsafe.Pointer) {
	for i, n := range c.k.sizes {
		copy(unsafe.Slice((*byte)(c.args[i]), n), unsafe.Slice((*byte)(args[i]), n))
	}
}

// copy makes c equal to another call of the same kernel.
func (c *call) copy(other *call) {
	c.f = other.f
	c.blocks, c.threads, c.shared, c.attrs = other.blocks, other.threads, other.shared, other.attrs
	c.goFunc, c.usable = other.goFunc, other.usable
	c.copyArgs(other.args)
}

// put keeps c, which is unused now, for a later get.
func (cs *calls) put(c *call) {
	c.f, c.goFunc, c.usable = nil, nil, nil
	cs.mu.Lock()
	if cs.free == nil {
		cs.free = make(map[*kernel]*call)
	}
	c.next, cs.free[c.k] = cs.free[c.k], c
	cs.mu.Unlock()
}

// run runs the kernel of o. If it returns an error, the device is lost.
func (s *stream) run(o *operation) (err error) {
	c := o.call
	if c.f.module.unloaded.Load() {
		return fmt.Errorf("%s: its module was unloaded before it ran", s.which(o))
	}
	c.grid = Grid{
		Name: c.f.name, Device: s.dev.index, Stream: s.id, Node: o.node, Blocks: c.blocks, Threads: c.threads, Shared: c.shared,
		Cluster: c.f.clusterOf(&c.attrs), Attrs: c.attrs, dev: s.dev, module: c.f.module, task: c.task,
	}
	if o.node != 0 { // kernels in a graph have the priority of the stream
		c.grid.Attrs.Priority = 0
	}
	returned := false
	s.away(1)
	defer func() {
		s.away(-1)
		c.grid = Grid{}
		if returned {
			return
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: panic: %v", s.which(o), p)
			return
		}
		// runtime.Goexit is ending this goroutine, so the caller would not get an error.
		s.lose(fmt.Errorf("%s: it called runtime.Goexit, as testing.T.FailNow does", s.which(o)))
	}()
	var out []reflect.Value
	var failed error
	if c.goFunc != nil {
		failed = c.goFunc(gridMemory{&c.grid})
	} else {
		out = c.k.fn.Call(c.in)
	}
	returned = true
	if e := c.grid.bad.Load(); e != nil {
		return c.blame(e)
	}
	if len(out) == 1 && !out[0].IsNil() {
		failed, _ = out[0].Interface().(error)
	}
	if failed != nil {
		return fmt.Errorf("%s: %w", s.which(o), failed)
	}
	return nil
}

// blame adds the arguments of the launch that are the address of a refused access.
func (c *call) blame(e *AccessError) error {
	var there []string
	for i, t := range c.k.params {
		if t == reflect.TypeFor[driver.Ptr]() && *(*driver.Ptr)(c.args[i]) == e.Addr {
			there = append(there, strconv.Itoa(i))
		}
	}
	switch len(there) {
	case 0:
		return e
	case 1:
		return fmt.Errorf("%w: argument %s, counted from 0, points there", e, there[0])
	}
	return fmt.Errorf("%w: arguments %s, counted from 0, point there", e, strings.Join(there, " and "))
}

// which returns a text that names a launch.
func (s *stream) which(o *operation) string {
	in := ""
	if o.node != 0 {
		in = fmt.Sprintf(" in graph node %#x", uint64(o.node))
	}
	return fmt.Sprintf("kernel %s%s on stream %#x of device %d", o.call.f.name, in, uint64(s.id), s.dev.index)
}

// errNoKernel is the error for a Kernel that NewKernel did not make.
var errNoKernel = errors.New("its Kernel is empty: make it with NewKernel")
