package main

import (
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
)

// A kind says what an attribute's number is.
type kind int

const (
	count  kind = iota
	bytes       // JSON has bytes too
	kibi        // bytes, printed in KiB
	clock       // kHz
	answer      // 1 for yes, 0 for no
)

// An attribute is a property of a device. Zero stands for an attribute that the library does not have: it is warp size,
// or ECC in HIP, for no library that knows it under that number.
type attribute struct {
	name  string // in JSON
	label string // in print
	kind  kind
	cuda  cuda.DeviceAttribute
	hip   hip.DeviceAttribute
}

// attributes are printed in this order.
var attributes = []attribute{
	{"multiprocessors", "multiprocessors", count, cuda.DeviceAttributeMultiprocessorCount, hip.DeviceAttributeMultiprocessorCount},
	{"warpSize", "warp size", count, cuda.DeviceAttributeWarpSize, hip.DeviceAttributeWarpSize},
	{"maxThreadsPerBlock", "threads per block, most", count, cuda.DeviceAttributeMaxThreadsPerBlock, hip.DeviceAttributeMaxThreadsPerBlock},
	{"maxThreadsPerMultiprocessor", "threads per multiprocessor, most", count, cuda.DeviceAttributeMaxThreadsPerMultiprocessor, hip.DeviceAttributeMaxThreadsPerMultiProcessor},
	{"maxBlockDimX", "block size x, most", count, cuda.DeviceAttributeMaxBlockDimX, hip.DeviceAttributeMaxBlockDimX},
	{"maxBlockDimY", "block size y, most", count, cuda.DeviceAttributeMaxBlockDimY, hip.DeviceAttributeMaxBlockDimY},
	{"maxBlockDimZ", "block size z, most", count, cuda.DeviceAttributeMaxBlockDimZ, hip.DeviceAttributeMaxBlockDimZ},
	{"maxGridDimX", "grid size x, most", count, cuda.DeviceAttributeMaxGridDimX, hip.DeviceAttributeMaxGridDimX},
	{"maxGridDimY", "grid size y, most", count, cuda.DeviceAttributeMaxGridDimY, hip.DeviceAttributeMaxGridDimY},
	{"maxGridDimZ", "grid size z, most", count, cuda.DeviceAttributeMaxGridDimZ, hip.DeviceAttributeMaxGridDimZ},
	{"registersPerBlock", "registers per block", count, cuda.DeviceAttributeMaxRegistersPerBlock, hip.DeviceAttributeMaxRegistersPerBlock},
	{"sharedMemoryPerBlock", "shared memory per block", kibi, cuda.DeviceAttributeMaxSharedMemoryPerBlock, hip.DeviceAttributeMaxSharedMemoryPerBlock},
	{"sharedMemoryPerBlockOptin", "shared memory per block, on request", kibi, cuda.DeviceAttributeMaxSharedMemoryPerBlockOptin, hip.DeviceAttributeSharedMemPerBlockOptin},
	{"sharedMemoryPerMultiprocessor", "shared memory per multiprocessor", kibi, cuda.DeviceAttributeMaxSharedMemoryPerMultiprocessor, hip.DeviceAttributeMaxSharedMemoryPerMultiprocessor},
	{"l2Cache", "L2 cache", kibi, cuda.DeviceAttributeL2CacheSize, hip.DeviceAttributeL2CacheSize},
	{"clock", "clock", clock, cuda.DeviceAttributeClockRate, hip.DeviceAttributeClockRate},
	{"memoryClock", "memory clock", clock, cuda.DeviceAttributeMemoryClockRate, hip.DeviceAttributeMemoryClockRate},
	{"memoryBusWidth", "memory bus width, bits", count, cuda.DeviceAttributeGlobalMemoryBusWidth, hip.DeviceAttributeMemoryBusWidth},
	{"asyncEngines", "copy engines", count, cuda.DeviceAttributeAsyncEngineCount, hip.DeviceAttributeAsyncEngineCount},
	{"computeMode", "compute mode", count, cuda.DeviceAttributeComputeMode, hip.DeviceAttributeComputeMode},
	{"integrated", "shares the host's memory", answer, cuda.DeviceAttributeIntegrated, hip.DeviceAttributeIntegrated},
	{"ecc", "error correction on", answer, cuda.DeviceAttributeECCEnabled, none},
	{"concurrentKernels", "concurrent kernels", answer, cuda.DeviceAttributeConcurrentKernels, hip.DeviceAttributeConcurrentKernels},
	{"streamPriorities", "stream priorities", answer, cuda.DeviceAttributeStreamPrioritiesSupported, hip.DeviceAttributeStreamPrioritiesSupported},
	{"unifiedAddressing", "one address space with the host", answer, cuda.DeviceAttributeUnifiedAddressing, hip.DeviceAttributeUnifiedAddressing},
	{"managedMemory", "managed memory", answer, cuda.DeviceAttributeManagedMemory, hip.DeviceAttributeManagedMemory},
	{"concurrentManagedAccess", "managed memory used by both at once", answer, cuda.DeviceAttributeConcurrentManagedAccess, hip.DeviceAttributeConcurrentManagedAccess},
	{"pageableMemoryAccess", "ordinary host memory", answer, cuda.DeviceAttributePageableMemoryAccess, hip.DeviceAttributePageableMemoryAccess},
	{"hostRegister", "host memory registration", answer, cuda.DeviceAttributeHostRegisterSupported, hip.DeviceAttributeHostRegisterSupported},
	{"cooperativeLaunch", "cooperative launch", answer, cuda.DeviceAttributeCooperativeLaunch, hip.DeviceAttributeCooperativeLaunch},
	{"clusterLaunch", "cluster launch", answer, cuda.DeviceAttributeClusterLaunch, none},
	{"memoryPools", "memory pools", answer, cuda.DeviceAttributeMemoryPoolsSupported, hip.DeviceAttributeMemoryPoolsSupported},
	{"virtualMemory", "virtual memory management", answer, cuda.DeviceAttributeVirtualMemoryManagementSupported, hip.DeviceAttributeVirtualMemoryManagementSupported},
	{"streamMemoryOperations64", "stream memory operations, 64 bits", answer, cuda.DeviceAttributeCanUse64BitStreamMemOps, hip.DeviceAttributeCanUseStreamWaitValue},
	{"timelineSemaphores", "external timeline semaphores", answer, cuda.DeviceAttributeTimelineSemaphoreInteropSupported, none},
	{"gpuDirectRDMA", "GPUDirect RDMA", answer, cuda.DeviceAttributeGPUDirectRDMASupported, none},
	{"dmaBuf", "DMA-BUF export", answer, cuda.DeviceAttributeDMABufSupported, none},
	{"fabricHandles", "memory handles across nodes", answer, cuda.DeviceAttributeHandleTypeFabricSupported, none},
	{"multicast", "multicast", answer, cuda.DeviceAttributeMulticastSupported, none},
	{"mps", "under MPS", answer, cuda.DeviceAttributeMPSEnabled, none},
	{"hostNUMANode", "host NUMA node", count, cuda.DeviceAttributeHostNUMAID, none},
}

// none stands for an attribute that HIP does not have.
const none hip.DeviceAttribute = -1 & 0x7fffffff
