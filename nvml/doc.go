// Package nvml binds NVML, NVIDIA's management library, without cgo: what GPUs there are, how they are used, what they draw, and
// what can be set.
//
// [Open] finds libnvidia-ml, which comes with NVIDIA's driver, and resolves its functions. [Library.Init] starts it, and
// [Library.Shutdown] ends it. Every function is a method of [Library] that returns its outputs and an error, nil on success. An
// error code is a [Result], a constant: compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError]
// that says which release brought it. Most functions of a device return [ErrorNotSupported] where the device cannot do what they
// are for.
//
// Functions that write a list take a slice of the caller's. Too small a slice, also none, gives [ErrorInsufficientSize] and the
// count that is needed; some functions take none without an error.
//
// # Versions
//
// Of a function with several ABIs the plain name is the one that NVML's header gives the plain name, such as
// nvmlDeviceGetCount_v2 for [Library.DeviceGetCount]; older ones have V and their number behind them ([Library.DeviceGetCountV1]).
// A structure with a field Version has to say which layout it has before the library fills it in. The constant is called as the
// structure is, with Version behind it:
//
//	m := nvml.MemoryV2{Version: nvml.MemoryV2Version}
//	err := lib.DeviceGetMemoryInfoV2(device, &m)
//
// A structure's plain name, such as [PciInfoExt], is another name for the layout that the header means by it: name the layout
// with its number, as the constant is. The library goes by the version alone, so that a function whose parameter is one layout
// takes another one too, as a pointer that package unsafe has converted.
//
// Some fields, such as [FiPwrSmoothingEnabled], have another number in some releases, which the comment of the constant tells: ask a library of such a
// release for that number.
//
// [dl.Library.Version] is the CUDA release that the driver's branch came with, as NVML's own header counts: 12.4 for driver 550.
// [Library.SystemGetNVMLVersion] and [Library.SystemGetDriverVersion] have the driver's own release.
//
// All methods may be called concurrently. [Library.EventSetWait] and [Library.SystemEventSetWait] block.
package nvml

//go:generate go run github.com/puregpu/puregpu/tools/gen nvml
