package ncclcomm

import (
	"fmt"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Releases of NCCL in which types and reductions were added.
const (
	since2_10 = dl.Version(21003) // averages and bfloat16
	since2_24 = dl.Version(22403) // floats of 8 bits
)

// types holds the library's types for each element type. If the library cannot reduce elements of
// the type, operations that only move elements use the type in field move.
var types = [...]struct {
	reduce nccl.DataType
	move   nccl.DataType
	since  dl.Version // first release that has the type in field reduce
}{
	driver.Int8:       {reduce: nccl.Int8},
	driver.Uint8:      {reduce: nccl.Uint8},
	driver.Int16:      {reduce: nccl.NumTypes, move: nccl.Float16},
	driver.Uint16:     {reduce: nccl.NumTypes, move: nccl.Float16},
	driver.Int32:      {reduce: nccl.Int32},
	driver.Uint32:     {reduce: nccl.Uint32},
	driver.Int64:      {reduce: nccl.Int64},
	driver.Uint64:     {reduce: nccl.Uint64},
	driver.Float16:    {reduce: nccl.Float16},
	driver.BFloat16:   {reduce: nccl.Bfloat16, move: nccl.Float16, since: since2_10},
	driver.Float32:    {reduce: nccl.Float32},
	driver.Float64:    {reduce: nccl.Float64},
	driver.Float8E4M3: {reduce: nccl.Float8e4m3, move: nccl.Uint8, since: since2_24},
	driver.Float8E5M2: {reduce: nccl.Float8e5m2, move: nccl.Uint8, since: since2_24},
}

// dataType returns the library's type for an element type. If computes is set, the operation
// reduces elements. have is the library's release. 0 means an unknown release, which counts as new.
func dataType(t driver.ElementType, computes bool, have dl.Version) (nccl.DataType, error) {
	x := &types[t]
	old := have != 0 && have < x.since
	switch {
	case !old && x.reduce != nccl.NumTypes:
		return x.reduce, nil
	case !computes:
		return x.move, nil
	case old:
		return 0, fmt.Errorf("%v needs release %s, and the library is %s: %w", t, nccl.FormatVersion(x.since), nccl.FormatVersion(have), driver.ErrUnsupported)
	}
	return 0, fmt.Errorf("the library cannot compute with %v: %w", t, driver.ErrUnsupported)
}

// reductions holds the library's operators, except the one for PreMulSum.
var reductions = [...]nccl.RedOp{driver.Sum: nccl.Sum, driver.Prod: nccl.Prod, driver.Min: nccl.Min, driver.Max: nccl.Max, driver.Avg: nccl.Avg}
