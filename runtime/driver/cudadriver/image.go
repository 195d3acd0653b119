package cudadriver

import (
	"bytes"
	"debug/elf"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/kernelobject"
)

// The CUDA driver gets the address of an image without its length. The driver trusts the sizes in
// the image, and would read past the end of an incomplete image. So this file checks that an image
// is complete.

// prepare checks an image. It returns the image in the form that the driver needs, and the name of
// the image's format.
func prepare(image []byte) (_ []byte, form string, _ error) {
	switch {
	case len(image) == 0:
		return nil, "", fmt.Errorf("the image is empty: %w", cuda.ErrorInvalidImage)
	case bytes.HasPrefix(image, []byte(elf.ELFMAG)):
		if err := kernelobject.CheckCubin(image); err != nil {
			return nil, "", fmt.Errorf("%w: %w", err, cuda.ErrorInvalidImage)
		}
		return aligned(image), "cubin", nil
	case kernelobject.IsFatbin(image):
		if _, err := kernelobject.Fatbin(image); err != nil {
			return nil, "", fmt.Errorf("%w: %w", err, cuda.ErrorInvalidImage)
		}
		return aligned(image), "fat binary", nil
	case kernelobject.IsPTX(image):
		text := bytes.TrimRight(image, "\x00")
		if i := bytes.IndexByte(text, 0); i >= 0 {
			return nil, "", fmt.Errorf("a NUL byte at %d of %d bytes of PTX ends the text early: %w", i, len(text), cuda.ErrorInvalidImage)
		}
		if len(text) < len(image) {
			return image, "PTX", nil
		}
		return append(bytes.Clone(text), 0), "PTX", nil
	}
	return nil, "", fmt.Errorf("neither PTX, which begins with .version, nor a cubin nor a fat binary; it begins with %q: %w",
		image[:min(len(image), 16)], cuda.ErrorInvalidImage)
}

// aligned returns the image at an address that is a multiple of 8, as the headers in the image
// require. A Go slice may begin at any address.
func aligned(image []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(image)))%8 == 0 {
		return image
	}
	return bytes.Clone(image)
}
