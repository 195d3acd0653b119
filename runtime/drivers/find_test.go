package drivers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// listed is a driver with only a list of devices.
type listed struct {
	driver.Driver
	infos []driver.Info
	err   error
}

func (l listed) Name() string                    { return "listed" }
func (l listed) Devices() ([]driver.Info, error) { return l.infos, l.err }

func uuid(bytes ...byte) (id [16]byte) {
	copy(id[:], bytes)
	return id
}

var some = listed{infos: []driver.Info{
	{Index: 0, Name: "First", UUID: uuid(0x5e, 0xbe, 0x90, 0x87), PCI: "0000:3b:00.0"},
	{Index: 1, Name: "Second", UUID: uuid(0x5e, 0xbf), PCI: "0001:3b:00.0"},
	{Index: 2, Name: "Text", UUID: uuid([]byte("f00dcafe12345678")...), PCI: "0000:af:1f.1"},
	{Index: 3, Name: "No address"},
}}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		spec  string
		index int
		err   error
	}{
		{"0", 0, nil},
		{"3", 3, nil},
		{"03", 3, nil},
		{"4", 0, drivers.ErrNoDevice},
		{"99999999999", 0, drivers.ErrNoDevice},
		{"-1", 0, drivers.ErrSpec},
		{"", 0, drivers.ErrSpec},
		{"First", 0, drivers.ErrSpec},
		{"GPU-5ebe9087-0000-0000-0000-000000000000", 0, nil},
		{"gpu-5EBE9087-0000-0000-0000-000000000000", 0, nil},
		{"GPU-5ebf", 1, nil},
		{"MIG-5ebf", 1, nil},
		{"GPU-5eb", 0, drivers.ErrAmbiguous},
		{"GPU-5ebe9087-0000-0000-0000-000000000001", 0, drivers.ErrNoDevice},
		{"GPU-5ebe9087-0000-0000-0000-0000000000000", 0, drivers.ErrNoDevice},
		{"GPU-", 0, drivers.ErrSpec},
		{"GPU-5ebe 9087", 0, drivers.ErrSpec},
		{"GPU-f00dcafe12345678", 2, nil},
		{"0000:3b:00.0", 0, nil},
		{"00000000:3B:00.0", 0, nil},
		{"1:3b:0", 1, nil},
		{"3b:00.0", 0, drivers.ErrAmbiguous},
		{"3b:00", 0, drivers.ErrAmbiguous},
		{"af:1f", 2, nil},
		{"af:1f.1", 2, nil},
		{"af:1f.0", 0, drivers.ErrNoDevice},
		{"2:3b:00.0", 0, drivers.ErrNoDevice},
		{"0000:3b:00.", 0, drivers.ErrSpec},
		{"0:0:3b:00.0", 0, drivers.ErrSpec},
		{"3b:", 0, drivers.ErrSpec},
		{"3b", 0, drivers.ErrSpec},
	} {
		index, err := drivers.Find(some, test.spec)
		if index != test.index || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("Find(%q) = %d, %v; want %d, %v", test.spec, index, err, test.index, test.err)
		}
	}
}

func TestFindErrors(t *testing.T) {
	const first = "0: First, GPU-5ebe9087-0000-0000-0000-000000000000, 0000:3b:00.0"
	const last = "3: No address, GPU-00000000-0000-0000-0000-000000000000"
	_, err := drivers.Find(some, "4")
	if err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), last) {
		t.Errorf("an unknown device gives the error %v, want a list of the devices", err)
	}
	_, err = drivers.Find(some, "3b:00")
	if err == nil || !strings.Contains(err.Error(), first) || strings.Contains(err.Error(), last) {
		t.Errorf("an ambiguous device gives the error %v, want a list of the matching devices", err)
	}
	if _, err = drivers.Find(nil, "0"); err == nil || !strings.Contains(err.Error(), `find device "0": the driver is nil: open one`) {
		t.Errorf("without a driver: %v", err)
	}
	if _, err = drivers.Find(listed{}, "0"); !errors.Is(err, drivers.ErrNoDevice) || !strings.Contains(err.Error(), "driver listed has none") {
		t.Errorf("without devices: %v", err)
	}
	broken := errors.New("broken")
	if _, err = drivers.Find(listed{err: broken}, "0"); !errors.Is(err, broken) {
		t.Errorf("the driver's error is lost: %v", err)
	}
}

// TestFindNoDriver checks that Find returns ErrNoDevice for a nil driver.
func TestFindNoDriver(t *testing.T) {
	if _, err := drivers.Find(nil, "0"); !errors.Is(err, drivers.ErrNoDevice) {
		t.Errorf("%v; want %v", err, drivers.ErrNoDevice)
	}
}
