package main

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
)

// allreducePy is the program of PyTorch's processes.
//
//go:embed allreduce.py
var allreducePy string

// noMulticast disables NVLink multicast in NCCL. Not every machine allows multicast, and both sides
// must use the same algorithms.
const noMulticast = "NCCL_NVLS_ENABLE=0"

// pytorchCommands returns the commands of PyTorch processes that find each other, one a device.
func pytorchCommands(python string, n int) ([]*exec.Cmd, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	var cmds []*exec.Cmd
	for rank := range n {
		cmd := exec.Command(python, "-c", allreducePy)
		cmd.Env = append(os.Environ(), noMulticast, "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+strconv.Itoa(port),
			"RANK="+strconv.Itoa(rank), "LOCAL_RANK="+strconv.Itoa(rank), "WORLD_SIZE="+strconv.Itoa(n))
		cmds = append(cmds, cmd)
	}
	return cmds, nil
}

// freePort returns a port without a listener at this time.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
