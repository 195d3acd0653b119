package cudadriver

import (
	"slices"

	"github.com/puregpu/puregpu/internal/kernelobject"
)

// The driver returns the size of a kernel's parameter by the parameter's index. It tells the number
// of parameters only by failing for the first index that does not exist. Debuggers and
// compute-sanitizer report that failure as an error of the program. So this file reads the number
// from the image: PTX declares the parameters, and a cubin has them in a section .nv.info.<kernel>.
// If the image cannot be parsed, the number is untold.

// contents describes the code of an image.
type contents struct {
	params map[string]int // by kernel, and by other function of a cubin: number of parameters, or untold

	targets []string // architectures of the code, without duplicates: sm_90, or sm_90 as PTX

	// undefined holds the symbols that a relocatable cubin uses, and that neither the cubin nor the
	// driver defines.
	undefined []string
}

// untold stands for an unknown number of parameters.
const untold = -1

// note adds a kernel. A fat binary has the same kernel once for each architecture. If the numbers
// of parameters differ between architectures, note sets the kernel's number to untold.
func (c *contents) note(kernel string, params int) {
	if had, ok := c.params[kernel]; ok && had != params {
		params = untold
	}
	if c.params == nil {
		c.params = map[string]int{}
	}
	c.params[kernel] = params
}

// number returns the number of a kernel's parameters, or untold.
func (c *contents) number(kernel string) int {
	if n, ok := c.params[kernel]; ok {
		return n
	}
	return untold
}

// mostTargets is the maximum number of architectures in an error. Normal images have a dozen at
// most; the limit is for malicious ones.
const mostTargets = 64

// inspect reads an image that prepare has checked.
func inspect(image []byte) *contents {
	c := new(contents)
	undefined := make(map[string]bool)
	codes, err := kernelobject.Read(image)
	if err != nil {
		return c
	}
	for _, code := range codes {
		if target := code.Arch; target != "" {
			if code.Form == kernelobject.FormPTX {
				target += " as PTX"
			}
			if len(c.targets) < mostTargets && !slices.Contains(c.targets, target) {
				c.targets = append(c.targets, target)
			}
		}
		for _, k := range code.Kernels {
			n := untold
			if k.Told {
				n = len(k.Params)
			}
			c.note(k.Name, n)
		}
		for _, name := range code.Undefined {
			if !undefined[name] {
				undefined[name] = true
				c.undefined = append(c.undefined, name)
			}
		}
	}
	return c
}
