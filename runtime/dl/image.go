package dl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"

	"github.com/puregpu/puregpu/internal/regular"
)

// A fault is a problem of a library file.
type fault struct {
	plain   string // the problem in plain words, "" if there is none
	harmful bool   // the file must not be passed to the system loader
}

// inspectFile looks for problems that keep the file at path from being loaded.
func inspectFile(path string) (fault, error) {
	f, fi, err := regular.Open(path)
	if err != nil {
		return fault{}, err
	}
	defer f.Close()
	if fi.Size() == 0 { // files in /proc and /sys also have size 0, and reading one could block the loader
		return fault{plain: "an empty file", harmful: true}, nil
	}
	if runtime.GOOS == "windows" {
		return inspectPE(f, fi.Size(), runtime.GOARCH), nil
	}
	return inspectELF(f, fi.Size(), runtime.GOARCH), nil
}

const (
	elfShared  = 3
	elfSegment = 1 // PT_LOAD
)

// inspectELF checks the ELF file r for a process on goarch, a 64-bit little-endian architecture.
func inspectELF(r io.ReaderAt, size int64, goarch string) fault {
	var head [64]byte
	n, _ := r.ReadAt(head[:], 0)
	switch {
	case n == 0:
		return fault{plain: "an empty file"}
	case bytes.HasPrefix(head[:n], []byte("/* GNU ld script")):
		return fault{plain: "a linker script, not a library"}
	case !bytes.HasPrefix(head[:n], []byte("\x7fELF")):
		return fault{plain: "not an ELF library"}
	case n > 5 && head[4] == 1:
		return fault{plain: "a 32-bit library, but this process is 64-bit"}
	case n > 5 && head[5] == 2:
		return fault{plain: "a big-endian library, but this process is little-endian"}
	case n < len(head):
		return fault{plain: fmt.Sprintf("truncated: only %d bytes", size)}
	}
	le := binary.LittleEndian
	if m, want := le.Uint16(head[18:]), elfMachine(goarch); m != want {
		return fault{plain: fmt.Sprintf("a library for %s, but this process is for %s", elfMachineName(m), elfMachineName(want))}
	}
	if t := le.Uint16(head[16:]); t != elfShared {
		return fault{plain: "an ELF file, but not a shared library"}
	}

	// The loader maps a segment even if it ends after the end of the file. When the loader reads
	// that part, SIGBUS kills the process.
	need := uint64(0)
	off, entry, count := le.Uint64(head[32:]), uint64(le.Uint16(head[54:])), uint64(le.Uint16(head[56:]))
	if entry < 56 {
		return fault{plain: "a damaged ELF file"}
	}
	ph := make([]byte, 56)
	for i := range count {
		if _, err := r.ReadAt(ph, int64(off+i*entry)); err != nil {
			need = max(need, off+count*entry)
			break
		}
		if le.Uint32(ph) == elfSegment {
			need = max(need, le.Uint64(ph[8:])+le.Uint64(ph[32:]))
		}
	}
	if need > uint64(size) {
		return fault{plain: fmt.Sprintf("truncated: %d bytes of at least %d", size, need), harmful: true}
	}
	return fault{}
}

func elfMachine(goarch string) uint16 {
	switch goarch {
	case "amd64":
		return 62
	case "arm64":
		return 183
	}
	return 0
}

func elfMachineName(m uint16) string {
	switch m {
	case 3:
		return "386"
	case 21:
		return "ppc64"
	case 40:
		return "arm"
	case 62:
		return "amd64"
	case 183:
		return "arm64"
	case 243:
		return "riscv64"
	case 258:
		return "loong64"
	}
	return fmt.Sprintf("ELF machine %d", m)
}

// inspectPE is inspectELF for Windows DLLs.
func inspectPE(r io.ReaderAt, size int64, goarch string) fault {
	var dos [64]byte
	n, _ := r.ReadAt(dos[:], 0)
	switch {
	case n == 0:
		return fault{plain: "an empty file"}
	case dos[0] != 'M' || dos[1] != 'Z':
		return fault{plain: "not a Windows DLL"}
	}
	var head [6]byte
	le := binary.LittleEndian
	if n < len(dos) {
		return fault{plain: fmt.Sprintf("truncated: only %d bytes", size)}
	}
	if _, err := r.ReadAt(head[:], int64(le.Uint32(dos[60:]))); err != nil {
		return fault{plain: fmt.Sprintf("truncated: only %d bytes", size)}
	}
	if string(head[:4]) != "PE\x00\x00" {
		return fault{plain: "not a Windows DLL"}
	}
	m := le.Uint16(head[4:])
	switch {
	case m == 0x14c:
		return fault{plain: "a 32-bit library, but this process is 64-bit"}
	case goarch == "amd64" && m != 0x8664:
		return fault{plain: fmt.Sprintf("a library for %s, but this process is for amd64", peMachineName(m))}
	}
	return fault{}
}

func peMachineName(m uint16) string {
	switch m {
	case 0x1c4:
		return "arm"
	case 0x8664:
		return "amd64"
	case 0xaa64:
		return "arm64"
	}
	return fmt.Sprintf("PE machine %#x", m)
}
