package simdriver

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/internal/kernelobject"
)

// marker begins a line that names kernels and variables of an image.
const marker = "// sim:"

// An image is a parsed GPU image, with only the parts that a module needs.
type image struct {
	kernels map[string][]int  // sizes of the parameters by kernel; nil if the image does not say
	shared  map[string]uint64 // bytes of static shared memory, by kernel
	cluster map[string][3]int // blocks of a cluster, by kernel, for kernels compiled with a cluster size
	vars    map[string]uint64 // sizes of the variables in bytes, by name
}

// Image returns an image with the kernels of the given names, for [driver.Device.Load]. A name such
// as "table=1024" is a variable of 1024 bytes, initially zero. The image is the line "// sim: name
// name …".
func Image(names ...string) []byte {
	return []byte(marker + " " + strings.Join(names, " ") + "\n")
}

// parse reads an image.
func parse(b []byte) (image, error) {
	im := image{kernels: make(map[string][]int), shared: make(map[string]uint64), cluster: make(map[string][3]int), vars: make(map[string]uint64)}
	switch kernelobject.FormOf(b) {
	case kernelobject.FormPTX, "":
	default:
		codes, err := kernelobject.Read(b)
		if err != nil {
			return image{}, fmt.Errorf("image: %w: %w", ErrInvalidValue, err)
		}
		for _, c := range codes {
			im.add(&c)
		}
		if len(im.kernels) == 0 && len(im.vars) == 0 {
			return image{}, fmt.Errorf("image of %d bytes: %w: found no kernel in this %s", len(b), ErrInvalidValue, kernelobject.FormOf(b))
		}
		return im, nil
	}
	marked := false
	for line := range strings.Lines(string(b)) {
		names, ok := strings.CutPrefix(strings.TrimSpace(line), marker)
		if !ok {
			continue
		}
		marked = true
		for _, name := range strings.Fields(names) {
			name, size, ok := strings.Cut(name, "=")
			if !ok {
				im.kernels[name] = nil
				continue
			}
			n, err := strconv.ParseUint(size, 0, 40)
			if err != nil || n == 0 {
				return image{}, fmt.Errorf("image: %w: variable %s: size %q is not a number of bytes", ErrInvalidValue, name, size)
			}
			im.vars[name] = n
		}
	}
	code := kernelobject.PTX(b)
	im.add(&code)
	if !marked && len(im.kernels) == 0 && len(im.vars) == 0 {
		return image{}, fmt.Errorf("image of %d bytes: %w: it has neither a line %q nor an .entry of PTX", len(b), ErrInvalidValue, marker)
	}
	return im, nil
}

// add adds the kernels and variables of GPU code. If several pieces of code have the same kernel,
// the first one with parameter sizes counts.
func (im *image) add(c *kernelobject.Code) {
	for _, k := range c.Kernels {
		if had, ok := im.kernels[k.Name]; k.Called || ok && had != nil {
			continue
		}
		im.kernels[k.Name] = k.Sizes()
		if k.Shared > 0 {
			im.shared[k.Name] = k.Shared
		}
		if k.Cluster[0] > 0 {
			im.cluster[k.Name] = k.Cluster
		}
	}
	for _, v := range c.Variables {
		if v.Size > 0 && !v.Init { // skips variables with an initial value, because that value is unknown
			im.vars[v.Name] = v.Size
		}
	}
}
