//go:build linux && (amd64 || arm64) && !nogpu

package cudnn

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/toolkittest"
	"github.com/puregpu/puregpu/runtime/dl"
	tables "github.com/puregpu/puregpu/symbols"
)

func open(opt dl.Options) (toolkittest.Opened, error) {
	l, err := Open(opt)
	if err != nil {
		return nil, err // not a nil *Library
	}
	return l, nil
}

var release = toolkittest.Case{
	Library: "cudnn", File: "libcudnn.so.9", Release: "9.6", Open: open, Format: FormatVersion,
	Needs: "cudnnSetStream",
	Lacks: "cudnnGetExecutionPlanWorkspaceSize",
	Call: func(l toolkittest.Opened) error {
		_, err := l.(*Library).GetExecutionPlanWorkspaceSize(7, 8, 9)
		return err
	},
}

func openFake(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

// TestRefusesCuDNN8 checks that the error for a library of cuDNN 8 names its release and the needed
// release.
func TestRefusesCuDNN8(t *testing.T) {
	older := release
	older.File, older.Release = "libcudnn.so.8", "8.9.7"
	_, err := Open(Options{Path: older.Build(t)})
	if !errors.Is(err, dl.ErrTooOld) || !strings.Contains(err.Error(), "8.9.7") || !strings.Contains(err.Error(), "cuDNN 9.1 or newer") {
		t.Errorf("opening cuDNN 8: %v", err)
	}
}

func TestContextIsDestroyedOnce(t *testing.T) {
	l := openFake(t)
	c, err := l.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	other, err := l.NewContext()
	if err != nil || other.Handle() != c.Handle() {
		t.Errorf("%d handles are left: %v", other.Handle()-c.Handle(), err)
	}
}

func TestDescriptor(t *testing.T) {
	l := openFake(t)
	d, err := l.NewDescriptor(BackendTensorDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Finalize()
	if !errors.Is(err, StatusBadParamNotFinalized) || !strings.Contains(err.Error(), "CUDNN_BACKEND_TENSOR_DESCRIPTOR") ||
		!strings.Contains(err.Error(), "the tensor has no dimensions") {
		t.Errorf("to finalize a tensor without dimensions: %v", err)
	}
	if err := Set(d, AttrTensorDimensions, int64(2), 3, 4); err != nil {
		t.Error(err)
	}
	got := make([]int64, 2)
	if n, err := Get(d, AttrTensorDimensions, got); n != 3 || err != nil || !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("of dimensions 2, 3 and 4, as many as fit into two are %v of %d: %v", got, n, err)
	}
	if n, err := Get[int64](d, AttrTensorDimensions, nil); n != 3 || err != nil {
		t.Errorf("a tensor of three dimensions has %d: %v", n, err)
	}
	err = Set(d, AttrTensorDimensions, float32(1))
	if !errors.Is(err, StatusBadParamAttributeType) || !strings.Contains(err.Error(), "CUDNN_ATTR_TENSOR_DIMENSIONS") ||
		!strings.Contains(err.Error(), "the attribute has another type") {
		t.Errorf("to set dimensions to a float32: %v", err)
	}
	if _, err := Get(d, AttrTensorDimensions, make([]bool, 1)); !errors.Is(err, StatusBadParamAttributeType) {
		t.Errorf("to read dimensions as bools: %v", err)
	}
	if err := Set[int64](d, AttrTensorDimensions); !errors.Is(err, StatusBadParamNullPointer) || strings.HasSuffix(err.Error(), ": ") {
		t.Errorf("to set dimensions to nothing: %v", err)
	}
	if err := d.Finalize(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	_, err = Get(d, AttrTensorDimensions, got)
	for _, err := range []error{err, Set(d, AttrTensorDimensions, int64(2)), d.Finalize()} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("a closed descriptor: %v", err)
		}
	}
	other, err := l.NewDescriptor(BackendTensorDescriptor)
	if err != nil || other.Handle() != d.Handle() {
		t.Errorf("%d descriptors are left: %v", other.Handle()-d.Handle(), err)
	}
	_, err = l.NewDescriptor(BackendEngineDescriptor)
	if !errors.Is(err, StatusBadParamDescriptorType) || !strings.HasSuffix(err.Error(), "no such descriptor") {
		t.Errorf("to make a descriptor that the library refuses: %v", err)
	}
}

func TestWithReason(t *testing.T) {
	l := openFake(t)
	if err := l.WithReason(func() error { return nil }); err != nil {
		t.Errorf("the explanation of no error is %v", err)
	}
	failed := errors.New("not the library's")
	if err := l.WithReason(func() error { return failed }); err != failed {
		t.Errorf("another error became %v", err)
	}
	err := l.WithReason(func() error { return l.BackendFinalize(7) })
	if !errors.Is(err, StatusBadParamNotFinalized) || !strings.HasSuffix(err.Error(), "the tensor has no dimensions") {
		t.Errorf("the explanation is %v", err)
	}
	if err := new(Library).WithReason(func() error { return StatusBadParam }); err != error(StatusBadParam) {
		t.Errorf("the explanation by a library that is not open is %v", err)
	}
	if name, err := l.GetErrorString(StatusBadParamNullPointer); err != nil || name != StatusBadParamNullPointer.Name() {
		t.Errorf("the library calls a code %q: %v", name, err)
	}
}

// TestEachAttributeTypeHasAGoType checks that Attribute has a Go type for each attribute type of
// the C API.
func TestEachAttributeTypeHasAGoType(t *testing.T) {
	var have []BackendAttributeType
	add := func(kind BackendAttributeType) { have = append(have, kind) }
	add(attributeType[Handle]())
	add(attributeType[DataType]())
	add(attributeType[bool]())
	add(attributeType[int64]())
	add(attributeType[float32]())
	add(attributeType[float64]())
	add(attributeType[cuda.DevicePtr]())
	add(attributeType[ConvolutionMode]())
	add(attributeType[BackendHeurMode]())
	add(attributeType[BackendKnobType]())
	add(attributeType[NanPropagation]())
	add(attributeType[BackendNumericalNote]())
	add(attributeType[BackendLayoutType]())
	add(attributeType[BackendAttributeName]())
	add(attributeType[PointwiseMode]())
	add(attributeType[BackendDescriptor]())
	add(attributeType[GenStatsMode]())
	add(attributeType[BnFinalizeStatsMode]())
	add(attributeType[ReduceTensorOp]())
	add(attributeType[BackendBehaviorNote]())
	add(attributeType[BackendTensorReordering]())
	add(attributeType[ResampleMode]())
	add(attributeType[PaddingMode]())
	add(attributeType[int32]())
	add(attributeType[byte]())
	add(attributeType[SignalMode]())
	add(attributeType[Fraction]())
	add(attributeType[BackendNormMode]())
	add(attributeType[BackendNormFwdPhase]())
	add(attributeType[RngDistribution]())
	add(attributeType[MoeGroupedMatmulMode]())
	add(attributeType[BackendReshapeMode]())
	add(attributeType[BackendOperationGraphMode]())
	lib, err := tables.Load("cudnn")
	if err != nil {
		t.Fatal(err)
	}
	var want []BackendAttributeType
	for _, e := range lib.Enums {
		if e.Name == "cudnnBackendAttributeType_t" {
			for _, v := range e.Values {
				want = append(want, BackendAttributeType(v.Value))
			}
		}
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("Go types stand for the attribute types %v, want %v", have, want)
	}
}

func TestCallsDoNotAllocate(t *testing.T) {
	if !dl.Fast {
		t.Skip("calls through package purego allocate")
	}
	l := openFake(t)
	d, err := l.NewDescriptor(BackendTensorDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	dims, got := []int64{1, 2, 3}, make([]int64, 3)
	one, zero := float32(1), float32(0)
	var failed error
	n := testing.AllocsPerRun(100, func() {
		failed = errors.Join(failed, Set(d, AttrTensorDimensions, dims...))
		_, err := Get(d, AttrTensorDimensions, got)
		failed = errors.Join(failed, err, l.BackendExecute(7, 8, 9),
			l.SoftmaxForward(7, SoftmaxAccurate, SoftmaxModeChannel, unsafe.Pointer(&one), 8, 0x1000, unsafe.Pointer(&zero), 9, 0x2000))
	})
	if n != 0 || failed != nil {
		t.Errorf("attributes, a plan and a softmax allocate %v times: %v", n, failed)
	}
	if err := l.BackendExecute(7, 8, 8); !errors.Is(err, StatusExecutionFailed) {
		t.Errorf("the library's error is %v", err)
	}
}

// TestRealDescriptors makes a tensor descriptor with this machine's cuDNN, which needs no GPU.
func TestRealDescriptors(t *testing.T) {
	l := toolkittest.Real(t, "cudnn", open, FormatVersion).(*Library)
	if name, err := l.GetErrorString(StatusNotSupportedLayout); err != nil || name != StatusNotSupportedLayout.Name() {
		t.Errorf("the library calls a code %q: %v", name, err)
	}
	d, err := l.NewDescriptor(BackendTensorDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		Set(d, AttrTensorDataType, DataFloat), Set(d, AttrTensorDimensions, int64(1), 2, 3), Set(d, AttrTensorStrides, int64(6), 3, 1),
		Set(d, AttrTensorUniqueID, int64('x')), Set(d, AttrTensorByteAlignment, int64(16)), d.Finalize(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	dims := make([]int64, 8)
	if n, err := Get(d, AttrTensorDimensions, dims); err != nil || n != 3 || !slices.Equal(dims[:3], []int64{1, 2, 3}) {
		t.Errorf("a tensor of 1 by 2 by 3 has %d dimensions, %v: %v", n, dims, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
