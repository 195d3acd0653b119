package collective_test

import (
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// testSmallFloats checks the results of all-reduces of T on three ranks. max is the largest finite
// value of T.
func testSmallFloats[T smallfloat.Float](t *testing.T, typ collective.ElementType, max float64) {
	const ranks = 3
	number := smallfloat.FromFloat64[T]
	_, comms := openCommunicators(t, newSim(t, simdriver.Config{Devices: ranks}), ranks, collective.Options{})
	for _, c := range []struct {
		name string
		r    collective.Reduction
		in   [ranks][]T
		want []T
	}{
		{"sum", collective.Sum(), [ranks][]T{{number(1), number(0.5)}, {number(2), number(-1)}, {number(-8), number(0.25)}}, []T{number(-5), number(-0.25)}},
		{"a sum that is rounded", collective.Sum(), [ranks][]T{{number(1)}, {number(0x1p-6)}, {number(0x1p-12)}}, []T{number(1 + 0x1p-6 + 0x1p-12)}},
		{"a sum that is too great", collective.Sum(), [ranks][]T{{number(max)}, {number(max)}, {number(-1)}}, []T{number(2 * max)}},
		{"max", collective.Max(), [ranks][]T{{number(-3)}, {number(-0.5)}, {number(-2)}}, []T{number(-0.5)}},
		{"average", collective.Avg(), [ranks][]T{{number(1)}, {number(2)}, {number(6)}}, []T{number(3)}},
		{"sum of products", collective.PreMulSum(-0.5), [ranks][]T{{number(1)}, {number(2)}, {number(6)}}, []T{number(-4.5)}},
	} {
		var streams []*gpu.Stream
		got := make([][]T, ranks)
		for i, comm := range comms {
			s := comm.Device().Queue(0).NewStream()
			x, err := gpu.AllocSliceIn[T](s, nil, len(c.want))
			must(t, err)
			got[i] = make([]T, len(c.want))
			must(t, s.Do(
				x.Upload(c.in[i]),
				comm.Group(collective.AllReduce(x.Range(), x.Range(), typ, c.r)),
				x.Download(got[i]),
				x.Free(),
			))
			streams = append(streams, s)
		}
		for i, s := range streams {
			must(t, s.Wait(minute(t)))
			if !slices.Equal(got[i], c.want) {
				t.Errorf("%s on rank %d is %v, want %v", c.name, i, got[i], c.want)
			}
		}
	}
}

func TestSmallFloats(t *testing.T) {
	t.Run("Float16", func(t *testing.T) { testSmallFloats[smallfloat.Float16](t, collective.Float16, 65504) })
	t.Run("BFloat16", func(t *testing.T) {
		testSmallFloats[smallfloat.BFloat16](t, collective.BFloat16, float64(smallfloat.MaxBFloat16.Float32()))
	})
	t.Run("Float8E4M3", func(t *testing.T) { testSmallFloats[smallfloat.Float8E4M3](t, collective.Float8E4M3, 448) })
	t.Run("Float8E5M2", func(t *testing.T) { testSmallFloats[smallfloat.Float8E5M2](t, collective.Float8E5M2, 57344) })
}
