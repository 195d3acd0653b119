package health

import "fmt"

// An XID is the number of an error report of NVIDIA's kernel driver. The type implements error, so
// that
//
//	xid, ok := errors.AsType[health.XID](err)
//
// finds it in the error of a lost device.
type XID uint32

// Catalog is NVIDIA's page that describes all numbers.
const Catalog = "https://docs.nvidia.com/deploy/xid-errors/"

// Text returns a short description of the number, or "" if this package does not know it. See
// [Catalog] for NVIDIA's list.
func (x XID) Text() string { return texts[x] }

// Error returns the number and its text: "XID 79: GPU has fallen off the bus".
func (x XID) Error() string {
	if text := x.Text(); text != "" {
		return fmt.Sprintf("XID %d: %s", uint32(x), text)
	}
	return fmt.Sprintf("XID %d (look it up: %s)", uint32(x), Catalog)
}

// texts has short texts for the XID numbers that programs on GPUs may see.
var texts = map[XID]string{
	8:   "GPU stopped processing work in time",
	11:  "invalid or corrupted commands",
	12:  "driver error while it handled an exception of the GPU",
	13:  "exception in a kernel, such as an illegal instruction or address",
	31:  "a kernel or copy used memory that is not mapped (page fault)",
	32:  "invalid or corrupted commands, seen by the DMA engine",
	38:  "firmware error",
	43:  "a program's work ended by an error, such as a trap; the GPU itself works",
	44:  "fault in the graphics engine during a context switch",
	45:  "a program's work was removed after an earlier error or because the program ended",
	46:  "GPU stopped processing",
	48:  "memory error that ECC cannot correct (double-bit error)",
	61:  "breakpoint or warning of an internal microcontroller",
	62:  "an internal microcontroller halted",
	63:  "a bad memory row or page was set aside; it is replaced at the next GPU reset",
	64:  "a bad memory row or page could not be set aside; reset the GPU",
	69:  "exception in the graphics engine's class",
	74:  "NVLink error",
	79:  "GPU has fallen off the bus",
	92:  "many corrected memory errors",
	94:  "uncorrectable memory error, contained: it reached only the programs that used that memory",
	95:  "uncorrectable memory error, not contained: reset the GPU",
	109: "context switch timed out",
	110: "security fault",
	119: "the GPU's system processor (GSP) did not answer the driver",
	120: "error of the GPU's system processor (GSP)",
	121: "error of the link between CPU and GPU (C2C)",
	140: "memory error that could not be recovered from",
	143: "GPU initialization failed",
	154: "the action that the GPU needs to recover has changed; nvidia-smi -q shows it",
}
