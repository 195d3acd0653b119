package simdriver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Driver simulates GPUs. All its methods may be called concurrently, also while the devices are
// in use.
type Driver struct {
	caps     driver.Caps
	strict   bool
	apart    bool
	links    func(from, to int) driver.Link // Config.Links, or nil
	stays    bool                           // Config.StaysLost
	manual   bool                           // Config.Deterministic: only Step executes
	memory   uint64
	kernels  map[string]Kernel
	executed func(Executed) // Config.OnExecute, or nil
	devices  []*device
	threads  threads

	streams   table[stream]
	events    table[event]
	modules   table[module]
	functions table[function]
	pools     table[pool]
	graphs    table[graph]
	execs     table[exec]

	virtualPages table[pages]

	nodes   atomic.Uintptr // handle of the graph node or condition that was made last
	records atomic.Uint64  // number of the timer record that was made last
	pooled  atomic.Bool    // set when the first pool is made

	machine *Machine

	host  hostSpace
	comms comms

	armed  atomic.Int32 // not 0 if calls must look for faults or latencies
	faults faults
	calls  [codes]atomic.Uint64 // calls that belong to no device
	delays [codes]atomic.Int64  // latencies in nanoseconds

	mu     sync.Mutex
	order  []*stream // streams that are not destroyed, oldest first
	leaked []string  // objects that Close had to destroy

	steps stepper
}

// New makes a driver. It never fails: calls of the driver return the errors for mistakes in c.
func New(c Config) *Driver {
	n := min(c.Devices, maxDevices)
	if n == 0 {
		n = 1
	}
	d := &Driver{
		caps:     CUDACaps(),
		strict:   c.Strict,
		apart:    c.Apart,
		links:    c.Links,
		stays:    c.StaysLost,
		manual:   c.Deterministic,
		memory:   min(c.Memory, maxMemory),
		kernels:  maps.Clone(c.Kernels),
		executed: c.OnExecute,
		threads:  threads{current: make(map[int]int), id: threadID()},
		machine:  c.Machine,
		comms:    comms{ids: make(map[driver.UniqueID]*communicator), lazy: c.LazyComms, linger: c.LingerComms, needs: c.CommMemory},
	}
	for name, k := range c.Kernels {
		delete(d.kernels, name)
		d.kernels[squeeze(name)] = k
	}
	if d.machine == nil {
		d.machine = new(Machine)
	}
	d.caps.NodeTimes = true
	if c.Caps != nil {
		d.caps = *c.Caps
	}
	d.caps.ChecksOrder = d.caps.Graphs
	if d.memory == 0 {
		d.memory = defaultMemory
	}
	d.host.limit = c.HostMemory
	if d.host.limit == 0 {
		d.host.limit = 4 << 30
	}
	d.steps.rand = rand.New(rand.NewPCG(c.Seed, 0))
	for i := range max(n, 0) {
		d.devices = append(d.devices, newDevice(d, i))
	}
	for _, v := range d.devices {
		v.peers = make([]atomic.Bool, len(d.devices))
	}
	for op, t := range c.Latency {
		d.SetLatency(op, t)
	}
	for _, f := range c.Faults {
		d.Inject(f)
	}
	return d
}

// Name returns "sim".
func (d *Driver) Name() string { return driverName }

// Devices describes the devices.
func (d *Driver) Devices() ([]driver.Info, error) {
	d.calls[codeDevices].Add(1)
	if d.armed.Load() != 0 {
		if _, err := d.meet(nil, codeDevices); err != nil {
			return nil, err
		}
	}
	infos := make([]driver.Info, len(d.devices))
	for i, v := range d.devices {
		infos[i] = v.info
	}
	return infos, nil
}

// Open opens a device. Opening an open device again returns the same device with the same objects,
// and the device then needs one more Close. A lost device can be opened. It stays lost until its
// last Close. With [Config.StaysLost] it stays lost for good.
func (d *Driver) Open(index int) (driver.Device, error) {
	v, err := d.device(index)
	if err != nil {
		return nil, fail(codeOpen, err)
	}
	v.calls[codeOpen].Add(1)
	if d.armed.Load() != 0 {
		if _, err := d.meet(v, codeOpen); err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opens++
	if p := v.down.Load(); p != nil && !p.lost {
		v.down.CompareAndSwap(p, nil) // fails if the device was lost meanwhile
	}
	return v, nil
}

// Current returns the index of the device that is current on the calling thread. It returns false
// if no device is current, and always if threads cannot be distinguished: see [Config.Strict].
func (d *Driver) Current() (device int, ok bool) { return d.threads.bound() }

// device returns the device with an index.
func (d *Driver) device(index int) (*device, error) {
	if index < 0 || index >= len(d.devices) {
		return nil, fmt.Errorf("no device %d, there are %d: %w", index, len(d.devices), ErrInvalidValue)
	}
	return d.devices[index], nil
}
