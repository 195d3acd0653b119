package driver

import "fmt"

// Comms has communicators ([Caps.Comms]), by which devices of one process or of many exchange and
// reduce data. A communicator has ranks, numbered from 0, each with a device of its own. A Comm is
// one rank's end. The library is loaded when it is first needed. If it is missing, or too old for a
// call, that call returns the error.
//
// The methods of a Comm may be called from one goroutine at a time, except AbortComm and CommError,
// which may be called at any time before its DestroyComm. All ranks must do the same with it, in
// the same order.
type Comms interface {
	// NewUniqueID makes an id by which the ranks of a communicator find each other. They connect to
	// this process, so it must go on until they have. Creating.
	NewUniqueID() (UniqueID, error)
	// NewComm begins to make one rank of a communicator, and returns without waiting for the others
	// if the library can. Until CommReady reports that the Comm is made, only AbortComm, CommError,
	// CommReady and DestroyComm may be called. Creating.
	NewComm(CommDesc) (Comm, error)
	// SplitComm begins to divide an idle communicator into new ones, each of the ranks with the
	// same color, ordered by key and then by rank. A rank with NoColor is in none and gets zero,
	// but all ranks must call. Creating.
	SplitComm(c Comm, color, key int) (Comm, error)
	// ShrinkComm begins to make a communicator without some ranks, which must not call. With abort
	// all work on c is aborted first, and c can then only be destroyed. Ranks that still have to
	// call do not treat that as the end of this rank. Creating.
	ShrinkComm(c Comm, exclude []int, abort bool) (Comm, error)
	// CommReady reports whether a communicator has been made. After an error only AbortComm and
	// DestroyComm may be called. Creating.
	CommReady(Comm) (bool, error)
	// CommRank returns the rank and the number of ranks of a finished communicator.
	CommRank(Comm) (rank, count int, err error)
	// CommError returns an error that a communicator has met by itself, such as another rank's end,
	// or nil. It may be called on any thread.
	CommError(Comm) error
	// AbortComm ends all work on a communicator: methods called on other threads return with
	// errors, and work in streams finishes, with undefined memory. When those methods have
	// returned, only DestroyComm may be called. AbortComm returns soon, whatever other ranks do.
	// Aborting again does nothing. While SplitComm or ShrinkComm makes a new communicator, aborting
	// either, or destroying the new one, aborts both. Creating.
	AbortComm(Comm) error
	// DestroyComm destroys a communicator with its registrations and windows. Unless it was
	// aborted, the streams must have done its work, and the call may wait for the other ranks to
	// destroy theirs, until AbortComm. This holds also for a suspended one, because a library may
	// have to resume it first. Creating.
	DestroyComm(Comm) error

	// Collect puts operations into a stream as one group: each progresses only together with its
	// counterparts on other ranks. After [ErrUnsupported] the stream has none of them, and the
	// communicator is unchanged. After another error the stream may have any part of them. If ranks
	// meet for the first time, Collect may wait for the others, until AbortComm. All Collects of a
	// Comm are called on the same thread. Creating.
	Collect(s Stream, c Comm, ops []CommOp) error

	// RegisterComm registers memory made by Alloc with CommMem, which the communicator may then use
	// without copies. In an operation all ranks must use registered memory, or none. Creating.
	RegisterComm(c Comm, p Ptr, size uint64) (CommMemory, error)
	// NewWindow registers memory with all ranks at once: like RegisterComm, but all must call it,
	// with the same size. With symmetric the ranks promise to use the same offsets. Creating.
	NewWindow(c Comm, p Ptr, size uint64, symmetric bool) (CommMemory, error)
	// ReleaseCommMemory undoes RegisterComm or NewWindow; the latter on all ranks. Creating.
	ReleaseCommMemory(c Comm, m CommMemory) error
}

// A Comms may implement CommLimits, which says in advance which operations the library is too old
// for. Its methods may be called on any thread. Their errors are ErrUnsupported. They return nil
// for a Comm that is not made, or was destroyed.
type CommLimits interface {
	// CheckOp returns the error with which Collect would refuse an operation, whatever its Src, Dst
	// and Count.
	CheckOp(Comm, CommOp) error
	// CheckShrink returns the error with which ShrinkComm would refuse.
	CheckShrink(Comm) error
}

// A Comms may implement CommMaking, which reports the progress of a communicator that is being
// made.
type CommMaking interface {
	// CommAwaits returns the event that an unready Comm waits for, such as "all ranks to join". It
	// is "" for a Comm that waits for no other ranks, or was destroyed. It may be called on any
	// thread.
	CommAwaits(Comm) string
}

// A Comms may implement CommSuspension, which reports a communicator's memory and frees some of it
// for a while. If the library cannot do a call, the error is ErrUnsupported, and the communicator
// is unchanged.
type CommSuspension interface {
	// CommStats returns the memory of a finished communicator, suspended or not. Creating.
	CommStats(Comm) (CommStats, error)
	// SuspendComm frees memory that a communicator does not need until ResumeComm, and keeps its
	// connections. All ranks must call it, and it waits for them, until AbortComm. The communicator
	// must be idle, and the call may wait for all other work of the device. Until ResumeComm only
	// that, CommStats, CommReady, CommRank, CommError, AbortComm and DestroyComm may be called;
	// after another error than ErrUnsupported, only the last two. A library may need
	// CommDesc.Plain. Creating.
	SuspendComm(Comm) error
	// ResumeComm allocates the memory again. All ranks must call it, and it waits for them, until
	// AbortComm. After an error, such as ErrOutOfMemory, only AbortComm and DestroyComm may be
	// called. Creating.
	ResumeComm(Comm) error
}

// CommStats is the device memory of a communicator, in bytes, without memory that its user has
// registered.
type CommStats struct {
	Persistent  uint64 // always allocated
	Suspendable uint64 // allocated, except while it is suspended
	Suspended   bool   // it is suspended
}

// Handles of communicators and of memory registered with one. Zero is none.
type (
	Comm       uintptr
	CommMemory uintptr
)

// A UniqueID identifies a communicator that is to be made.
type UniqueID [128]byte

// NoColor is the color of a rank that joins none of the new communicators.
const NoColor = -1

// A CommDesc describes a rank of a new communicator.
type CommDesc struct {
	ID    UniqueID
	Rank  int
	Count int    // of ranks
	Name  string // for the library's own messages; may be empty

	// Plain joins with one call of the library (ncclCommInitRankConfig, ncclCommInitRank), as other
	// programs do, so that ranks of theirs can take part. The Comm can be aborted like any other,
	// but Split and Shrink are ErrUnsupported; libraries may suspend only plain ones. Without Plain
	// all ranks must be of this driver's kind, because they may make several native communicators
	// together. All ranks of the driver set the same value.
	Plain bool

	// More are further ids, made on other ranks, with the same list on all ranks. With several ids,
	// thousands of ranks find each other faster. An older library cannot use them.
	More []UniqueID
}

// A CommOp is an operation on a communicator. Kind decides which fields are used.
type CommOp struct {
	Kind      CommOpKind
	Type      ElementType
	Reduction Reduction
	Scale     [8]byte // for PreMulSum: the factor, an element of Type, in its first bytes
	Src, Dst  Ptr
	Count     uint64 // elements; see the kinds
	Peer      int    // the root, or the other rank
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
	// Send sends Count elements at Src to the rank Peer, which receives as many.
	Send
	// Recv receives Count elements from the rank Peer at Dst.
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

// The types. 16-bit integers can be moved and not reduced. A library refuses other types that it
// cannot reduce.
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

// Valid reports whether the type is one of these.
func (t ElementType) Valid() bool { return t >= 0 && int(t) < len(elementTypes) }

// Size returns an element's size in bytes, 0 if the type is not valid.
func (t ElementType) Size() int {
	if !t.Valid() {
		return 0
	}
	return elementTypes[t].size
}

// A Reduction makes one element of the elements of all ranks.
type Reduction int

// The reductions. Float types round in an order that the library chooses.
const (
	Sum Reduction = iota
	Prod
	Min
	Max
	Avg       // the sum divided by the number of ranks; of integers, toward zero
	PreMulSum // the sum of elements multiplied by each rank's own Scale
)

var reductionNames = [...]string{"sum", "prod", "min", "max", "avg", "premulsum"}

func (r Reduction) String() string {
	if r < 0 || int(r) >= len(reductionNames) {
		return fmt.Sprintf("reduction %d", int(r))
	}
	return reductionNames[r]
}
