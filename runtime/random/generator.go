package random

import (
	"errors"
	"fmt"
	"sync"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// GeneratorOptions are options of [Library.NewGenerator].
type GeneratorOptions struct {
	// Kind is a kind of pseudorandom generator, such as curand.RNGPseudoXORWOW. 0 means
	// curand.RNGPseudoPhilox4_32_10. Generators of quasirandom numbers are refused.
	Kind curand.RNGType

	Seed   uint64
	Offset uint64 // the first position; curand.RNGPseudoMTGP32 and curand.RNGPseudoMT19937 allow only 0
}

// A Generator draws numbers for one queue. Its methods may be used concurrently; the draws then run
// in the queue's order.
type Generator struct {
	lib    *Library
	handle *libcall.Handle[curand.Handle] // nil on a simulated device
	state  *state                         // the generator's state on a simulated device; draws change it one after the other, in the queue's order

	mu     sync.Mutex // protects the following fields
	closed bool
	stream driver.Stream // stream of the queue that the generator belongs to; 0 before the first draw
}

// NewGenerator makes a generator (C: curandCreateGenerator, curandSetPseudoRandomGeneratorSeed,
// curandSetGeneratorOffset, curandGenerateSeeds). It blocks until the device has computed the
// generator's state. Close the generator when it is not used any more.
func (l *Library) NewGenerator(o GeneratorOptions) (*Generator, error) {
	if l == nil || l.dev.GPU() == nil {
		return nil, fmt.Errorf("random: a nil or zero Library: use Open: %w", gpu.ErrArgument)
	}
	kind := o.Kind
	switch kind {
	case 0:
		kind = curand.RNGPseudoPhilox4_32_10
	case curand.RNGPseudoDefault, curand.RNGPseudoXORWOW, curand.RNGPseudoMRG32K3A, curand.RNGPseudoPhilox4_32_10:
	case curand.RNGPseudoMTGP32, curand.RNGPseudoMT19937:
		if o.Offset != 0 {
			return nil, fmt.Errorf("random: generator: %v has no offset: %w", kind, gpu.ErrArgument)
		}
	default:
		return nil, fmt.Errorf("random: generator: %v is not a pseudorandom generator: %w", kind, gpu.ErrArgument)
	}
	g := &Generator{lib: l}
	if l.dev.Simulated() {
		g.state = newState(o.Seed, o.Offset)
	} else {
		create := func() (curand.Handle, error) {
			h, err := l.curand.CreateGenerator(kind)
			if err != nil {
				return 0, err
			}
			err = l.curand.SetPseudoRandomGeneratorSeed(h, o.Seed)
			if err == nil && o.Offset != 0 {
				err = l.curand.SetGeneratorOffset(h, o.Offset)
			}
			if err == nil {
				err = l.curand.GenerateSeeds(h)
			}
			if err == nil {
				err = l.dev.CUDA().StreamSynchronize(0) // cuRAND computes the state on the default stream
			}
			if err != nil {
				return 0, errors.Join(err, l.curand.DestroyGenerator(h))
			}
			return h, nil
		}
		set := func(h curand.Handle, stream cuda.Stream, _ cuda.DevicePtr) error {
			return l.curand.SetStream(h, stream)
		}
		var err error
		if g.handle, err = libcall.NewHandle(l.dev, create, set, l.curand.DestroyGenerator); err != nil {
			return nil, err
		}
	}
	return g, l.generators.Add(l.dev, g)
}

// Close destroys the generator (C: curandDestroyGenerator). It blocks until the device is done with
// the generator's work. Draws and recordings with draws fail from then on. Closing again does
// nothing.
func (g *Generator) Close() error {
	if g.isZero() {
		return nil
	}
	g.mu.Lock()
	was := g.closed
	g.closed = true
	g.mu.Unlock()
	if was {
		return nil
	}
	g.lib.generators.Remove(g)
	return g.handle.Close()
}

// own returns an error if the generator is closed or belongs to another queue than the call's. The
// first call makes the generator belong to its queue.
func (g *Generator) own(v gpu.NativeCall) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return fmt.Errorf("random: the generator: %w", gpu.ErrClosed)
	case g.stream != 0 && g.stream != v.Stream:
		return fmt.Errorf("random: the generator belongs to another queue, which drew from it first: make a generator for each queue: %w", gpu.ErrArgument)
	}
	g.stream = v.Stream
	return nil
}

// A draw describes a kind of draw, such as uniform float32.
type draw struct {
	name string
	size uint64 // bytes of a number
	even bool   // cuRAND draws only even counts of these numbers
	call func(l *curand.Library, h curand.Handle, to cuda.DevicePtr, n uint64) error
	fill func(s *state, m standin.Memory, to driver.Ptr, n int, count uint64) error
}

// vector is the alignment of memory that cuRAND's kernels write as vectors.
const vector = 16

// op returns the operation that draws n numbers. It draws to scratch memory and copies the numbers
// if n is odd and must be even, or if dst does not begin at a multiple of the constant vector.
func (g *Generator) op(d draw, dst gpu.Range, n int) gpu.Op {
	switch {
	case g.isZero():
		return gpu.BadOp(errZero)
	case n == 0:
		return gpu.BadOp(fmt.Errorf("random: %s: no elements to write: %w", d.name, gpu.ErrArgument))
	}
	count := uint64(n)
	if d.even {
		count += count & 1
	}
	scratch := uint64(0)
	if count != uint64(n) || dst.Offset%vector != 0 {
		scratch = count * d.size
	}
	return libcall.EachExecution(gpu.Native(d.name, func(v gpu.NativeCall) error {
		to := v.Ptrs[len(v.Ptrs)-1]
		if uint64(to)%vector != 0 {
			return fmt.Errorf("random: %s: memory at %#x, which is not a multiple of %d: %w", d.name, uint64(to), vector, gpu.ErrArgument)
		}
		if err := g.own(v); err != nil {
			return err
		}
		if g.handle == nil {
			to := v.Ptrs[0]
			return g.lib.dev.StandIn(v, d.name, nil, func(m standin.Memory) error { return d.fill(g.state, m, to, n, count) })
		}
		err := g.handle.Use(v, 0, func(h curand.Handle) error { return d.call(g.lib.curand, h, cuda.DevicePtr(to), count) })
		if err == nil && scratch > 0 {
			err = v.Device.Copy(v.Stream, v.Ptrs[0], to, uint64(n)*d.size)
		}
		return err
	}, dst).Scratch(scratch))
}

// isZero reports whether the Generator is nil or a zero value.
func (g *Generator) isZero() bool { return g == nil || g.lib == nil }

var errZero = fmt.Errorf("random: a nil or zero Generator: use NewGenerator: %w", gpu.ErrArgument)

// A Call is the argument of a function given to [Generator.Call]: the library, the handle and the
// memory.
type Call struct {
	*curand.Library
	Handle curand.Handle // the generator; its stream is set
	Stream cuda.Stream   // the stream of Handle
	Ptrs   []driver.Ptr  // addresses of the ranges in uses, in order; valid until the function returns
}

// Call returns an Op that runs fn, which calls functions of cuRAND such as curandGeneratePoisson.
// These functions put their work into the stream of Handle. name is the Op's label, and uses are
// the ranges of memory that the work touches. The documentation of gpu.Native says what fn may do.
// In a recording each execution calls fn. cuRAND requires an even count of normal numbers, and
// memory that begins at a multiple of 16 bytes. If the device is simulated, the Op carries
// gpu.ErrUnsupported.
func (g *Generator) Call(name string, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	switch {
	case g.isZero():
		return gpu.BadOp(errZero)
	case fn == nil:
		return gpu.BadOp(fmt.Errorf("random: call: no function: %w", gpu.ErrArgument))
	case g.handle == nil:
		return gpu.BadOp(libcall.Simulated("random", "cuRAND"))
	}
	return libcall.EachExecution(gpu.Native(name, func(v gpu.NativeCall) error {
		if err := g.own(v); err != nil {
			return err
		}
		return g.handle.Use(v, 0, func(h curand.Handle) error { return fn(Call{g.lib.curand, h, cudadriver.Stream(v.Stream), v.Ptrs}) })
	}, uses...))
}
