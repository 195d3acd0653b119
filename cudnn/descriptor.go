package cudnn

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
)

// A Descriptor owns a descriptor of the backend API; Close destroys it. [Set] sets its attributes,
// then Finalize makes it usable. A descriptor must stay open as long as another descriptor has it
// as an attribute. A descriptor must not be used by two goroutines at a time.
//
// The errors of a Descriptor have the library's reason, as from [Library.WithReason].
type Descriptor struct {
	lib    *Library
	handle BackendDescriptor
	kind   BackendDescriptorType
	closed atomic.Bool
}

// NewDescriptor makes a descriptor with [Library.BackendCreateDescriptor].
func (l *Library) NewDescriptor(kind BackendDescriptorType) (*Descriptor, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := l.BackendCreateDescriptor(kind)
	if err != nil {
		return nil, fmt.Errorf("make a descriptor %v: %w", kind, l.withReason(err))
	}
	return &Descriptor{lib: l, handle: handle, kind: kind}, nil
}

// Handle returns the descriptor, for methods of [Library] and as an attribute of other descriptors.
// The handle must not be used after Close.
func (d *Descriptor) Handle() BackendDescriptor { return d.handle }

// Finalize checks the attributes with [Library.BackendFinalize]. If it succeeds, Set fails from
// then on.
func (d *Descriptor) Finalize() error {
	if err := d.open(); err != nil {
		return fmt.Errorf("finalize %v: %w", d.kind, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.lib.BackendFinalize(d.handle); err != nil {
		return fmt.Errorf("finalize %v: %w", d.kind, d.lib.withReason(err))
	}
	return nil
}

// Close destroys the descriptor with [Library.BackendDestroyDescriptor]. Later calls do nothing.
func (d *Descriptor) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	return d.lib.BackendDestroyDescriptor(d.handle)
}

// open returns an error if the descriptor is closed, because the library would use freed memory.
func (d *Descriptor) open() error {
	if d.closed.Load() {
		return fmt.Errorf("cudnn: the descriptor: %w", os.ErrClosed)
	}
	return nil
}

// Attribute is the constraint for the types of an attribute's elements. Text has elements of type
// byte, and device addresses have type [cuda.DevicePtr].
type Attribute interface {
	Handle | BackendDescriptor | cuda.DevicePtr | bool | byte | int32 | int64 | float32 | float64 | Fraction |
		DataType | ConvolutionMode | PointwiseMode | ReduceTensorOp | NanPropagation | GenStatsMode | BnFinalizeStatsMode |
		ResampleMode | PaddingMode | SignalMode | RngDistribution | MoeGroupedMatmulMode |
		BackendAttributeName | BackendHeurMode | BackendKnobType | BackendNumericalNote | BackendBehaviorNote |
		BackendLayoutType | BackendTensorReordering | BackendNormMode | BackendNormFwdPhase | BackendReshapeMode |
		BackendOperationGraphMode
}

// Set sets an attribute of a descriptor to values, which the library copies. The type of the values
// must be the type of the attribute: an attribute of one int64 takes int64(1), not 1.
func Set[T Attribute](d *Descriptor, name BackendAttributeName, values ...T) error {
	if err := d.open(); err != nil {
		return fmt.Errorf("set %v: %w", name, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := d.lib.BackendSetAttribute(d.handle, name, attributeType[T](), int64(len(values)), unsafe.Pointer(unsafe.SliceData(values)))
	if err != nil {
		return fmt.Errorf("set %v: %w", name, d.lib.withReason(err))
	}
	return nil
}

// Get reads an attribute of a finalized descriptor into values, as many elements as fit, and
// returns the number of elements that the attribute has. If the attribute is a list of descriptors,
// values must hold descriptors that the program has made, and the library fills these.
func Get[T Attribute](d *Descriptor, name BackendAttributeName, values []T) (int, error) {
	if err := d.open(); err != nil {
		return 0, fmt.Errorf("get %v: %w", name, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n, err := d.lib.BackendGetAttribute(d.handle, name, attributeType[T](), int64(len(values)), unsafe.Pointer(unsafe.SliceData(values)))
	if err != nil {
		return 0, fmt.Errorf("get %v: %w", name, d.lib.withReason(err))
	}
	return int(n), nil
}

// attributeType returns the library's constant for the type T.
func attributeType[T Attribute]() BackendAttributeType {
	var zero T
	switch any(zero).(type) {
	case Handle:
		return TypeHandle
	case BackendDescriptor:
		return TypeBackendDescriptor
	case cuda.DevicePtr:
		return TypeVoidPtr
	case bool:
		return TypeBoolean
	case byte:
		return TypeChar
	case int32:
		return TypeInt32
	case int64:
		return TypeInt64
	case float32:
		return TypeFloat
	case float64:
		return TypeDouble
	case Fraction:
		return TypeFraction
	case DataType:
		return TypeDataType
	case ConvolutionMode:
		return TypeConvolutionMode
	case PointwiseMode:
		return TypePointwiseMode
	case ReduceTensorOp:
		return TypeReductionOperatorType
	case NanPropagation:
		return TypeNanPropogation
	case GenStatsMode:
		return TypeGenstatsMode
	case BnFinalizeStatsMode:
		return TypeBnFinalizeStatsMode
	case ResampleMode:
		return TypeResampleMode
	case PaddingMode:
		return TypePaddingMode
	case SignalMode:
		return TypeSignalMode
	case RngDistribution:
		return TypeRngDistribution
	case MoeGroupedMatmulMode:
		return TypeMoeGroupedMatmulMode
	case BackendAttributeName:
		return TypeAttribName
	case BackendHeurMode:
		return TypeHeurMode
	case BackendKnobType:
		return TypeKnobType
	case BackendNumericalNote:
		return TypeNumericalNote
	case BackendBehaviorNote:
		return TypeBehaviorNote
	case BackendLayoutType:
		return TypeLayoutType
	case BackendTensorReordering:
		return TypeTensorReorderingMode
	case BackendNormMode:
		return TypeNormMode
	case BackendNormFwdPhase:
		return TypeNormFwdPhase
	case BackendReshapeMode:
		return TypeReshapeMode
	case BackendOperationGraphMode:
		return TypeOperationgraphMode
	}
	panic("cudnn: an Attribute has no attribute type") // attributeType has a case for each type of Attribute
}
