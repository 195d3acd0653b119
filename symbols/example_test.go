package symbols_test

import (
	"fmt"

	"github.com/puregpu/puregpu/symbols"
)

// A library says how a C function is declared, which release added it, and what it is for.
func ExampleLoad() {
	lib, err := symbols.Load("nccl")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range lib.Lookup("ncclCommSuspend") {
		fmt.Println(lib.Declaration(&f))
		fmt.Println("since", f.Since)
		fmt.Println(f.Doc)
	}
	// Output:
	// ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
	// since 2.29.7
	// gives back memory that an idle communicator does not need until it is resumed
}
