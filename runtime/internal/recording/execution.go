package recording

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// The type execution has the instance, addresses and parameters of the execution that is being
// issued. A recording has one such struct, Recording.current, which Recording.mu protects. The
// struct keeps the addresses and words of the previous execution, so those that have not changed
// need not be stored again.
type execution struct {
	instance *instance
	latest   *instance     // instance of the last execution that a stream has received, in whole or in part
	launch   driver.Launch // copy of a command's launch, with the blocks that a parameter gives

	present []driver.Ptr // the addresses of the recording's refers, followed by params
	params  []driver.Ptr // the words of the parameters, two for each
	moving  []int        // numbers of the refers whose addresses may change
	sources []source     // sources of the moving refers
	epoch   int          // changes when a source has moved or a parameter has changed
	lost    bool         // the latest call of find has failed, so the addresses in present may differ from source.base
}

// A source is a buffer, or a binding, whose address may change from one execution to the next.
type source struct {
	buffer  *memory.Buffer
	scratch bool       // the buffer is the scratch memory of an instance
	base    driver.Ptr // the address that the latest call of find found
	size    uint64     // how far into the buffer the recording's ranges reach, in bytes
}

// init finds the addresses that are the same in all executions, and the sources of all other
// addresses.
func (x *execution) init(refers []reference, params int) {
	x.present = make([]driver.Ptr, len(refers)+2*params)
	x.params = x.present[len(refers):]
	for i := range refers {
		r := &refers[i]
		if !r.buffer.Late() {
			x.present[i] = r.buffer.Addr() + driver.Ptr(r.offset)
		}
		if r.buffer.Late() || r.scratch != nil {
			x.moving = append(x.moving, i)
			r.source = slices.IndexFunc(x.sources, func(s source) bool { return s.buffer == r.buffer })
			if r.source < 0 {
				r.source = len(x.sources)
				x.sources = append(x.sources, source{buffer: r.buffer, scratch: r.scratch != nil})
			}
			s := &x.sources[r.source]
			s.size = max(s.size, r.offset+r.size)
		}
	}
}

// find updates x for an execution: it finds the addresses of the sources, and stores the values of
// the parameters.
func (x *execution) find(refers []reference, b *instance, binds []memory.Range, values []Value) error {
	moved := x.epoch == 0 || x.lost
	x.lost, x.instance = true, b
	for i := range x.sources {
		s := &x.sources[i]
		base, err := s.address(b, binds).Resolve()
		if err != nil {
			return err
		}
		if base != s.base {
			s.base, moved = base, true
		}
	}
	x.lost = false
	if x.setWords(values) || moved {
		x.epoch++
	}
	if moved {
		for _, i := range x.moving {
			r := &refers[i]
			x.present[i] = x.sources[r.source].base + driver.Ptr(r.offset)
		}
	}
	return nil
}

// address returns the address of a source in an execution.
func (s *source) address(b *instance, binds []memory.Range) engine.Address {
	if slot := slotOf(s.buffer); slot >= 0 {
		r := &binds[slot]
		return r.Address()
	}
	if s.scratch {
		return engine.Address{Ptr: b.mem.Addr()}
	}
	return engine.Address{Size: s.size, Late: s.buffer.Holding()}
}

// findLive finds the addresses of growing memory, and of pool memory that already had an address
// when a command that uses it was recorded. A graph that is made before the first execution needs
// these addresses.
func (x *execution) findLive(refers []reference) error {
	for _, i := range x.moving {
		if r := &refers[i]; !r.depends() && r.buffer.Late() {
			ptr, err := (engine.Address{Ptr: driver.Ptr(r.offset), Size: r.size, Late: r.buffer.Holding()}).Resolve()
			if err != nil {
				return err
			}
			x.present[i] = ptr
		}
	}
	return nil
}

// address returns the address of a reference, or 0 for no reference (-1).
func (x *execution) address(ref int32) driver.Ptr {
	if ref < 0 {
		return 0
	}
	return x.present[ref]
}

// words returns the words of a parameter. The words are stored in execution.present, behind the
// addresses. So a place of a graph can get a word in the same way as an address.
func (x *execution) words(param int32) []driver.Ptr { return x.params[2*param : 2*param+2] }

// setWords stores the values of an execution. It reports whether a value differs from the one that
// was stored before.
func (x *execution) setWords(values []Value) (moved bool) {
	for i := range values {
		words := x.words(int32(i))
		for k, w := range values[i] {
			if words[k] != driver.Ptr(w) {
				words[k], moved = driver.Ptr(w), true
			}
		}
	}
	return moved
}
