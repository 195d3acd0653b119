//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestAdoptOthers tests streams of other contexts and invalidated captures, on each release.
func TestAdoptOthers(t *testing.T) {
	for _, release := range []dl.Version{11020, 11040, 12000, 13000} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := newFake(t, release)
			d := f.device()
			if e := Event(event0); e != cuda.Event(event0) {
				t.Errorf("event %#x", e)
			}
			if _, err := d.AdoptStream(stream0 + 1); !errors.Is(err, cuda.ErrorInvalidContext) || !strings.Contains(err.Error(), "it is of context 0xc1, not of the device's primary context 0xc0") {
				t.Errorf("a stream of another device: %v", err)
			}
			f.Set("other context", 1)
			if _, err := d.AdoptStream(stream0); !errors.Is(err, cuda.ErrorInvalidContext) {
				t.Errorf("a stream of another context: %v", err)
			}
			f.Set("other context", 0)
			if _, err := d.AdoptStream(0x1234); !errors.Is(err, cuda.ErrorInvalidHandle) {
				t.Errorf("no stream: %v", err)
			}
			if d.caps.Capture {
				ok(t, d.BeginCapture(stream0))
				if err := d.lib.StreamSynchronize(stream0); err == nil {
					t.Error("a wait is captured")
				}
				if got, err := d.Capturing(stream0); !got || err != nil {
					t.Errorf("an invalidated capture: %v, %v", got, err)
				}
				if _, err := d.EndCapture(stream0); err == nil {
					t.Error("an invalidated capture gives a graph")
				}
				if got, err := d.Capturing(stream0); got || err != nil {
					t.Errorf("after it: %v, %v", got, err)
				}
			}
			d.caps.Adopt = false
			_, adopt := d.AdoptStream(stream0)
			_, asked := d.Capturing(stream0)
			for _, err := range []error{adopt, asked} {
				if !errors.Is(err, driver.ErrUnsupported) {
					t.Error(err)
				}
			}
		})
	}
}

// TestValues calls WriteValue and WaitValue. Before CUDA 11.7 they return ErrUnsupported.
func TestValues(t *testing.T) {
	for _, release := range []dl.Version{11020, 11060, 11070, 13000} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := newFake(t, release)
			d := f.device()
			if d.caps.Values != (release >= 11070) {
				t.Fatalf("values %v", d.caps.Values)
			}
			m, err := d.Alloc(driver.HostMem, 16)
			ok(t, err)
			defer d.Free(m)
			word := (*uint64)(m.Host)
			if !d.caps.Values {
				for _, err := range []error{d.WriteValue(stream0, m.Ptr, 1), d.WaitValue(stream0, m.Ptr, 1)} {
					if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "values in memory") {
						t.Error(err)
					}
				}
				return
			}
			f.Calls()
			ok(t, d.WriteValue(stream0, m.Ptr, 1<<40+3))
			ok(t, d.WaitValue(stream0, m.Ptr, 1<<40))
			f.Want("cuStreamWriteValue64_v2(0x5000, 0x10000000003, 0)", "cuStreamWaitValue64_v2(0x5000, 0x10000000000, 0)")
			if *word != 1<<40+3 {
				t.Errorf("%#x was written", *word)
			}
			for _, s := range []driver.Stream{0, 1, 2} {
				for _, err := range []error{d.WriteValue(s, m.Ptr, 1), d.WaitValue(s, m.Ptr, 1)} {
					if !errors.Is(err, cuda.ErrorInvalidHandle) {
						t.Errorf("stream %d: %v", s, err)
					}
				}
			}
			for _, err := range []error{d.WriteValue(stream0, m.Ptr+4, 1), d.WaitValue(stream0, m.Ptr+4, 1)} {
				if !errors.Is(err, cuda.ErrorInvalidValue) || !strings.Contains(err.Error(), "in stream 0x5000") {
					t.Error(err)
				}
			}
		})
	}
}
