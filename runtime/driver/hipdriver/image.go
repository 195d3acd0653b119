package hipdriver

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/kernelobject"
)

// The library gets the address of an image without its length. The library trusts the sizes in the
// image, and would read past the end of an incomplete image. So this file checks that an image is
// valid and complete.

// page is the number of bytes that the library may read of any image, however short. Code objects
// in a bundle have this alignment.
const page = 4096

// inspect returns the form of an image, and the architectures of a bundle. An error says why the
// image is not valid. If arch is known and not AMD's, inspect accepts any image that is not empty.
func inspect(image []byte, arch string) (form string, targets []string, _ error) {
	bad := func(err error) (string, []string, error) {
		return "", nil, fmt.Errorf("%w: %w", err, hip.ErrorInvalidImage)
	}
	switch {
	case len(image) == 0:
		return bad(fmt.Errorf("the image is empty"))
	case arch != "" && !strings.HasPrefix(arch, "gfx"):
		return "image", nil, nil
	}
	switch form := kernelobject.FormOf(image); form {
	case kernelobject.FormCodeObject, kernelobject.FormCubin: // FormCubin stands for every other ELF file
		if err := kernelobject.CheckCodeObject(image); err != nil {
			return bad(err)
		}
		return string(kernelobject.FormCodeObject), nil, nil
	case kernelobject.FormBundle:
		targets, err := checkBundle(image)
		if err != nil {
			return bad(err)
		}
		return string(form), targets, nil
	case kernelobject.FormCompressed:
		if err := kernelobject.CheckCompressed(image); err != nil {
			return bad(err)
		}
		return string(form), nil, nil
	case kernelobject.FormPTX:
		return bad(fmt.Errorf("PTX is code for NVIDIA's GPUs; AMD's GPUs take a code object or a bundle of them (hipcc --genco writes one)"))
	}
	return bad(fmt.Errorf("neither a code object nor a bundle of them (hipcc --genco writes one); it begins with %q", image[:min(len(image), 16)]))
}

// mostTargets is the maximum number of architectures in an error. Normal bundles have a dozen at
// most; the limit is for malicious ones.
const mostTargets = 64

// checkBundle checks a bundle's entries, and returns the architectures of its device code.
func checkBundle(image []byte) (targets []string, _ error) {
	entries, err := kernelobject.Bundle(image)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Target != "" && len(targets) < mostTargets && !slices.Contains(targets, e.Target) {
			targets = append(targets, e.Target)
		}
	}
	return targets, nil
}

// keep returns a copy of an image. The library may read the copy until Unload. The copy begins at a
// multiple of the constant page, has at least page bytes, and has a NUL after the image.
func keep(image []byte) []byte {
	b := make([]byte, page+max(page, len(image)+1))
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % page
	b = b[skip:]
	copy(b, image)
	return b[:max(page, len(image)+1)]
}
