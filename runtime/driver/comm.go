package driver

import "fmt"

// Comms is what a Device implements besides where Caps.Comms is set: communicators, by which devices of one process or of many
// exchange and reduce data. A communicator has ranks, numbered from 0, each with a device of its own; a Comm is one rank's end.
// The library for them is looked for when it is first needed: that it is missing, or too old for something, is an error of
// the call that needs it.
//
// The methods of a Comm may be called from one goroutine at a time, but for AbortComm and CommError, which may be called at any
// time between its making and its DestroyComm. All ranks must do the same with it, in the same order.
type Comms interface {
	// NewUniqueID makes a name for a communicator, by which its ranks will find each other. It is this process that they find,
	// so this one must go on until they have. Creating.
	NewUniqueID() (UniqueID, error)
	// NewComm begins to make one rank of a communicator and returns without waiting for the others, if the library can. The Comm
	// is good for AbortComm, CommError, CommReady and DestroyComm until CommReady reports that it is made. Creating.
	NewComm(CommDesc) (Comm, error)
	// SplitComm begins to divide a communicator, on which nothing is under way, into new ones: of those ranks that give the same
	// color, ordered by key and then by rank. A rank that gives NoColor is in none and gets zero, but all ranks must call. Creating.
	SplitComm(c Comm, color, key int) (Comm, error)
	// ShrinkComm begins to make a communicator of all ranks but some. Those must not call. With abort what is under way on c is
	// aborted first, and c is good for DestroyComm only; for the ranks that have yet to call that is not this rank's end. Creating.
	ShrinkComm(c Comm, exclude []int, abort bool) (Comm, error)
	// CommReady reports whether a communicator has been made. After an error only AbortComm and DestroyComm are left. Creating.
	CommReady(Comm) (bool, error)
	// CommRank returns the rank and how many there are, of a communicator that has been made.
	CommRank(Comm) (rank, count int, err error)
	// CommError returns what has gone wrong with a communicator by itself, such as another rank's end, nil if nothing has. It may
	// be called on any thread.
	CommError(Comm) error
	// AbortComm makes everything end that is under way on a communicator: methods called on other threads return with errors, and
	// work in streams finishes, with anything in the memory. Afterwards there is only DestroyComm, when the methods have returned. It
	// returns soon, whatever other ranks do. Aborting again does nothing. While SplitComm or ShrinkComm is making one of another, to
	// abort either, or to destroy what is being made, aborts both. Creating.
	AbortComm(Comm) error
	// DestroyComm gives a communicator back, with its registrations and windows. If it has not been aborted the streams must have
	// done what it was used for, and it may wait for the other ranks to destroy theirs, until AbortComm; also if it is suspended, for a
	// library may have to resume it first. Creating.
	DestroyComm(Comm) error

	// Collect puts operations into a stream as one group: each may go on only together with its counterparts on other ranks.
	// If there is an error nobody knows what the stream has got, unless that is ErrUnsupported: then it has got nothing, and the
	// communicator is as it was. Where ranks meet for the first time it may wait for the others,
	// until AbortComm. All Collects of a Comm are called on the same thread. Creating.
	Collect(s Stream, c Comm, ops []CommOp) error

	// RegisterComm tells a communicator of memory, made by Alloc with CommMem, that it may then use without copies. All ranks must
	// use registered memory in an operation, or none. Creating.
	RegisterComm(c Comm, p Ptr, size uint64) (CommMemory, error)
	// NewWindow registers memory with all ranks at once: as RegisterComm, but all must call it, with the same size. With symmetric
	// the ranks promise to use it at the same offsets. Creating.
	NewWindow(c Comm, p Ptr, size uint64, symmetric bool) (CommMemory, error)
	// ReleaseCommMemory undoes RegisterComm or NewWindow; the latter on all ranks. Creating.
	ReleaseCommMemory(c Comm, m CommMemory) error
}

// CommLimits is what a Comms may implement besides: it says beforehand what the library that was found is too old for. Its methods may be
// called on any thread; of a Comm that is not made, or was destroyed, they say nothing. Their errors are ErrUnsupported.
type CommLimits interface {
	// CheckOp returns the error that Collect would refuse an operation with, whatever its Src, Dst and Count.
	CheckOp(Comm, CommOp) error
	// CheckShrink returns the error that ShrinkComm would refuse with.
	CheckShrink(Comm) error
}

// CommMaking is what a Comms may implement besides: it says what the making of a communicator waits for.
type CommMaking interface {
	// CommAwaits says what a Comm that is not ready waits for: "all ranks to join", say. It is "" for one that waits for no other ranks, or was
	// destroyed. It may be called on any thread.
	CommAwaits(Comm) string
}

// CommSuspension is what a Comms may implement besides: it tells how much memory of the device a communicator has, and gives some of it back for
// a while. What the library that was found cannot do is ErrUnsupported, and the communicator is as it was.
type CommSuspension interface {
	// CommStats tells how much memory a communicator has that has been made, suspended or not. Creating.
	CommStats(Comm) (CommStats, error)
	// SuspendComm gives the memory back that a communicator can do without until ResumeComm, and keeps its connections. All ranks must call it,
	// and it waits for them, until AbortComm. Nothing may be under way, and it may wait for all other work of the device. Until ResumeComm
	// only that, CommStats, CommReady, CommRank, CommError, AbortComm and DestroyComm are left. After another error than ErrUnsupported
	// only the last two are. A library may ask that the Comm was made with CommDesc.Plain. Creating.
	SuspendComm(Comm) error
	// ResumeComm takes the memory again. All ranks must call it, and it waits for them, until AbortComm. After an error, such as
	// ErrOutOfMemory, only AbortComm and DestroyComm are left. Creating.
	ResumeComm(Comm) error
}

// CommStats is how much memory of its device a communicator has, in bytes, without what its user has registered.
type CommStats struct {
	Persistent  uint64 // it has always
	Suspendable uint64 // it has, but while it is suspended
	Suspended   bool   // it is
}

// Handles of communicators and of what is registered with one. Zero is none.
type (
	Comm       uintptr
	CommMemory uintptr
)

// A UniqueID names a communicator that is to be made.
type UniqueID [128]byte

// NoColor is the color of a rank that is to be in none of the new communicators.
const NoColor = -1

// A CommDesc says which rank of which communicator to make.
type CommDesc struct {
	ID    UniqueID
	Rank  int
	Count int    // of ranks
	Name  string // for the library's own messages; may be empty

	// Plain makes this rank with one call of the library's that joins (ncclCommInitRankConfig, ncclCommInitRank), as programs of others do,
	// so that ranks of theirs can take part. The Comm can be aborted like any, but not be split or shrunk: ErrUnsupported; and libraries suspend only such. Without it all ranks
	// must be of this driver's kind, for they may make more of the library's communicators together. All ranks of the driver give the same.
	Plain bool

	// More are further names, made on other ranks and the same on all: with a few, thousands of ranks find each other faster. An
	// older library cannot use them.
	More []UniqueID
}

// A CommOp is an operation on a communicator. Which fields count depends on Kind.
type CommOp struct {
	Kind      CommOpKind
	Type      ElementType
	Reduction Reduction
	Scale     [8]byte // for PreMulSum: the factor, an element of Type, in its first bytes
	Src, Dst  Ptr
	Count     uint64 // elements; see the kinds
	Peer      int    // the root, or the other rank
}

// A CommOpKind says what an operation does. With n ranks:
type CommOpKind int

// The kinds. Src may be the same as Dst, or where it says so a part of it, else they must not overlap.
const (
	AllReduce     CommOpKind = iota // Dst on all = the reduction of Count elements at Src of all
	AllGather                       // Dst on all = Count elements at Src of each, n×Count in all; Src may be its own part of Dst
	ReduceScatter                   // Dst = the rank's own Count elements of the reduction of n×Count at Src of all; Dst may be its own part of Src
	Broadcast                       // Dst on all = Count elements at Src of the root Peer; other ranks' Src is not looked at
	Reduce                          // Dst of the root Peer = the reduction of Count elements at Src of all; other ranks' Dst is not looked at
	AllToAll                        // part r of Dst = the rank's own part of Src of r; parts have Count elements; never in place
	Gather                          // Dst of the root Peer = Count elements at Src of each; other ranks' Dst is not looked at; Src may be its own part
	Scatter                         // Dst = the rank's own Count elements of n×Count at Src of the root Peer; Dst may be its own part of Src
	Send                            // Count elements at Src go to the rank Peer, which receives as many
	Recv                            // Count elements at Dst come from the rank Peer
)

var commOpNames = [...]string{"all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all", "gather", "scatter", "send", "receive"}

func (k CommOpKind) String() string {
	if k < 0 || int(k) >= len(commOpNames) {
		return fmt.Sprintf("operation %d", int(k))
	}
	return commOpNames[k]
}

// Reduces reports whether the operation computes, rather than only moves, so that its elements must be numbers that the
// library can compute with.
func (k CommOpKind) Reduces() bool { return k == AllReduce || k == ReduceScatter || k == Reduce }

// An ElementType is the type of the elements of a collective operation.
type ElementType int

// The types. 16-bit integers can be moved and not reduced; what else a library cannot reduce it says.
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

// Valid reports whether it is one of the types.
func (t ElementType) Valid() bool { return t >= 0 && int(t) < len(elementTypes) }

// Size returns an element's size in bytes, 0 if the type is not valid.
func (t ElementType) Size() int {
	if !t.Valid() {
		return 0
	}
	return elementTypes[t].size
}

// A Reduction is a way to make one element of those of all ranks.
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
