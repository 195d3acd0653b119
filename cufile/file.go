package cufile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// A File is an open file registered with the library.
type File struct {
	lib    *Library
	file   *os.File
	handle Handle

	mu     sync.RWMutex // protects closed; a transfer holds it for reading
	closed bool
}

// NewFile registers an open file with [Library.HandleRegister]. The driver must be open. The file
// must stay open until [File.Close] has returned. Direct transfers need a file that was opened with
// O_DIRECT.
func (l *Library) NewFile(file *os.File) (*File, error) {
	if file == nil {
		return nil, fmt.Errorf("cufile: register a nil file: %w", os.ErrInvalid)
	}
	libc() // opens the C library now, because opening it after a failed transfer would change errno
	d := Descr{Type: HandleTypeOpaqueFD}
	*d.Handle.Fd() = int32(file.Fd())
	h, err := l.HandleRegister(&d)
	if err != nil {
		return nil, &os.PathError{Op: "register", Path: file.Name(), Err: err}
	}
	return &File{lib: l, file: file, handle: h}, nil
}

// Handle returns the handle, for methods of [Library]. The handle must not be used after Close.
func (f *File) Handle() Handle { return f.handle }

// Close waits for transfers, and unregisters the file with [Library.HandleDeregister]. The file
// itself stays open. Later calls do nothing.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return f.lib.HandleDeregister(f.handle)
}

// ReadAt reads from the file at offset off into memory, and returns the number of bytes read. It
// blocks until the bytes are in memory. If fewer than m.Size bytes were read, the error says why.
// At the end of the file the error is io.EOF. Other errors are an [*os.PathError], mostly around a
// syscall.Errno of the file system or an [OpError].
func (f *File) ReadAt(m Memory, off int64) (n int64, err error) {
	return f.transfer("read", fnRead, m, off)
}

// WriteAt writes memory to the file at offset off, and returns the number of bytes written. It
// blocks until the memory may be changed. Work in streams that writes the memory must have
// completed before the call. If fewer than m.Size bytes were written, the error says why, as for
// ReadAt.
func (f *File) WriteAt(m Memory, off int64) (n int64, err error) {
	n, err = f.transfer("write", fnWrite, m, off)
	if errors.Is(err, io.EOF) { // the library wrote nothing and reported no error
		err = &os.PathError{Op: "write", Path: f.file.Name(), Err: io.ErrShortWrite}
	}
	return n, err
}

// transfer calls function fn of the library until all bytes are moved or a call fails. If a call
// moves nothing, the error is [io.EOF].
func (f *File) transfer(op string, fn int, m Memory, off int64) (n int64, err error) {
	if m.Size < 0 || m.Offset < 0 || off < 0 {
		err := fmt.Errorf("negative number: %d bytes at offset %d of memory, at offset %d of the file", m.Size, m.Offset, off)
		return 0, &os.PathError{Op: op, Path: f.file.Name(), Err: err}
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return 0, &os.PathError{Op: op, Path: f.file.Name(), Err: os.ErrClosed}
	}
	for n < m.Size {
		moved, err := f.call(fn, m, n, off+n)
		if err != nil {
			return n, &os.PathError{Op: op, Path: f.file.Name(), Err: err}
		}
		if moved == 0 {
			return n, io.EOF
		}
		n += moved
	}
	return n, nil
}

// call makes one transfer. The parameter done is the number of bytes of m that earlier calls have
// moved.
func (f *File) call(fn int, m Memory, done, off int64) (moved int64, err error) {
	defer runtime.KeepAlive(f.file)
	runtime.LockOSThread() // errno is per thread
	defer runtime.UnlockOSThread()
	res, err := f.lib.Slow(fn, uintptr(f.handle), uintptr(m.Base), uintptr(m.Size-done), uintptr(off), uintptr(m.Offset+done))
	switch moved := *(*int64)(unsafe.Pointer(&res)); {
	case err != nil:
		return 0, err
	case moved == -1:
		return 0, errno()
	case moved < 0 && moved >= -BaseErr: // cuFile 1.4 returns negative errno values
		return 0, syscall.Errno(-moved)
	case moved < 0:
		return 0, OpError(-moved).asError()
	case moved > m.Size-done:
		return 0, fmt.Errorf("cufile: the library reports %d bytes moved of %d", moved, m.Size-done)
	default:
		return moved, nil
	}
}
