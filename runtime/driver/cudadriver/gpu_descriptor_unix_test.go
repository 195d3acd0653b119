//go:build unix

package cudadriver

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// socketPair makes two connected Unix sockets.
func socketPair(t *testing.T) (here, there *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	ok(t, err)
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	return os.NewFile(uintptr(fds[0]), "here"), os.NewFile(uintptr(fds[1]), "there")
}

// received returns the file that was sent over a Unix socket.
func received(sock *os.File) (*os.File, error) {
	data, oob := make([]byte, 64), make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := syscall.Recvmsg(int(sock.Fd()), data, oob, 0)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("%d control messages, %v", len(messages), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("%d descriptors, %v", len(fds), err)
	}
	return os.NewFile(uintptr(fds[0]), "memory of the other process"), nil
}
