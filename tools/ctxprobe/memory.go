package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
)

// A Case is a function that is called with some memory, for a stream of the tried device. The
// program gives the device no access to memory of the other device.
type Case struct {
	Function string `json:"function"`
	Memory   string `json:"memory"`  // the memory: "other default pool from memory"; "other " marks memory of the other device
	Without  string `json:"without"` // the outcome on a thread without a context
	With     string `json:"with"`    // the outcome with the device's context current
}

// The outcomes of cases, besides crashes and notTried. The text of the constants later and early is
// followed by an error. Other outcomes are names of CUDA errors.
const (
	right = "right"          // the work is done and its output is right
	wrong = "wrong data"     // the work is done and its output is wrong
	later = "when waited: "  // the call succeeded, and waiting for the work failed
	early = "when prepared:" // preparing the call failed, with a context
)

// other begins the name of an origin on another device.
const other = "other "

// An origin is a kind of memory.
type origin struct {
	name string
	host bool // the host can use it
	make func(b *bench) (cuda.DevicePtr, error)
}

// origins lists all kinds of memory that runtime/driver/cudadriver can make.
var origins = []origin{
	{"memory", false, func(b *bench) (cuda.DevicePtr, error) { return b.lib.MemAlloc(size) }},
	{"default pool", false, func(b *bench) (cuda.DevicePtr, error) {
		return b.lib.MemAllocFromPoolAsync(size, b.poolOf("default pool"), b.stream())
	}},
	{"pool", false, func(b *bench) (cuda.DevicePtr, error) {
		return b.lib.MemAllocFromPoolAsync(size, b.poolOf("pool"), b.stream())
	}},
	{"host", true, func(b *bench) (cuda.DevicePtr, error) { return b.lib.MemHostGetDevicePointer(b.host(), 0) }},
	{"managed", true, func(b *bench) (cuda.DevicePtr, error) { return b.managed(), nil }},
	{"registered", true, func(b *bench) (cuda.DevicePtr, error) { return b.lib.MemHostGetDevicePointer(b.registered(), 0) }},
	{"host pool", true, func(b *bench) (cuda.DevicePtr, error) {
		return b.lib.MemAllocFromPoolAsync(size, b.poolOf("host pool"), b.stream())
	}},
	{"variable", false, func(b *bench) (cuda.DevicePtr, error) {
		p, n, err := b.lib.ModuleGetGlobal(b.module(), "variable")
		if err == nil && n < size {
			err = fmt.Errorf("%d bytes", n)
		}
		return p, err
	}},
}

// poolOf makes a pool as cudadriver does.
func (b *bench) poolOf(name string) cuda.MemoryPool {
	return made(b, name, func() (cuda.MemoryPool, error) {
		props := b.poolProps()
		switch name {
		case "default pool":
			return b.lib.DeviceGetDefaultMemPool(b.dev)
		case "host pool":
			props.Location = cuda.MemLocation{Type: cuda.MemLocationTypeHost}
		}
		p, err := b.lib.MemPoolCreate(props)
		if err == nil && name == "host pool" {
			err = b.lib.MemPoolSetAccess(p, []cuda.MemAccessDesc{{Location: b.location(), Flags: cuda.MemAccessFlagsProtReadWrite}})
		}
		return p, err
	})
}

// A piece is memory of an origin.
type piece struct {
	of   *bench
	from *origin
	ptr  cuda.DevicePtr
}

// piece makes memory of the named origin, filled with a byte.
func (b *bench) piece(name string, fill byte) piece {
	of := b
	if rest, ok := strings.CutPrefix(name, other); ok {
		name, of = rest, b.second()
	}
	i := slices.IndexFunc(origins, func(o origin) bool { return o.name == name })
	p := piece{of: of, from: &origins[i]}
	p.use(func() error {
		var err error
		if p.ptr, err = p.from.make(of); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := of.lib.StreamSynchronize(of.stream()); err != nil {
			return err
		}
		if p.from.host {
			copy(p.bytes(), bytes.Repeat([]byte{fill}, size))
			return nil
		}
		if err := of.lib.MemsetD8Async(p.ptr, fill, size, of.stream()); err != nil {
			return err
		}
		return of.lib.StreamSynchronize(of.stream())
	})
	return p
}

// use calls a function while the context of the memory's device is current. It panics if the
// function returns an error.
func (p *piece) use(f func() error) {
	must(p.of.lib.CtxPushCurrent(p.of.ctx))
	err := f()
	_, pop := p.of.lib.CtxPopCurrent()
	must(err)
	must(pop)
}

// bytes returns the memory as a slice. The host must have access to it.
func (p *piece) bytes() []byte {
	addr := uintptr(p.ptr)
	switch p.from.name {
	case "host":
		return unsafe.Slice((*byte)(p.of.host()), size)
	case "registered":
		return unsafe.Slice((*byte)(p.of.registered()), size)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}

// read returns a copy of the contents. The memory's own device copies memory that the host cannot
// access.
func (p *piece) read() (data []byte) {
	if p.from.host {
		return bytes.Clone(p.bytes())
	}
	p.use(func() error {
		if err := p.of.lib.MemcpyDtoHAsync(p.of.host(), p.ptr, size, p.of.stream()); err != nil {
			return err
		}
		return p.of.lib.StreamSynchronize(p.of.stream())
	})
	return bytes.Clone(unsafe.Slice((*byte)(p.of.host()), size))
}

// second returns the bench of another device.
func (b *bench) second() *bench {
	ctx := b.peer()
	return made(b, "another device's bench", func() (*bench, error) {
		n, err := b.lib.DeviceGetCount()
		if err != nil {
			return nil, err
		}
		o := &bench{lib: b.lib, num: (b.num + 1) % n, ctx: ctx, made: map[string]any{}}
		o.dev, err = b.lib.DeviceGet(o.num)
		return o, err
	})
}

// value is the byte that the memory must contain after a case.
const value = 0x5a

// A user is a function to try with one or two pieces of memory.
type user struct {
	name    string                               // the exported name
	what    string                               // the work that it submits, or ""
	from    bool                                 // it takes two pieces: src and dst
	origins []string                             // origins of its memory; nil means all
	prepare func(b *bench, dst, src piece) error // runs before call, with a context; may be nil
	// call runs without a context in one process, and with a context in another.
	call  func(b *bench, dst, src piece) error
	check func(b *bench, dst, src piece) (got []byte, ok bool) // replaces the check that dst contains value; may be nil
}

var poolNames = []string{"default pool", "pool", "host pool"}

// touch returns the kernel that writes to memory.
func (b *bench) touch() cuda.Function {
	return made(b, "kernel", func() (cuda.Function, error) { return b.lib.ModuleGetFunction(b.module(), "touch") })
}

// launchable makes an exec from the bench's graph.
func (b *bench) launchable() error {
	made(b, "exec", func() (cuda.GraphExec, error) { return b.lib.GraphInstantiateWithFlags(b.graph(), 0) })
	return nil
}

// users lists the submitting functions to which cudadriver passes memory, and cuMemcpyDtoDAsync_v2
// for comparison.
var users = []user{
	{name: "cuMemcpyAsync", from: true, call: func(b *bench, dst, src piece) error { return b.lib.MemcpyAsync(dst.ptr, src.ptr, size, b.stream()) }},
	{name: "cuMemcpyDtoDAsync_v2", from: true, call: func(b *bench, dst, src piece) error { return b.lib.MemcpyDtoDAsync(dst.ptr, src.ptr, size, b.stream()) }},
	{name: "cuMemcpyPeerAsync", from: true, call: func(b *bench, dst, src piece) error {
		return b.lib.MemcpyPeerAsync(dst.ptr, dst.of.ctx, src.ptr, src.of.ctx, size, b.stream())
	}},
	{name: "cuGraphLaunch", what: "copy node, ", from: true, prepare: func(b *bench, dst, src piece) error {
		_, err := b.lib.GraphAddMemcpyNode(b.graph(), nil, &cuda.Memcpy3D{SrcMemoryType: cuda.MemoryTypeUnified, SrcDevice: src.ptr,
			DstMemoryType: cuda.MemoryTypeUnified, DstDevice: dst.ptr, WidthInBytes: size, Height: 1, Depth: 1}, b.ctx)
		if err != nil {
			return err
		}
		return b.launchable()
	}, call: func(b *bench, dst, src piece) error { return b.lib.GraphLaunch(b.exec(), b.stream()) }},

	{name: "cuMemsetD8Async", call: func(b *bench, dst, _ piece) error { return b.lib.MemsetD8Async(dst.ptr, value, size, b.stream()) }},
	{name: "cuMemsetD16Async", call: func(b *bench, dst, _ piece) error {
		return b.lib.MemsetD16Async(dst.ptr, value*0x101, size/2, b.stream())
	}},
	{name: "cuMemsetD32Async", call: func(b *bench, dst, _ piece) error {
		return b.lib.MemsetD32Async(dst.ptr, value*0x1010101, size/4, b.stream())
	}},
	{name: "cuMemsetD2D32Async", call: func(b *bench, dst, _ piece) error {
		return b.lib.MemsetD2D32Async(dst.ptr, 8, value*0x1010101, 2, size/8, b.stream())
	}},
	{name: "cuGraphLaunch", what: "fill node, ", prepare: func(b *bench, dst, _ piece) error {
		_, err := b.lib.GraphAddMemsetNode(b.graph(), nil, &cuda.MemsetNodeParams{Dst: dst.ptr, Value: value, ElementSize: 1, Width: size, Height: 1}, b.ctx)
		if err != nil {
			return err
		}
		return b.launchable()
	}, call: func(b *bench, dst, _ piece) error { return b.lib.GraphLaunch(b.exec(), b.stream()) }},
	{name: "cuMemcpyHtoDAsync_v2", prepare: func(b *bench, dst, _ piece) error {
		copy(unsafe.Slice((*byte)(b.spare()), size), bytes.Repeat([]byte{value}, size))
		return nil
	}, call: func(b *bench, dst, _ piece) error { return b.lib.MemcpyHtoDAsync(dst.ptr, b.spare(), size, b.stream()) }},
	{name: "cuMemcpyDtoHAsync_v2", prepare: func(b *bench, dst, _ piece) error { b.spare(); return nil },
		call: func(b *bench, dst, _ piece) error { return b.lib.MemcpyDtoHAsync(b.spare(), dst.ptr, size, b.stream()) },
		check: func(b *bench, dst, _ piece) ([]byte, bool) {
			got := bytes.Clone(unsafe.Slice((*byte)(b.spare()), size))
			return got, bytes.Equal(got, dst.read())
		}},
	{name: "cuLaunchKernel", prepare: func(b *bench, dst, _ piece) error { b.touch(); return nil }, call: func(b *bench, dst, _ piece) error {
		p := dst.ptr
		return b.lib.LaunchKernel(b.touch(), 1, 1, 1, 1, 1, 1, 0, b.stream(), []unsafe.Pointer{unsafe.Pointer(&p)}, nil)
	}},
	{name: "cuMemPrefetchAsync_v2", origins: []string{"managed"}, call: func(b *bench, dst, _ piece) error {
		return b.lib.MemPrefetchAsync(dst.ptr, size, b.location(), 0, b.stream())
	}, check: unchanged},
	{name: "cuMemFreeAsync", origins: poolNames, call: func(b *bench, dst, _ piece) error { return b.lib.MemFreeAsync(dst.ptr, b.stream()) },
		check: func(*bench, piece, piece) ([]byte, bool) { return nil, true }},
	{name: "cuMemAllocFromPoolAsync", origins: poolNames, call: func(b *bench, dst, _ piece) error {
		return second(b.lib.MemAllocFromPoolAsync(size, dst.of.poolOf(dst.from.name), b.stream()))
	}, check: unchanged},
}

func unchanged(b *bench, dst, _ piece) ([]byte, bool) {
	got := dst.read()
	return got, bytes.Equal(got, make([]byte, size))
}

// spare returns pinned memory that no piece uses.
func (b *bench) spare() unsafe.Pointer {
	return made(b, "more pinned memory", func() (unsafe.Pointer, error) {
		return b.lib.MemHostAlloc(size, cuda.MemHostAllocPortable|cuda.MemHostAllocDeviceMap)
	})
}

// A given is a case that has not been tried yet.
type given struct {
	user     *user
	dst, src string // names of origins; src may be ""
}

func (g *given) memory() string {
	if g.src == "" {
		return g.user.what + g.dst
	}
	return g.user.what + g.dst + " from " + g.src
}

// name is the argument by which the program tells a child which case to try.
func (g *given) name() string { return g.user.name + ": " + g.memory() }

// givens returns all cases, on one device or on two. A function with one piece gets memory of each
// of its origins on either device. A function with two pieces gets such memory together with
// ordinary memory of the device, with host memory, and with memory of the same origin on the other
// device.
func givens(devices int) (all []given) {
	for i := range users {
		u := &users[i]
		add := func(dst, src string) {
			g := given{u, dst, src}
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
		for _, o := range origins {
			if u.origins != nil && !slices.Contains(u.origins, o.name) {
				continue
			}
			names := []string{o.name, other + o.name}
			if devices < 2 {
				names = names[:1]
			}
			for i, n := range names {
				if !u.from {
					add(n, "")
					continue
				}
				if n != "memory" {
					add(n, "memory")
					add("memory", n)
				}
				if n != "host" {
					add(n, "host")
					add("host", n)
				}
				if len(names) == 2 {
					add(n, names[1-i])
				}
			}
		}
	}
	return all
}

// tryMemory tries a case, by its name, in this process. It returns the outcome, unless the process
// crashes.
func tryMemory(name, library string, device int, with bool) (outcome string) {
	all := givens(2)
	i := slices.IndexFunc(all, func(g given) bool { return g.name() == name })
	if i < 0 {
		return notTried + "there is no case of it"
	}
	g := all[i]
	b, failure := newBench(library, device)
	defer func() {
		if p := recover(); p != nil {
			outcome = fmt.Sprintf("%sto make what it takes: %v", notTried, p)
		}
	}()
	if failure != nil {
		panic(failure)
	}
	if !b.lib.HasSymbol(g.user.name) {
		return notTried + "the driver has no such function"
	}
	b.stream()
	var dst, src piece
	fill := byte(0)
	if g.user.name == "cuMemcpyDtoHAsync_v2" {
		fill = value
	}
	dst = b.piece(g.dst, fill)
	if g.src != "" {
		src = b.piece(g.src, value)
	}
	if g.user.prepare != nil {
		if err := g.user.prepare(b, dst, src); err != nil {
			return early + " " + resultName(err)
		}
	}
	call := func() error { return g.user.call(b, dst, src) }
	var err error
	if with {
		err = call()
	} else {
		err = withoutContext(b.lib, call)
	}
	if err != nil {
		return resultName(err)
	}
	if err := b.lib.StreamSynchronize(b.stream()); err != nil {
		return later + resultName(err)
	}
	check := g.user.check
	if check == nil {
		check = func(b *bench, dst, _ piece) ([]byte, bool) {
			got := dst.read()
			return got, bytes.Equal(got, bytes.Repeat([]byte{value}, size))
		}
	}
	if _, ok := check(b, dst, src); !ok {
		return wrong
	}
	return right
}

// barred reports whether a case uses memory of another device's pool, to which the device has no
// access.
func (c *Case) barred() bool {
	return strings.Contains(c.Memory, other+"default pool") || strings.Contains(c.Memory, other+"pool") || strings.Contains(c.Memory, other+"host pool")
}
