package rendezvous

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// commID is the environment variable that NCCL and RCCL read.
const commID = "NCCL_COMM_ID"

// An NCCLCommID exchanges nothing. Use it if all processes have the same NCCL_COMM_ID in their
// environments: rank 0's address, host:port. NCCL then makes the same id from that address on every
// rank, and rank 0 need not come first. A rank with another NCCL_COMM_ID does not find rank 0.
//
// Only one communicator may be made at a time, because all ids are the same.
type NCCLCommID struct {
	// At is the place of this process; the zero Place means the place in the environment.
	At Place
}

// Place returns the rank of this process and the number of ranks.
func (n NCCLCommID) Place() (rank, count int, err error) {
	p, err := n.At.resolve()
	return p.Rank, p.Count, err
}

// EachRankMakesID reports that every rank makes an id and passes it to Share.
func (n NCCLCommID) EachRankMakesID() bool { return true }

// Share returns id, which this rank has made. It exchanges nothing.
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
