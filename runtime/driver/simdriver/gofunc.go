package simdriver

import (
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

var _ standin.Device = (*device)(nil)

// goKernel is the kernel of all functions that RunGo gets. call.goFunc holds the function itself.
var goKernel = &kernel{}

// goFunctions holds the functions that RunGo got, by name.
type goFunctions struct {
	mu     sync.Mutex
	byName map[string]*function // mu protects byName
}

func (x *goFunctions) get(v *device, name string) *function {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.byName[name]
	if f == nil {
		if x.byName == nil {
			x.byName = make(map[string]*function)
		}
		f = &function{module: &module{dev: v}, name: name, kernel: goKernel}
		x.byName[name] = f
	}
	return f
}

// RunGo launches a Go function as a kernel with one thread. Package standin describes such
// functions.
func (v *device) RunGo(h driver.Stream, name string, usable func() error, fn func(standin.Memory) error) error {
	later, err := v.submit(codeLaunch)
	if err != nil {
		return err
	}
	s, err := v.stream(codeLaunch, h)
	if err != nil {
		return err
	}
	f := v.goFunctions.get(v, name)
	c := s.calls.get(goKernel)
	c.set(f, &driver.Launch{})
	c.goFunc, c.usable = fn, usable
	s.mu.Lock()
	o := s.slot(codeLaunch)
	o.fail, o.call = later, c
	s.publish()
	s.mu.Unlock()
	return nil
}

// gridMemory gives a Go function of RunGo access to a device's memory.
type gridMemory struct{ g *Grid }

func (m gridMemory) Bytes(p driver.Ptr, n uint64, write bool) ([]byte, error) {
	return view[byte](m.g, p, int(n), !write)
}
