// Package smallfloat has floating-point types of 16 and 8 bits, for kernels and libraries of GPUs.
// Go itself does not have such types. A value has the same bits as on the GPU. So the types can be
// elements of a gpu.Slice, arguments of kernels and parameters of recordings.
//
//	type       | in CUDA       | in HIP         | exponent, fraction bits | greatest number
//	Float16    | __half        | __half         | 5, 10                   | 65504
//	BFloat16   | __nv_bfloat16 | __hip_bfloat16 | 8, 7                    | 3.3895314e+38
//	Float8E4M3 | __nv_fp8_e4m3 | __hip_fp8_e4m3 | 4, 3                    | 448
//	Float8E5M2 | __nv_fp8_e5m2 | __hip_fp8_e5m2 | 5, 2                    | 57344
//
// The Open Compute Project defines the 8-bit types. Float8E4M3 has no infinity, and is called
// float8_e4m3fn elsewhere. HIP's types whose names end in _fnuz are different types.
//
// # Conversion
//
// [ToFloat16], [ToBFloat16], [ToFloat8E4M3] and [ToFloat8E5M2] convert a float32, and the method
// Float32 converts back. [FromFloat64] converts a float64. [Append] and [AppendFloat32] convert
// slices. A conversion from float32 or float64 rounds once, to the nearest number. If two numbers
// are equally near, the result is the number whose last bit is 0. A conversion to float32 is exact.
//
// Numbers that are too great are converted as CUDA's constructors do:
//
//   - Float16 and BFloat16: the result is infinity, as in IEEE 754.
//   - Float8E4M3 and Float8E5M2: the number becomes the greatest number with the same sign. So does
//     infinity. CUDA calls this conversion __NV_SATFINITE.
//
// NaN becomes the NaN that GPUs make, which has no sign: [NaNFloat16] and so on.
//
// # Bits
//
// The types are integers to Go, and an integer of such a type is the number's bits. So operators
// such as + and < work on bits and not on numbers: convert to float32 first. Float16(1) is the
// smallest number above zero; the number 1 is ToFloat16(1). Two values are equal with == if they
// have the same bits: 0 and -0 differ, and a NaN equals itself.
//
// Package fmt prints the number for %v, %s and the verbs of floating-point numbers, and the bits
// for the other verbs. Package encoding/json writes and reads a number.
package smallfloat
