package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
)

// fakeDriver is a CUDA driver older than 11.4 that knows attributes up to 115. Its second device
// does not return its name.
type fakeDriver struct {
	count   int32
	initErr error
	current cuda.Context
}

func (f *fakeDriver) Init(uint32) error                            { return f.initErr }
func (f *fakeDriver) DeviceGetCount() (int32, error)               { return f.count, nil }
func (f *fakeDriver) DeviceGet(i int32) (cuda.Device, error)       { return cuda.Device(10 + i), nil }
func (f *fakeDriver) DeviceTotalMem(cuda.Device) (uint64, error)   { return 80 << 30, nil }
func (f *fakeDriver) DeviceGetUuid(cuda.Device) (cuda.UUID, error) { return cuda.UUID{}, dl.ErrSymbol }

func (f *fakeDriver) DevicePrimaryCtxRetain(dev cuda.Device) (cuda.Context, error) {
	return cuda.Context(dev), nil
}
func (f *fakeDriver) DevicePrimaryCtxRelease(cuda.Device) error { return nil }
func (f *fakeDriver) CtxPushCurrent(ctx cuda.Context) error {
	if ctx == 11 {
		return cuda.ErrorOutOfMemory
	}
	f.current = ctx
	return nil
}
func (f *fakeDriver) CtxPopCurrent() (cuda.Context, error) { return f.current, nil }
func (f *fakeDriver) MemGetInfo() (free, total uint64, err error) {
	return uint64(f.current) << 30, 80 << 30, nil
}

// There is no way from the third device to the first, and no information about the way back.
func (f *fakeDriver) DeviceGetP2PAttribute(a cuda.DeviceP2PAttribute, from, to cuda.Device) (int32, error) {
	switch {
	case from == to:
		return 0, cuda.ErrorInvalidDevice
	case from == 10 && to == 12:
		return 0, cuda.ErrorUnknown
	case a == cuda.DeviceP2PAttributeAccessSupported && from == 12 && to == 10:
		return 0, nil
	case a == cuda.DeviceP2PAttributePerformanceRank || a == cuda.DeviceP2PAttributeNativeAtomicSupported && from+to == 23:
		return int32(to) - 10, nil
	}
	return 1, nil
}

func (f *fakeDriver) DeviceGetName(dev cuda.Device) (string, error) {
	if dev == 11 {
		return "", errors.New("has no name")
	}
	return "Fake GPU", nil
}

func (f *fakeDriver) DeviceGetUuidV1(cuda.Device) (id cuda.UUID, err error) {
	for i := range id.Bytes {
		id.Bytes[i] = byte(i * 17)
	}
	return id, nil
}

func (f *fakeDriver) DeviceGetAttribute(a cuda.DeviceAttribute, dev cuda.Device) (int32, error) {
	switch a {
	case cuda.DeviceAttributeComputeCapabilityMajor:
		return 9, nil
	case cuda.DeviceAttributeMaxSharedMemoryPerBlock:
		return 48 << 10, nil
	case cuda.DeviceAttributeClockRate:
		return 1980000, nil
	case cuda.DeviceAttributeECCEnabled:
		return 0, nil
	case cuda.DeviceAttributeMemoryPoolsSupported, cuda.DeviceAttributeUnifiedAddressing:
		return 1, nil
	case cuda.DeviceAttributePCIBusID:
		return int32(dev) * 10, nil
	}
	if a > 115 {
		return 0, cuda.ErrorInvalidValue
	}
	return int32(a), nil
}

func TestCUDADevices(t *testing.T) {
	devices, err := cudaDevices(&fakeDriver{count: 2}, false)
	if err != nil || len(devices) != 2 {
		t.Fatalf("%d devices, %v", len(devices), err)
	}
	d := devices[0]
	if d.Name != "Fake GPU" || d.UUID != "GPU-00112233-4455-6677-8899-aabbccddeeff" || d.PCIAddress != "0032:64:22.0" || d.ComputeCapability != "9.76" || d.Errors != nil {
		t.Errorf("got %+v", d)
	}
	if v, ok := d.Attributes["memoryPools"]; !ok || v != 1 {
		t.Errorf("memoryPools is %d, %v", v, ok)
	}
	if v, ok := d.Attributes["multicast"]; ok {
		t.Errorf("multicast is %d, want nothing: the driver does not know it", v)
	}
	if d := devices[1]; len(d.Errors) != 1 || !strings.HasPrefix(d.Errors[0], "cuDeviceGetName: ") || d.UUID == "" {
		t.Errorf("the device without a name: %+v", d)
	}
}

func TestNoDevice(t *testing.T) {
	if _, err := cudaDevices(&fakeDriver{}, false); !errors.Is(err, cuda.ErrorNoDevice) {
		t.Errorf("a driver that counts none: %v", err)
	}
	if _, err := hipDevices(&fakeHIP{}, false); !errors.Is(err, hip.ErrorNoDevice) {
		t.Errorf("a HIP that counts none: %v", err)
	}
	for _, test := range []struct {
		err    error
		status int
		want   string
	}{
		{cuda.ErrorNoDevice, 0, "No CUDA device: the CUDA driver is there, but it sees no NVIDIA GPU ("},
		{cuda.ErrorSystemDriverMismatch, 1, "No CUDA device can be used: cuInit: cuda: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
	} {
		p := machine()[:1]
		p[0].devices = func(opened, bool) ([]Device, error) { return cudaDevices(&fakeDriver{initErr: test.err}, false) }
		var out bytes.Buffer
		if code := run(nil, &out, io.Discard, p); code != test.status || !strings.Contains(out.String(), test.want) {
			t.Errorf("%v: exit status %d\n%s", test.err, code, &out)
		}
	}
}

// fakeHIP is a HIP runtime older than 5.2, without UUIDs.
type fakeHIP struct {
	count      int32
	p2p, kinds error
}

func (f *fakeHIP) GetDeviceCount() (int32, error)              { return f.count, nil }
func (f *fakeHIP) DeviceGet(i int32) (hip.Device, error)       { return hip.Device(i), nil }
func (f *fakeHIP) DeviceGetName(hip.Device) (string, error)    { return "Fake Instinct", nil }
func (f *fakeHIP) DeviceGetUuid(hip.Device) (hip.UUID, error)  { return hip.UUID{}, dl.ErrSymbol }
func (f *fakeHIP) DeviceTotalMem(hip.Device) (uint64, error)   { return 64 << 30, nil }
func (f *fakeHIP) SetDevice(int32) error                       { return nil }
func (f *fakeHIP) MemGetInfo() (free, total uint64, err error) { return 60 << 30, 64 << 30, nil }

// xGMI links the first two devices. PCIe links each of them to the third; whether atomics work
// there is unknown. There is no way from the third to the second.
func (f *fakeHIP) DeviceGetP2PAttribute(a hip.DeviceP2PAttr, from, to int32) (int32, error) {
	switch {
	case f.p2p != nil:
		return 0, f.p2p
	case from == 2 && to == 1:
		return 0, nil
	case a == hip.DevP2PAttrNativeAtomicSupported && from+to > 1:
		return 0, hip.ErrorInvalidHandle
	}
	return 1, nil
}

func (f *fakeHIP) ExtGetLinkTypeAndHopCount(from, to int32) (kind, hops uint32, err error) {
	if from+to == 1 {
		return 4, 1, f.kinds
	}
	return 2, 2, f.kinds
}

func (f *fakeHIP) DeviceGetAttribute(a hip.DeviceAttribute, _ int32) (int32, error) {
	switch a {
	case none:
		return 0, errors.New("asked for what HIP does not have")
	case hip.DeviceAttributeMemoryPoolsSupported:
		return 0, hip.ErrorInvalidValue
	}
	return 3, nil
}

func TestHIPDevices(t *testing.T) {
	devices, err := hipDevices(&fakeHIP{count: 1}, true)
	if err != nil || len(devices) != 1 {
		t.Fatalf("%d devices, %v", len(devices), err)
	}
	d := devices[0]
	if d.FreeMemory == nil || *d.FreeMemory != 60<<30 || d.Name != "Fake Instinct" || d.UUID != "" || d.ComputeCapability != "3.3" || d.Errors != nil {
		t.Errorf("got %+v", d)
	}
	if _, ok := d.Attributes["memoryPools"]; ok {
		t.Error("memoryPools is there, and the library does not know it")
	}
}

func TestAttributes(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attributes {
		if a.name == "" || a.label == "" || a.cuda == 0 || seen[a.name] {
			t.Errorf("attribute %+v lacks something or is there twice", a)
		}
		seen[a.name] = true
	}
}

func TestFormat(t *testing.T) {
	if got := formatUUID([16]byte([]byte("f00dcafe12345678"))); got != "GPU-f00dcafe12345678" {
		t.Errorf("an identity that is text: %s", got)
	}
	for _, test := range []struct {
		k    kind
		v    int64
		want string
	}{{number, 7, "7"}, {size, 2048, "2 KiB"}, {size, 100, "100 bytes"}, {clock, 1980000, "1980 MHz"}, {answer, 0, "no"}, {answer, 1, "yes"}, {answer, 2, "2"}} {
		if got := test.k.format(test.v); got != test.want {
			t.Errorf("format(%d, %d) = %q, want %q", test.k, test.v, got, test.want)
		}
	}
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprint(i))
	}
	if got := some(names); got != "0, 1, 2, 3 and 5 more" {
		t.Errorf("some: %s", got)
	}
	var b bytes.Buffer
	line(&b, "label", strings.Join(slices.Repeat([]string{"word"}, 50), " "))
	for l := range strings.Lines(b.String()) {
		if len(l) > 111 {
			t.Errorf("a line of %d characters: %q", len(l), l)
		}
	}
}
