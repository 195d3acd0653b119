package solver

import (
	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusolver"
)

type (
	library = *cusolver.Library
	handle  = cusolver.DnHandle
	ptr     = cuda.DevicePtr
	fill    = cublas.FillMode
	mode    = cusolver.EigMode
)

// routines are the functions of cuSOLVER for one type of elements.
type routines struct {
	size      int
	potrfSize func(library, handle, fill, int32, ptr, int32) (int32, error)
	potrf     func(library, handle, fill, int32, ptr, int32, ptr, int32, ptr) error
	potrs     func(library, handle, fill, int32, int32, ptr, int32, ptr, int32, ptr) error
	getrfSize func(library, handle, int32, int32, ptr, int32) (int32, error)
	getrf     func(library, handle, int32, int32, ptr, int32, ptr, ptr, ptr) error
	getrs     func(library, handle, cublas.Operation, int32, int32, ptr, int32, ptr, ptr, int32, ptr) error
	syevdSize func(library, handle, mode, fill, int32, ptr, int32, ptr) (int32, error)
	syevd     func(library, handle, mode, fill, int32, ptr, int32, ptr, ptr, int32, ptr) error
}

var single = routines{4, library.DnSpotrfBufferSize, library.DnSpotrf, library.DnSpotrs, library.DnSgetrfBufferSize, library.DnSgetrf, library.DnSgetrs,
	library.DnSsyevdBufferSize, library.DnSsyevd}

var double = routines{8, library.DnDpotrfBufferSize, library.DnDpotrf, library.DnDpotrs, library.DnDgetrfBufferSize, library.DnDgetrf, library.DnDgetrs,
	library.DnDsyevdBufferSize, library.DnDsyevd}

// routinesFor returns the functions for elements of type T.
func routinesFor[T Element]() *routines {
	if _, ok := any(*new(T)).(float64); ok {
		return &double
	}
	return &single
}
