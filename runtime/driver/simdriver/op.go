package simdriver

// An Op names a kind of call: a method of [driver.Driver], of [driver.Device] or of an optional
// interface of a device, such as [driver.Pools]. It is the Op of the call's [driver.Error].
type Op string

// The operations. Those with the comment "submitted" go to a stream and execute later.
const (
	OpDevices       Op = "devices"
	OpOpen          Op = "open"
	OpBind          Op = "bind"
	OpClose         Op = "close"
	OpNewStream     Op = "new stream"
	OpDestroyStream Op = "destroy stream"
	OpNewEvent      Op = "new event"
	OpDestroyEvent  Op = "destroy event"
	OpRecord        Op = "record" // submitted
	OpQuery         Op = "query"
	OpStreamWait    Op = "wait" // submitted
	OpAlloc         Op = "alloc"
	OpFree          Op = "free"
	OpRegister      Op = "register"
	OpUnregister    Op = "unregister"
	OpPrefetch      Op = "prefetch" // submitted
	OpFill          Op = "fill"     // submitted
	OpCopy          Op = "copy"     // submitted
	OpUpload        Op = "upload"   // submitted
	OpDownload      Op = "download" // submitted
	OpLoad          Op = "load"
	OpUnload        Op = "unload"
	OpFunction      Op = "function"
	OpGlobal        Op = "global"
	OpLaunch        Op = "launch" // submitted

	OpDefaultPool    Op = "default pool"
	OpCurrentPool    Op = "current pool"
	OpSetCurrentPool Op = "set current pool"
	OpNewPool        Op = "new pool"
	OpDestroyPool    Op = "destroy pool"
	OpPoolAttr       Op = "pool attribute"
	OpSetPoolAttr    Op = "set pool attribute"
	OpTrimPool       Op = "trim pool"
	OpAccessPool     Op = "access pool"
	OpAllocAsync     Op = "alloc async" // submitted
	OpFreeAsync      Op = "free async"  // submitted

	OpNewGraph     Op = "new graph"
	OpDestroyGraph Op = "destroy graph"
	OpAddNode      Op = "add node"
	OpInstantiate  Op = "instantiate"
	OpDestroyExec  Op = "destroy exec"
	OpSetNode      Op = "set node"
	OpLaunchGraph  Op = "launch graph" // submitted

	OpReadyConditionals Op = "ready conditionals"
	OpNewCondition      Op = "new condition"
	OpAddConditional    Op = "add conditional"
	OpTest              Op = "test" // not a call: a test node of a graph

	OpNewTimer Op = "new timer"
	OpElapsed  Op = "elapsed"

	OpEnablePeer Op = "enable peer"

	OpEnter        Op = "enter"
	OpBeginCapture Op = "begin capture"
	OpEndCapture   Op = "end capture"
	OpMemInfo      Op = "memory info"
	OpLink         Op = "link"
	OpOccupancy    Op = "occupancy"
	OpCompile      Op = "compile"

	OpAdoptStream Op = "adopt stream"
	OpCapturing   Op = "capturing"
	OpWriteValue  Op = "write value" // submitted
	OpWaitValue   Op = "wait value"  // submitted

	OpExportMem   Op = "export memory"
	OpOpenMem     Op = "open memory"
	OpCloseMem    Op = "close memory"
	OpNewIPCEvent Op = "new shared event"
	OpExportEvent Op = "export event"
	OpOpenEvent   Op = "open event"

	OpExportShareable Op = "export shareable memory"
	OpImportShareable Op = "import shareable memory"

	OpReserveAddresses Op = "reserve addresses"
	OpFreeAddresses    Op = "free addresses"
	OpNewPages         Op = "new pages"
	OpFreePages        Op = "free pages"
	OpMapPages         Op = "map pages"
	OpUnmapPages       Op = "unmap pages"
	OpAccessPages      Op = "access pages"

	OpExportPool    Op = "export pool"
	OpImportPool    Op = "import pool"
	OpExportPoolMem Op = "export pool memory"
	OpOpenPoolMem   Op = "open pool memory"
	OpClosePoolMem  Op = "close pool memory"

	OpNewUniqueID       Op = "new unique id"
	OpNewComm           Op = "new comm"
	OpSplitComm         Op = "split comm"
	OpShrinkComm        Op = "shrink comm"
	OpCommReady         Op = "comm ready"
	OpCommRank          Op = "comm rank"
	OpCommError         Op = "comm error"
	OpAbortComm         Op = "abort comm"
	OpDestroyComm       Op = "destroy comm"
	OpCollect           Op = "collect" // submitted
	OpRegisterComm      Op = "register comm"
	OpNewWindow         Op = "new window"
	OpReleaseCommMemory Op = "release comm memory"
	OpCommStats         Op = "comm stats"
	OpSuspendComm       Op = "suspend comm"
	OpResumeComm        Op = "resume comm"
)

// A code is the index of an Op in ops.
type code uint8

const (
	codeDevices code = iota
	codeOpen
	codeBind
	codeClose
	codeNewStream
	codeDestroyStream
	codeNewEvent
	codeDestroyEvent
	codeRecord
	codeQuery
	codeStreamWait
	codeAlloc
	codeFree
	codeRegister
	codeUnregister
	codePrefetch
	codeFill
	codeCopy
	codeUpload
	codeDownload
	codeLoad
	codeUnload
	codeFunction
	codeGlobal
	codeLaunch
	codeDefaultPool
	codeCurrentPool
	codeSetCurrentPool
	codeNewPool
	codeDestroyPool
	codePoolAttr
	codeSetPoolAttr
	codeTrimPool
	codeAccessPool
	codeAllocAsync
	codeFreeAsync
	codeNewGraph
	codeDestroyGraph
	codeAddNode
	codeInstantiate
	codeDestroyExec
	codeSetNode
	codeLaunchGraph
	codeReadyConditionals
	codeNewCondition
	codeAddConditional
	codeTest
	codeNewTimer
	codeElapsed
	codeEnablePeer
	codeEnter
	codeBeginCapture
	codeEndCapture
	codeMemInfo
	codeLink
	codeOccupancy
	codeCompile
	codeAdoptStream
	codeCapturing
	codeWriteValue
	codeWaitValue
	codeExportMem
	codeOpenMem
	codeCloseMem
	codeNewIPCEvent
	codeExportEvent
	codeOpenEvent
	codeExportShareable
	codeImportShareable
	codeReserveAddresses
	codeFreeAddresses
	codeNewPages
	codeFreePages
	codeMapPages
	codeUnmapPages
	codeAccessPages
	codeExportPool
	codeImportPool
	codeExportPoolMem
	codeOpenPoolMem
	codeClosePoolMem
	codeNewUniqueID
	codeNewComm
	codeSplitComm
	codeShrinkComm
	codeCommReady
	codeCommRank
	codeCommError
	codeAbortComm
	codeDestroyComm
	codeCollect
	codeRegisterComm
	codeNewWindow
	codeReleaseCommMemory
	codeCommStats
	codeSuspendComm
	codeResumeComm
	codes // the number of codes
)

// ops holds the Op of each code.
var ops = [codes]Op{
	OpDevices, OpOpen, OpBind, OpClose, OpNewStream, OpDestroyStream, OpNewEvent, OpDestroyEvent, OpRecord, OpQuery,
	OpStreamWait, OpAlloc, OpFree, OpRegister, OpUnregister, OpPrefetch, OpFill, OpCopy, OpUpload, OpDownload, OpLoad, OpUnload,
	OpFunction, OpGlobal, OpLaunch,
	OpDefaultPool, OpCurrentPool, OpSetCurrentPool, OpNewPool, OpDestroyPool, OpPoolAttr, OpSetPoolAttr, OpTrimPool,
	OpAccessPool, OpAllocAsync, OpFreeAsync,
	OpNewGraph, OpDestroyGraph, OpAddNode, OpInstantiate, OpDestroyExec, OpSetNode, OpLaunchGraph,
	OpReadyConditionals, OpNewCondition, OpAddConditional, OpTest,
	OpNewTimer, OpElapsed,
	OpEnablePeer,
	OpEnter, OpBeginCapture, OpEndCapture,
	OpMemInfo, OpLink, OpOccupancy, OpCompile,
	OpAdoptStream, OpCapturing, OpWriteValue, OpWaitValue,
	OpExportMem, OpOpenMem, OpCloseMem, OpNewIPCEvent, OpExportEvent, OpOpenEvent,
	OpExportShareable, OpImportShareable,
	OpReserveAddresses, OpFreeAddresses, OpNewPages, OpFreePages, OpMapPages, OpUnmapPages, OpAccessPages,
	OpExportPool, OpImportPool, OpExportPoolMem, OpOpenPoolMem, OpClosePoolMem,
	OpNewUniqueID, OpNewComm, OpSplitComm, OpShrinkComm, OpCommReady, OpCommRank, OpCommError, OpAbortComm, OpDestroyComm,
	OpCollect, OpRegisterComm, OpNewWindow, OpReleaseCommMemory, OpCommStats, OpSuspendComm, OpResumeComm,
}

// String returns the Op of c as text.
func (c code) String() string { return string(ops[c]) }

// codeOf returns the code of op, if there is one.
func codeOf(op Op) (code, bool) {
	for c, o := range ops {
		if o == op {
			return code(c), true
		}
	}
	return 0, false
}

// submitted reports whether calls of c add an operation to a stream.
func (c code) submitted() bool {
	switch c {
	case codeRecord, codeStreamWait, codePrefetch, codeFill, codeCopy, codeUpload, codeDownload, codeLaunch, codeAllocAsync, codeFreeAsync,
		codeLaunchGraph, codeCollect, codeWriteValue, codeWaitValue:
		return true
	}
	return false
}

// begun reports whether the work of a call of c continues after the call has returned.
func (c code) begun() bool {
	return c.submitted() || c == codeNewComm || c == codeSplitComm || c == codeShrinkComm
}
