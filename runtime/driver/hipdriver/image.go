package hipdriver

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/kernelobject"
)

// The library gets the address of an image and no length. It believes what the image says of its size, so this file makes
// sure that an image is one, and whole, before the library reads past its end.

// page is what the library may look at of any image, and how the code objects in a bundle are aligned.
const page = 4096

// inspect reports what form an image has, and for a bundle what it has code for. An error says why a device of an
// architecture cannot take it. Devices that are none of AMD's take what they will.
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
	case kernelobject.FormCodeObject, kernelobject.FormCubin: // any ELF file that is no code object
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
		return bad(fmt.Errorf("PTX is code for NVIDIA's GPUs; one of AMD's takes a code object or a bundle of them, which hipcc --genco writes"))
	}
	return bad(fmt.Errorf("neither a code object nor a bundle of them, which hipcc --genco writes; it begins with %q", image[:min(len(image), 16)]))
}

// mostTargets is how many architectures an error lists at most. Bundles have a dozen at most, unless they are
// made to be slow.
const mostTargets = 64

// checkBundle goes through a bundle's entries, and returns what architectures those for devices are for.
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

// keep returns a copy of an image for the library to read as long as it likes: at the beginning of a page, with a page's
// worth of it to look at, and with NULs behind.
func keep(image []byte) []byte {
	b := make([]byte, page+max(page, len(image)+1))
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % page
	b = b[skip:]
	copy(b, image)
	return b[:max(page, len(image)+1)]
}
