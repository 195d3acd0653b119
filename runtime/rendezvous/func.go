package rendezvous

import (
	"context"
	"errors"
	"fmt"
)

// A Func passes ids by a function of the program's, over a store that it has.
type Func struct {
	// At is the place of this process; the zero Place is looked for in the environment.
	At Place

	// Exchange returns on all ranks what one of them, whose id is not nil, has. It must end with the context. Names tell several
	// exchanges apart; the same one may come again.
	Exchange func(ctx context.Context, name string, id []byte) ([]byte, error)
}

// Place returns the rank of this process and how many there are.
func (f Func) Place() (rank, count int, err error) {
	p, err := f.At.resolve()
	return p.Rank, p.Count, err
}

// Share passes id from the one who has one to the others, who pass nil.
func (f Func) Share(ctx context.Context, name string, id []byte) ([]byte, error) {
	if f.Exchange == nil {
		return nil, errors.New("rendezvous: Func has no Exchange")
	}
	got, err := f.Exchange(ctx, name, id)
	if err == nil && len(got) == 0 {
		err = errors.New("the function has returned nothing")
	}
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s by a function: %w", exchange(name, Place{}), err)
	}
	return got, nil
}
