package cudadriver

import (
	"slices"

	"github.com/puregpu/puregpu/internal/kernelobject"
)

// The driver tells the size of a kernel's parameter by its number, and how many there are only by failing for the first
// that is not there. Debuggers and compute-sanitizer count that failure as the program's. Images tell the number as well:
// PTX declares the parameters, and a cubin has them in a section .nv.info.<kernel>. This file takes it from there. Of what
// is not understood it says nothing.

// contents is what an image says of its code.
type contents struct {
	params map[string]int // by kernel, its number of parameters, or untold; of a cubin's other functions it is of no use

	targets []string // the architectures that it is for, each once: sm_90, and sm_90 as PTX

	// undefined are the symbols that a relocatable cubin refers to and that neither it nor the driver defines.
	undefined []string
}

// untold stands for a number of parameters that the image does not tell.
const untold = -1

// note notes a kernel. A fat binary has it for each architecture.
func (c *contents) note(kernel string, params int) {
	if had, ok := c.params[kernel]; ok && had != params {
		params = untold
	}
	if c.params == nil {
		c.params = map[string]int{}
	}
	c.params[kernel] = params
}

// number returns how many parameters a kernel has, or untold.
func (c *contents) number(kernel string) int {
	if n, ok := c.params[kernel]; ok {
		return n
	}
	return untold
}

// mostTargets is how many architectures an error lists at most. Images have a dozen at most, unless they are
// made to be slow.
const mostTargets = 64

// inspect reads an image that prepare has found to be whole.
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
