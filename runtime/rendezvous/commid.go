package rendezvous

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// commID is the variable that NCCL reads, and RCCL like it.
const commID = "NCCL_COMM_ID"

// An NCCLCommID passes nothing. It is for processes that have NCCL_COMM_ID in their environments, the same on all ranks: an
// address, host:port, at which rank 0 will be. NCCL then makes the same id of it on every rank, so that each rank makes its
// own, and rank 0 needs not come first. The others find no rank 0 that has another value.
//
// As all ids are the same only one communicator may be on its way at a time.
type NCCLCommID struct {
	// At is the place of this process; the zero Place is looked for in the environment.
	At Place
}

// Place returns the rank of this process and how many there are.
func (n NCCLCommID) Place() (rank, count int, err error) {
	p, err := n.At.resolve()
	return p.Rank, p.Count, err
}

// EachRankMakesID reports that every rank is to make an id, and to pass it to Share.
func (n NCCLCommID) EachRankMakesID() bool { return true }

// Share returns the id.
func (n NCCLCommID) Share(_ context.Context, name string, id []byte) ([]byte, error) {
	if secureenv.Get(commID) == "" {
		return nil, fmt.Errorf("rendezvous: %s: %s is not set, so that the ids of the ranks differ: set it to the same host:port on all ranks",
			exchange(name, Place{}), commID)
	}
	if len(id) == 0 {
		return nil, fmt.Errorf("rendezvous: %s by %s: this rank has made no id, and nobody passes one", exchange(name, Place{}), commID)
	}
	return id, nil
}
