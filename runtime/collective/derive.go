package collective

import (
	"context"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Split divides the communicator into new communicators. Ranks that pass the same color form a new
// communicator, ordered by key and then by rank. All ranks must call Split. A rank that passes
// [NoColor] gets a nil communicator. Split waits for earlier operations and for the other ranks, at
// most until the context ends. Other goroutines must not submit operations during the call. The new
// communicator inherits the name and the timeout, and stays open when this communicator is closed.
// If the library has begun to make the new communicator and cannot finish, for example because the
// context ends before all ranks have called Split, this communicator fails too: only aborting this
// communicator stops the library.
func (c *Communicator) Split(ctx context.Context, color, key int) (*Communicator, error) {
	made, err := c.in().Split(ctx, color, key)
	return (*Communicator)(made), err
}

// NoColor is the color of a rank that gets no communicator from [Communicator.Split].
const NoColor = driver.NoColor

// Shrink makes a communicator of all ranks except the excluded ones, which must not call Shrink.
// With abort, this communicator and its unfinished operations fail first: set abort after a rank
// has died. Without abort, Shrink first waits until the unfinished operations are done. In both
// cases Shrink then waits for the other ranks, at most until the context ends. If some rank has not
// called Shrink by then, Shrink returns an error, and without abort this communicator fails, as
// with [Communicator.Split].
//
// A communicator that has already failed cannot be shrunk, even if it failed because the library
// found that a rank is gone: close it, and make a new one. The remaining ranks need not call Shrink
// at the same time: a call with abort does not end the communicator on ranks that have yet to call
// Shrink. If the library does not return from a group, because a rank has never connected, Shrink
// cannot begin. With abort, the communicator is then aborted when the context of Shrink, the
// group's context or the group's timeout ends.
func (c *Communicator) Shrink(ctx context.Context, abort bool, exclude ...int) (*Communicator, error) {
	made, err := c.in().Shrink(ctx, abort, exclude...)
	return (*Communicator)(made), err
}
