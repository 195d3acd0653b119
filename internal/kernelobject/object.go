// Package kernelobject reads the descriptions in files of device code: PTX, cubins, fat binaries,
// AMD's code objects and bundles of them, and the metadata that Triton writes beside its code. It
// trusts no input. Truncated or contradictory data is an error or is left unknown, and nothing
// panics. The size of the file bounds memory and time, even for compressed files.
package kernelobject

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Form is a form of device code.
type Form string

const (
	FormPTX        Form = "PTX"
	FormCubin      Form = "cubin"
	FormFatbin     Form = "fat binary"
	FormCodeObject Form = "code object"
	FormBundle     Form = "bundle"
	FormCompressed Form = "compressed bundle"
)

// A Code is the code of a file for one architecture.
type Code struct {
	Form      Form
	Arch      string // such as sm_90 or gfx942; "" if unknown
	Kernels   []Kernel
	Variables []Variable

	// Undefined lists the symbols that a relocatable cubin refers to and that neither it nor the
	// driver defines.
	Undefined []string
}

// A Kernel is an entry point.
type Kernel struct {
	Name    string
	Params  []Param
	Told    bool   // Params has all parameters; their sizes may be unknown
	Shared  uint64 // static shared memory in bytes
	Threads [3]int // required size of a block, if the first is not 0
	Cluster [3]int // required blocks of a cluster, if the first is not 0

	// Called is set if the Kernel may be a function that kernels call: a cubin describes such a
	// function like a kernel.
	Called bool
}

// A Param is a kernel's parameter.
type Param struct {
	Name    string // "" if unknown
	Type    string // PTX type without its dot, such as u64; "" in other forms
	Size    int    // in bytes, 0 if unknown
	Align   int    // 0 if unknown
	Pointer bool   // certainly an address; other parameters may be addresses too
}

// A Variable is a variable that a file defines or refers to.
type Variable struct {
	Name     string
	Size     uint64 // in bytes, 0 if unknown
	Constant bool   // in constant memory
	Init     bool   // the variable has an initial value
	Extern   bool   // defined elsewhere
	Visible  bool   // other files may refer to the variable by name
}

// Sizes returns the sizes of the parameters, or nil if a parameter or a size is unknown.
func (k *Kernel) Sizes() []int {
	if !k.Told {
		return nil
	}
	sizes := make([]int, len(k.Params))
	for i, p := range k.Params {
		if p.Size == 0 {
			return nil
		}
		sizes[i] = p.Size
	}
	return sizes
}

// Kernel returns the kernel with a name, or nil.
func (c *Code) Kernel(name string) *Kernel {
	for i := range c.Kernels {
		if c.Kernels[i].Name == name {
			return &c.Kernels[i]
		}
	}
	return nil
}

// FormOf returns the form of an image from its first bytes, or "" if the form is unknown. An ELF
// file that is not for AMD's GPUs counts as a cubin.
func FormOf(image []byte) Form {
	switch {
	case bytes.HasPrefix(image, []byte(elf.ELFMAG)):
		if len(image) >= elfHeader && elf.Machine(binary.LittleEndian.Uint16(image[18:])) == elf.EM_AMDGPU {
			return FormCodeObject
		}
		return FormCubin
	case IsFatbin(image):
		return FormFatbin
	case bytes.HasPrefix(image, []byte(bundleMagic)):
		return FormBundle
	case bytes.HasPrefix(image, []byte(compressedMagic)):
		return FormCompressed
	case IsPTX(image):
		return FormPTX
	}
	return ""
}

// Read checks that an image is complete and reads the code in it. It returns one Code for each
// supported entry, and none for a compressed bundle. The size of the image sets a limit for the
// memory that Read uses. For an image that would need more, Read returns an error.
func Read(image []byte) ([]Code, error) {
	b := newBudget(len(image))
	codes, err := read(image, b)
	if err == nil && b.over {
		return nil, fmt.Errorf("a %s of %d bytes unpacks to more than the limit of %d: compile without compression (nvcc --no-compress)",
			FormOf(image), len(image), newBudget(len(image)).left)
	}
	return codes, err
}

func read(image []byte, b *budget) ([]Code, error) {
	switch FormOf(image) {
	case FormPTX:
		text := bytes.TrimRight(image, "\x00")
		if i := bytes.IndexByte(text, 0); i >= 0 {
			return nil, fmt.Errorf("a NUL byte at %d of %d bytes of PTX would end the text there", i, len(text))
		}
		return []Code{ptx(text, b)}, nil
	case FormCubin:
		if err := CheckCubin(image); err != nil {
			return nil, err
		}
		return []Code{cubin(image, b)}, nil
	case FormFatbin:
		entries, err := Fatbin(image)
		if err != nil {
			return nil, err
		}
		var all []Code
		for _, e := range entries {
			if c, ok := e.read(b); ok {
				all = append(all, c)
			}
		}
		return all, nil
	case FormCodeObject:
		if err := CheckCodeObject(image); err != nil {
			return nil, err
		}
		return []Code{codeObject(image, b)}, nil
	case FormBundle:
		entries, err := Bundle(image)
		if err != nil {
			return nil, err
		}
		var all []Code
		left := len(image) // so that overlapping entries do not take long
		for _, e := range entries {
			if left -= len(e.Code); left < 0 {
				break
			}
			if e.Target != "" && FormOf(e.Code) == FormCodeObject && CheckCodeObject(e.Code) == nil {
				c := codeObject(e.Code, b)
				c.Arch = e.Target
				all = append(all, c)
			}
		}
		return all, nil
	case FormCompressed:
		return nil, CheckCompressed(image)
	}
	if len(image) == 0 {
		return nil, errors.New("the image is empty")
	}
	return nil, fmt.Errorf("neither PTX nor a cubin, a fat binary, a code object or a bundle of them; it begins with %q", image[:min(len(image), 16)])
}
