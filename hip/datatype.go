package hip

import "strconv"

// A DataType is the type of an element of a matrix or a tensor, for libraries on top of HIP (C:
// hipDataType). The HIP runtime itself does not use it.
type DataType uint32

// Values of DataType. R means real, C complex. Then come the number of bits and the kind: I is a
// signed integer, U unsigned, F floating point, BF bfloat16. HIP 6 and 7 introduced the types of 8
// bits and fewer with E in their names.
const (
	DataTypeR32F        DataType = 0    // HIP_R_32F
	DataTypeR64F        DataType = 1    // HIP_R_64F
	DataTypeR16F        DataType = 2    // HIP_R_16F
	DataTypeR8I         DataType = 3    // HIP_R_8I
	DataTypeC32F        DataType = 4    // HIP_C_32F
	DataTypeC64F        DataType = 5    // HIP_C_64F
	DataTypeC16F        DataType = 6    // HIP_C_16F
	DataTypeC8I         DataType = 7    // HIP_C_8I
	DataTypeR8U         DataType = 8    // HIP_R_8U
	DataTypeC8U         DataType = 9    // HIP_C_8U
	DataTypeR32I        DataType = 10   // HIP_R_32I
	DataTypeC32I        DataType = 11   // HIP_C_32I
	DataTypeR32U        DataType = 12   // HIP_R_32U
	DataTypeC32U        DataType = 13   // HIP_C_32U
	DataTypeR16BF       DataType = 14   // HIP_R_16BF
	DataTypeC16BF       DataType = 15   // HIP_C_16BF
	DataTypeR4I         DataType = 16   // HIP_R_4I
	DataTypeC4I         DataType = 17   // HIP_C_4I
	DataTypeR4U         DataType = 18   // HIP_R_4U
	DataTypeC4U         DataType = 19   // HIP_C_4U
	DataTypeR16I        DataType = 20   // HIP_R_16I
	DataTypeC16I        DataType = 21   // HIP_C_16I
	DataTypeR16U        DataType = 22   // HIP_R_16U
	DataTypeC16U        DataType = 23   // HIP_C_16U
	DataTypeR64I        DataType = 24   // HIP_R_64I
	DataTypeC64I        DataType = 25   // HIP_C_64I
	DataTypeR64U        DataType = 26   // HIP_R_64U
	DataTypeC64U        DataType = 27   // HIP_C_64U
	DataTypeR8FE4M3     DataType = 28   // HIP_R_8F_E4M3
	DataTypeR8FE5M2     DataType = 29   // HIP_R_8F_E5M2
	DataTypeR8FUE8M0    DataType = 30   // HIP_R_8F_UE8M0
	DataTypeR6FE2M3     DataType = 31   // HIP_R_6F_E2M3
	DataTypeR6FE3M2     DataType = 32   // HIP_R_6F_E3M2
	DataTypeR4FE2M1     DataType = 33   // HIP_R_4F_E2M1
	DataTypeR8FE4M3FNUZ DataType = 1000 // HIP_R_8F_E4M3_FNUZ
	DataTypeR8FE5M2FNUZ DataType = 1001 // HIP_R_8F_E5M2_FNUZ
)

// String returns the value's C name, or its number if it has none.
func (t DataType) String() string {
	if name, ok := dataTypes[t]; ok {
		return name
	}
	return "DataType(" + strconv.FormatUint(uint64(t), 10) + ")"
}

var dataTypes = map[DataType]string{
	DataTypeR32F:        "HIP_R_32F",
	DataTypeR64F:        "HIP_R_64F",
	DataTypeR16F:        "HIP_R_16F",
	DataTypeR8I:         "HIP_R_8I",
	DataTypeC32F:        "HIP_C_32F",
	DataTypeC64F:        "HIP_C_64F",
	DataTypeC16F:        "HIP_C_16F",
	DataTypeC8I:         "HIP_C_8I",
	DataTypeR8U:         "HIP_R_8U",
	DataTypeC8U:         "HIP_C_8U",
	DataTypeR32I:        "HIP_R_32I",
	DataTypeC32I:        "HIP_C_32I",
	DataTypeR32U:        "HIP_R_32U",
	DataTypeC32U:        "HIP_C_32U",
	DataTypeR16BF:       "HIP_R_16BF",
	DataTypeC16BF:       "HIP_C_16BF",
	DataTypeR4I:         "HIP_R_4I",
	DataTypeC4I:         "HIP_C_4I",
	DataTypeR4U:         "HIP_R_4U",
	DataTypeC4U:         "HIP_C_4U",
	DataTypeR16I:        "HIP_R_16I",
	DataTypeC16I:        "HIP_C_16I",
	DataTypeR16U:        "HIP_R_16U",
	DataTypeC16U:        "HIP_C_16U",
	DataTypeR64I:        "HIP_R_64I",
	DataTypeC64I:        "HIP_C_64I",
	DataTypeR64U:        "HIP_R_64U",
	DataTypeC64U:        "HIP_C_64U",
	DataTypeR8FE4M3:     "HIP_R_8F_E4M3",
	DataTypeR8FE5M2:     "HIP_R_8F_E5M2",
	DataTypeR8FUE8M0:    "HIP_R_8F_UE8M0",
	DataTypeR6FE2M3:     "HIP_R_6F_E2M3",
	DataTypeR6FE3M2:     "HIP_R_6F_E3M2",
	DataTypeR4FE2M1:     "HIP_R_4F_E2M1",
	DataTypeR8FE4M3FNUZ: "HIP_R_8F_E4M3_FNUZ",
	DataTypeR8FE5M2FNUZ: "HIP_R_8F_E5M2_FNUZ",
}
