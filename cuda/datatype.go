package cuda

import "strconv"

// A DataType is the type of the elements of a matrix or a tensor, for libraries on top of CUDA (C:
// cudaDataType). The driver itself does not use it.
type DataType uint32

// Values of DataType. R means real, C complex. Then come the number of bits and the kind: I is a
// signed integer, U unsigned, F floating point, BF bfloat16.
const (
	DataTypeR32F     DataType = 0  // CUDA_R_32F
	DataTypeR64F     DataType = 1  // CUDA_R_64F
	DataTypeR16F     DataType = 2  // CUDA_R_16F
	DataTypeR8I      DataType = 3  // CUDA_R_8I
	DataTypeC32F     DataType = 4  // CUDA_C_32F
	DataTypeC64F     DataType = 5  // CUDA_C_64F
	DataTypeC16F     DataType = 6  // CUDA_C_16F
	DataTypeC8I      DataType = 7  // CUDA_C_8I
	DataTypeR8U      DataType = 8  // CUDA_R_8U
	DataTypeC8U      DataType = 9  // CUDA_C_8U
	DataTypeR32I     DataType = 10 // CUDA_R_32I
	DataTypeC32I     DataType = 11 // CUDA_C_32I
	DataTypeR32U     DataType = 12 // CUDA_R_32U
	DataTypeC32U     DataType = 13 // CUDA_C_32U
	DataTypeR16BF    DataType = 14 // CUDA_R_16BF
	DataTypeC16BF    DataType = 15 // CUDA_C_16BF
	DataTypeR4I      DataType = 16 // CUDA_R_4I
	DataTypeC4I      DataType = 17 // CUDA_C_4I
	DataTypeR4U      DataType = 18 // CUDA_R_4U
	DataTypeC4U      DataType = 19 // CUDA_C_4U
	DataTypeR16I     DataType = 20 // CUDA_R_16I
	DataTypeC16I     DataType = 21 // CUDA_C_16I
	DataTypeR16U     DataType = 22 // CUDA_R_16U
	DataTypeC16U     DataType = 23 // CUDA_C_16U
	DataTypeR64I     DataType = 24 // CUDA_R_64I
	DataTypeC64I     DataType = 25 // CUDA_C_64I
	DataTypeR64U     DataType = 26 // CUDA_R_64U
	DataTypeC64U     DataType = 27 // CUDA_C_64U
	DataTypeR8FE4M3  DataType = 28 // CUDA_R_8F_E4M3
	DataTypeR8FE5M2  DataType = 29 // CUDA_R_8F_E5M2
	DataTypeR8FUE8M0 DataType = 30 // CUDA_R_8F_UE8M0
	DataTypeR6FE2M3  DataType = 31 // CUDA_R_6F_E2M3
	DataTypeR6FE3M2  DataType = 32 // CUDA_R_6F_E3M2
	DataTypeR4FE2M1  DataType = 33 // CUDA_R_4F_E2M1
)

// String returns the value's C name. If the value has none, String returns the number, such as
// DataType(99).
func (t DataType) String() string {
	if int(t) < len(dataTypes) {
		return dataTypes[t]
	}
	return "DataType(" + strconv.FormatUint(uint64(t), 10) + ")"
}

var dataTypes = [...]string{
	DataTypeR32F:     "CUDA_R_32F",
	DataTypeR64F:     "CUDA_R_64F",
	DataTypeR16F:     "CUDA_R_16F",
	DataTypeR8I:      "CUDA_R_8I",
	DataTypeC32F:     "CUDA_C_32F",
	DataTypeC64F:     "CUDA_C_64F",
	DataTypeC16F:     "CUDA_C_16F",
	DataTypeC8I:      "CUDA_C_8I",
	DataTypeR8U:      "CUDA_R_8U",
	DataTypeC8U:      "CUDA_C_8U",
	DataTypeR32I:     "CUDA_R_32I",
	DataTypeC32I:     "CUDA_C_32I",
	DataTypeR32U:     "CUDA_R_32U",
	DataTypeC32U:     "CUDA_C_32U",
	DataTypeR16BF:    "CUDA_R_16BF",
	DataTypeC16BF:    "CUDA_C_16BF",
	DataTypeR4I:      "CUDA_R_4I",
	DataTypeC4I:      "CUDA_C_4I",
	DataTypeR4U:      "CUDA_R_4U",
	DataTypeC4U:      "CUDA_C_4U",
	DataTypeR16I:     "CUDA_R_16I",
	DataTypeC16I:     "CUDA_C_16I",
	DataTypeR16U:     "CUDA_R_16U",
	DataTypeC16U:     "CUDA_C_16U",
	DataTypeR64I:     "CUDA_R_64I",
	DataTypeC64I:     "CUDA_C_64I",
	DataTypeR64U:     "CUDA_R_64U",
	DataTypeC64U:     "CUDA_C_64U",
	DataTypeR8FE4M3:  "CUDA_R_8F_E4M3",
	DataTypeR8FE5M2:  "CUDA_R_8F_E5M2",
	DataTypeR8FUE8M0: "CUDA_R_8F_UE8M0",
	DataTypeR6FE2M3:  "CUDA_R_6F_E2M3",
	DataTypeR6FE3M2:  "CUDA_R_6F_E3M2",
	DataTypeR4FE2M1:  "CUDA_R_4F_E2M1",
}

// A LibraryProperty is a part of the version of a library on top of CUDA (C: libraryPropertyType).
type LibraryProperty uint32

// Values of LibraryProperty.
const (
	MajorVersion LibraryProperty = 0 // MAJOR_VERSION
	MinorVersion LibraryProperty = 1 // MINOR_VERSION
	PatchLevel   LibraryProperty = 2 // PATCH_LEVEL
)

// An EmulationStrategy says when libraries on top of CUDA emulate floating-point arithmetic on
// tensor cores (C: cudaEmulationStrategy).
type EmulationStrategy uint32

// Values of EmulationStrategy.
const (
	EmulationStrategyDefault    EmulationStrategy = 0 // CUDA_EMULATION_STRATEGY_DEFAULT
	EmulationStrategyPerformant EmulationStrategy = 1 // CUDA_EMULATION_STRATEGY_PERFORMANT: emulate if that is faster
	EmulationStrategyEager      EmulationStrategy = 2 // CUDA_EMULATION_STRATEGY_EAGER: emulate if that is possible
)

// An EmulationMantissaControl says how many mantissa bits an emulation keeps (C:
// cudaEmulationMantissaControl).
type EmulationMantissaControl uint32

// Values of EmulationMantissaControl.
const (
	EmulationMantissaDynamic EmulationMantissaControl = 0 // CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC: as many as the emulated type needs
	EmulationMantissaFixed   EmulationMantissaControl = 1 // CUDA_EMULATION_MANTISSA_CONTROL_FIXED: as many as the program sets
)

// An EmulationSpecialValues has a bit for each kind of special value that an emulation must handle
// (C: cudaEmulationSpecialValuesSupport).
type EmulationSpecialValues uint32

// Values of EmulationSpecialValues.
const (
	EmulationSpecialValuesDefault  EmulationSpecialValues = 0xFFFF // CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT
	EmulationSpecialValuesNone     EmulationSpecialValues = 0      // CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_NONE
	EmulationSpecialValuesInfinity EmulationSpecialValues = 1 << 0 // CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_INFINITY
	EmulationSpecialValuesNaN      EmulationSpecialValues = 1 << 1 // CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_NAN
)
