package rendezvous

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// commID is the variable that NCCL and RCCL read.
const commID = "NCCL_COMM_ID"

// An NCCLCommID passes nothing. Use it if all processes have the same NCCL_COMM_ID in their
// environments: the address, host:port, at which rank 0 will be. NCCL then makes the same id from
// it on every rank, and rank 0 need not come first. A rank with another value finds no rank 0.
//
// As all ids are the same, only one communicator may be made at a time.
type NCCLCommID struct {
	// At is the place of this process; the zero Place is looked up in the environment.
	At Place
}

// Place returns the rank of this process and the number of ranks.
func (n NCCLCommID) Place() (rank, count int, err error) {
	p, err := n.At.resolve()
	return p.Rank, p.Count, err
}

// EachRankMakesID reports that every rank makes an id and passes it to Share.
func (n NCCLCommID) EachRankMakesID() bool { return true }

// Share returns the id.
func (n NCCLCommID) Share(_ context.Context, name string, id []byte) ([]byte, error) {
	if secureenv.Get(commID) == "" {
		return nil, fmt.Errorf("rendezvous: %s: %s is not set: set it to the same host:port on all ranks",
			exchange(name, Place{}), commID)
	}
	if len(id) == 0 {
		return nil, fmt.Errorf("rendezvous: %s by %s: this rank has made no id", exchange(name, Place{}), commID)
	}
	return id, nil
}
