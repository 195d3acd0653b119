package nvtx

import "unsafe"

// Layout returns the size of the attributes and the offsets of their fields.
func Layout() []int32 {
	var a attributes
	return []int32{
		int32(unsafe.Sizeof(a)), int32(unsafe.Offsetof(a.version)), int32(unsafe.Offsetof(a.size)), int32(unsafe.Offsetof(a.category)),
		int32(unsafe.Offsetof(a.colorType)), int32(unsafe.Offsetof(a.color)), int32(unsafe.Offsetof(a.payloadType)),
		int32(unsafe.Offsetof(a.payload)), int32(unsafe.Offsetof(a.messageType)), int32(unsafe.Offsetof(a.message)),
	}
}
