//go:build race

package memory_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestTouchReported accesses a slice while an operation in flight may use it. The race detector
// must report each such access, however soon the device completes the operation. It must report no
// access after a wait, after a call that fails, or in a chain of operations.
func TestTouchReported(t *testing.T) {
	const variable = "PUREGPU_TEST_TOUCH"
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{StageSize: 256})
	s, ctx := dev.Queue(0).NewStream(), minute(t)
	b := allocate(t, dev, 1024)
	data, sum := make([]byte, 1024), byte(0)
	// This download makes pinned memory available, so later calls issue their downloads themselves.
	must(t, s.Download(data[:64], b.Range(0, 64)))
	must(t, s.Wait(ctx))
	fail := func(submit func() error) error {
		failed, err := gpu.NewSemaphore(0)
		must(t, err)
		s.After(gpu.Point{Semaphore: failed, Value: 1})
		must(t, submit())
		failed.Fail(errors.New("on purpose"))
		if s.Wait(ctx) == nil {
			return errors.New("the wait did not fail")
		}
		data[0], data[63] = 1, 1
		return nil
	}
	for _, c := range []struct {
		name  string
		early bool
		run   func() error
	}{
		{"read of a download", true, func() error {
			err := s.Download(data[:64], b.Range(0, 64))
			sum += data[63]
			return errors.Join(err, s.Wait(ctx))
		}},
		{"write to a download", true, func() error {
			err := s.Download(data[:64], b.Range(0, 64))
			data[0] = 1
			return errors.Join(err, s.Wait(ctx))
		}},
		{"read of a download in pieces", true, func() error {
			err := s.Download(data, b.All())
			sum += data[1023]
			return errors.Join(err, s.Wait(ctx))
		}},
		{"write to an upload in pieces", true, func() error {
			err := s.Upload(b.All(), data)
			data[512] = 1
			return errors.Join(err, s.Wait(ctx))
		}},
		{"waits", false, func() error {
			err := errors.Join(s.Upload(b.All(), data), s.Wait(ctx))
			data[512] = 1
			err = errors.Join(err, s.Download(data, b.All()), s.Wait(ctx))
			data[512] = 2
			return errors.Join(err, s.Download(data[:64], b.Range(0, 64)), s.Wait(ctx), s.Do(gpu.UploadCopy(b.Range(0, 64), data[:64])))
		}},
		{"a chain of operations with one slice", false, func() error {
			err := errors.Join(s.Download(data[:64], b.Range(0, 64)), s.Download(data[:64], b.Range(64, 64)), s.Upload(b.All(), data))
			err = errors.Join(err, s.Do(gpu.HostCall(func() error { data[0]++; return nil })), s.Download(data[:64], b.Range(0, 64)), s.Download(data, b.All()))
			return errors.Join(err, s.Wait(ctx))
		}},
		{"calls that fail", false, func() error {
			if s.Download(data[:64], b.Range(0, 63)) == nil || s.Download(data, b.Range(0, 64)) == nil || s.Upload(b.Range(0, 64), data) == nil {
				return errors.New("wrong sizes are no error")
			}
			data[0], data[63] = 1, 1
			return nil
		}},
		{"a download that does not run", false, func() error {
			return fail(func() error { return s.Download(data[:64], b.Range(0, 64)) })
		}},
		{"an upload in pieces that does not run", false, func() error {
			return fail(func() error { return s.Upload(b.All(), data) })
		}},
	} {
		if os.Getenv(variable) != "" {
			if os.Getenv(variable) == c.name {
				must(t, c.run())
				return
			}
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestTouchReported$")
			cmd.Env = append(os.Environ(), variable+"="+c.name)
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.ENOEXEC) {
				t.Skip("needs to start itself, which under an emulator the system cannot do")
			}
			if reported := strings.Contains(string(out), "DATA RACE"); reported != c.early || (err != nil) != c.early {
				t.Errorf("a race was reported: %v, %v\n%.3000s", reported, err, out)
			}
		})
	}
	_ = sum
}
