package rendezvous

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxID is the largest size of an id. A larger announced size is refused.
const maxID = 1 << 16

// checkID checks the id that rank 0 sends.
func checkID(id []byte) error {
	if len(id) == 0 || len(id) > maxID {
		return fmt.Errorf("rank 0 passes %d bytes; it must be from 1 to %d", len(id), maxID)
	}
	return nil
}

// token returns a hash that distinguishes an exchange from exchanges of other names and runs.
func token(run, name string) [sha256.Size]byte {
	b := binary.AppendUvarint([]byte("puregpu rendezvous\n"), uint64(len(run)))
	return sha256.Sum256(append(append(b, run...), name...))
}

// exchange returns the text that describes an exchange in an error.
func exchange(name string, p Place) string {
	s := "exchange"
	if name != "" {
		s += " " + strconv.Quote(name)
	}
	if p.Run != "" {
		s += " of run " + strconv.Quote(p.Run)
	}
	return s
}

// come returns a text for errors: the ranks that rank 0 has seen, and the number of all other
// ranks.
func come(ranks []int, others int) string {
	s := fmt.Sprintf("%d of %d other ranks have come", len(ranks), others)
	known := slices.DeleteFunc(slices.Clone(ranks), func(r int) bool { return r < 0 })
	if len(known) == 0 {
		return s
	}
	var list []string
	for i, r := range known {
		if i == 16 {
			list = append(list, "…")
			break
		}
		list = append(list, strconv.Itoa(r))
	}
	return s + " (" + strings.Join(list, ", ") + ")"
}

// distinct returns each rank once. -1 is an unknown rank, and distinct keeps every -1.
func distinct(ranks []int) []int {
	slices.Sort(ranks)
	var d []int
	for _, r := range ranks {
		if r < 0 || len(d) == 0 || r != d[len(d)-1] {
			d = append(d, r)
		}
	}
	return d
}

// A backoff waits longer each time.
type backoff struct{ next, most time.Duration }

// wait waits for b.next, and doubles b.next, up to b.most. If the context ends first, wait returns
// the cause.
func (b *backoff) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(b.next)
	defer t.Stop()
	b.next = min(2*b.next, b.most)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// errOf returns an error that wraps the errors end and last. end has ended an exchange, and last is
// the last error before end. If last is nil or wraps end, errOf returns end alone.
func errOf(end, last error) error {
	if last == nil || errors.Is(last, end) {
		return end
	}
	return fmt.Errorf("%w; last: %w", end, last)
}
