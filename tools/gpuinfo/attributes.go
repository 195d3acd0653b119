package main

import (
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
)

// A kind is the meaning of an attribute's number.
type kind int

const (
	number kind = iota
	size        // in bytes
	clock       // in kHz
	answer      // 1 for yes, 0 for no
)

// An attribute is a property of a device, with the number that each library has for it.
type attribute struct {
	name  string // name in JSON
	label string // name in the printed text
	kind  kind
	cuda  cuda.DeviceAttribute
	hip   hip.DeviceAttribute
}

// attributes are printed in this order.
var attributes = []attribute{
	{"multiprocessors", "multiprocessors", number, cuda.DeviceAttributeMultiprocessorCount, hip.DeviceAttributeMultiprocessorCount},
	{"warpSize", "warp size", number, cuda.DeviceAttributeWarpSize, hip.DeviceAttributeWarpSize},
	{"maxThreadsPerBlock", "threads per block, most", number, cuda.DeviceAttributeMaxThreadsPerBlock, hip.DeviceAttributeMaxThreadsPerBlock},
	{"maxThreadsPerMultiprocessor", "threads per multiprocessor, most", number, cuda.DeviceAttributeMaxThreadsPerMultiprocessor, hip.DeviceAttributeMaxThreadsPerMultiProcessor},
	{"maxBlocksPerMultiprocessor", "blocks per multiprocessor, most", number, cuda.DeviceAttributeMaxBlocksPerMultiprocessor, hip.DeviceAttributeMaxBlocksPerMultiProcessor},
	{"maxBlockDimX", "block size x, most", number, cuda.DeviceAttributeMaxBlockDimX, hip.DeviceAttributeMaxBlockDimX},
	{"maxBlockDimY", "block size y, most", number, cuda.DeviceAttributeMaxBlockDimY, hip.DeviceAttributeMaxBlockDimY},
	{"maxBlockDimZ", "block size z, most", number, cuda.DeviceAttributeMaxBlockDimZ, hip.DeviceAttributeMaxBlockDimZ},
	{"maxGridDimX", "grid size x, most", number, cuda.DeviceAttributeMaxGridDimX, hip.DeviceAttributeMaxGridDimX},
	{"maxGridDimY", "grid size y, most", number, cuda.DeviceAttributeMaxGridDimY, hip.DeviceAttributeMaxGridDimY},
	{"maxGridDimZ", "grid size z, most", number, cuda.DeviceAttributeMaxGridDimZ, hip.DeviceAttributeMaxGridDimZ},
	{"registersPerBlock", "registers per block", number, cuda.DeviceAttributeMaxRegistersPerBlock, hip.DeviceAttributeMaxRegistersPerBlock},
	{"registersPerMultiprocessor", "registers per multiprocessor", number, cuda.DeviceAttributeMaxRegistersPerMultiprocessor, hip.DeviceAttributeMaxRegistersPerMultiprocessor},
	{"sharedMemoryPerBlock", "shared memory per block", size, cuda.DeviceAttributeMaxSharedMemoryPerBlock, hip.DeviceAttributeMaxSharedMemoryPerBlock},
	{"sharedMemoryPerBlockOptin", "shared memory per block, on request", size, cuda.DeviceAttributeMaxSharedMemoryPerBlockOptin, hip.DeviceAttributeSharedMemPerBlockOptin},
	{"sharedMemoryPerMultiprocessor", "shared memory per multiprocessor", size, cuda.DeviceAttributeMaxSharedMemoryPerMultiprocessor, hip.DeviceAttributeMaxSharedMemoryPerMultiprocessor},
	{"l2Cache", "L2 cache", size, cuda.DeviceAttributeL2CacheSize, hip.DeviceAttributeL2CacheSize},
	{"clock", "clock", clock, cuda.DeviceAttributeClockRate, hip.DeviceAttributeClockRate},
	{"memoryClock", "memory clock", clock, cuda.DeviceAttributeMemoryClockRate, hip.DeviceAttributeMemoryClockRate},
	{"memoryBusWidth", "memory bus width, bits", number, cuda.DeviceAttributeGlobalMemoryBusWidth, hip.DeviceAttributeMemoryBusWidth},
	{"asyncEngines", "copy engines", number, cuda.DeviceAttributeAsyncEngineCount, hip.DeviceAttributeAsyncEngineCount},
	{"computeMode", "compute mode", number, cuda.DeviceAttributeComputeMode, hip.DeviceAttributeComputeMode},
	{"integrated", "shares the host's memory", answer, cuda.DeviceAttributeIntegrated, hip.DeviceAttributeIntegrated},
	{"ecc", "error correction on", answer, cuda.DeviceAttributeECCEnabled, hip.DeviceAttributeEccEnabled},
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
	{hostNUMANode, "host NUMA node", number, cuda.DeviceAttributeHostNUMAID, none},
}

// The operating system reports hostNUMANode if the library does not.
const hostNUMANode = "hostNUMANode"

// none marks an attribute that HIP does not have.
const none = ^hip.DeviceAttribute(0)
