package testkit

import "github.com/puregpu/puregpu/runtime/driver"

// An IdleDriver has calls that cost nothing, so that benchmarks measure the runtime's own cost.
type IdleDriver struct{}

func (IdleDriver) Name() string                    { return "idle" }
func (IdleDriver) Devices() ([]driver.Info, error) { return []driver.Info{{Name: "idle"}}, nil }
func (IdleDriver) Open(int) (driver.Device, error) { return new(IdleDevice), nil }

// An IdleDevice is a device of an [IdleDriver]. Benchmarks embed it and add what they need.
type IdleDevice struct {
	driver.Device
	handles uintptr
}

// Next returns a handle that no other object has.
func (d *IdleDevice) Next() uintptr { d.handles++; return d.handles }

func (d *IdleDevice) Info() driver.Info { return driver.Info{Name: "idle"} }
func (d *IdleDevice) Caps() driver.Caps {
	return driver.Caps{RerecordEvents: true}
}
func (d *IdleDevice) Bind() error                                  { return nil }
func (d *IdleDevice) Close() error                                 { return nil }
func (d *IdleDevice) Unbind() error                                { return nil }
func (d *IdleDevice) NewStream() (driver.Stream, error)            { return driver.Stream(d.Next()), nil }
func (d *IdleDevice) DestroyStream(driver.Stream) error            { return nil }
func (d *IdleDevice) NewEvent() (driver.Event, error)              { return driver.Event(d.Next()), nil }
func (d *IdleDevice) DestroyEvent(driver.Event) error              { return nil }
func (d *IdleDevice) Record(driver.Event, driver.Stream) error     { return nil }
func (d *IdleDevice) Query(driver.Event) (bool, error)             { return true, nil }
func (d *IdleDevice) StreamWait(driver.Stream, driver.Event) error { return nil }
func (d *IdleDevice) Alloc(kind driver.MemKind, size uint64) (driver.Mem, error) {
	return driver.Mem{Kind: kind, Ptr: 1 << 20, Size: size}, nil
}
func (d *IdleDevice) Free(driver.Mem) error                                     { return nil }
func (d *IdleDevice) Fill(driver.Stream, driver.Ptr, uint32, int, uint64) error { return nil }
func (d *IdleDevice) Enter() (uintptr, error)                                   { return 0, nil }
func (d *IdleDevice) Leave(uintptr) error                                       { return nil }
