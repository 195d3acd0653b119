package gen_test

import (
	"fmt"

	"github.com/puregpu/puregpu/gen"
)

// A C function becomes a method of the package's Library.
func ExampleGoName() {
	name, declaration, err := gen.GoName("nccl", "ncclAllReduce")
	fmt.Println(name, err)
	fmt.Println(declaration)
	// Output:
	// AllReduce <nil>
	// func (l *Library) AllReduce(sendbuff DevicePtr, recvbuff DevicePtr, count uint64, datatype DataType, op RedOp, comm Comm, stream CudaStream) (err error)
}
