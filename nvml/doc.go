// Package nvml binds NVML, NVIDIA's management library, without cgo. NVML lists GPUs, reports their
// use, power and processes, and changes their settings.
//
// [Open] finds libnvidia-ml, which comes with NVIDIA's driver, and resolves its functions.
// [Library.Init] starts the library, and [Library.Shutdown] ends it. Every function is a method of
// [Library] that returns its outputs and an error, nil on success. An error code is a constant of
// type [Result]: compare it with errors.Is. A function that the library lacks returns a
// [*dl.SymbolError] that names the release that introduced it. Most functions of a device return
// [ErrorNotSupported] if the device lacks the feature.
//
// Functions that write a list take the caller's slice. If the slice is too small, or nil, they
// return [ErrorInsufficientSize] and the needed count; some functions accept nil without an error.
//
// # Versions
//
// If a function has several ABIs, the method with the plain name calls the ABI that NVML's header
// selects for that name, such as nvmlDeviceGetCount_v2 for [Library.DeviceGetCount]. The names of
// methods for other ABIs end in V and a number ([Library.DeviceGetCountV1]). The field Version of a
// structure names its layout. Set the field before the call, to the constant named after the
// structure:
//
//	m := nvml.MemoryV2{Version: nvml.MemoryV2Version}
//	err := lib.DeviceGetMemoryInfoV2(device, &m)
//
// A structure's plain name, such as [PciInfoExt], is an alias for the layout that the header means
// by it. Prefer the name with a number. The library looks only at the version, so a function also
// takes another layout: convert the pointer with package unsafe.
//
// Some constants, such as [FiPwrSmoothingEnabled], have another number in some releases; the
// comment of the constant gives the number and the releases. Pass that number to a library of such
// a release.
//
// [dl.Library.Version] is the CUDA release of the driver's branch, as NVML's header counts: 12.4
// for driver 550. [Library.SystemGetNVMLVersion] and [Library.SystemGetDriverVersion] return the
// driver's own release.
//
// All methods may be called concurrently. [Library.EventSetWait] and [Library.SystemEventSetWait]
// block.
package nvml

//go:generate go run github.com/puregpu/puregpu/tools/gen nvml
