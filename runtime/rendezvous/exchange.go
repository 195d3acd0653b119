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

// maxID is the size of the largest thing to pass: ids are small, and what is announced as large is nonsense.
const maxID = 1 << 16

// checkID checks what rank 0 passes.
func checkID(id []byte) error {
	if len(id) == 0 || len(id) > maxID {
		return fmt.Errorf("rank 0 passes %d bytes; it must be from 1 to %d", len(id), maxID)
	}
	return nil
}

// token tells an exchange from those of other names and of other runs.
func token(run, name string) [sha256.Size]byte {
	b := binary.AppendUvarint([]byte("puregpu rendezvous\n"), uint64(len(run)))
	return sha256.Sum256(append(append(b, run...), name...))
}

// exchange describes an exchange in an error.
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

// come says who has come, of whom rank 0 waits for.
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

// distinct returns each rank once, but -1, which stands for one that is not known, as often as it is there.
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

// backoff waits for longer and longer.
type backoff struct{ next, most time.Duration }

// wait returns the context's error if it ends first.
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

// errOf joins what ended an exchange with the latest thing that went wrong, if that says more.
func errOf(end, last error) error {
	if last == nil || errors.Is(last, end) {
		return end
	}
	return fmt.Errorf("%w; last: %w", end, last)
}
