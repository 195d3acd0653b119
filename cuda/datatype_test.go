package cuda

import "testing"

func TestDataType(t *testing.T) {
	for v, want := range map[DataType]string{DataTypeR32F: "CUDA_R_32F", DataTypeR16BF: "CUDA_R_16BF", 33: "CUDA_R_4F_E2M1", 99: "DataType(99)"} {
		if v.String() != want {
			t.Errorf("%d is %v, want %s", uint32(v), v, want)
		}
	}
}
