package rendezvous

import (
	"context"
	"errors"
	"fmt"
)

// A Func exchanges ids by a function of the program, over the program's own store.
type Func struct {
	// At is the place of this process; the zero Place means the place in the environment.
	At Place

	// Exchange returns rank 0's id on all ranks. The argument id is rank 0's id on rank 0, and nil
	// on the other ranks. Exchange must return when the context ends. Exchanges at the
	// same time have different names. A later exchange may have the name of one that is over, and
	// must not return its id.
	Exchange func(ctx context.Context, name string, id []byte) ([]byte, error)
}

// Place returns the rank of this process and the number of ranks.
func (f Func) Place() (rank, count int, err error) {
	p, err := f.At.resolve()
	return p.Rank, p.Count, err
}

// Share sends rank 0's id to the other ranks, which pass nil.
func (f Func) Share(ctx context.Context, name string, id []byte) ([]byte, error) {
	if f.Exchange == nil {
		return nil, errors.New("rendezvous: Func has no Exchange")
	}
	got, err := f.Exchange(ctx, name, id)
	if err == nil && len(got) == 0 {
		err = errors.New("the function has returned no id")
	}
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s by a function: %w", exchange(name, Place{}), err)
	}
	return got, nil
}
