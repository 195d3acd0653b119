package simdriver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A module is a loaded image.
type module struct {
	dev      *device
	image    image
	vars     map[string]*allocation
	unloaded atomic.Bool

	functions map[string]driver.Function // by name: the handles that Function has returned; protected by dev.mu
}

// A function is a kernel in a module.
type function struct {
	module  *module
	name    string
	kernel  *kernel
	shared  uint64 // bytes of static shared memory
	cluster [3]int
}

// Load makes a module from PTX, a cubin, a fat binary, an AMD code object, a bundle, or text with a
// line in the form of [Image]. Load reads the names, parameter sizes, static shared memory and
// cluster sizes of the kernels, and the variables without initial values. The code is neither
// compiled nor run.
func (v *device) Load(b []byte) (driver.Module, error) {
	if err := v.enter(codeLoad, true); err != nil {
		return 0, err
	}
	im, err := parse(b)
	if err != nil {
		return 0, fail(codeLoad, err)
	}
	m := &module{dev: v, image: im, vars: make(map[string]*allocation), functions: make(map[string]driver.Function)}
	for name, size := range im.vars {
		a, err := v.space.alloc(v, driver.DeviceMem, size, v.d.memory, nil)
		if err != nil {
			m.unload()
			return 0, failf(codeLoad, "variable %s: %w", name, err)
		}
		m.vars[name] = a
	}
	h := v.d.modules.add(m)
	if h == 0 {
		m.unload()
		return 0, fail(codeLoad, errTooMany)
	}
	return driver.Module(h), nil
}

// Unload destroys a module. Pending launches of its kernels lose the device when they execute.
func (v *device) Unload(h driver.Module) error {
	err, ok := v.end(codeUnload)
	if !ok {
		return err
	}
	m, bad := v.module(codeUnload, h)
	if bad != nil {
		return bad
	}
	if v.d.modules.remove(uintptr(h)) != nil {
		m.unload()
	}
	return err
}

// unload frees the module's variables and removes its functions.
func (m *module) unload() {
	m.unloaded.Store(true)
	for _, a := range m.vars {
		m.dev.space.release(a.base, m.dev, driver.DeviceMem) // fails only if the program has passed the variable to Free
	}
	m.dev.mu.Lock()
	defer m.dev.mu.Unlock()
	for _, h := range m.functions {
		m.dev.d.functions.remove(uintptr(h))
	}
}

// Function finds a kernel by name.
func (v *device) Function(h driver.Module, name string) (driver.Function, driver.FuncInfo, error) {
	refuse := func(err error) (driver.Function, driver.FuncInfo, error) { return 0, driver.FuncInfo{}, err }
	if err := v.enter(codeFunction, true); err != nil {
		return refuse(err)
	}
	m, err := v.module(codeFunction, h)
	if err != nil {
		return refuse(err)
	}
	declared, ok := m.image.kernels[name]
	if !ok {
		return refuse(failf(codeFunction, "kernel %s: %w: the module has %s", name, ErrNotFound, list(m.image.kernels)))
	}
	registered, ok := v.d.kernels[name]
	if !ok {
		return refuse(failf(codeFunction, "kernel %s: %w: the module has it, but Config.Kernels has no Go function for it, only %s",
			name, ErrNotFound, list(v.d.kernels)))
	}
	k := registered.k
	if k == nil {
		return refuse(failf(codeFunction, "kernel %s: %w", name, errNoKernel))
	}
	if declared != nil && !slices.Equal(declared, k.sizes) {
		return refuse(failf(codeFunction, "kernel %s: %w: the image declares parameters of %v bytes, the Go function has %v",
			name, ErrInvalidValue, declared, k.sizes))
	}
	shared := m.image.shared[name]
	if shared > uint64(v.info.SharedOptIn) {
		return refuse(failf(codeFunction, "kernel %s: %w: %d bytes of shared memory, more than %d", name, ErrInvalidValue, shared, v.info.SharedOptIn))
	}
	if n := paramBytes(k.sizes); n > maxParams {
		return refuse(failf(codeFunction, "kernel %s: %w: parameters of %d bytes, more than %d", name, ErrInvalidValue, n, maxParams))
	}
	info := driver.FuncInfo{MaxThreads: v.info.MaxThreads, SharedMem: int(shared), Registers: registers, Cluster: m.image.cluster[name]}
	if v.d.caps.Clusters {
		info.MaxCluster = maxCluster
	}
	if v.d.caps.KernelParams {
		info.Params = append([]int{}, k.sizes...)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := m.functions[name]
	if !ok {
		f = driver.Function(v.d.functions.add(&function{module: m, name: name, kernel: k, shared: shared, cluster: info.Cluster}))
		if f == 0 {
			return refuse(fail(codeFunction, errTooMany))
		}
		m.functions[name] = f
	}
	return f, info, nil
}

// maxParams is the maximum number of parameter bytes of a kernel.
const maxParams = 32764

// paramBytes returns the sum of the parameter sizes, without padding.
func paramBytes(params []int) (n int) {
	for _, p := range params {
		n += p
	}
	return n
}

// Global finds a variable by name.
func (v *device) Global(h driver.Module, name string) (driver.Ptr, uint64, error) {
	if err := v.enter(codeGlobal, true); err != nil {
		return 0, 0, err
	}
	m, err := v.module(codeGlobal, h)
	if err != nil {
		return 0, 0, err
	}
	a := m.vars[name]
	if a == nil {
		return 0, 0, failf(codeGlobal, "variable %s: %w: the module has %s", name, ErrNotFound, list(m.vars))
	}
	return a.base, a.size, nil
}

// Launch launches a kernel. If l.Begun is set, a separate operation before the kernel records that
// event. So the event is complete when the stream reaches the kernel.
func (v *device) Launch(h driver.Stream, l *driver.Launch) error {
	later, err := v.submit(codeLaunch)
	if err != nil {
		return err
	}
	if l.Begun != 0 {
		return v.launchWith(h, l, later)
	}
	f, err := v.checkLaunch(l)
	if err != nil {
		return fail(codeLaunch, err)
	}
	s, err := v.stream(codeLaunch, h)
	if err != nil {
		return err
	}
	c := s.calls.get(f.kernel)
	c.set(f, l)
	s.mu.Lock()
	o := s.slot(codeLaunch)
	o.fail, o.call = later, c
	s.publish()
	s.mu.Unlock()
	return nil
}

// launchWith is Launch for a launch whose Begun is set.
func (v *device) launchWith(h driver.Stream, l *driver.Launch, later error) error {
	f, err := v.checkLaunch(l)
	if err == nil && !v.d.caps.LaunchEvents {
		err = fmt.Errorf("kernel %s: an event when it has begun: %w", f.name, driver.ErrUnsupported)
	}
	if err != nil {
		return fail(codeLaunch, err)
	}
	e, err := v.event(codeLaunch, l.Begun)
	if err != nil {
		return err
	}
	s, err := v.working(codeLaunch, h)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.timer != nil:
		err = fmt.Errorf("kernel %s: event %#x is a timer, which a launch cannot record: %w", f.name, uint64(l.Begun), ErrInvalidValue)
	case e.opened || e.users != nil:
		err = fmt.Errorf("kernel %s: event %#x is shared between processes; a launch cannot record it: %w", f.name, uint64(l.Begun), ErrInvalidValue)
	default:
		err = e.recordable(l.Begun)
	}
	if err != nil {
		return fail(codeLaunch, err)
	}
	c := s.calls.get(f.kernel)
	c.set(f, l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slot(codeRecord)
	s.publish()
	e.stream, e.seq = s, s.tail.Load()
	o := s.slot(codeLaunch)
	o.fail, o.call = later, c
	s.publish()
	return nil
}

// checkLaunch checks a launch, except the field Begun, and returns the launch's kernel.
func (v *device) checkLaunch(l *driver.Launch) (*function, error) {
	f := v.d.functions.get(uintptr(l.Function))
	if f == nil {
		return nil, fmt.Errorf("function %#x: %w: no such function, or its module was unloaded", uint64(l.Function), ErrInvalidHandle)
	}
	if f.module.dev != v {
		return nil, fmt.Errorf("kernel %s: %w: it was loaded on device %d, not %d", f.name, ErrInvalidHandle, f.module.dev.index, v.index)
	}
	grid, block := l.Dims()
	for i := range 3 {
		if int64(grid[i]) > int64(v.info.MaxGrid[i]) {
			return nil, fmt.Errorf("kernel %s: %w: a grid of %d blocks; its dimensions can be at most %d", f.name, ErrInvalidValue, l.Grid, v.info.MaxGrid)
		}
		if n := f.cluster[i]; n > 1 && grid[i]%uint32(n) != 0 {
			return nil, fmt.Errorf("kernel %s: %w: a grid of %d blocks is no multiple of clusters of %d", f.name, ErrInvalidValue, l.Grid, f.cluster)
		}
		if int64(block[i]) > int64(v.info.MaxBlock[i]) {
			return nil, fmt.Errorf("kernel %s: %w: a block of %d threads; its dimensions can be at most %d", f.name, ErrInvalidValue, l.Block, v.info.MaxBlock)
		}
	}
	if n := uint64(block[0]) * uint64(block[1]) * uint64(block[2]); n > uint64(v.info.MaxThreads) {
		return nil, fmt.Errorf("kernel %s: %w: a block of %d threads, more than %d", f.name, ErrInvalidValue, n, v.info.MaxThreads)
	}
	if n := f.shared + uint64(l.SharedMem); n > uint64(v.info.SharedOptIn) {
		return nil, fmt.Errorf("kernel %s: %w: %d bytes of shared memory, %d of them static, more than %d", f.name, ErrInvalidValue, n, f.shared, v.info.SharedOptIn)
	}
	if err := v.checkAttrs(f, l); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", f.name, err)
	}
	if len(l.Args) != len(f.kernel.sizes) {
		return nil, fmt.Errorf("kernel %s: %w: %d arguments for %d parameters", f.name, ErrInvalidValue, len(l.Args), len(f.kernel.sizes))
	}
	for i, p := range l.Args {
		if p == nil {
			return nil, fmt.Errorf("kernel %s: %w: argument %d is nil: it must point to the value", f.name, ErrInvalidValue, i)
		}
	}
	return f, nil
}

// module finds a module of the device by handle.
func (v *device) module(c code, h driver.Module) (*module, error) {
	m := v.d.modules.get(uintptr(h))
	if m == nil {
		return nil, failf(c, "module %#x: %w: no such module, or it was unloaded", uint64(h), ErrInvalidHandle)
	}
	if m.dev != v {
		return nil, failf(c, "module %#x: %w: it belongs to device %d, not %d", uint64(h), ErrInvalidHandle, m.dev.index, v.index)
	}
	return m, nil
}

// list returns the names in m as text, for errors.
func list[T any](m map[string]T) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
