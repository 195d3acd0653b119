package comm_test

import (
	"math"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// TestPack packs and unpacks operations. Invalid ranks and types must stay invalid.
func TestPack(t *testing.T) {
	dst, src := memory.Range{Offset: 8, Size: math.MaxUint64}, memory.Range{Offset: 1, Size: 2}
	sum, scaled := comm.NewReduction(driver.Sum, 0), comm.NewReduction(driver.PreMulSum, -1.5)
	for _, x := range []comm.Operation{
		{},
		comm.NewOperation(driver.AllReduce, dst, src, driver.Float32, scaled, 0),
		comm.NewOperation(driver.Reduce, dst, src, driver.Float8E5M2, sum, math.MaxInt32),
		comm.NewOperation(driver.Recv, dst, memory.Range{}, -1, sum, -1),
		comm.NewSendReceive(dst, src, driver.Uint8, -1, 3),
		comm.NewSendReceive(dst, src, driver.Uint8, 3, -1),
		comm.NewSendReceive(dst, src, driver.Uint8, -2, math.MinInt),
	} {
		if got := comm.Unpack(x.Pack()); got != x {
			t.Errorf("%+v became %+v", x, got)
		}
	}
	for peer, want := range map[int]int{math.MaxInt: math.MaxInt32, math.MinInt: math.MinInt32} {
		x := comm.NewOperation(driver.Send, dst, src, driver.Int8, sum, peer)
		if got := comm.Unpack(x.Pack()); got != comm.NewOperation(driver.Send, dst, src, driver.Int8, sum, want) {
			t.Errorf("%+v became %+v", x, got)
		}
	}
}
