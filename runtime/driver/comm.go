package driver

import "fmt"

// Comms makes communicators ([Caps.Comms]). With a communicator devices exchange and reduce data,
// in one process or in several. A communicator has ranks, numbered from 0. Each rank has its own
// device. A Comm is the handle of one rank. The library, such as NCCL, is loaded when a call first
// needs it. If the library is missing, or too old for a call, that call returns the error.
//
// The methods of a Comm may be called from one goroutine at a time. The exceptions are AbortComm
// and CommError: until DestroyComm they may be called at any time, also during other calls. All
// ranks of a communicator must make the calls that involve other ranks in the same order.
type Comms interface {
	// NewUniqueID makes an id with which the ranks of a communicator find each other. The ranks
	// connect to this process, so the process must run until all of them have connected.
	// NewUniqueID needs a bound thread.
	NewUniqueID() (UniqueID, error)
	// NewComm begins to make one rank of a communicator. It returns without waiting for the other
	// ranks if the library supports that. Until CommReady reports that the Comm is made, only
	// AbortComm, CommError, CommReady and DestroyComm may be called. NewComm needs a bound thread.
	NewComm(CommDesc) (Comm, error)
	// SplitComm begins to divide an idle communicator into new ones. The ranks with the same color
	// form one communicator, ordered by key and then by rank. All ranks must call SplitComm. A rank
	// with NoColor joins no communicator, and gets a zero Comm. SplitComm needs a bound thread.
	SplitComm(c Comm, color, key int) (Comm, error)
	// ShrinkComm begins to make a communicator without some ranks. The excluded ranks must not call
	// ShrinkComm. With abort, ShrinkComm first aborts all work on c, and afterwards c can only be
	// destroyed. The other ranks do not take this abort for a failure of this rank. ShrinkComm
	// needs a bound thread.
	ShrinkComm(c Comm, exclude []int, abort bool) (Comm, error)
	// CommReady reports whether a communicator has been made. After an error only AbortComm,
	// CommError and DestroyComm may be called. CommReady needs a bound thread.
	CommReady(Comm) (bool, error)
	// CommRank returns the rank and the number of ranks of a communicator that has been made. It
	// may be called on any thread.
	CommRank(Comm) (rank, count int, err error)
	// CommError returns the error of a communicator that was aborted or has failed, for example
	// because another rank has ended. Otherwise CommError returns nil. It may be called on any
	// thread.
	CommError(Comm) error
	// AbortComm ends all work on a communicator. Calls that other threads are making with the
	// communicator return errors. Work in streams ends, and the memory that the work writes is
	// undefined. When the other threads' calls have returned, only AbortComm, CommError and
	// DestroyComm may be called. AbortComm returns soon, whatever the other ranks do. Aborting
	// again does nothing. While SplitComm or ShrinkComm makes a new communicator, aborting the old
	// or the new communicator, or destroying the new one, aborts both. AbortComm needs a bound
	// thread.
	AbortComm(Comm) error
	// DestroyComm destroys a communicator with its registrations and windows. Unless the
	// communicator was aborted, its work in streams must be complete, and the call may wait until
	// the other ranks call DestroyComm, or until AbortComm. The library may have to resume a
	// suspended communicator first, and then waits for the other ranks too. DestroyComm needs a
	// bound thread.
	DestroyComm(Comm) error

	// Collect puts operations into a stream as one group. Each operation progresses only together
	// with its counterparts on other ranks. After [ErrUnsupported] the stream has none of the
	// operations, and the communicator is unchanged. After another error the stream may have some
	// of the operations. The first Collect that needs another rank may wait until that rank calls
	// Collect too, or until AbortComm. All Collects of a Comm must be called on the same thread,
	// which must be a bound thread.
	Collect(s Stream, c Comm, ops []CommOp) error

	// RegisterComm registers memory made by Alloc with CommMem. The communicator may then use this
	// memory without copies. In one operation either all ranks must use registered memory, or no
	// rank. RegisterComm needs a bound thread.
	RegisterComm(c Comm, p Ptr, size uint64) (CommMemory, error)
	// NewWindow registers memory on all ranks at once. It is like RegisterComm, but all ranks must
	// call NewWindow, with the same size. If symmetric is true, the ranks promise that an operation
	// uses the same offset in the window on every rank. NewWindow needs a bound thread.
	NewWindow(c Comm, p Ptr, size uint64, symmetric bool) (CommMemory, error)
	// ReleaseCommMemory undoes RegisterComm or NewWindow. All ranks must release a window.
	// ReleaseCommMemory needs a bound thread.
	ReleaseCommMemory(c Comm, m CommMemory) error
}

// A Comms may implement CommLimits, which says in advance which operations are not supported. The
// methods may be called on any thread. For a Comm that is not yet made, or was destroyed, the
// methods return nil.
type CommLimits interface {
	// CheckOp returns the ErrUnsupported with which Collect would refuse an operation, or nil.
	// CheckOp ignores Src, Dst and Count.
	CheckOp(Comm, CommOp) error
	// CheckShrink returns the ErrUnsupported with which ShrinkComm would refuse the communicator,
	// or nil.
	CheckShrink(Comm) error
}

// A Comms may implement CommMaking, which reports the progress of a communicator that is being
// made.
type CommMaking interface {
	// CommAwaits returns a text that says which event an unready Comm waits for, such as "all ranks
	// to join". It returns "" if the Comm does not wait for other ranks, or was destroyed. It may
	// be called on any thread.
	CommAwaits(Comm) string
}

// A Comms may implement CommSuspension, which reports the memory of a communicator, and frees some
// of that memory while the communicator is suspended. If the library does not support a call, the
// error is ErrUnsupported, and the communicator is unchanged.
type CommSuspension interface {
	// CommStats returns the memory of a communicator that has been made, suspended or not.
	// CommStats needs a bound thread.
	CommStats(Comm) (CommStats, error)
	// SuspendComm frees the memory that a communicator does not need until ResumeComm, and keeps
	// the connections. All ranks must call SuspendComm, which waits for the other ranks, or until
	// AbortComm. The communicator must be idle, and the call may wait for all other work of the
	// device. While the communicator is suspended, only ResumeComm, CommStats, CommReady, CommRank,
	// CommError, AbortComm and DestroyComm may be called. After an error other than ErrUnsupported,
	// only AbortComm, CommError and DestroyComm may be called. A library may require
	// CommDesc.Plain. SuspendComm needs a bound thread.
	SuspendComm(Comm) error
	// ResumeComm allocates the memory again. All ranks must call ResumeComm, which waits for the
	// other ranks, or until AbortComm. After an error, such as ErrOutOfMemory, only AbortComm,
	// CommError and DestroyComm may be called. ResumeComm needs a bound thread.
	ResumeComm(Comm) error
}

// CommStats describes the device memory of a communicator, in bytes, without memory that the user
// has registered.
type CommStats struct {
	Persistent  uint64 // always allocated
	Suspendable uint64 // freed while the communicator is suspended
	Suspended   bool   // the communicator is suspended
}

// A Comm is the handle of a rank of a communicator. A CommMemory is the handle of memory that is
// registered with a Comm. Zero means no object.
type (
	Comm       uintptr
	CommMemory uintptr
)

// A UniqueID identifies a communicator. The communicator's ranks find each other by the id.
type UniqueID [128]byte

// NoColor is the color of a rank that joins no new communicator in SplitComm.
const NoColor = -1

// A CommDesc describes a rank of a new communicator.
type CommDesc struct {
	ID    UniqueID
	Rank  int
	Count int    // number of ranks
	Name  string // for the library's own messages; may be empty

	// Plain joins with one call of the library (ncclCommInitRankConfig, ncclCommInitRank), as other
	// programs do, so that ranks in other programs can take part. The Comm can be aborted like any
	// other, but SplitComm and ShrinkComm return ErrUnsupported. Some libraries can suspend only
	// plain communicators. Without Plain the driver may make several native communicators together,
	// so all ranks must use this kind of driver. All ranks that use the driver must set the same
	// value of Plain.
	Plain bool

	// More holds further ids, made on other ranks. The list must be the same on all ranks. With
	// several ids, thousands of ranks find each other faster. Older libraries support only one id.
	More []UniqueID
}

// A CommOp is an operation on a communicator. Kind decides which fields are used.
type CommOp struct {
	Kind      CommOpKind
	Type      ElementType
	Reduction Reduction
	Scale     [8]byte // for PreMulSum: the factor, an element of Type, in the first bytes of Scale
	Src, Dst  Ptr
	Count     uint64 // number of elements; see the kinds
	Peer      int    // the root's rank, or the rank to send to or receive from
}

// A CommOpKind is a kind of collective operation. n is the number of ranks.
type CommOpKind int

// The kinds. "In place" says which parts of Src and Dst may be the same memory; otherwise they must
// not overlap.
const (
	// AllReduce writes the reduction of Count elements at Src of all ranks to Dst of all ranks.
	// In place: Src and Dst.
	AllReduce CommOpKind = iota
	// AllGather writes Count elements at Src of each rank to Dst of all ranks, n×Count in all.
	// In place: Src and the rank's own part of Dst.
	AllGather
	// ReduceScatter reduces n×Count elements at Src of all ranks. It divides the result into n
	// parts of Count elements, and writes part r to Dst of rank r. In place: Dst and the rank's own
	// part of Src.
	ReduceScatter
	// Broadcast writes Count elements at Src of the root Peer to Dst of all ranks. Src of other
	// ranks is ignored. In place: Src and Dst.
	Broadcast
	// Reduce writes the reduction of Count elements at Src of all ranks to Dst of the root Peer.
	// Dst of other ranks is ignored. In place: Src and Dst.
	Reduce
	// AllToAll divides Src and Dst of each rank into n parts of Count elements. It writes part r of
	// Src of rank s to part s of Dst of rank r. It cannot work in place.
	AllToAll
	// Gather writes Count elements at Src of each rank to Dst of the root Peer. Dst of other ranks
	// is ignored. In place: Src and the rank's own part of Dst.
	Gather
	// Scatter divides Src of the root Peer into n parts of Count elements, and writes part r to Dst
	// of rank r. Src of other ranks is ignored. In place: Dst and the rank's own part of Src.
	Scatter
	// Send sends Count elements at Src to the rank Peer, which must receive Count elements too.
	Send
	// Recv receives Count elements from the rank Peer, and writes them to Dst.
	Recv
)

var commOpNames = [...]string{"all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all", "gather", "scatter", "send", "receive"}

func (k CommOpKind) String() string {
	if k < 0 || int(k) >= len(commOpNames) {
		return fmt.Sprintf("operation %d", int(k))
	}
	return commOpNames[k]
}

// Reduces reports whether the operation computes with its elements, instead of only moving them.
func (k CommOpKind) Reduces() bool { return k == AllReduce || k == ReduceScatter || k == Reduce }

// An ElementType is the type of the elements of a collective operation.
type ElementType int

// The types. 16-bit integers can be moved, but not reduced. Among the other types, a library
// refuses to reduce those that it does not support.
const (
	Int8 ElementType = iota
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	Float8E4M3
	Float8E5M2
)

var elementTypes = [...]struct {
	name string
	size int
}{
	{"int8", 1}, {"uint8", 1}, {"int16", 2}, {"uint16", 2}, {"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8},
	{"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}, {"float8e4m3", 1}, {"float8e5m2", 1},
}

func (t ElementType) String() string {
	if !t.Valid() {
		return fmt.Sprintf("element type %d", int(t))
	}
	return elementTypes[t].name
}

// Valid reports whether the type is one of the ElementType constants.
func (t ElementType) Valid() bool { return t >= 0 && int(t) < len(elementTypes) }

// Size returns the size of an element in bytes, or 0 if the type is not valid.
func (t ElementType) Size() int {
	if !t.Valid() {
		return 0
	}
	return elementTypes[t].size
}

// A Reduction combines the elements of all ranks into one element.
type Reduction int

// The reductions. Floats are combined, and so rounded, in an order that the library chooses.
const (
	Sum Reduction = iota
	Prod
	Min
	Max
	Avg       // the sum divided by the number of ranks; for integers, rounded toward zero
	PreMulSum // the sum of all ranks' elements, each multiplied by its rank's Scale
)

var reductionNames = [...]string{"sum", "prod", "min", "max", "avg", "premulsum"}

func (r Reduction) String() string {
	if r < 0 || int(r) >= len(reductionNames) {
		return fmt.Sprintf("reduction %d", int(r))
	}
	return reductionNames[r]
}
