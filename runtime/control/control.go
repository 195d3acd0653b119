// Package control has operations that decide on the device what runs next: if, while and switch.
// The condition is a number in device memory, so a kernel can decide without the host:
//
//	body, err := dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
//	...                                                     // one step; a kernel writes 0 to more at the end
//	c.Add(control.While(more, gpu.Execute(body)))           // in a recording
//	stream.Do(control.While(more, gpu.Execute(body)))       // or in a stream
//
// A body is the Op of [gpu.Execute], with bindings and values of parameters as usual, or
// [gpu.Barrier], which does nothing. A body may have control operations of its own.
//
// The condition is the first element of a slice. When the operation begins, it reads the condition.
// A loop reads the condition again after each repetition. The condition may be in any memory that
// the device's kernels can use, also in a binding or in scratch memory of the recording. A body may
// write the condition.
//
// # On the device or on the host
//
// In a recording, the device reads the condition if the driver has conditional nodes
// (Caps.Conditionals of package driver): CUDA from 12.4 on, and the simulated GPU. Then an
// execution is one launch of a graph, whatever the conditions are. Otherwise the host reads the
// condition and executes the body, in a goroutine, with one wait for the device each time. The
// result is the same. [Host] says whether the host runs an operation, and why. The host runs an
// operation
//
//   - in a stream or a queue, if the operation is not recorded;
//   - in recordings of [gpu.StreamMode], and for bodies of StreamMode;
//   - if the device's tracer times commands only outside of graphs;
//   - if the driver cannot prepare the device for conditional nodes;
//   - if a body has a host call, a collective, a timestamp, a value, work of another device, a
//     function of [gpu.Native] that cannot be captured, or a control operation that the host runs;
//   - for conditions in another device's memory;
//   - in an execution that binds another device's memory to copies or conditions in the graph, or
//     that gives a launch in the graph no blocks;
//   - if the driver refuses the graph when the recording ends. If the driver refuses a graph that
//     an execution makes (see [gpu.Execute]), the execution fails.
//
// # Loops that never end
//
// Nothing ends a loop whose condition never becomes 0. If the device runs the loop, the work behind
// it in its queue never runs, and [gpu.Device.Close] gives the device up after its deadline, as
// after any kernel that does not end. If the host runs the loop, Close ends it after the repetition
// in flight, and the operation fails with [gpu.ErrClosed]. So give a loop a limit: the kernel that
// writes the condition can count the repetitions.
package control

import (
	"math"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

var (
	whenSet  = [2]uint32{1, math.MaxUint32}
	whenZero = [2]uint32{0, 0}
)

// If returns an Op that runs a body if the condition is not 0.
func If(condition gpu.Slice[uint32], then gpu.Op) gpu.Op {
	return op("if", condition, false, []gpu.Op{then}, [][2]uint32{whenSet})
}

// IfElse returns an Op that runs the first body if the condition is not 0, and the second body if
// the condition is 0.
func IfElse(condition gpu.Slice[uint32], then, otherwise gpu.Op) gpu.Op {
	return op("if", condition, false, []gpu.Op{then, otherwise}, [][2]uint32{whenSet, whenZero})
}

// While returns an Op that runs a body again and again while the condition is not 0. If the
// condition is 0 at the beginning, the body does not run.
func While(condition gpu.Slice[uint32], body gpu.Op) gpu.Op {
	return op("while", condition, true, []gpu.Op{body}, [][2]uint32{whenSet})
}

// Switch returns an Op that runs the case whose number, from 0 on, is the value. The parameter
// otherwise is the body that the Op runs if the value is no case's number. That body may be
// [gpu.Barrier].
func Switch(value gpu.Slice[uint32], otherwise gpu.Op, cases ...gpu.Op) gpu.Op {
	n := len(cases)
	if uint64(n) > math.MaxUint32 {
		return gpu.BadOp(errs.Argument("switch", "%d cases", n))
	}
	bodies, bounds := make([]gpu.Op, 0, n+1), make([][2]uint32, 0, n+1)
	for i, c := range cases {
		bodies, bounds = append(bodies, c), append(bounds, [2]uint32{uint32(i), uint32(i)})
	}
	return op("switch", value, false, append(bodies, otherwise), append(bounds, [2]uint32{uint32(n), math.MaxUint32}))
}

func op(name string, number gpu.Slice[uint32], loop bool, bodies []gpu.Op, bounds [][2]uint32) gpu.Op {
	r := number.Range()
	if r.Buffer == nil || r.Size < 4 {
		return gpu.BadOp(errs.Argument(name, "a slice of no elements: its first element is the condition"))
	}
	in := memory.Range{Buffer: (*memory.Buffer)(r.Buffer), Offset: r.Offset, Size: r.Size}
	if r.Size != memory.Outside { // a slice taken out of range keeps its size, so that using the Op is an error
		in.Size = 4
	}
	return gpu.OpOf(inside.Op{Kind: work.Control, Range: in, Loop: loop, Bodies: bodies, Bounds: bounds}).Label(name)
}

// Host returns why the host, and not the device, runs a control operation that was recorded in a
// command buffer, or "" if the device runs it. The recording must have ended.
func Host(c *gpu.CommandBuffer, at gpu.Command) (why string, err error) {
	if r := (*recording.Recording)(c); r.Device() != nil {
		return r.WhyHost(recording.Command(at))
	}
	return "", errs.Zero("host", "CommandBuffer")
}
