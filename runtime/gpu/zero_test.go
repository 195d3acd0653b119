package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/driver/hipdriver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// A world has values to pass to calls, by type. Each function in it makes one value.
type world map[reflect.Type][]func() any

func give[T any](w world, values ...func() T) {
	t := reflect.TypeFor[T]()
	for _, v := range values {
		w[t] = append(w[t], func() any { return v() })
	}
}

// just adds values to the world. All calls get the same values.
func just[T any](w world, values ...T) {
	for _, v := range values {
		give(w, func() T { return v })
	}
}

// newWorld makes a world whose values belong to no device: nil pointers, zero values and other
// arguments.
func newWorld(t *testing.T) world {
	w := world{}
	nothing[gpu.Device](w)
	nothing[gpu.Queue](w)
	nothing[gpu.Stream](w)
	nothing[gpu.Buffer](w)
	nothing[gpu.Pool](w)
	nothing[gpu.CommandBuffer](w)
	nothing[collective.Communicator](w)
	nothing[gpu.Kernel](w)
	nothing[interop.Event](w)
	nothing[interop.Pool](w)
	nothing[gpu.Timing](w)
	just(w, (*os.File)(nil))
	just(w, (*gpu.Semaphore)(nil))
	give(w, func() *gpu.Semaphore { return new(gpu.Semaphore) })
	give(w, func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	})
	just(w, context.Context(nil))
	just(w, error(nil), io.EOF)
	just(w, uint64(0), 1, 255, 256, 1<<40, 1<<63-1, 1<<63, math.MaxUint64-255, math.MaxUint64-1, math.MaxUint64)
	just(w, int64(0), 1, -1, math.MinInt64, math.MaxInt64)
	just(w, 0, 1, -1, 64, math.MinInt, math.MaxInt)
	just(w, float64(0), math.Inf(1), math.NaN())
	just(w, float32(0), 1)
	just(w, false, true)
	just(w, "", "nothing")
	just[any](w, nil, 1, uint64(1), float32(1), "nothing", []byte{}, []byte{1}, [3]uint32{1}, (*gpu.Buffer)(nil), new(gpu.Buffer), gpu.Range{}, gpu.Slice[float32]{}, driver.Ptr(1),
		gpu.Param[uint64]{}, (*gpu.Param[uint64])(nil))
	give(w, func() **gpu.Buffer { return nil })
	give(w, func() **gpu.Buffer { return new(*gpu.Buffer) })
	just(w, []string(nil), []string{"nothing"})
	just(w, map[string]string(nil), map[string]string{"": ""}, map[string]string{"nothing": "at all"})
	just(w, []float32(nil), []float32{1}, make([]float32, 5000))
	just(w, []byte(nil), []byte{}, []byte{1, 2, 3}, make([]byte, 8), make([]byte, 5000))
	just(w, (func())(nil), func() {})
	just(w, (func() error)(nil), func() error { return nil }, func() error { return io.EOF })
	just(w, (func(error))(nil), func(error) {})
	just(w, (func(gpu.NativeCall) error)(nil), func(gpu.NativeCall) error { return nil }, func(gpu.NativeCall) error { return io.EOF }, func(gpu.NativeCall) error { panic("no") })
	just(w, io.ReaderAt(nil), io.ReaderAt(strings.NewReader("12345678")))
	just(w, io.WriterAt(nil), io.WriterAt(noWriter{}))
	just(w, (func(gpu.Order) error)(nil), func(gpu.Order) error { return nil })
	just[driver.Driver](w, nil, (*simdriver.Driver)(nil), (*cudadriver.Driver)(nil), (*hipdriver.Driver)(nil))
	just(w, gpu.Options{}, gpu.Options{Queues: -1}, gpu.Options{Queues: math.MaxInt}, gpu.Options{Events: math.MaxInt}, gpu.Options{StageSize: math.MaxInt})
	just(w, gpu.Command(0), 1, -1, math.MaxInt)
	just(w, gpu.CommandOptions{}, gpu.CommandOptions{Mode: gpu.GraphMode}, gpu.CommandOptions{Mode: -1})
	just(w, collective.Options{}, collective.Options{ID: collective.ID{1}, Rank: math.MaxInt, Count: math.MaxInt},
		collective.Options{ID: collective.ID{1}, Count: 2}, collective.Options{Timeout: -1})
	just(w, gpu.DeviceMem, gpu.HostMem, gpu.ManagedMem, gpu.CommMem, gpu.WriteCombinedMem, gpu.ShareableMem, -1, math.MaxInt)
	just(w, driver.Ptr(0), 1, math.MaxUint64)
	just(w, driver.Stream(0), 1, math.MaxInt)
	just(w, driver.Event(0)) // a call cannot check whether another number is an event
	just(w, gpu.Reuse{}, gpu.Reuse{Events: true, Opportunistic: true, Internal: true})
	just(w, collective.Float32, collective.Int16, -1, math.MaxInt)
	just(w, collective.Sum(), collective.PreMulSum(math.Inf(-1)))
	give(w, func() gpu.Point { return gpu.Point{} })
	for _, v := range []uint64{0, 1, math.MaxUint64} {
		give(w, func() gpu.Point { return gpu.Point{Semaphore: new(gpu.Semaphore), Value: v} })
	}
	give(w, func() gpu.Order { return gpu.Order{} })
	give(w, func() gpu.Order { return gpu.Order{Signal: pts(new(gpu.Semaphore), 1)} })
	give(w, func() gpu.Order { return gpu.Order{Wait: make([]gpu.Point, 1), Signal: pts(new(gpu.Semaphore), 1)} })
	give(w, func() gpu.Order { return gpu.Order{Signal: pts(new(gpu.Semaphore), math.MaxUint64)} })
	return w
}

// makers are functions that make Ops. If a parameter of a call is an Op, one of these functions
// makes it from values of the world.
var makers = map[string]any{
	"Op": func() gpu.Op { return gpu.Op{} }, "BadOp": gpu.BadOp, "Barrier": gpu.Barrier, "Fill": gpu.Fill, "Copy": gpu.Copy, "Prefetch": gpu.Prefetch,
	"Upload": gpu.Upload, "UploadCopy": gpu.UploadCopy, "Download": gpu.Download, "ReadFrom": gpu.ReadFrom, "WriteTo": gpu.WriteTo,
	"Launch": gpu.Launch, "Execute": gpu.Execute, "Alloc": gpu.Alloc, "Free": gpu.Free,
	"HostCall": gpu.HostCall, "Notify": gpu.Notify, "Native": gpu.Native, "WriteValue": interop.WriteValue, "WaitValue": interop.WaitValue,
	"RecordEvent": interop.RecordEvent, "WaitEvent": interop.WaitEvent, "Begun": interop.Begun,
	"Communicator.Group": func(c *collective.Communicator, dst, src gpu.Range, t collective.ElementType, r collective.Reduction, root int) gpu.Op {
		return c.Group(collective.AllReduce(dst, src, t, r), collective.Broadcast(dst, src, t, root))
	},
}

// interopFunctions are the functions of package interop that need a device, a buffer or a pool.
var interopFunctions = map[string]any{
	"interop.AdoptEvent": interop.AdoptEvent, "interop.AdoptStream": interop.AdoptStream, "interop.ExportMemory": interop.ExportMemory,
	"interop.ExportMemoryFile": interop.ExportMemoryFile, "interop.ExportPool": interop.ExportPool, "interop.ImportEvent": interop.ImportEvent,
	"interop.ImportMemory": interop.ImportMemory, "interop.ImportMemoryFile": interop.ImportMemoryFile, "interop.ImportPointer": interop.ImportPointer,
	"interop.ImportPool": interop.ImportPool, "interop.NewEvent": interop.NewEvent, "interop.NewSharedEvent": interop.NewSharedEvent,
}

// pickOp makes an Op, sometimes with a label, a Timing or parameters.
func (w world) pickOp(t *testing.T, r *rand.Rand) reflect.Value {
	names := slices.Sorted(maps.Keys(makers))
	make := reflect.ValueOf(makers[names[r.IntN(len(names))]])
	op := make.Call(w.args(t, make.Type(), r))[0].Interface().(gpu.Op)
	switch r.IntN(8) {
	case 0:
		op = op.Label("it")
	case 1:
		op = op.Timed(new(gpu.Timing))
	case 2:
		op = op.With(gpu.Param[uint64]{}.Value(1))
	case 3:
		op = op.Param(r.IntN(3)-1, gpu.Param[uint64]{})
	case 4:
		op = op.GridParam(gpu.Param[[3]uint32]{})
	}
	return reflect.ValueOf(op)
}

// args chooses values for the parameters of a function.
func (w world) args(t *testing.T, typ reflect.Type, r *rand.Rand) (args []reflect.Value) {
	for i := range typ.NumIn() {
		if typ.IsVariadic() && i == typ.NumIn()-1 {
			for range r.IntN(3) {
				args = append(args, w.pick(t, typ.In(i).Elem(), r))
			}
			break
		}
		args = append(args, w.pick(t, typ.In(i), r))
	}
	return args
}

// takesOps reports whether a function has Ops among its parameters. There are many kinds of Ops, so
// the tests call such a function more often.
func takesOps(typ reflect.Type) bool {
	for i := range typ.NumIn() {
		if p := typ.In(i); p == reflect.TypeFor[gpu.Op]() && i > 0 || p == reflect.TypeFor[[]gpu.Op]() {
			return true
		}
	}
	return false
}

// rounds returns how often the tests call a function of the type typ.
func rounds(typ reflect.Type) int {
	if takesOps(typ) {
		return 4000
	}
	return 200
}

// nothing adds a nil pointer and a pointer to a zero value to the world.
func nothing[T any](w world) {
	just(w, (*T)(nil))
	give(w, func() *T { return new(T) })
}

type noWriter struct{}

func (noWriter) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// pick returns a value of the type typ. If the world has no values of the type, pick makes one,
// from values of other types where it can.
func (w world) pick(t *testing.T, typ reflect.Type, r *rand.Rand) reflect.Value {
	if all := w[typ]; len(all) > 0 {
		v := reflect.New(typ).Elem()
		if x := reflect.ValueOf(all[r.IntN(len(all))]()); x.IsValid() {
			v.Set(x)
		}
		return v
	}
	if typ == reflect.TypeFor[gpu.Op]() {
		return w.pickOp(t, r)
	}
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Struct:
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				v.Field(i).Set(w.pick(t, typ.Field(i).Type, r))
			}
		}
	case reflect.Slice:
		for range r.IntN(3) {
			v = reflect.Append(v, w.pick(t, typ.Elem(), r))
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).Set(w.pick(t, typ.Elem(), r))
		}
	case reflect.Uint32:
		v.SetUint([]uint64{0, 1, math.MaxUint32}[r.IntN(3)])
	case reflect.UnsafePointer:
	case reflect.Interface:
	case reflect.Uint8:
		v.SetUint(r.Uint64N(256))
	default:
		t.Fatalf("no values of type %v to give to calls", typ)
	}
	return v
}

// patience is how long a call may take before a test says that it does not return.
const patience = 20 * time.Second

// try calls a function with values of the world, and returns the errors among its results. The
// function must not panic, and its errors must be documented. If it does not return, try ends the
// test.
func (w world) try(t *testing.T, name string, fn reflect.Value, r *rand.Rand) (errs []error) {
	t.Helper()
	args := w.args(t, fn.Type(), r)
	text := func() string {
		var list []string
		for _, a := range args {
			list = append(list, fmt.Sprintf("%.200s", fmt.Sprintf("%#v", a)))
		}
		return name + "(" + strings.Join(list, ", ") + ")"
	}
	done := make(chan []reflect.Value, 1)
	go func() {
		var results []reflect.Value
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("%s panics: %v\n%s", text(), p, debug.Stack())
			}
			done <- results
		}()
		results = fn.Call(args)
	}()
	select {
	case results := <-done:
		for _, v := range results {
			if err, ok := v.Interface().(error); ok && v.Type() == reflect.TypeFor[error]() {
				errs = append(errs, err)
				var own *driver.Error
				var path *os.PathError
				native := strings.Contains(name, ".Load") || strings.Contains(name, ".Import") || strings.HasPrefix(name, "collective.New") || strings.Contains(name, ".Adopt") ||
					strings.HasPrefix(name, "Module.")
				if !documented(err) && !errors.As(err, &path) && !(native && errors.As(err, &own)) {
					t.Errorf("%s: an error that is not documented: %v", text(), err)
				}
			}
		}
	case <-time.After(patience):
		t.Fatalf("%s does not return", text())
	}
	return errs
}

// documented reports whether an error is of a kind that the packages' documentation names.
func documented(err error) bool {
	for _, kind := range []error{gpu.ErrArgument, gpu.ErrRange, gpu.ErrClosed, gpu.ErrUnallocated, gpu.ErrValue, collective.ErrAborted,
		driver.ErrLost, driver.ErrOutOfMemory, driver.ErrUnsupported, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, kind) {
			return true
		}
	}
	_, panics := errors.AsType[*gpu.PanicError](err)
	_, compiling := errors.AsType[*driver.CompileError](err)
	return panics || compiling
}

// exported returns the exported types of packages gpu, collective and interop that have exported
// methods.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, folder := range []string{"../collective/*.go", "../interop/*.go"} {
		others, err := filepath.Glob(folder)
		must(t, err)
		files = append(files, others...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.IsExported() {
				recv := fn.Recv.List[0].Type
				if star, ok := recv.(*ast.StarExpr); ok {
					recv = star.X
				}
				if generic, ok := recv.(*ast.IndexExpr); ok {
					recv = generic.X
				}
				if id, ok := recv.(*ast.Ident); ok && id.IsExported() {
					names[f.Name.Name+"."+id.Name] = true
				}
			}
		}
	}
	return names
}

// typedArgs are arguments of the kernel saxpy.
type typedArgs struct {
	N    uint64
	A    float32
	X, Y gpu.Slice[float32]
}

// TestZeroValues tests B143. It calls the methods of zero values of the exported types, and
// exported functions, with values that belong to no device. No call may panic or block. If a type
// has to be opened or made, the methods that can return an error must return one, except Close,
// Shutdown and Err. With an open device and its objects, no call may panic or block either.
func TestZeroValues(t *testing.T) {
	w := newWorld(t)
	left := exported(t)
	for _, x := range []struct {
		zero  any
		works bool // the methods of a zero value work
	}{
		{new(gpu.Device), false},
		{new(gpu.Queue), false},
		{new(gpu.Stream), false},
		{new(gpu.Slice[float32]), false},
		{new(gpu.TypedKernel[typedArgs]), false},
		{new(gpu.Buffer), false},
		{new(gpu.Pool), false},
		{new(gpu.CommandBuffer), false},
		{new(gpu.Module), false},
		{new(gpu.Kernel), false},
		{new(collective.Communicator), false},
		{new(collective.Memory), false},
		{new(interop.Event), false},
		{new(interop.Pool), false},
		{new(gpu.Timing), false},
		{new(interop.MemoryHandle), true},
		{new(interop.EventHandle), true},
		{new(gpu.Semaphore), true},
		{new(gpu.Group), true}, // of no devices
		{new(collective.Operation), true},
		{new(gpu.Op), true},
		{new(gpu.Param[uint32]), true},
		{new(gpu.ParkedOperation), true},
		{new(gpu.ParkedWait), true},
	} {
		typ := reflect.TypeOf(x.zero)
		name, _, _ := strings.Cut(typ.Elem().String(), "[")
		delete(left, name)
		for i := range typ.NumMethod() {
			name := typ.Elem().Name() + "." + typ.Method(i).Name
			t.Run(name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				none := typ == reflect.TypeFor[*gpu.Buffer]() || typ == reflect.TypeFor[*gpu.Semaphore]() || typ.Method(i).Name == "Close" && name != "Slice[float32].Close" || typ.Method(i).Name == "Shutdown"
				for n := range rounds(typ.Method(i).Type) {
					zero := reflect.New(typ.Elem())
					if n%2 == 1 && none {
						zero = reflect.Zero(typ)
					}
					errs := w.try(t, name, zero.Method(i), r)
					for _, err := range errs {
						if !x.works && !errors.Is(err, gpu.ErrArgument) && !errors.Is(err, gpu.ErrRange) && !errors.Is(err, os.ErrNotExist) {
							t.Errorf("%s: %v", name, err)
						}
					}
					if returns := typ.Method(i).Type; !x.works && len(errs) == 0 && returns.NumOut() > 0 && typ.Method(i).Name != "Close" &&
						typ.Method(i).Name != "Shutdown" && typ.Method(i).Name != "Err" && returns.Out(returns.NumOut()-1) == reflect.TypeFor[error]() {
						t.Fatalf("%s: no error", name)
					}
				}
			})
		}
		_, ofValue := typ.Elem().MethodByName("Close")
		if m, ok := typ.MethodByName("Close"); ok && !ofValue && typ != reflect.TypeFor[*gpu.Semaphore]() {
			t.Run(typ.Elem().Name()+".Close of nil", func(t *testing.T) {
				if errs := w.try(t, "Close", reflect.Zero(typ).Method(m.Index), nil); len(errs) > 0 {
					t.Error(errs)
				}
			})
		}
	}
	delete(left, "gpu.SubmitError") // programs only read errors, and make none
	delete(left, "collective.Error")
	delete(left, "gpu.CloseError")
	delete(left, "gpu.PanicError")
	for name := range left {
		t.Errorf("type %s is not tried", name)
	}
	functions := map[string]any{"AllocSlice": gpu.AllocSlice[float32], "AllocSliceIn": gpu.AllocSliceIn[float32],
		"Typed": gpu.Typed[typedArgs], "BytesOf": gpu.BytesOf[float32], "FailAll": gpu.FailAll, "GridFor": gpu.GridFor, "NewGroup": gpu.NewGroup, "NewParam": gpu.NewParam[uint32], "NewSemaphore": gpu.NewSemaphore, "Open": gpu.Open,
		"OpenGroup": gpu.OpenGroup, "collective.ParseID": collective.ParseID, "collective.New": collective.New, "collective.NewAll": collective.NewAll,
		"collective.NewID": collective.NewID, "SignalAll": gpu.SignalAll, "SliceOf": gpu.SliceOf[float32], "WaitAll": gpu.WaitAll,
		"WaitAny": gpu.WaitAny}
	maps.Copy(functions, makers)
	for name, fn := range functions {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 200 {
				w.try(t, name, reflect.ValueOf(fn), r)
			}
		})
	}
	for name, fn := range interopFunctions {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 200 {
				errs := w.try(t, name, reflect.ValueOf(fn), r)
				if len(errs) != 1 || !errors.Is(errs[0], gpu.ErrArgument) {
					t.Fatalf("%s: %v", name, errs)
				}
			}
		})
	}
	t.Run("arguments of a device that is open", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{})
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
		must(t, err)
		g, err := gpu.NewGroup(dev)
		must(t, err)
		p, err := dev.NewPool(gpu.PoolOptions{})
		must(t, err)
		x, err := dev.Load(simdriver.Image("saxpy"))
		must(t, err)
		k, err := x.Kernel("saxpy")
		must(t, err)
		saxpy, err := gpu.Typed[typedArgs](k)
		must(t, err)
		xs, err := gpu.AllocSlice[float32](dev, gpu.HostMem, 8)
		must(t, err)
		just(w, dev.Queue(0))
		just(w, dev)
		give(w, dev.Queue(0).NewStream)
		for name, fn := range map[string]any{"collective.New": collective.New, "collective.NewID": collective.NewID} {
			t.Run(name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				for range 200 {
					w.try(t, name, reflect.ValueOf(fn), r)
				}
			})
		}
		for _, of := range []any{xs, saxpy, k, dev, dev.Queue(0), g, c, p} {
			typ := reflect.TypeOf(of)
			for i := range typ.NumMethod() {
				name := fmt.Sprintf("%v.%s", typ, typ.Method(i).Name)
				name = strings.TrimPrefix(name, "*gpu.")
				if typ.Method(i).Name == "Close" || typ.Method(i).Name == "Shutdown" || typ.Method(i).Name == "End" || strings.HasSuffix(name, "SetThreshold") {
					continue
				}
				t.Run(name, func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, uint64(i)))
					for range rounds(typ.Method(i).Type) {
						w.try(t, name, reflect.ValueOf(of).Method(i), r)
					}
				})
			}
		}
		just(w, dev)
		for name, fn := range interopFunctions {
			t.Run(name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				for range 600 {
					w.try(t, name, reflect.ValueOf(fn), r)
				}
			})
		}
	})
}
