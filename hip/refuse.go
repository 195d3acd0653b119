package hip

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/dl"
)

// refusals are the functions whose structs, enumerations or parameters differ between releases. The bindings have those of 6.4,
// and a library of another release would take a field for another one, or write past the end. They come from a comparison of
// the headers of 5.2 to 7.2. A field or an enumerator that only the bindings know, at the end or in what was reserved, is no
// reason: an older library ignores or refuses it.
var refusals = []struct {
	from, to dl.Version // the first release that is refused, and the first one after it that is not
	why      string
	names    []string
}{
	{oldest, 5_03_00000, "hipMemAllocationProp has its fields in another order before 5.3",
		[]string{"hipMemCreate", "hipMemGetAllocationGranularity", "hipMemGetAllocationPropertiesFromHandle"}},
	{oldest, 5_05_00000, "hipGraphNodeType has other numbers before 5.5", []string{"hipGraphNodeGetType"}},
	{oldest, 6_00_00000, "HIP_MEMCPY3D is of 128 bytes before 6.0, and of 184 since; use Memcpy3D or Memcpy3DAsync",
		[]string{"hipDrvMemcpy3D", "hipDrvMemcpy3DAsync"}},
	{oldest, 6_00_00000, "hipExternalSemaphoreSignalParams is of 136 bytes before 6.0, and of 144 since", []string{"hipSignalExternalSemaphoresAsync"}},
	{oldest, 6_00_00000, "hipExternalSemaphoreWaitParams is of 136 bytes before 6.0, and of 144 since", []string{"hipWaitExternalSemaphoresAsync"}},
	{oldest, 6_00_00000, "hipMemoryType has other numbers before 6.0; use Memcpy2D or Memcpy2DAsync",
		[]string{"hipMemcpyParam2D", "hipMemcpyParam2DAsync", "hipDrvMemcpy2DUnaligned"}},
	{oldest, 6_00_00000, "hipMemoryType has other numbers before 6.0; PointerGetAttribute tells all but that", []string{"hipPointerGetAttributes"}},
	{7_00_00000, newest, "it takes hipMemsetParams from 7.0 on; use GraphAddMemsetNode", []string{"hipDrvGraphAddMemsetNode"}},
	{7_00_00000, newest, "it takes hipMemsetParams from 7.0 on; use GraphExecMemsetNodeSetParams", []string{"hipDrvGraphExecMemsetNodeSetParams"}},
	{7_00_00000, newest, "hipLaunchAttributeValue is of 64 bytes from 7.0 on, and of 32 before",
		[]string{"hipGraphKernelNodeGetAttribute", "hipGraphKernelNodeSetAttribute"}},
}

const oldest, newest dl.Version = 1, 1<<31 - 1

// refuse returns why a function of a release is not called, or "". A library whose release is unknown has found no device,
// without which no function does anything.
func refuse(v dl.Version, s *dl.Symbol) string {
	for _, r := range refusals {
		if v >= r.from && v < r.to && slices.Contains(r.names, s.Name) {
			return "not called, as this package is of 6.4, and " + r.why
		}
	}
	return ""
}
