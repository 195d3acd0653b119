package dnn

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
)

// A program is a step that executes an execution plan of cuDNN.
type program struct {
	graph     graph // owns the descriptors
	plan      *cudnn.Descriptor
	workspace uint64
	ids       []int64  // ids of the arguments' tensors
	values    []uint32 // values of the arguments that are numbers in host memory

	pack *cudnn.Descriptor // the variant pack of the last call; nil if there is none
	used []cuda.DevicePtr  // addresses in pack: the arguments, then the workspace
	want []cuda.DevicePtr  // addresses of the present call, in the same order
}

func newProgram(g *graph, plan *cudnn.Descriptor, workspace uint64) *program {
	n := len(g.args)
	p := &program{graph: *g, plan: plan, workspace: workspace, values: make([]uint32, n), used: make([]cuda.DevicePtr, n+1), want: make([]cuda.DevicePtr, n+1)}
	for i, a := range g.args {
		p.ids = append(p.ids, a.id)
		p.values[i] = a.bits
	}
	return p
}

// run puts the program's work into the handle's stream.
func (p *program) run(h cudnn.Handle, at []driver.Ptr, workspace driver.Ptr) error {
	lib := p.graph.lib
	var pin runtime.Pinner // cuDNN reads values by their address
	pin.Pin(unsafe.SliceData(p.values))
	defer pin.Unpin()
	for i, a := range p.graph.args {
		if a.index < 0 {
			p.want[i] = cuda.DevicePtr(uintptr(unsafe.Pointer(&p.values[i])))
			continue
		}
		p.want[i] = cuda.DevicePtr(at[a.index])
	}
	p.want[len(p.ids)] = cuda.DevicePtr(workspace)
	if p.pack == nil || !slices.Equal(p.used, p.want) {
		if err := p.repack(lib); err != nil {
			return err
		}
	}
	return lib.WithReason(func() error { return lib.BackendExecute(h, p.plan.Handle(), p.pack.Handle()) })
}

func (p *program) scratch() uint64 { return p.workspace }

// repack replaces the variant pack by one with the addresses of the present call.
func (p *program) repack(lib *cudnn.Library) error {
	if err := p.unpack(); err != nil {
		return err
	}
	d, err := lib.NewDescriptor(cudnn.BackendVariantPackDescriptor)
	if err != nil {
		return err
	}
	n := len(p.ids)
	err = cudnn.Set(d, cudnn.AttrVariantPackUniqueIds, p.ids...)
	if err == nil {
		err = cudnn.Set(d, cudnn.AttrVariantPackDataPointers, p.want[:n]...)
	}
	if err == nil {
		err = cudnn.Set(d, cudnn.AttrVariantPackWorkspace, p.want[n])
	}
	if err == nil {
		err = d.Finalize()
	}
	if err != nil {
		return errors.Join(err, d.Close())
	}
	copy(p.used, p.want)
	p.pack = d
	return nil
}

// unpack destroys the variant pack.
func (p *program) unpack() error {
	if p.pack == nil {
		return nil
	}
	d := p.pack
	p.pack = nil
	return d.Close()
}

// destroy destroys the descriptors.
func (p *program) destroy() error { return errors.Join(p.unpack(), p.graph.close()) }
