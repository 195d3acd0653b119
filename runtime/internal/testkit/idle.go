package testkit

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var (
	_ driver.Graphs = (*idleGraphDevice)(nil)
	_ driver.Pools  = (*idleGraphDevice)(nil)
)

// An IdleDriver has calls that cost nothing, so that benchmarks measure the runtime's own cost.
type IdleDriver struct{}

func (IdleDriver) Name() string                    { return "idle" }
func (IdleDriver) Devices() ([]driver.Info, error) { return []driver.Info{{Name: "idle"}}, nil }
func (IdleDriver) Open(int) (driver.Device, error) { return new(IdleDevice), nil }

// An IdleDevice is a device of an [IdleDriver]. Benchmarks embed it and add the methods that they
// need.
type IdleDevice struct {
	driver.Device
	handles uintptr
}

// Next returns a unique handle.
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

// idleGraphDriver is an [IdleDriver] with graphs and pools.
type idleGraphDriver struct{ IdleDriver }

func (idleGraphDriver) Open(int) (driver.Device, error) { return new(idleGraphDevice), nil }

type idleGraphDevice struct{ IdleDevice }

func (d *idleGraphDevice) Caps() driver.Caps {
	return driver.Caps{RerecordEvents: true, Graphs: true, Pools: true, Native: true}
}
func (d *idleGraphDevice) NewGraph() (driver.Graph, error) { return 1, nil }

func (d *idleGraphDevice) DestroyGraph(driver.Graph) error               { return nil }
func (d *idleGraphDevice) Instantiate(driver.Graph) (driver.Exec, error) { return 1, nil }

func (d *idleGraphDevice) DestroyExec(driver.Exec) error                { return nil }
func (d *idleGraphDevice) LaunchGraph(driver.Stream, driver.Exec) error { return nil }

func (d *idleGraphDevice) DefaultPool() (driver.Pool, error) { return 1, nil }
func (d *idleGraphDevice) CurrentPool() (driver.Pool, error) { return 1, nil }

func (d *idleGraphDevice) SetCurrentPool(driver.Pool) error             { return nil }
func (d *idleGraphDevice) NewPool(driver.PoolDesc) (driver.Pool, error) { return 2, nil }

func (d *idleGraphDevice) DestroyPool(driver.Pool) error                         { return nil }
func (d *idleGraphDevice) PoolAttr(driver.Pool, driver.PoolAttr) (uint64, error) { return 0, nil }

func (d *idleGraphDevice) SetPoolAttr(driver.Pool, driver.PoolAttr, uint64) error {
	return nil
}
func (d *idleGraphDevice) TrimPool(driver.Pool, uint64) error { return nil }

func (d *idleGraphDevice) AccessPool(driver.Pool, driver.Device, bool) error { return nil }
func (d *idleGraphDevice) FreeAsync(driver.Stream, driver.Mem) error         { return nil }

func (d *idleGraphDevice) SetNode(driver.Exec, driver.Node, *driver.NodeOp) error     { return nil }
func (d *idleGraphDevice) SetNodes(driver.Exec, []driver.Node, []driver.NodeOp) error { return nil }

func (d *idleGraphDevice) AddNode(driver.Graph, []driver.Node, *driver.NodeOp) (driver.Node, error) {
	return driver.Node(d.Next()), nil
}
func (d *idleGraphDevice) AllocAsync(_ driver.Stream, _ driver.Pool, size uint64) (driver.Mem, error) {
	return driver.Mem{Ptr: 1 << 30, Size: size}, nil
}

func (d *idleGraphDevice) Load([]byte) (driver.Module, error) { return 1, nil }
func (d *idleGraphDevice) Unload(driver.Module) error         { return nil }
func (d *idleGraphDevice) Function(driver.Module, string) (driver.Function, driver.FuncInfo, error) {
	return 1, driver.FuncInfo{}, nil
}
func (d *idleGraphDevice) Launch(driver.Stream, *driver.Launch) error { return nil }

// OpenIdle opens a device of an [IdleDriver] that also has graphs, pools and kernels.
func OpenIdle(b *testing.B) *gpu.Device {
	b.Helper()
	dev, err := gpu.Open(idleGraphDriver{}, 0, gpu.Options{})
	Must(b, err)
	b.Cleanup(func() { dev.Close() })
	return dev
}
