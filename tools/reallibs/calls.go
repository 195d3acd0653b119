package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/dl/dltest"
	"github.com/puregpu/puregpu/symbols"
)

// called has the results of the calls of a recorder.
type called struct {
	Compared []string // functions whose calls were compared field by field
	Differ   []string // compared functions that differ in the release, and whose calls are right nevertheless
	Refused  []string // functions that the package refuses to call
	Wrong    []string // errors
}

// recorderState is the C variable puregpu_calls of a recorder.
type recorderState struct {
	function, fail, count, _ uint32
	records                  [4096]struct{ param, leaf, element, size, offset uint32 }
	bytes                    [1 << 17]byte
	zero                     uint32
}

// callAll opens a recorder of a release as a library and calls the functions. Functions whose
// Registers is set come last.
func callAll(lib *library, path string, release symbols.Version, all []call) (*called, error) {
	side := new(dl.Library)
	spec := &dl.Spec{Name: "recorder", Package: "recorder", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "puregpu_calls"}, {Name: "puregpu_arena"}}}
	if err := side.Open(spec, nil, dl.Options{Path: path}); err != nil {
		return nil, err
	}
	address := side.Addr(0)
	state, arena := *(**recorderState)(unsafe.Pointer(&address)), side.Addr(1)
	l, err := lib.open(dl.Options{Path: path})
	if err != nil {
		return nil, err
	}
	if tells := lib.format(l.Version()); !strings.HasPrefix(tells+".", release.String()+".") {
		return nil, fmt.Errorf("the package takes the recorder of %v for release %s, and refuses functions accordingly", release, tells)
	}
	state.fail = 0
	out := new(called)
	for _, last := range []bool{false, true} {
		for i := range all {
			if all[i].fn.Registers != last {
				continue
			}
			// Call again with other arguments: different enumerators may have the same number by
			// chance.
			for round := 0; round < 4 && all[i].try(l, state, arena, round, out); round++ {
			}
		}
	}
	return out, nil
}

// try calls one function, with other arguments in each round. It reports whether another round may
// find more differences.
func (c *call) try(l opened, state *recorderState, arena uintptr, round int, out *called) bool {
	symbol := c.fn.Symbol
	wrong := func(format string, args ...any) {
		out.Wrong = append(out.Wrong, symbol+": "+fmt.Sprintf(format, args...))
	}
	if c.tells {
		return false
	}
	if !l.HasSymbol(symbol) {
		out.Refused = append(out.Refused, symbol)
		if len(c.differ) == 0 {
			wrong("it is refused, and nothing of it differs")
		}
		return false
	}
	if len(c.params) != len(c.bound.Params) {
		wrong("it is not refused, and %s", c.differ[0])
		return false
	}
	for k, p := range c.params {
		if p.size > p.ourSize && !p.sized {
			wrong("it is not refused, and the struct of %s has %d bytes, where the package's has %d", c.bound.Params[k].Name, p.size, p.ourSize)
			return false
		}
	}
	m := reflect.ValueOf(l).MethodByName(c.fn.Method)
	if !m.IsValid() {
		wrong("there is no method %s", c.fn.Method)
		return false
	}
	var args []reflect.Value
	given := map[int]reflect.Value{} // arguments that C reads, by parameter
	for k, q := range c.fn.Params {
		switch q.Role {
		case dltest.Value, dltest.Struct, dltest.Pointer, dltest.String, dltest.Slice:
		default:
			continue
		}
		t := m.Type().In(len(args))
		v := reflect.New(t).Elem()
		p := &c.params[k]
		switch {
		case q.Role == dltest.String:
			v = reflect.ValueOf("text").Convert(t)
		case q.Role == dltest.Slice:
			v = reflect.MakeSlice(t, recorderElements, recorderElements)
			for e := range recorderElements {
				p.fill(v.Index(e), symbol, k, e+round<<8, arena)
			}
			given[k] = v
		case t.Kind() == reflect.Pointer:
			v = reflect.New(t.Elem())
			p.fill(v.Elem(), symbol, k, round<<8, arena)
			given[k] = v.Elem()
		default:
			p.fill(v, symbol, k, round<<8, arena)
			given[k] = v
		}
		args = append(args, v)
	}
	state.function = math.MaxUint32
	if slices.ContainsFunc(c.fn.Params, func(q dltest.Param) bool { return q.Sized }) {
		state.zero = 1 // the method first asks another function for the size
		defer func() { state.zero = 0 }()
	}
	results := m.Call(args)
	if state.function != uint32(c.index) {
		wrong("the call did not arrive: %v", results[len(results)-1])
		return false
	}
	if err, _ := results[len(results)-1].Interface().(error); err != nil && c.fn.Returns == dltest.ReturnsCode {
		wrong("error %v where C reported success", err)
		return false
	}
	before := len(out.Wrong)
	if state.count > uint32(len(state.records)) {
		wrong("the recorder ran out of room")
		return false
	}
	for _, r := range state.records[:state.count] {
		p := &c.params[r.param]
		if err := p.compare(c, c.fn.Params[r.param], given[int(r.param)], symbol, int(r.param), p.theirs[r.leaf], int(r.element)+round<<8, state.bytes[r.offset:][:r.size], arena); err != nil {
			wrong("parameter %s: %v", c.bound.Params[r.param].Name, err)
		}
	}
	for k, q := range c.fn.Params {
		switch q.Role {
		case dltest.Out, dltest.CountOut, dltest.OutString, dltest.Text:
		default:
			continue
		}
		got := results[0]
		results = results[1:]
		if p := &c.params[k]; q.Role == dltest.Out && p.role == dltest.Out {
			if err := p.compareOut(q, got, symbol, k, arena); err != nil {
				wrong("result %s: %v", c.bound.Params[k].Name, err)
			}
		}
	}
	runtime.KeepAlive(args)
	if len(out.Wrong) > before {
		return false
	}
	if round == 0 {
		out.Compared = append(out.Compared, symbol)
		if len(c.differ) > 0 {
			out.Differ = append(out.Differ, symbol)
		}
	}
	return true
}

// content returns the bytes of an addressable value.
func content(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
}

// fill sets the fields that the release has too, and leaves the other fields of the value zero.
func (p *callParam) fill(v reflect.Value, symbol string, k, element int, arena uintptr) {
	b := content(v)
	for _, l := range p.theirs {
		o, ok := p.our(l.path)
		if !ok {
			continue
		}
		if o.size == 0 {
			o.size = len(b)
		}
		if o.offset+o.size <= len(b) {
			copy(b[o.offset:o.offset+o.size], p.want(o, l, symbol, k, element, arena, len(b)))
		}
	}
}

// want returns the bytes of a leaf in a Go value. o is the leaf as the package binds it, and l is
// the leaf in the release. The argument all is the size of the value.
func (p *callParam) want(o, l leaf, symbol string, k, element int, arena uintptr, all int) []byte {
	seed := seedOf(symbol, k, l.path, element)
	switch {
	case (o.pointer || l.pointer) && o.size == 8:
		return binary.LittleEndian.AppendUint64(nil, uint64(arena)+seed%4000)
	case o.pointer:
		return make([]byte, o.size)
	case p.sized && o.path == "size":
		return binary.LittleEndian.AppendUint64(nil, uint64(all))[:o.size]
	case o.enum != nil:
		in := int64(0)
		if l.enum != nil {
			_, in, _ = enumerator(o.enum, l.enum, seed)
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(in))[:o.size]
	}
	return seedBytes(seed, o.size)
}

// compare checks a leaf as C saw it.
func (p *callParam) compare(c *call, q dltest.Param, v reflect.Value, symbol string, k int, l leaf, element int, got []byte, arena uintptr) error {
	if q.Role == dltest.Count {
		want := uint64(recorderElements)
		if n := c.fn.Params[q.Counts].Text; n != 0 {
			want = uint64(n)
		}
		if n := integer(got); n != want {
			return fmt.Errorf("C received the count %d, not %d", n, want)
		}
		return nil
	}
	if q.Widened || !v.IsValid() {
		return nil
	}
	if v.Kind() == reflect.Slice {
		v = v.Index(element & 255)
	}
	if v.Kind() == reflect.Bool {
		return nil
	}
	o, ok := p.our(l.path)
	if !ok {
		if slices.ContainsFunc(got, func(b byte) bool { return b != 0 }) {
			return fmt.Errorf("C found % x in %s, which the package does not have and must leave zero", got, l.path)
		}
		return nil
	}
	if o.size == 0 {
		o.size = int(v.Type().Size())
	}
	want := p.want(o, l, symbol, k, element, arena, int(v.Type().Size()))
	if l.enum != nil && o.enum != nil {
		_, _, out := enumerator(o.enum, l.enum, seedOf(symbol, k, l.path, element))
		want = binary.LittleEndian.AppendUint64(nil, uint64(out))[:min(len(got), 8)]
	}
	n := min(len(got), len(want))
	if !bytes.Equal(got[:n], want[:n]) {
		name := l.path
		if name == "" {
			name = "it"
		}
		return fmt.Errorf("C found % x for %s; Go had written % x", got, name, want)
	}
	return nil
}

// compareOut checks an output as Go read it.
func (p *callParam) compareOut(q dltest.Param, got reflect.Value, symbol string, k int, arena uintptr) error {
	if q.Widened || got.Kind() == reflect.Bool {
		return nil
	}
	v := reflect.New(got.Type()).Elem()
	v.Set(got)
	b := content(v)
	var errs []error
	for _, l := range p.theirs {
		o, ok := p.our(l.path)
		if !ok {
			continue
		}
		if o.size == 0 {
			o.size = len(b)
		}
		if o.offset+o.size > len(b) {
			continue
		}
		want := p.want(o, l, symbol, k, 0, arena, len(b))
		if p.sized && l.path == "size" {
			want = seedBytes(seedOf(symbol, k, l.path, 0), o.size)
		}
		n := o.size
		if l.size > 0 {
			n = min(n, l.size)
		}
		if have := b[o.offset : o.offset+o.size]; !bytes.Equal(have[:n], want[:n]) {
			errs = append(errs, fmt.Errorf("Go found % x for %s; C had written % x", have, l.path, want))
		}
	}
	return errors.Join(errs...)
}

func integer(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}
