package cudadriver

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Conditionals = (*device)(nil)

// conditionals is the first release with conditional nodes that repeat their body.
const conditionals = 12040

// testKernel makes a condition true if the number at an address is at least low and at most high.
// Otherwise it makes the condition false. The driver itself defines cudaGraphSetConditional, and
// resolves the symbol when it loads the PTX. So the kernel is PTX and not linked: nvlink leaves the
// symbol undefined in cubins, even with libcudadevrt.
const testKernel = `.version 6.4
.target sm_52
.address_size 64

.extern .func cudaGraphSetConditional(
	.param .b64 handle,
	.param .b32 value
);

.visible .entry puregpu_test(
	.param .u64 handle,
	.param .u64 at,
	.param .u32 low,
	.param .u32 high
)
{
	.reg .pred %p<3>;
	.reg .b32 %r<5>;
	.reg .b64 %rd<4>;

	ld.param.u64 %rd1, [handle];
	ld.param.u64 %rd2, [at];
	ld.param.u32 %r1, [low];
	ld.param.u32 %r2, [high];
	cvta.to.global.u64 %rd3, %rd2;
	ld.global.u32 %r3, [%rd3];
	setp.ge.u32 %p1, %r3, %r1;
	setp.le.and.u32 %p2, %r3, %r2, %p1;
	selp.u32 %r4, 1, 0, %p2;
	{
	.param .b64 param0;
	.param .b32 param1;
	st.param.b64 [param0], %rd1;
	st.param.b32 [param1], %r4;
	call.uni cudaGraphSetConditional, (param0, param1);
	}
	ret;
}
`

// A tester holds the kernel of test nodes.
type tester struct {
	once   sync.Once
	err    error // why the kernel could not be loaded, or nil
	module driver.Module
	fn     cuda.Function
}

// testParams are the arguments of the kernel of a test node.
type testParams struct {
	handle cuda.GraphConditionalHandle
	at     driver.Ptr
	low    uint32
	high   uint32
	args   [4]unsafe.Pointer // pointers to the fields above
}

// fillIn sets kernel to the launch of a test.
func (p *testParams) fillIn(kernel *cuda.KernelNodeParams, fn cuda.Function, op *driver.NodeOp) {
	p.handle, p.at, p.low, p.high = cuda.GraphConditionalHandle(op.Test.Condition), op.Src, op.Test.Low, op.Test.High
	p.args = [4]unsafe.Pointer{unsafe.Pointer(&p.handle), unsafe.Pointer(&p.at), unsafe.Pointer(&p.low), unsafe.Pointer(&p.high)}
	*kernel = cuda.KernelNodeParams{Func: fn, GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, KernelParams: &p.args[0]}
}

// ReadyConditionals loads the kernel of test nodes.
func (d *device) ReadyConditionals() error {
	if !d.caps.Conditionals {
		return d.fail("conditionals", driver.ErrUnsupported, "the driver has CUDA %s, and conditional nodes need CUDA %s",
			cuda.FormatVersion(d.lib.Version()), cuda.FormatVersion(conditionals))
	}
	t := &d.tester
	t.once.Do(func() {
		if t.module, t.err = d.Load([]byte(testKernel)); t.err != nil {
			return
		}
		fn, _, err := d.Function(t.module, "puregpu_test")
		t.fn, t.err = cuda.Function(fn), err
	})
	return t.err
}

func (d *device) NewCondition(g driver.Graph) (driver.Condition, error) {
	if err := d.ReadyConditionals(); err != nil {
		return 0, err
	}
	h, err := d.lib.GraphConditionalHandleCreate(cuda.Graph(g), d.ctx, 0, 0)
	if err != nil {
		return 0, d.fail("new condition", err, "graph %#x", uintptr(g))
	}
	return driver.Condition(h), nil
}

// AddConditional adds an IfNode or a WhileNode. Each has one body, because nodes with several
// bodies need CUDA 12.8.
func (d *device) AddConditional(g driver.Graph, after []driver.Node, op *driver.NodeOp) (driver.Node, driver.Graph, error) {
	if err := d.ReadyConditionals(); err != nil {
		return 0, 0, err
	}
	deps := unsafe.Slice((*cuda.GraphNode)(unsafe.SliceData(after)), len(after))
	params := &cuda.GraphNodeParams{Type: cuda.GraphNodeTypeConditional}
	p := params.Anon1.Conditional()
	p.Handle, p.Type, p.Size, p.Ctx = cuda.GraphConditionalHandle(op.Test.Condition), cuda.GraphCondTypeIf, 1, d.ctx
	if op.Kind == driver.WhileNode {
		p.Type = cuda.GraphCondTypeWhile
	}
	n, err := d.lib.GraphAddNode(cuda.Graph(g), deps, nil, params)
	if err == nil && p.PhGraphOut == nil {
		err = fmt.Errorf("the driver returned no graph for the body: %w", cuda.ErrorUnknown)
	}
	if err != nil {
		return 0, 0, d.fail("add conditional", err, "%s, after %d others in graph %#x", op, len(after), uintptr(g))
	}
	return driver.Node(n), driver.Graph(*p.PhGraphOut), nil
}
