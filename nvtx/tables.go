package nvtx

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// The numbers of the modules of NVTX. Each module has a table of functions.
const (
	moduleCore = iota + 1
	moduleCUDA
	moduleOpenCL
	moduleCUDART
	moduleCore2
	moduleSync
	modules
)

// sizes are the sizes of the modules' tables: one more than their functions, because entry 0 is
// unused.
var sizes = [modules]int{moduleCore: 16, moduleCUDA: 9, moduleOpenCL: 15, moduleCUDART: 7, moduleCore2: 16, moduleSync: 7}

// The places of the functions that this package calls, in the tables of their modules.
const (
	coreMarkEx       = 1
	coreRangeStartEx = 4
	coreRangeEnd     = 7
	coreRangePushEx  = 8
	coreRangePop     = 11
	coreNameCategory = 12
	coreNameOSThread = 14

	cudaNameDevice  = 1
	cudaNameContext = 3
	cudaNameStream  = 5
	cudaNameEvent   = 7

	core2MarkEx         = 1
	core2RangeStartEx   = 2
	core2RangeEnd       = 3
	core2RangePushEx    = 4
	core2RangePop       = 5
	core2NameCategory   = 8
	core2RegisterString = 10
	core2Create         = 12
	core2Destroy        = 14
)

// Identifiers of the tables that a tool requests by getExportTable.
const (
	tableCallbacks = 1
	tableVersion   = 3
)

// version is the version of the NVTX API.
const version = 3

// tables is the memory that the tool reads and writes. The tool keeps pointers into it, which stay
// valid because global variables are never moved or freed.
var tables struct {
	// slots has the addresses of the tool's functions. The tool writes the addresses, and may
	// change them later.
	slots [modules][16]uintptr

	// pointers are the tables that the tool gets. Each entry below the module's size points to the
	// slot of the same index, except entry 0, which is nil.
	pointers [modules][17]*uintptr

	callbacks struct { // NvtxExportTableCallbacks
		size                   uintptr
		getModuleFunctionTable uintptr
	}
	version struct { // NvtxExportTableVersionInfo
		size       uintptr
		version    uint32
		_          uint32
		setVersion uintptr
	}
}

// makeTables fills the tables, and returns the address of the C function getExportTable.
func makeTables() (getExportTable uintptr, err error) {
	t := &tables
	for m, n := range sizes {
		for i := 1; i < n; i++ {
			t.pointers[m][i] = &t.slots[m][i]
		}
	}
	t.callbacks.size, t.version.size, t.version.version = unsafe.Sizeof(t.callbacks), unsafe.Sizeof(t.version), version
	if t.callbacks.getModuleFunctionTable, err = dl.Callback(moduleTable); err != nil {
		return 0, err
	}
	if t.version.setVersion, err = dl.Callback(func(uint32) uintptr { return 0 }); err != nil {
		return 0, err
	}
	return dl.Callback(exportTable)
}

// exportTable is the function that the tool calls as getExportTable.
func exportTable(id uint32) uintptr {
	switch id {
	case tableCallbacks:
		return uintptr(unsafe.Pointer(&tables.callbacks))
	case tableVersion:
		return uintptr(unsafe.Pointer(&tables.version))
	}
	return 0
}

// moduleTable is the function that the tool calls as GetModuleFunctionTable.
func moduleTable(module uint32, table *unsafe.Pointer, size *uint32) uintptr {
	if module < moduleCore || module >= modules {
		return 0
	}
	if size != nil {
		*size = uint32(sizes[module])
	}
	if table != nil {
		*table = unsafe.Pointer(&tables.pointers[module])
	}
	return 1
}
