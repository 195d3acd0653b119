// Package sync replaces Go's in rewritten programs.
package sync

import (
	stdsync "sync"
	"unsafe"

	"github.com/puregpu/puregpu/internal/explore"
)

type Locker = stdsync.Locker

type Mutex struct{ m explore.Mutex }

func (m *Mutex) Lock()         { m.m.Lock() }
func (m *Mutex) TryLock() bool { return m.m.TryLock() }
func (m *Mutex) Unlock()       { m.m.Unlock() }

type RWMutex struct{ m explore.Mutex }

func (m *RWMutex) Lock()           { m.m.Lock() }
func (m *RWMutex) TryLock() bool   { return m.m.TryLock() }
func (m *RWMutex) Unlock()         { m.m.Unlock() }
func (m *RWMutex) RLock()          { m.m.RLock() }
func (m *RWMutex) TryRLock() bool  { return m.m.TryRLock() }
func (m *RWMutex) RUnlock()        { m.m.RUnlock() }
func (m *RWMutex) RLocker() Locker { return (*reader)(m) }

type reader RWMutex

func (r *reader) Lock()   { (*RWMutex)(r).RLock() }
func (r *reader) Unlock() { (*RWMutex)(r).RUnlock() }

type WaitGroup struct{ g explore.Group }

func (w *WaitGroup) Add(n int) { w.g.Add(n) }
func (w *WaitGroup) Done()     { w.g.Add(-1) }
func (w *WaitGroup) Wait()     { w.g.Wait() }
func (w *WaitGroup) Go(f func()) {
	w.Add(1)
	explore.Go(func() {
		defer w.Done()
		f()
	})
}

type Cond struct {
	L Locker
	c explore.Condition
}

func NewCond(l Locker) *Cond { return &Cond{L: l} }

func (c *Cond) Wait()      { c.c.Wait(c.L.Unlock, c.L.Lock) }
func (c *Cond) Signal()    { c.c.Signal() }
func (c *Cond) Broadcast() { c.c.Broadcast() }

type Once struct {
	object explore.Object
	m      explore.Mutex
	done   bool
}

func (o *Once) Do(f func()) {
	if o.isDone() {
		return
	}
	o.m.Lock()
	defer o.m.Unlock()
	if !o.isDone() {
		defer o.set()
		f()
	}
}

//go:norace
func (o *Once) isDone() bool {
	explore.Step(explore.OpLoad, &o.object)
	if o.done {
		explore.Acquire(unsafe.Pointer(o))
	}
	return o.done
}

//go:norace
func (o *Once) set() {
	explore.Release(unsafe.Pointer(o))
	explore.Step(explore.OpStore, &o.object)
	o.done = true
}

func OnceFunc(f func()) func() {
	once := OnceValue(func() struct{} { f(); return struct{}{} })
	return func() { once() }
}

func OnceValue[T any](f func() T) func() T {
	once := OnceValues(func() (T, struct{}) { return f(), struct{}{} })
	return func() T { v, _ := once(); return v }
}

func OnceValues[T1, T2 any](f func() (T1, T2)) func() (T1, T2) {
	var (
		once  Once
		valid bool
		p     any
		r1    T1
		r2    T2
	)
	g := func() {
		defer func() {
			p = recover()
			if !valid {
				panic(p)
			}
		}()
		r1, r2 = f()
		f = nil
		valid = true
	}
	return func() (T1, T2) {
		once.Do(g)
		if !valid {
			panic(p)
		}
		return r1, r2
	}
}

// A Pool's Get returns the value that was put last, or acts as if the pool were empty: Go's pool
// may drop values.
type Pool struct {
	New func() any

	object explore.Object
	epoch  uint32
	items  []any
}

//go:norace
func (p *Pool) Get() any {
	explore.Step(explore.OpPool, &p.object)
	if e := explore.Epoch(); p.epoch != e {
		p.epoch, p.items = e, nil
	}
	if n := len(p.items); n > 0 && explore.Pick(2) == 0 {
		x := p.items[n-1]
		p.items = p.items[:n-1]
		explore.Acquire(unsafe.Pointer(p))
		return x
	}
	if p.New != nil {
		return p.New()
	}
	return nil
}

//go:norace
func (p *Pool) Put(x any) {
	if x == nil {
		return
	}
	explore.Step(explore.OpPool, &p.object)
	if e := explore.Epoch(); p.epoch != e {
		p.epoch, p.items = e, nil
	}
	explore.Release(unsafe.Pointer(p))
	p.items = append(p.items, x)
}

// A Map is like Go's, but Range visits keys in the order in which they were first stored.
type Map struct {
	object explore.Object
	m      stdsync.Map
	keys   []any // all keys ever stored
}

func (m *Map) step(op explore.Op) { explore.Step(op, &m.object) }

//go:norace
func (m *Map) note(key any) {
	for _, k := range m.keys {
		if k == key {
			return
		}
	}
	m.keys = append(m.keys, key)
}

func (m *Map) Load(key any) (any, bool) { m.step(explore.OpLoad); return m.m.Load(key) }
func (m *Map) Store(key, value any)     { m.step(explore.OpMap); m.note(key); m.m.Store(key, value) }
func (m *Map) Delete(key any)           { m.step(explore.OpMap); m.m.Delete(key) }
func (m *Map) Clear()                   { m.step(explore.OpMap); m.m.Clear() }
func (m *Map) LoadOrStore(key, value any) (any, bool) {
	m.step(explore.OpMap)
	m.note(key)
	return m.m.LoadOrStore(key, value)
}
func (m *Map) LoadAndDelete(key any) (any, bool) {
	m.step(explore.OpMap)
	return m.m.LoadAndDelete(key)
}
func (m *Map) Swap(key, value any) (any, bool) {
	m.step(explore.OpMap)
	m.note(key)
	return m.m.Swap(key, value)
}
func (m *Map) CompareAndSwap(key, old, new any) bool {
	m.step(explore.OpMap)
	return m.m.CompareAndSwap(key, old, new)
}
func (m *Map) CompareAndDelete(key, old any) bool {
	m.step(explore.OpMap)
	return m.m.CompareAndDelete(key, old)
}

//go:norace
func (m *Map) Range(f func(key, value any) bool) {
	for i := 0; i < len(m.keys); i++ {
		m.step(explore.OpLoad)
		if v, ok := m.m.Load(m.keys[i]); ok && !f(m.keys[i], v) {
			return
		}
	}
}
