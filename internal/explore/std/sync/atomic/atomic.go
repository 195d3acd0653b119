// Package atomic stands in for Go's package sync/atomic in rewritten programs. It carries out each
// operation with Go's package. Other goroutines may run before each operation.
package atomic

import (
	std "sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/internal/explore"
)

type Int32 struct {
	v std.Int32 // the first field, so that v has the address of the whole struct
	o explore.Object
}

func (x *Int32) Load() int32        { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Int32) Store(v int32)      { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Int32) Swap(v int32) int32 { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Int32) CompareAndSwap(old, new int32) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}
func (x *Int32) Add(d int32) int32 { explore.Step(explore.OpAdd, &x.o); return x.v.Add(d) }
func (x *Int32) And(m int32) int32 { explore.Step(explore.OpAdd, &x.o); return x.v.And(m) }
func (x *Int32) Or(m int32) int32  { explore.Step(explore.OpAdd, &x.o); return x.v.Or(m) }

func LoadInt32(p *int32) int32 {
	explore.StepAt(explore.OpLoad, unsafe.Pointer(p))
	return std.LoadInt32(p)
}
func StoreInt32(p *int32, v int32) {
	explore.StepAt(explore.OpStore, unsafe.Pointer(p))
	std.StoreInt32(p, v)
}
func SwapInt32(p *int32, v int32) int32 {
	explore.StepAt(explore.OpSwap, unsafe.Pointer(p))
	return std.SwapInt32(p, v)
}
func CompareAndSwapInt32(p *int32, old, new int32) bool {
	explore.StepAt(explore.OpCAS, unsafe.Pointer(p))
	return std.CompareAndSwapInt32(p, old, new)
}
func AddInt32(p *int32, d int32) int32 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AddInt32(p, d)
}
func AndInt32(p *int32, m int32) int32 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AndInt32(p, m)
}
func OrInt32(p *int32, m int32) int32 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.OrInt32(p, m)
}

type Int64 struct {
	v std.Int64 // the first field, so that v has the address of the whole struct
	o explore.Object
}

func (x *Int64) Load() int64        { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Int64) Store(v int64)      { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Int64) Swap(v int64) int64 { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Int64) CompareAndSwap(old, new int64) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}
func (x *Int64) Add(d int64) int64 { explore.Step(explore.OpAdd, &x.o); return x.v.Add(d) }
func (x *Int64) And(m int64) int64 { explore.Step(explore.OpAdd, &x.o); return x.v.And(m) }
func (x *Int64) Or(m int64) int64  { explore.Step(explore.OpAdd, &x.o); return x.v.Or(m) }

func LoadInt64(p *int64) int64 {
	explore.StepAt(explore.OpLoad, unsafe.Pointer(p))
	return std.LoadInt64(p)
}
func StoreInt64(p *int64, v int64) {
	explore.StepAt(explore.OpStore, unsafe.Pointer(p))
	std.StoreInt64(p, v)
}
func SwapInt64(p *int64, v int64) int64 {
	explore.StepAt(explore.OpSwap, unsafe.Pointer(p))
	return std.SwapInt64(p, v)
}
func CompareAndSwapInt64(p *int64, old, new int64) bool {
	explore.StepAt(explore.OpCAS, unsafe.Pointer(p))
	return std.CompareAndSwapInt64(p, old, new)
}
func AddInt64(p *int64, d int64) int64 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AddInt64(p, d)
}
func AndInt64(p *int64, m int64) int64 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AndInt64(p, m)
}
func OrInt64(p *int64, m int64) int64 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.OrInt64(p, m)
}

type Uint32 struct {
	v std.Uint32 // the first field, so that v has the address of the whole struct
	o explore.Object
}

func (x *Uint32) Load() uint32         { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Uint32) Store(v uint32)       { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Uint32) Swap(v uint32) uint32 { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Uint32) CompareAndSwap(old, new uint32) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}
func (x *Uint32) Add(d uint32) uint32 { explore.Step(explore.OpAdd, &x.o); return x.v.Add(d) }
func (x *Uint32) And(m uint32) uint32 { explore.Step(explore.OpAdd, &x.o); return x.v.And(m) }
func (x *Uint32) Or(m uint32) uint32  { explore.Step(explore.OpAdd, &x.o); return x.v.Or(m) }

func LoadUint32(p *uint32) uint32 {
	explore.StepAt(explore.OpLoad, unsafe.Pointer(p))
	return std.LoadUint32(p)
}
func StoreUint32(p *uint32, v uint32) {
	explore.StepAt(explore.OpStore, unsafe.Pointer(p))
	std.StoreUint32(p, v)
}
func SwapUint32(p *uint32, v uint32) uint32 {
	explore.StepAt(explore.OpSwap, unsafe.Pointer(p))
	return std.SwapUint32(p, v)
}
func CompareAndSwapUint32(p *uint32, old, new uint32) bool {
	explore.StepAt(explore.OpCAS, unsafe.Pointer(p))
	return std.CompareAndSwapUint32(p, old, new)
}
func AddUint32(p *uint32, d uint32) uint32 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AddUint32(p, d)
}
func AndUint32(p *uint32, m uint32) uint32 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AndUint32(p, m)
}
func OrUint32(p *uint32, m uint32) uint32 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.OrUint32(p, m)
}

type Uint64 struct {
	v std.Uint64 // the first field, so that v has the address of the whole struct
	o explore.Object
}

func (x *Uint64) Load() uint64         { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Uint64) Store(v uint64)       { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Uint64) Swap(v uint64) uint64 { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Uint64) CompareAndSwap(old, new uint64) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}
func (x *Uint64) Add(d uint64) uint64 { explore.Step(explore.OpAdd, &x.o); return x.v.Add(d) }
func (x *Uint64) And(m uint64) uint64 { explore.Step(explore.OpAdd, &x.o); return x.v.And(m) }
func (x *Uint64) Or(m uint64) uint64  { explore.Step(explore.OpAdd, &x.o); return x.v.Or(m) }

func LoadUint64(p *uint64) uint64 {
	explore.StepAt(explore.OpLoad, unsafe.Pointer(p))
	return std.LoadUint64(p)
}
func StoreUint64(p *uint64, v uint64) {
	explore.StepAt(explore.OpStore, unsafe.Pointer(p))
	std.StoreUint64(p, v)
}
func SwapUint64(p *uint64, v uint64) uint64 {
	explore.StepAt(explore.OpSwap, unsafe.Pointer(p))
	return std.SwapUint64(p, v)
}
func CompareAndSwapUint64(p *uint64, old, new uint64) bool {
	explore.StepAt(explore.OpCAS, unsafe.Pointer(p))
	return std.CompareAndSwapUint64(p, old, new)
}
func AddUint64(p *uint64, d uint64) uint64 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AddUint64(p, d)
}
func AndUint64(p *uint64, m uint64) uint64 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AndUint64(p, m)
}
func OrUint64(p *uint64, m uint64) uint64 {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.OrUint64(p, m)
}

type Uintptr struct {
	v std.Uintptr // the first field, so that v has the address of the whole struct
	o explore.Object
}

func (x *Uintptr) Load() uintptr          { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Uintptr) Store(v uintptr)        { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Uintptr) Swap(v uintptr) uintptr { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Uintptr) CompareAndSwap(old, new uintptr) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}
func (x *Uintptr) Add(d uintptr) uintptr { explore.Step(explore.OpAdd, &x.o); return x.v.Add(d) }
func (x *Uintptr) And(m uintptr) uintptr { explore.Step(explore.OpAdd, &x.o); return x.v.And(m) }
func (x *Uintptr) Or(m uintptr) uintptr  { explore.Step(explore.OpAdd, &x.o); return x.v.Or(m) }

func LoadUintptr(p *uintptr) uintptr {
	explore.StepAt(explore.OpLoad, unsafe.Pointer(p))
	return std.LoadUintptr(p)
}
func StoreUintptr(p *uintptr, v uintptr) {
	explore.StepAt(explore.OpStore, unsafe.Pointer(p))
	std.StoreUintptr(p, v)
}
func SwapUintptr(p *uintptr, v uintptr) uintptr {
	explore.StepAt(explore.OpSwap, unsafe.Pointer(p))
	return std.SwapUintptr(p, v)
}
func CompareAndSwapUintptr(p *uintptr, old, new uintptr) bool {
	explore.StepAt(explore.OpCAS, unsafe.Pointer(p))
	return std.CompareAndSwapUintptr(p, old, new)
}
func AddUintptr(p *uintptr, d uintptr) uintptr {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AddUintptr(p, d)
}
func AndUintptr(p *uintptr, m uintptr) uintptr {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.AndUintptr(p, m)
}
func OrUintptr(p *uintptr, m uintptr) uintptr {
	explore.StepAt(explore.OpAdd, unsafe.Pointer(p))
	return std.OrUintptr(p, m)
}

type Bool struct {
	v std.Bool
	o explore.Object
}

func (x *Bool) Load() bool       { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Bool) Store(v bool)     { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Bool) Swap(v bool) bool { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Bool) CompareAndSwap(old, new bool) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}

type Pointer[T any] struct {
	v std.Pointer[T]
	o explore.Object
}

func (x *Pointer[T]) Load() *T     { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Pointer[T]) Store(v *T)   { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Pointer[T]) Swap(v *T) *T { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Pointer[T]) CompareAndSwap(old, new *T) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}

type Value struct {
	v std.Value
	o explore.Object
}

func (x *Value) Load() any      { explore.Step(explore.OpLoad, &x.o); return x.v.Load() }
func (x *Value) Store(v any)    { explore.Step(explore.OpStore, &x.o); x.v.Store(v) }
func (x *Value) Swap(v any) any { explore.Step(explore.OpSwap, &x.o); return x.v.Swap(v) }
func (x *Value) CompareAndSwap(old, new any) bool {
	explore.Step(explore.OpCAS, &x.o)
	return x.v.CompareAndSwap(old, new)
}

func LoadPointer(p *unsafe.Pointer) unsafe.Pointer {
	explore.StepAt(explore.OpLoad, unsafe.Pointer(p))
	return std.LoadPointer(p)
}
func StorePointer(p *unsafe.Pointer, v unsafe.Pointer) {
	explore.StepAt(explore.OpStore, unsafe.Pointer(p))
	std.StorePointer(p, v)
}
func SwapPointer(p *unsafe.Pointer, v unsafe.Pointer) unsafe.Pointer {
	explore.StepAt(explore.OpSwap, unsafe.Pointer(p))
	return std.SwapPointer(p, v)
}
func CompareAndSwapPointer(p *unsafe.Pointer, old, new unsafe.Pointer) bool {
	explore.StepAt(explore.OpCAS, unsafe.Pointer(p))
	return std.CompareAndSwapPointer(p, old, new)
}
