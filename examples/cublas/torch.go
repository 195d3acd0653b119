package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed pytorch.py
var script string

// A torch is a PyTorch process that multiplies the same matrices.
type torch struct {
	Version string `json:"version"`
	Device  string `json:"device"`
	CuBLAS  string `json:"cublas"`
	Missing string `json:"missing"`

	result []byte
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	dir    string
}

const mark = "@cublas " // prefix of the lines for this program

// startTorch starts PyTorch, which computes the product once. The error says why PyTorch cannot
// run.
func startTorch(ctx context.Context, python string, side int, matrices []byte) (t *torch, missing error) {
	absent := func(err error) error { return fmt.Errorf("%w: PyTorch: %w", errMissing, err) }
	if python == "" {
		return nil, absent(errors.New("no interpreter is named"))
	}
	path, err := exec.LookPath(python)
	if err != nil {
		return nil, absent(err)
	}
	dir, err := os.MkdirTemp("", "cublas")
	if err != nil {
		return nil, absent(err)
	}
	t = &torch{dir: dir}
	defer func() {
		if missing != nil {
			os.RemoveAll(dir)
		}
	}()
	input, output := filepath.Join(t.dir, "in"), filepath.Join(t.dir, "out")
	if err := os.WriteFile(input, matrices, 0o600); err != nil {
		return nil, absent(err)
	}
	t.cmd = exec.CommandContext(ctx, path, "-c", script, strconv.Itoa(side), input, output)
	t.cmd.Stderr = os.Stderr
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, absent(err)
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, absent(err)
	}
	t.out = bufio.NewScanner(out)
	if err := t.cmd.Start(); err != nil {
		return nil, absent(err)
	}
	text, err := t.line()
	if err == nil {
		err = json.Unmarshal([]byte(text), t)
	}
	if err == nil && t.Missing != "" {
		err = errors.New(t.Missing)
	}
	if err == nil {
		t.result, err = os.ReadFile(output)
	}
	if err != nil {
		return nil, absent(errors.Join(err, t.close()))
	}
	return t, nil
}

// line reads the next line for this program.
func (t *torch) line() (string, error) {
	for t.out.Scan() {
		if text, ok := strings.CutPrefix(t.out.Text(), mark); ok {
			return text, nil
		}
	}
	return "", errors.Join(errors.New("the process of PyTorch ended"), t.out.Err())
}

// time makes PyTorch multiply n times and wait once. It returns the time of one product.
func (t *torch) time(_ context.Context, n int) (ns float64, err error) {
	if _, err := fmt.Fprintln(t.in, n); err != nil {
		return 0, err
	}
	text, err := t.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

func (t *torch) close() error {
	err := t.in.Close()
	for t.out.Scan() { // to end of file
	}
	return errors.Join(err, t.cmd.Wait(), os.RemoveAll(t.dir))
}
