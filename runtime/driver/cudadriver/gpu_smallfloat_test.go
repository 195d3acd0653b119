package cudadriver

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// convertPTX is code with a kernel that converts n numbers. CONVERT is replaced by instructions
// that load, convert and store one number. They use %f for a float32, and %h for the other type.
const convertPTX = `.version VERSION
.target TARGET
.address_size 64
.visible .entry convert(.param .u64 dst, .param .u64 src, .param .u32 n)
{
	.reg .pred %p;
	.reg .b16 %h, %none;
	.reg .b32 %i, %t, %x, %f;
	.reg .b64 %at, %dst, %src;
	mov.u32 %i, %ctaid.x;
	mov.u32 %t, %ntid.x;
	mov.u32 %x, %tid.x;
	mad.lo.u32 %i, %i, %t, %x;
	ld.param.u32 %t, [n];
	setp.ge.u32 %p, %i, %t;
	@%p ret;
	ld.param.u64 %src, [src];
	ld.param.u64 %dst, [dst];
	mul.wide.u32 %at, %i, FROM;
	add.u64 %src, %src, %at;
	mul.wide.u32 %at, %i, TO;
	add.u64 %dst, %dst, %at;
	CONVERT
	ret;
}
`

// converter loads the kernel for one direction. The parameters from and to are element sizes in
// bytes.
func converter(t *testing.T, dev *gpu.Device, version, target, from, to, convert string) *gpu.Kernel {
	t.Helper()
	text := strings.NewReplacer("VERSION", version, "TARGET", target, "FROM", from, "TO", to, "CONVERT", convert).Replace(convertPTX)
	m, err := dev.Load([]byte(text))
	ok(t, err)
	t.Cleanup(func() { ok(t, m.Close()) })
	k, err := m.Kernel("convert")
	ok(t, err)
	return k
}

// converted converts numbers on the device.
func converted[To, From any](t *testing.T, dev *gpu.Device, k *gpu.Kernel, from []From) []To {
	t.Helper()
	s := dev.Queue(0).NewStream()
	src, err := gpu.AllocSliceIn[From](s, nil, len(from))
	ok(t, err)
	dst, err := gpu.AllocSliceIn[To](s, nil, len(from))
	ok(t, err)
	to := make([]To, len(from))
	s.Do(
		src.Upload(from),
		gpu.Launch(k, gpu.GridFor(len(from), 256), dst, src, uint32(len(from))),
		dst.Download(to),
		src.Free(),
		dst.Free(),
	)
	ok(t, s.Wait(context.Background()))
	return to
}

// testConversion compares package smallfloat with a device. It converts all values of T, and all
// numbers of type float32 whose lowest byte is 0, 1 or 0xff. Such numbers include the midpoints
// between values of T and the numbers next to midpoints.
func testConversion[T smallfloat.Float](t *testing.T, dev *gpu.Device, version, target, size, to, from string) {
	narrow := converter(t, dev, version, target, "4", size, to)
	wide := converter(t, dev, version, target, size, "4", from)
	src := make([]float32, 1<<24)
	var host []T
	for _, low := range []uint32{0, 1, 0xff} {
		for i := range src {
			src[i] = math.Float32frombits(uint32(i)<<8 | low)
		}
		host = smallfloat.Append(host[:0], src)
		for i, x := range converted[T](t, dev, narrow, src) {
			if x != host[i] {
				t.Fatalf("%v, bits %#08x, is %#x on the device, and %#x on the host", src[i], math.Float32bits(src[i]), x, host[i])
			}
		}
	}
	values := make([]T, map[string]int{"1": 1 << 8, "2": 1 << 16}[size])
	for i := range values {
		values[i] = T(i)
	}
	for i, x := range converted[float32](t, dev, wide, values) {
		want := values[i].Float32()
		if math.Float32bits(x) != math.Float32bits(want) && (x == x || want == want) {
			t.Fatalf("%#x is %v on the device, and %v on the host", values[i], x, want)
		}
	}
}

// TestGPUSmallFloat compares the conversions of package smallfloat with the device's.
func TestGPUSmallFloat(t *testing.T) {
	openGPU(t)
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	t.Cleanup(func() { ok(t, dev.Close()) })
	capability := 10*dev.Info().Major + dev.Info().Minor
	needs := func(t *testing.T, least int) {
		if capability < least {
			t.Skipf("the device is sm_%d, and the conversion needs sm_%d", capability, least)
		}
	}
	t.Run("Float16", func(t *testing.T) {
		needs(t, 75)
		testConversion[smallfloat.Float16](t, dev, "7.0", "sm_75", "2",
			"ld.global.b32 %f, [%src]; cvt.rn.f16.f32 %h, %f; st.global.b16 [%dst], %h;",
			"ld.global.b16 %h, [%src]; cvt.f32.f16 %f, %h; st.global.b32 [%dst], %f;")
	})
	t.Run("BFloat16", func(t *testing.T) {
		needs(t, 80)
		testConversion[smallfloat.BFloat16](t, dev, "7.0", "sm_80", "2",
			"ld.global.b32 %f, [%src]; cvt.rn.bf16.f32 %h, %f; st.global.b16 [%dst], %h;",
			"ld.global.b16 %h, [%src]; mov.b16 %none, 0; mov.b32 %f, {%none, %h}; st.global.b32 [%dst], %f;")
	})
	// The device converts pairs. The number is in the lower half, and the upper half is 0.
	t.Run("Float8E4M3", func(t *testing.T) {
		needs(t, 89)
		testConversion[smallfloat.Float8E4M3](t, dev, "8.1", "sm_89", "1",
			"ld.global.b32 %f, [%src]; mov.b32 %x, 0; cvt.rn.satfinite.e4m3x2.f32 %h, %x, %f; st.global.b8 [%dst], %h;",
			"ld.global.b8 %h, [%src]; cvt.rn.f16x2.e4m3x2 %x, %h; mov.b32 {%h, %none}, %x; cvt.f32.f16 %f, %h; st.global.b32 [%dst], %f;")
	})
	t.Run("Float8E5M2", func(t *testing.T) {
		needs(t, 89)
		testConversion[smallfloat.Float8E5M2](t, dev, "8.1", "sm_89", "1",
			"ld.global.b32 %f, [%src]; mov.b32 %x, 0; cvt.rn.satfinite.e5m2x2.f32 %h, %x, %f; st.global.b8 [%dst], %h;",
			"ld.global.b8 %h, [%src]; cvt.rn.f16x2.e5m2x2 %x, %h; mov.b32 {%h, %none}, %x; cvt.f32.f16 %f, %h; st.global.b32 [%dst], %f;")
	})
}
